/* Open addressing with linear probing over the hashes; at most half of the buckets are taken. */
#include "agent/report/sequence_set.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BUCKETS = 64, FIRST_ITEMS = 256 };

struct sequence {
	size_t first; /* in items */
	uint32_t count;
	uint32_t hash;
};

/* FNV-1a, word by word. */
static uint32_t hash_of(const uint32_t *items, uint32_t count)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (uint32_t i = 0; i < count; i++)
		hash = (hash ^ items[i]) * 0x100000001b3;
	return (uint32_t)(hash ^ hash >> 32);
}

static bool is_same(const struct sequence_set *set, const struct sequence *sequence,
		    const uint32_t *items, uint32_t count)
{
	return sequence->count == count &&
	       (!count || !memcmp(set->items + sequence->first, items, count * sizeof(*items)));
}

/* The bucket of a sequence, or the free one that it would take. */
static uint32_t *find_bucket(const struct sequence_set *set, uint32_t hash, const uint32_t *items,
			     uint32_t count)
{
	size_t mask = set->bucket_count - 1, i = hash & mask;

	for (; set->buckets[i]; i = (i + 1) & mask) {
		const struct sequence *there = &set->sequences[set->buckets[i] - 1];

		if (there->hash == hash && is_same(set, there, items, count))
			break;
	}
	return &set->buckets[i];
}

/* All sequences in the set differ, so that each takes the next free bucket. */
static void fill_buckets(const struct sequence_set *set, uint32_t *buckets, size_t count)
{
	for (uint32_t place = 0; place < set->count; place++) {
		size_t i = set->sequences[place].hash & (count - 1);

		while (buckets[i])
			i = (i + 1) & (count - 1);
		buckets[i] = place + 1;
	}
}

/* Room for one more sequence; there are half as many as buckets. */
static struct error *reserve_sequence(struct sequence_set *set)
{
	size_t count = set->bucket_count ? 2 * set->bucket_count : FIRST_BUCKETS;
	uint32_t *buckets scoped(freep) = NULL;
	struct sequence *sequences;

	if (set->count < set->bucket_count / 2)
		return NULL;
	sequences = reallocarray(set->sequences, count / 2, sizeof(*sequences));
	if (!sequences)
		return &error_nomem;
	set->sequences = sequences;
	buckets = calloc(count, sizeof(*buckets));
	if (!buckets)
		return &error_nomem;
	fill_buckets(set, buckets, count);
	free(set->buckets);
	set->buckets = take(buckets);
	set->bucket_count = count;
	return NULL;
}

static struct error *reserve_items(struct sequence_set *set, uint32_t count)
{
	size_t capacity = set->item_capacity ? set->item_capacity : FIRST_ITEMS;
	uint32_t *items;

	while (capacity - set->item_count < count)
		capacity *= 2;
	if (capacity == set->item_capacity)
		return NULL;
	items = reallocarray(set->items, capacity, sizeof(*items));
	if (!items)
		return &error_nomem;
	set->items = items;
	set->item_capacity = capacity;
	return NULL;
}

struct error *sequence_set_add(struct sequence_set *set, const uint32_t *items, uint32_t count,
			       uint32_t *ret)
{
	uint32_t hash = hash_of(items, count);
	struct error *err = reserve_sequence(set);
	uint32_t *bucket;

	if (!err)
		err = reserve_items(set, count);
	if (err)
		return err;
	bucket = find_bucket(set, hash, items, count);
	if (!*bucket) {
		set->sequences[set->count++] =
		    (struct sequence){ .first = set->item_count, .count = count, .hash = hash };
		if (count)
			memcpy(set->items + set->item_count, items, count * sizeof(*items));
		set->item_count += count;
		*bucket = set->count;
	}
	*ret = *bucket - 1;
	return NULL;
}

const uint32_t *sequence_set_at(const struct sequence_set *set, uint32_t place, uint32_t *ret_count)
{
	const struct sequence *sequence = &set->sequences[place];

	*ret_count = sequence->count;
	return set->items + sequence->first;
}

void sequence_set_fini(struct sequence_set *set)
{
	free(set->items);
	free(set->sequences);
	free(set->buckets);
	*set = (struct sequence_set){ 0 };
}
