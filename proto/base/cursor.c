#include "proto/base/cursor.h"

#include <inttypes.h>
#include <string.h>

#include "proto/base/bytes.h"

enum { UVARINT_MAX_BYTES = 10 };

void cursor_init(struct cursor *c, const char *name, const void *bytes, size_t size)
{
	*c = (struct cursor){ .start = bytes, .pos = bytes, .name = name };
	c->end = c->start + size;
}

struct error *cursor_take(struct cursor *c, uint64_t size, const uint8_t **ret)
{
	if (size > cursor_left(c))
		return error_new(ERROR_FORMAT, "%s+0x%tx: need %" PRIu64 " bytes, have %zu",
				 c->name, c->pos - c->start, size, cursor_left(c));
	*ret = c->pos;
	c->pos += size;
	return NULL;
}

struct error *cursor_skip(struct cursor *c, uint64_t size)
{
	const uint8_t *skipped;

	return cursor_take(c, size, &skipped);
}

struct error *cursor_seek(struct cursor *c, uint64_t offset)
{
	if (offset > (uint64_t)(c->end - c->start))
		return error_new(ERROR_FORMAT,
				 "%s: offset 0x%" PRIx64 " lies beyond its 0x%tx bytes", c->name,
				 offset, c->end - c->start);
	c->pos = c->start + offset;
	return NULL;
}

struct error *cursor_u8(struct cursor *c, uint8_t *ret)
{
	const uint8_t *p;
	struct error *err = cursor_take(c, 1, &p);

	if (err)
		return err;
	*ret = *p;
	return NULL;
}

struct error *cursor_u16le(struct cursor *c, uint16_t *ret)
{
	const uint8_t *p;
	struct error *err = cursor_take(c, 2, &p);

	if (err)
		return err;
	*ret = load_u16le(p);
	return NULL;
}

struct error *cursor_u32le(struct cursor *c, uint32_t *ret)
{
	const uint8_t *p;
	struct error *err = cursor_take(c, 4, &p);

	if (err)
		return err;
	*ret = load_u32le(p);
	return NULL;
}

struct error *cursor_u64le(struct cursor *c, uint64_t *ret)
{
	const uint8_t *p;
	struct error *err = cursor_take(c, 8, &p);

	if (err)
		return err;
	*ret = load_u64le(p);
	return NULL;
}

struct error *cursor_uvarint(struct cursor *c, uint64_t *ret)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < UVARINT_MAX_BYTES; i++) {
		uint8_t byte;
		struct error *err = cursor_u8(c, &byte);

		if (err)
			return err;
		/* the tenth byte holds the one bit that is left of 64 */
		if (i == UVARINT_MAX_BYTES - 1 && byte > 1)
			break;
		value |= (uint64_t)(byte & 0x7f) << 7 * i;
		if (!(byte & 0x80)) {
			*ret = value;
			return NULL;
		}
	}
	return error_new(ERROR_FORMAT, "%s+0x%tx: a number of more than 64 bits", c->name,
			 c->pos - c->start);
}

struct error *cursor_string(struct cursor *c, const char **ret)
{
	const uint8_t *nul = c->pos == c->end ? NULL : memchr(c->pos, 0, cursor_left(c));

	if (!nul)
		return error_new(ERROR_FORMAT, "%s+0x%tx: a string without an end", c->name,
				 c->pos - c->start);
	*ret = (const char *)c->pos;
	c->pos = nul + 1;
	return NULL;
}

struct error *cursor_count(struct cursor *c, size_t min_size, uint32_t *ret)
{
	uint32_t n;
	struct error *err = cursor_u32le(c, &n);

	if (err)
		return err;
	if (n > cursor_left(c) / min_size)
		return error_new(ERROR_FORMAT, "%s: %" PRIu32 " items do not fit", c->name, n);
	*ret = n;
	return NULL;
}
