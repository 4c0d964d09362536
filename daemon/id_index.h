/*
 * Finds the number of something by what it is: an open hash table of numbers, whose meaning is the
 * caller's. Names come from targets, so the hash is seeded.
 */
#ifndef DAEMON_ID_INDEX_H
#define DAEMON_ID_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/error.h"

enum { ID_NONE = UINT32_MAX };

struct id_index {
	struct id_slot *slots;
	size_t capacity, count; /* capacity is a power of two, or 0 */
	uint64_t seed;
};

/* All zero is an empty one with the seed 0. */
void id_index_init(struct id_index *index);
void id_index_fini(struct id_index *index);

/* Goes on from hash, or from index->seed at the beginning. */
uint64_t id_hash_bytes(uint64_t hash, const void *bytes, size_t size);
uint64_t id_hash_number(uint64_t hash, uint64_t number);

/* Whether the thing with that number is the one that is looked for. */
typedef bool id_is_same(const void *wanted, uint32_t id);

/* ID_NONE: it is not there. */
uint32_t id_index_find(const struct id_index *index, uint64_t hash, id_is_same *is_same,
		       const void *wanted);

/* Adds a number that is not there yet. */
must_check struct error *id_index_add(struct id_index *index, uint64_t hash, uint32_t id);

#endif
