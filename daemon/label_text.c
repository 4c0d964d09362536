#include "daemon/label_text.h"

#include <string.h>

enum { UTF8_MAX_BYTES = 4, QUOTED_MAX_BYTES = 6 /* \uNNNN for a character */ };

static bool is_special(uint8_t c)
{
	return c <= ' ' || c == 0x7f || strchr("\",=\\{}", c);
}

static bool needs_quotes(ProtobufCBinaryData part)
{
	for (size_t i = 0; i < part.len; i++) {
		if (is_special(part.data[i]))
			return true;
	}
	return part.len == 0;
}

static void append_quoted(struct text *text, ProtobufCBinaryData part)
{
	const uint8_t *pos = part.data, *end = part.len ? pos + part.len : pos;

	text_string(text, "\"");
	while (pos < end) {
		const uint8_t *start = pos;
		ProtobufCBinaryData run = { .data = (uint8_t *)(uintptr_t)start };

		while (pos < end && *pos != '"' && *pos != '\\')
			pos++;
		run.len = (size_t)(pos - start);
		text_escaped(text, run, SIZE_MAX);
		if (pos < end)
			text_printf(text, "\\%c", *pos++);
	}
	text_string(text, "\"");
}

/* Of a long part no more than will be seen. */
static void append_part(struct text *text, ProtobufCBinaryData part, size_t max_columns)
{
	if (part.len > max_columns * UTF8_MAX_BYTES)
		part.len = max_columns * UTF8_MAX_BYTES;
	if (needs_quotes(part))
		append_quoted(text, part);
	else
		text_escaped(text, part, SIZE_MAX);
}

/* Takes whole over: what fits goes to text. */
static void append_cut(struct text *text, struct text *whole, size_t max_columns)
{
	struct error *err = text_finish(whole);

	if (err)
		text_fail(text, err);
	else
		text_escaped(
		    text,
		    (ProtobufCBinaryData){ .len = whole->bytes.size, .data = whole->bytes.data },
		    max_columns);
	text_fini(whole);
}

void text_label_part(struct text *text, ProtobufCBinaryData part, size_t max_columns)
{
	struct text whole;

	text_init(&whole);
	append_part(&whole, part, max_columns);
	append_cut(text, &whole, max_columns);
}

void text_labels(struct text *text, Goheapd__LabelPair *const *pairs, size_t count,
		 size_t max_columns)
{
	struct text whole;

	text_init(&whole);
	for (size_t i = 0; i < count && whole.bytes.size <= max_columns * QUOTED_MAX_BYTES; i++) {
		text_string(&whole, i ? "," : "");
		append_part(&whole, pairs[i]->key, max_columns);
		text_string(&whole, "=");
		append_part(&whole, pairs[i]->value, max_columns);
	}
	append_cut(text, &whole, max_columns);
}
