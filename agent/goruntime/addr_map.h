/*
 * A map from addresses to our own pointers, for what is met by address over and over: functions
 * by pc, goroutines by g, threads by id. Entries are never taken out. Address 0 is no key.
 */
#ifndef AGENT_GORUNTIME_ADDR_MAP_H
#define AGENT_GORUNTIME_ADDR_MAP_H

#include <stddef.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

struct addr_map_entry {
	taddr key; /* 0: free */
	void *value;
};

/* All zero is an empty map. It borrows its values. */
struct addr_map {
	struct addr_map_entry *entries;
	size_t capacity; /* 0 or a power of two */
	size_t count;
};

void addr_map_fini(struct addr_map *map);

/* Replaces what was there for key. */
must_check struct error *addr_map_put(struct addr_map *map, taddr key, void *value);

/* NULL if key is not there. */
void *addr_map_get(const struct addr_map *map, taddr key);

#endif
