/*
 * Text that is kept once: each string has its offset in one run of bytes, in which it ends in a
 * NUL.
 */
#ifndef AGENT_BINARY_STRING_POOL_H
#define AGENT_BINARY_STRING_POOL_H

#include <stdint.h>

#include "proto/base/bytes.h"

struct string_pool {
	struct bytes text;           /* begins with the empty string */
	uint32_t *places;            /* open addressing; 0: empty */
	uint32_t count, place_count; /* place_count is a power of two */
};

/* The text may grow to limit bytes, at most to what 32 bits can tell. */
must_check struct error *string_pool_init(struct string_pool *pool, size_t limit);
void string_pool_fini(struct string_pool *pool);

/* Adds a string unless it is there. The empty string is at offset 0. */
must_check struct error *string_pool_add(struct string_pool *pool, const char *text, size_t size,
					 uint32_t *ret);

static inline const char *string_pool_at(const struct string_pool *pool, uint32_t offset)
{
	return (const char *)pool->text.data + offset;
}

#endif
