/*
 * Reading bytes from outside that we hold: ELF sections, tables copied from a target, files and
 * messages. The cursor borrows the bytes. Every read is checked in cursor_take and nowhere else.
 */
#ifndef PROTO_BASE_CURSOR_H
#define PROTO_BASE_CURSOR_H

#include <stddef.h>
#include <stdint.h>

#include "proto/base/error.h"

struct cursor {
	const uint8_t *start, *pos, *end;
	const char
	    *name; /* what is being parsed, for messages; a literal or outliving the cursor */
};

void cursor_init(struct cursor *c, const char *name, const void *bytes, size_t size);

static inline size_t cursor_left(const struct cursor *c)
{
	return (size_t)(c->end - c->pos);
}

/* Points *ret at the next size bytes and steps over them. ERROR_FORMAT if they are not there. */
must_check struct error *cursor_take(struct cursor *c, uint64_t size, const uint8_t **ret);
must_check struct error *cursor_skip(struct cursor *c, uint64_t size);

/* Goes to an offset from the start; ERROR_FORMAT if it lies beyond the end. */
must_check struct error *cursor_seek(struct cursor *c, uint64_t offset);

must_check struct error *cursor_u8(struct cursor *c, uint8_t *ret);
must_check struct error *cursor_u16le(struct cursor *c, uint16_t *ret);
must_check struct error *cursor_u32le(struct cursor *c, uint32_t *ret);
must_check struct error *cursor_u64le(struct cursor *c, uint64_t *ret);

/* LEB128, as pclntab and Go's build info use it; at most 10 bytes. */
must_check struct error *cursor_uvarint(struct cursor *c, uint64_t *ret);

/* A NUL-terminated string, which stays in the borrowed bytes. */
must_check struct error *cursor_string(struct cursor *c, const char **ret);

/* Reads a count of items of min_size bytes or more; one the input cannot fill is refused here. */
must_check struct error *cursor_count(struct cursor *c, size_t min_size, uint32_t *ret);

#endif
