#include "agent/analysis/label_class.h"

#include <stdbool.h>
#include <stdlib.h>

/* Classes by a hash of their entries: open addressing, at most half full. */
struct class_map {
	uint32_t *slots; /* class plus 1 */
	uint64_t mask;
};

static uint64_t hash_entries(const uint64_t *pairs, uint64_t count)
{
	uint64_t hash = count;

	for (uint64_t i = 0; i < count; i++) {
		hash = (hash ^ pair_second(pairs[i])) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	return hash;
}

static bool has_entries(const struct label_class *class, const struct pair_list *entries,
			const uint64_t *pairs, uint64_t count)
{
	if (class->entry_count != count)
		return false;
	for (uint64_t i = 0; i < count; i++)
		if (pair_second(entries->pairs[class->entry + i]) != pair_second(pairs[i]))
			return false;
	return true;
}

/* The party whose entries are count pairs from start on joins a class, or makes a new one. */
static void classify(struct label_classes *classes, const struct class_map *map,
		     const struct pair_list *entries, uint64_t start, uint64_t count)
{
	const uint64_t *pairs = entries->pairs + start;
	uint64_t at = hash_entries(pairs, count) & map->mask;
	uint32_t party = pair_first(pairs[0]);

	for (; map->slots[at]; at = (at + 1) & map->mask) {
		struct label_class *class = &classes->classes[map->slots[at] - 1];

		if (has_entries(class, entries, pairs, count)) {
			class->party_count++;
			classes->of[party] = map->slots[at] - 1;
			return;
		}
	}
	classes->classes[classes->count] = (struct label_class){
		.entry = start, .entry_count = count, .first_party = party, .party_count = 1
	};
	classes->of[party] = classes->count++;
	map->slots[at] = classes->count;
}

static void classify_all(struct label_classes *classes, const struct class_map *map,
			 const struct pair_list *entries)
{
	uint64_t start = 0, end;

	for (; start < entries->count; start = end) {
		uint32_t party = pair_first(entries->pairs[start]);

		for (end = start + 1; end < entries->count;)
			if (pair_first(entries->pairs[end]) != party)
				break;
			else
				end++;
		classify(classes, map, entries, start, end - start);
	}
}

struct error *label_classes_init(struct label_classes *classes, uint32_t party_count,
				 const struct pair_list *entries)
{
	uint64_t slot_count = 16;
	struct class_map map;

	while (slot_count < 2 * (uint64_t)party_count)
		slot_count *= 2;
	*classes = (struct label_classes){
		.classes = calloc(party_count, sizeof(*classes->classes)),
		.of = malloc(party_count * sizeof(*classes->of)),
	};
	map.slots = calloc(slot_count, sizeof(*map.slots));
	map.mask = slot_count - 1;
	if (!classes->classes || !classes->of || !map.slots) {
		free(map.slots);
		label_classes_fini(classes);
		return &error_nomem;
	}
	for (uint32_t i = 0; i < party_count; i++)
		classes->of[i] = CLASS_NONE;
	classify_all(classes, &map, entries);
	free(map.slots);
	return NULL;
}

void label_classes_fini(struct label_classes *classes)
{
	free(classes->classes);
	free(classes->of);
	*classes = (struct label_classes){ 0 };
}
