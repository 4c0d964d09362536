#include "proto/wire/failure.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/*
 * The rows of the HTTP contract that the agent can cause, at the index of their failure code, and
 * the error that stands for them. Codes that only the HTTP server knows are its own.
 */
static const struct {
	const char *name;
	enum error_code error;
	unsigned http_status;
} failures[] = {
	[GOHEAPD__FAILURE_CODE__FAILURE_INTERNAL] = { "internal", ERROR_SYSTEM, 500 },
	[GOHEAPD__FAILURE_CODE__FAILURE_BAD_REQUEST] = { "bad_request", ERROR_BAD_REQUEST, 400 },
	[GOHEAPD__FAILURE_CODE__FAILURE_FORBIDDEN] = { "forbidden", ERROR_FORBIDDEN, 403 },
	[GOHEAPD__FAILURE_CODE__FAILURE_ATTACH_DENIED] = { "attach_denied", ERROR_DENIED, 403 },
	[GOHEAPD__FAILURE_CODE__FAILURE_NO_SUCH_PROCESS] = { "no_such_process", ERROR_NO_PROCESS,
							     404 },
	[GOHEAPD__FAILURE_CODE__FAILURE_ALREADY_TRACED] = { "already_traced", ERROR_ALREADY_TRACED,
							    409 },
	[GOHEAPD__FAILURE_CODE__FAILURE_AMBIGUOUS] = { "ambiguous", ERROR_AMBIGUOUS, 409 },
	[GOHEAPD__FAILURE_CODE__FAILURE_PROCESS_CHANGED] = { "process_changed",
							     ERROR_PROCESS_CHANGED, 409 },
	[GOHEAPD__FAILURE_CODE__FAILURE_NOT_STOPPABLE] = { "not_stoppable", ERROR_NOT_STOPPABLE,
							   409 },
	[GOHEAPD__FAILURE_CODE__FAILURE_FORK_UNSAFE] = { "fork_unsafe", ERROR_FORK_UNSAFE, 409 },
	[GOHEAPD__FAILURE_CODE__FAILURE_PROCESS_EXITED] = { "process_exited", ERROR_GONE, 410 },
	[GOHEAPD__FAILURE_CODE__FAILURE_NOT_GO] = { "not_go", ERROR_NOT_GO, 422 },
	[GOHEAPD__FAILURE_CODE__FAILURE_UNSUPPORTED_ARCH] = { "unsupported_arch",
							      ERROR_UNSUPPORTED_ARCH, 422 },
	[GOHEAPD__FAILURE_CODE__FAILURE_UNSUPPORTED_RUNTIME] = { "unsupported_runtime",
								 ERROR_UNSUPPORTED, 422 },
	[GOHEAPD__FAILURE_CODE__FAILURE_NO_DEBUG_INFO] = { "no_debug_info", ERROR_NO_DEBUG_INFO,
							   422 },
	[GOHEAPD__FAILURE_CODE__FAILURE_CORRUPT_TARGET] = { "corrupt_target", ERROR_CORRUPT_TARGET,
							    422 },
	[GOHEAPD__FAILURE_CODE__FAILURE_BUSY] = { "busy", ERROR_BUSY, 429 },
	[GOHEAPD__FAILURE_CODE__FAILURE_AGENT_UNAVAILABLE] = { "agent_unavailable",
							       ERROR_AGENT_UNAVAILABLE, 503 },
	[GOHEAPD__FAILURE_CODE__FAILURE_OUT_OF_MEMORY] = { "out_of_memory", ERROR_OUT_OF_MEMORY,
							   503 },
	[GOHEAPD__FAILURE_CODE__FAILURE_TIMEOUT] = { "timeout", ERROR_TIMEOUT, 504 },
	[GOHEAPD__FAILURE_CODE__FAILURE_PAUSE_EXCEEDED] = { "pause_exceeded", ERROR_PAUSE_EXCEEDED,
							    504 },
	[GOHEAPD__FAILURE_CODE__FAILURE_LABEL_RECOVERY_FAILED] = { "label_recovery_failed",
								   ERROR_LABEL_RECOVERY_FAILED,
								   422 },
	[GOHEAPD__FAILURE_CODE__FAILURE_STRING_MISSING] = { "string_missing", ERROR_STRING_MISSING,
							    422 },
	[GOHEAPD__FAILURE_CODE__FAILURE_TOO_MANY_LABELS] = { "too_many_labels",
							     ERROR_TOO_MANY_LABELS, 400 },
	[GOHEAPD__FAILURE_CODE__FAILURE_EMPTY_LABEL_KEY] = { "empty_label_key",
							     ERROR_EMPTY_LABEL_KEY, 400 },
	[GOHEAPD__FAILURE_CODE__FAILURE_LABEL_TOO_LONG] = { "label_too_long", ERROR_LABEL_TOO_LONG,
							    400 },
	[GOHEAPD__FAILURE_CODE__FAILURE_NOT_FOUND] = { "not_found", ERROR_NOT_FOUND, 404 },
};

Goheapd__FailureCode failure_of_error(enum error_code code)
{
	switch (code) {
	/* ours before it is the target's: a scan that could not get memory */
	case ERROR_NOMEM:
		return GOHEAPD__FAILURE_CODE__FAILURE_OUT_OF_MEMORY;
	/* what is not readable, does not parse or never ends came from the target's memory or files
	 */
	case ERROR_FAULT:
	case ERROR_FORMAT:
	case ERROR_LIMIT:
		return GOHEAPD__FAILURE_CODE__FAILURE_CORRUPT_TARGET;
	default:
		break;
	}
	for (size_t i = 0; i < COUNT(failures); i++)
		if (failures[i].error == code)
			return (Goheapd__FailureCode)i;
	return GOHEAPD__FAILURE_CODE__FAILURE_INTERNAL;
}

/* The table's row, or that of an internal failure for a number from outside that has none. */
static size_t row_of(Goheapd__FailureCode code)
{
	return (size_t)code < COUNT(failures) ? (size_t)code
					      : (size_t)GOHEAPD__FAILURE_CODE__FAILURE_INTERNAL;
}

enum error_code failure_to_error(Goheapd__FailureCode code)
{
	return failures[row_of(code)].error;
}

const char *failure_name(Goheapd__FailureCode code)
{
	return failures[row_of(code)].name;
}

unsigned failure_http_status(Goheapd__FailureCode code)
{
	return failures[row_of(code)].http_status;
}

void failure_from_error(const struct error *err, Goheapd__Failure *ret)
{
	const char *message = error_message(err);

	goheapd__failure__init(ret);
	ret->code = failure_of_error(error_code(err));
	ret->message.data = (uint8_t *)(uintptr_t)message;
	ret->message.len = strlen(message);
}

struct error *failure_make_error(const Goheapd__Failure *failure)
{
	enum { MESSAGE_MAX = 4096 };
	int size = failure->message.len < MESSAGE_MAX ? (int)failure->message.len : MESSAGE_MAX;

	/* %.*s stops at a NUL by itself */
	return error_new(failure_to_error(failure->code), "%.*s", size,
			 size ? (const char *)failure->message.data : "");
}
