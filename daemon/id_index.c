#include "daemon/id_index.h"

#include <sys/random.h>

struct id_slot {
	uint64_t hash;
	uint32_t id; /* ID_NONE: free */
};

enum { CAPACITY_MIN = 64 };

void id_index_init(struct id_index *index)
{
	*index = (struct id_index){ 0 };
	if (getrandom(&index->seed, sizeof(index->seed), GRND_NONBLOCK) < 0)
		index->seed = (uintptr_t)index;
}

void id_index_fini(struct id_index *index)
{
	free(index->slots);
	*index = (struct id_index){ 0 };
}

uint64_t id_hash_number(uint64_t hash, uint64_t number)
{
	hash = (hash ^ number) * 0x9e3779b97f4a7c15;
	return hash ^ hash >> 32;
}

uint64_t id_hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
	const uint8_t *pos = bytes;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ pos[i]) * 0x100000001b3;
	return id_hash_number(hash, size);
}

/* The place of the hash, or the free one where it would be; is_same may be NULL: any free one. */
static struct id_slot *find_slot(const struct id_index *index, uint64_t hash, id_is_same *is_same,
				 const void *wanted)
{
	size_t place = hash & (index->capacity - 1);

	for (;; place = (place + 1) & (index->capacity - 1)) {
		struct id_slot *slot = &index->slots[place];

		if (slot->id == ID_NONE ||
		    (is_same && slot->hash == hash && is_same(wanted, slot->id)))
			return slot;
	}
}

uint32_t id_index_find(const struct id_index *index, uint64_t hash, id_is_same *is_same,
		       const void *wanted)
{
	return index->count ? find_slot(index, hash, is_same, wanted)->id : ID_NONE;
}

/* A table of twice the size; a quarter at most is left free of use before it grows. */
static struct error *grow(struct id_index *index)
{
	struct id_index larger = *index;

	larger.capacity = index->capacity ? index->capacity * 2 : CAPACITY_MIN;
	if (larger.capacity > SIZE_MAX / sizeof(*larger.slots))
		return &error_nomem;
	larger.slots = malloc(larger.capacity * sizeof(*larger.slots));
	if (!larger.slots)
		return &error_nomem;
	for (size_t i = 0; i < larger.capacity; i++)
		larger.slots[i].id = ID_NONE;
	for (size_t i = 0; i < index->capacity; i++) {
		if (index->slots[i].id != ID_NONE)
			*find_slot(&larger, index->slots[i].hash, NULL, NULL) = index->slots[i];
	}
	free(index->slots);
	*index = larger;
	return NULL;
}

struct error *id_index_add(struct id_index *index, uint64_t hash, uint32_t id)
{
	if (index->count >= index->capacity - index->capacity / 4) {
		struct error *err = grow(index);

		if (err)
			return err;
	}
	*find_slot(index, hash, NULL, NULL) = (struct id_slot){ hash, id };
	index->count++;
	return NULL;
}
