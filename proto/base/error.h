/*
 * Errors: a code to branch on and a message to show, which is the chain of what was being done.
 * A function that can fail returns struct error *, NULL being success. Whoever receives an error
 * owns it and either returns it, turns it into an answer or a log line, or frees it.
 */
#ifndef PROTO_BASE_ERROR_H
#define PROTO_BASE_ERROR_H

#include <stdarg.h>
#include <stdbool.h>

#include "proto/base/cleanup.h"

/*
 * The first group says what went wrong anywhere; the second names the refusals and failures that
 * the HTTP contract tells apart (proto/wire/failure.h maps both to its codes).
 */
enum error_code {
	ERROR_NOMEM = 1,
	ERROR_SYSTEM,      /* a system call failed */
	ERROR_GONE,        /* the target exited or exec'd meanwhile: ordinary life */
	ERROR_FAULT,       /* an address in the target is not readable */
	ERROR_FORMAT,      /* bytes do not parse */
	ERROR_UNSUPPORTED, /* a Go version, layout or build mode that we do not know */
	ERROR_LIMIT,       /* well formed, but larger than we agreed to handle */
	ERROR_DENIED,      /* the kernel refused access to the target */

	ERROR_BAD_REQUEST,
	ERROR_FORBIDDEN, /* the caller may not ask this */
	ERROR_NO_PROCESS,
	ERROR_NOT_FOUND, /* of a process that is there: no such object, no such scan */
	ERROR_AMBIGUOUS,
	ERROR_ALREADY_TRACED,
	ERROR_PROCESS_CHANGED, /* not the process that was meant */
	ERROR_NOT_STOPPABLE,
	ERROR_FORK_UNSAFE,
	ERROR_NOT_GO,
	ERROR_UNSUPPORTED_ARCH,
	ERROR_NO_DEBUG_INFO,
	ERROR_CORRUPT_TARGET, /* the target's structures contradict each other */
	ERROR_BUSY,
	ERROR_AGENT_UNAVAILABLE,
	ERROR_OUT_OF_MEMORY, /* the scan would pass its memory limit */
	ERROR_TIMEOUT,
	ERROR_PAUSE_EXCEEDED,
	ERROR_TOO_MANY_LABELS,
	ERROR_EMPTY_LABEL_KEY,
	ERROR_LABEL_TOO_LONG,
	ERROR_LABEL_RECOVERY_FAILED, /* a selection could have missed an unreadable goroutine */
	ERROR_STRING_MISSING,        /* the same, because of a string's bytes */

	ERROR_CODE_END
};

struct error;

/* Says that memory ran out; reporting it needs none. */
extern struct error error_nomem;

must_check struct error *error_new(enum error_code code, const char *format, ...)
    __attribute__((returns_nonnull, format(printf, 2, 3)));

/*
 * A failed system call: the message ends in what errnum means. The code is ERROR_NOMEM for ENOMEM,
 * ERROR_DENIED for EPERM and EACCES, ERROR_GONE for ESRCH, and ERROR_SYSTEM otherwise.
 */
must_check struct error *error_system(int errnum, const char *format, ...)
    __attribute__((returns_nonnull, format(printf, 2, 3)));

/* Consumes err and returns it with the formatted text and ": " before its message. */
must_check struct error *error_context(struct error *err, const char *format, ...)
    __attribute__((returns_nonnull, format(printf, 2, 3)));

/* Consumes err and returns it with another code and the same message. */
must_check struct error *error_recode(struct error *err, enum error_code code)
    __attribute__((returns_nonnull));

enum error_code error_code(const struct error *err);

/* Belongs to err. */
const char *error_message(const struct error *err);

/* NULL is allowed. */
void error_free(struct error *err);
DEFINE_FREEP(error, error_free)

#endif
