#include "daemon/utf8.h"

#include <stdlib.h>
#include <string.h>

/* By the sequence's length: which bits of the first byte count, and the least code it may say. */
static const struct {
	uint8_t bits;
	uint32_t least;
} forms[] = {
	[2] = { 0x1f, 0x80 },
	[3] = { 0x0f, 0x800 },
	[4] = { 0x07, 0x10000 },
};

static size_t sequence_length(uint8_t first)
{
	if (first >= 0xf0)
		return first < 0xf8 ? 4 : 0;
	if (first >= 0xe0)
		return 3;
	return first >= 0xc0 ? 2 : 0;
}

static bool is_scalar(uint32_t code)
{
	return code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
}

uint32_t utf8_next(const uint8_t **pos, const uint8_t *end)
{
	const uint8_t *p = *pos;
	size_t length;
	uint32_t code;

	*pos = p + 1;
	if (*p < 0x80)
		return *p;
	length = sequence_length(*p);
	if (length == 0 || length > (size_t)(end - p))
		return UTF8_REPLACEMENT;
	code = *p & forms[length].bits;
	for (size_t i = 1; i < length; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return UTF8_REPLACEMENT;
		code = code << 6 | (p[i] & 0x3f);
	}
	if (code < forms[length].least || !is_scalar(code))
		return UTF8_REPLACEMENT;
	*pos = p + length;
	return code;
}

bool utf8_is_control(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0) ||       /* C0, DEL, C1 */
	       code == 0x061c || code == 0x200e || code == 0x200f || /* direction marks */
	       (code >= 0x2028 && code <= 0x202e) || /* line ends, embeddings, overrides */
	       (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;
}

char *utf8_clean(const void *bytes, size_t size, size_t *ret_size)
{
	static const char replacement[] = "\xef\xbf\xbd";
	const uint8_t *pos = bytes,
		      *end = size ? pos + size : pos; /* of nothing there is no address */
	char *copy, *out;

	if (size > SIZE_MAX / 3 - 1)
		return NULL;
	copy = out = malloc(size * 3 + 1); /* an invalid byte becomes three */
	if (!copy)
		return NULL;
	while (pos < end) {
		const uint8_t *start = pos;
		uint32_t code = utf8_next(&pos, end);
		size_t length = (size_t)(pos - start);

		if (code == UTF8_REPLACEMENT) {
			memcpy(out, replacement, 3);
			length = 3;
		} else {
			memcpy(out, start, length);
		}
		out += length;
	}
	*out = '\0';
	*ret_size = (size_t)(out - copy);
	return copy;
}
