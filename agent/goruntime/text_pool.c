#include "agent/goruntime/text_pool.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK_SIZE = 64 << 10, ALIGNMENT = 8 };

struct text_chunk {
	struct text_chunk *next;
	size_t size;
	char bytes[] __attribute__((aligned(ALIGNMENT)));
};

void text_pool_init(struct text_pool *pool, size_t limit)
{
	*pool = (struct text_pool){ .limit = limit };
}

void text_pool_fini(struct text_pool *pool)
{
	while (pool->chunks) {
		struct text_chunk *next = pool->chunks->next;

		free(pool->chunks);
		pool->chunks = next;
	}
}

static struct error *add_chunk(struct text_pool *pool, size_t size)
{
	struct text_chunk *chunk;

	if (size > pool->limit || pool->total > pool->limit - size)
		return error_new(ERROR_LIMIT, "more than %zu bytes of names", pool->limit);
	chunk = calloc(1, sizeof(*chunk) + size);
	if (!chunk)
		return &error_nomem;
	chunk->size = size;
	chunk->next = pool->chunks;
	pool->chunks = chunk;
	pool->total += size;
	pool->left = size;
	return NULL;
}

struct error *text_pool_take(struct text_pool *pool, size_t size, void **ret)
{
	size_t rounded = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);

	if (rounded < size)
		return error_new(ERROR_LIMIT, "%zu bytes of a name", size);
	if (rounded > pool->left) {
		struct error *err =
		    add_chunk(pool, rounded > CHUNK_SIZE ? rounded : (size_t)CHUNK_SIZE);

		if (err)
			return err;
	}
	*ret = pool->chunks->bytes + pool->chunks->size - pool->left;
	pool->left -= rounded;
	return NULL;
}

struct error *text_pool_copy(struct text_pool *pool, const char *text, size_t size,
			     const char **ret)
{
	void *copy;
	struct error *err = text_pool_take(pool, size + 1, &copy);

	if (err)
		return err;
	memcpy(copy, text, size);
	*ret = copy;
	return NULL;
}
