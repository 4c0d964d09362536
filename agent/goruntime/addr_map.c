/*
 * Open addressing with linear probing; at most half of the places are taken. The multiplication
 * spreads addresses, whose low bits are alike, over the high bits, which choose the place.
 */
#include "agent/goruntime/addr_map.h"

#include <stdlib.h>

enum { FIRST_CAPACITY = 64 };

void addr_map_fini(struct addr_map *map)
{
	free(map->entries);
	*map = (struct addr_map){ 0 };
}

/* Where key is, or where it would go. The map has a free place. */
static size_t place_of(const struct addr_map *map, taddr key)
{
	size_t mask = map->capacity - 1;
	size_t i = (size_t)((key * 0x9e3779b97f4a7c15u) >> 32) & mask;

	while (map->entries[i].key && map->entries[i].key != key)
		i = (i + 1) & mask;
	return i;
}

static struct error *grow(struct addr_map *map)
{
	struct addr_map bigger = { .capacity = map->capacity ? 2 * map->capacity : FIRST_CAPACITY,
				   .count = map->count };

	bigger.entries = calloc(bigger.capacity, sizeof(*bigger.entries));
	if (!bigger.entries)
		return &error_nomem;
	for (size_t i = 0; i < map->capacity; i++) {
		if (map->entries[i].key)
			bigger.entries[place_of(&bigger, map->entries[i].key)] = map->entries[i];
	}
	free(map->entries);
	*map = bigger;
	return NULL;
}

struct error *addr_map_put(struct addr_map *map, taddr key, void *value)
{
	struct addr_map_entry *entry;

	if (!key)
		return error_new(ERROR_FORMAT, "address 0 is no key");
	if (2 * (map->count + 1) > map->capacity) {
		struct error *err = grow(map);

		if (err)
			return err;
	}
	entry = &map->entries[place_of(map, key)];
	map->count += !entry->key;
	*entry = (struct addr_map_entry){ .key = key, .value = value };
	return NULL;
}

void *addr_map_get(const struct addr_map *map, taddr key)
{
	return map->capacity && key ? map->entries[place_of(map, key)].value : NULL;
}
