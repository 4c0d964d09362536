#include "daemon/text.h"

#include <stdio.h>

#include "daemon/utf8.h"

/* A page is a list of what a target holds; one that is larger than this is of no use to anybody. */
enum { TEXT_MAX_BYTES = 1 << 30 };

void text_init(struct text *text)
{
	bytes_init(&text->bytes, TEXT_MAX_BYTES);
	text->err = NULL;
}

void text_fini(struct text *text)
{
	bytes_fini(&text->bytes);
	error_free(take(text->err));
}

void text_fail(struct text *text, struct error *err)
{
	if (text->err)
		error_free(err);
	else
		text->err = err;
}

void text_append(struct text *text, const void *data, size_t size)
{
	if (!text->err)
		text->err = bytes_append(&text->bytes, data, size);
}

void text_string(struct text *text, const char *string)
{
	text_append(text, string, strlen(string));
}

void text_printf(struct text *text, const char *format, ...)
{
	char *line scoped(freep) = NULL;
	va_list args;
	int size;

	va_start(args, format);
	size = vasprintf(&line, format, args);
	va_end(args);
	if (size < 0) {
		line = NULL;
		text_fail(text, &error_nomem);
		return;
	}
	text_append(text, line, (size_t)size);
}

static void append_escape(struct text *text, uint32_t code)
{
	text_printf(text, code < 0x100 ? "\\x%02x" : "\\u%04x", (unsigned)code);
}

size_t text_escaped(struct text *text, ProtobufCBinaryData bytes, size_t max_columns)
{
	const uint8_t *end = bytes.len ? bytes.data + bytes.len : bytes.data;
	size_t columns = 0;

	for (const uint8_t *pos = bytes.data; pos < end;) {
		const uint8_t *start = pos;
		uint32_t code = utf8_next(&pos, end);

		if (columns + 1 >= max_columns && pos < end) {
			text_string(text, "…");
			return columns + 1;
		}
		if (utf8_is_control(code)) {
			append_escape(text, code);
			columns += code < 0x100 ? 4 : 6;
		} else if (code == UTF8_REPLACEMENT) {
			text_string(text, "\xef\xbf\xbd");
			columns++;
		} else {
			text_append(text, start, (size_t)(pos - start));
			columns++;
		}
	}
	return columns;
}

/* Characters since the last newline. */
static size_t current_column(const struct text *text)
{
	const uint8_t *data = text->bytes.data;
	size_t start = text->bytes.size, columns = 0;

	while (start > 0 && data[start - 1] != '\n')
		start--;
	for (size_t i = start; i < text->bytes.size; i++)
		columns += (data[i] & 0xc0) != 0x80; /* not a continuation byte */
	return columns;
}

void text_pad(struct text *text, size_t column, size_t min)
{
	size_t now = current_column(text);
	size_t count = now < column && column - now > min ? column - now : min;

	text_printf(text, "%*s", (int)count, "");
}

void text_end_line(struct text *text)
{
	struct bytes *bytes = &text->bytes;

	while (bytes->size && bytes->data[bytes->size - 1] == ' ')
		bytes->size--;
	text_string(text, "\n");
}

struct error *text_finish(struct text *text)
{
	return take(text->err);
}
