#include "agent/binary/string_pool.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_PLACES = 1 << 12 };

struct error *string_pool_init(struct string_pool *pool, size_t limit)
{
	*pool = (struct string_pool){ .place_count = FIRST_PLACES };
	bytes_init(&pool->text, limit < UINT32_MAX ? limit : UINT32_MAX);
	pool->places = calloc(pool->place_count, sizeof(*pool->places));
	return pool->places ? bytes_append(&pool->text, "", 1) : &error_nomem;
}

void string_pool_fini(struct string_pool *pool)
{
	bytes_fini(&pool->text);
	free(pool->places);
	pool->places = NULL;
}

static uint32_t hash_text(const char *text, size_t size)
{
	uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ (uint8_t)text[i]) * 0x100000001b3;
	return (uint32_t)(hash ^ hash >> 32);
}

/* The place of a string, or the empty one where it belongs. */
static uint32_t *find_place(const struct string_pool *pool, uint32_t *places, uint32_t place_count,
			    const char *text, size_t size)
{
	for (uint32_t i = hash_text(text, size);; i++) {
		uint32_t *place = &places[i & (place_count - 1)];

		if (!*place || (!strncmp(string_pool_at(pool, *place), text, size) &&
				!string_pool_at(pool, *place)[size]))
			return place;
	}
}

static struct error *grow(struct string_pool *pool)
{
	uint32_t place_count = 2 * pool->place_count;
	uint32_t *places = calloc(place_count, sizeof(*places));

	if (!places)
		return &error_nomem;
	for (uint32_t i = 0; i < pool->place_count; i++) {
		uint32_t offset = pool->places[i];
		const char *text = string_pool_at(pool, offset);

		if (offset)
			*find_place(pool, places, place_count, text, strlen(text)) = offset;
	}
	free(pool->places);
	pool->places = places;
	pool->place_count = place_count;
	return NULL;
}

struct error *string_pool_add(struct string_pool *pool, const char *text, size_t size,
			      uint32_t *ret)
{
	size_t offset = pool->text.size;
	uint32_t *place;
	struct error *err = NULL;

	if (!size) {
		*ret = 0;
		return NULL;
	}
	place = find_place(pool, pool->places, pool->place_count, text, size);
	if (*place) {
		*ret = *place;
		return NULL;
	}
	err = bytes_append(&pool->text, text, size);
	if (!err)
		err = bytes_append(&pool->text, "", 1);
	if (err)
		return err;
	*place = *ret = (uint32_t)offset;
	pool->count++;
	return pool->count > pool->place_count / 2 ? grow(pool) : NULL;
}
