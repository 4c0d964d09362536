#include "agent/analysis/reference_unsettled.h"

enum { CAPACITY_MIN = 1024 };

void unsettled_fini(struct unsettled_table *table)
{
	pages_fini(&table->pages);
	table->capacity = table->count = 0;
}

/* Where the object is, or would be. */
static struct unsettled *find(const struct pages *pages, uint64_t capacity, uint32_t object)
{
	struct unsettled *entries = pages->data;
	uint64_t i = object * UINT64_C(0x9e3779b97f4a7c15) >> 20;

	for (i &= capacity - 1; entries[i].object && entries[i].object != object;)
		i = (i + 1) & (capacity - 1);
	return &entries[i];
}

struct unsettled *unsettled_find(const struct unsettled_table *table, uint32_t object)
{
	struct unsettled *found;

	if (!table->capacity)
		return NULL;
	found = find(&table->pages, table->capacity, object);
	return found->object ? found : NULL;
}

static struct error *grow(struct unsettled_table *table)
{
	uint64_t capacity = table->capacity ? table->capacity * 2 : CAPACITY_MIN;
	const struct unsettled *old = table->pages.data;
	struct pages pages;
	struct error *err = pages_init(&pages, table->budget, capacity * sizeof(*old));

	if (err)
		return err;
	for (uint64_t i = 0; i < table->capacity; i++)
		if (old[i].object)
			*find(&pages, capacity, old[i].object) = old[i];
	pages_fini(&table->pages);
	table->pages = pages;
	table->capacity = capacity;
	return NULL;
}

struct error *unsettled_add(struct unsettled_table *table, uint32_t object, struct unsettled **ret)
{
	struct error *err = NULL;

	if (table->count >= table->capacity / 4 * 3)
		err = grow(table);
	if (err)
		return err;
	*ret = find(&table->pages, table->capacity, object);
	if (!(*ret)->object) {
		(*ret)->object = object;
		table->count++;
	}
	return NULL;
}
