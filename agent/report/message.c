#include "agent/report/message.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct error *message_bytes(const void *data, size_t size, ProtobufCBinaryData *ret)
{
	uint8_t *copy;

	if (!size) {
		*ret = (ProtobufCBinaryData){ 0 };
		return NULL;
	}
	copy = malloc(size);
	if (!copy)
		return &error_nomem;
	memcpy(copy, data, size);
	*ret = (ProtobufCBinaryData){ .len = size, .data = copy };
	return NULL;
}

struct error *message_text(const char *text, ProtobufCBinaryData *ret)
{
	return message_bytes(text, strlen(text), ret);
}

struct error *message_function(const char *name, ProtobufCBinaryData *ret)
{
	const char *open = strchr(name, '['), *close = strrchr(name, ']');
	char *printed scoped(freep) = NULL;

	if (!open || !close || close < open)
		return message_text(name, ret);
	if (asprintf(&printed, "%.*s[...]%s", (int)(open - name), name, close + 1) < 0) {
		printed = NULL;
		return &error_nomem;
	}
	return message_text(printed, ret);
}

struct error *message_string(const char *text, char **ret)
{
	char *copy = strdup(text);

	if (!copy)
		return &error_nomem;
	*ret = copy;
	return NULL;
}

struct error *message_reserve(void ***array, size_t count)
{
	size_t room = count ? count * 2 : 1;
	void **grown;

	/* Full only at powers of two: between them the last doubling left room. */
	if (count & (count - 1))
		return NULL;
	grown = reallocarray(*array, room, sizeof(**array));
	if (!grown)
		return &error_nomem;
	*array = grown;
	return NULL;
}

static struct error *add_warning(Goheapd__ScanInfo *scan, const char *code, const char *message)
{
	Goheapd__Warning *warning;
	struct error *err = message_reserve((void ***)&scan->warnings, scan->n_warnings);

	if (err)
		return err;
	warning = malloc(sizeof(*warning));
	if (!warning)
		return &error_nomem;
	goheapd__warning__init(warning);
	scan->warnings[scan->n_warnings++] = warning;
	err = message_string(code, &warning->code);
	if (err)
		return err;
	return message_text(message, &warning->message);
}

struct error *message_warn(Goheapd__ScanInfo *scan, const char *code, const char *format, ...)
{
	char *message scoped(freep) = NULL;
	va_list args;
	int length;

	va_start(args, format);
	length = vasprintf(&message, format, args);
	va_end(args);
	if (length < 0) {
		message = NULL;
		return &error_nomem;
	}
	return add_warning(scan, code, message);
}
