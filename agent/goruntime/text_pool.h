/*
 * Room for many small things that stay where they are until all are freed at once: names, fields.
 * Bounded.
 */
#ifndef AGENT_GORUNTIME_TEXT_POOL_H
#define AGENT_GORUNTIME_TEXT_POOL_H

#include <stddef.h>

#include "proto/base/error.h"

struct text_pool {
	struct text_chunk *chunks;
	size_t left;  /* of the first chunk */
	size_t total; /* bytes of all chunks */
	size_t limit;
};

void text_pool_init(struct text_pool *pool, size_t limit);
void text_pool_fini(struct text_pool *pool);

/* Zeroed and aligned to 8; ERROR_LIMIT beyond the limit. */
must_check struct error *text_pool_take(struct text_pool *pool, size_t size, void **ret);

/* A copy that ends in NUL. */
must_check struct error *text_pool_copy(struct text_pool *pool, const char *text, size_t size,
					const char **ret);

#endif
