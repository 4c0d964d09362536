#include "proto/base/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct error {
	enum error_code code;
	bool is_static; /* error_nomem, which nobody frees */
	char *message;
};

static char nomem_message[] = "out of memory";
struct error error_nomem = { .code = ERROR_NOMEM, .is_static = true, .message = nomem_message };

/* Takes over message; NULL, from a failed asprintf, becomes the static error. */
static struct error *from_message(enum error_code code, char *message)
{
	struct error *err;

	if (!message)
		return &error_nomem;
	err = malloc(sizeof(*err));
	if (!err) {
		free(message);
		return &error_nomem;
	}
	*err = (struct error){ .code = code, .message = message };
	return err;
}

static __attribute__((format(printf, 1, 0))) char *format_text(const char *format, va_list args)
{
	char *text;

	return vasprintf(&text, format, args) < 0 ? NULL : text;
}

/* "first: second", or NULL. */
static char *join(const char *first, const char *second)
{
	char *text;

	return asprintf(&text, "%s: %s", first, second) < 0 ? NULL : text;
}

struct error *error_new(enum error_code code, const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	text = format_text(format, args);
	va_end(args);
	return from_message(code, text);
}

static enum error_code code_of_errno(int errnum)
{
	switch (errnum) {
	case ENOMEM:
		return ERROR_NOMEM;
	case EPERM:
	case EACCES:
		return ERROR_DENIED;
	case ESRCH:
		return ERROR_GONE;
	default:
		return ERROR_SYSTEM;
	}
}

struct error *error_system(int errnum, const char *format, ...)
{
	char *text scoped(freep) = NULL;
	char reason[128];
	va_list args;

	va_start(args, format);
	text = format_text(format, args);
	va_end(args);
	if (!text)
		return &error_nomem;
	return from_message(code_of_errno(errnum),
			    join(text, strerror_r(errnum, reason, sizeof(reason))));
}

struct error *error_context(struct error *err, const char *format, ...)
{
	char *text scoped(freep) = NULL;
	char *message;
	va_list args;

	if (err->is_static)
		return err;
	va_start(args, format);
	text = format_text(format, args);
	va_end(args);
	message = text ? join(text, err->message) : NULL;
	if (!message) {
		error_free(err);
		return &error_nomem;
	}
	free(err->message);
	err->message = message;
	return err;
}

struct error *error_recode(struct error *err, enum error_code code)
{
	if (!err->is_static)
		err->code = code;
	return err;
}

enum error_code error_code(const struct error *err)
{
	return err->code;
}

const char *error_message(const struct error *err)
{
	return err->message;
}

void error_free(struct error *err)
{
	if (!err || err->is_static)
		return;
	free(err->message);
	free(err);
}
