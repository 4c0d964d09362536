#include "agent/report/range_list.h"

#include <stdlib.h>

struct error *range_list_add(struct range_list *list, taddr start, taddr end)
{
	if (start >= end)
		return NULL;
	if (list->count == list->capacity) {
		uint32_t capacity = list->capacity ? list->capacity * 2 : 64;
		struct range *grown;

		if (capacity < list->capacity)
			return error_new(ERROR_LIMIT, "too many ranges of memory");
		grown = reallocarray(list->items, capacity, sizeof(*grown));
		if (!grown)
			return &error_nomem;
		list->items = grown;
		list->capacity = capacity;
	}
	list->items[list->count++] = (struct range){ start, end };
	return NULL;
}

void range_list_fini(struct range_list *list)
{
	free(list->items);
	*list = (struct range_list){ 0 };
}

static int compare(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

void range_list_join(struct range_list *list)
{
	uint32_t kept = 0;

	if (!list->count)
		return;
	qsort(list->items, list->count, sizeof(*list->items), compare);
	for (uint32_t i = 0; i < list->count; i++) {
		const struct range range = list->items[i];

		if (!kept || range.start > list->items[kept - 1].end)
			list->items[kept++] = range;
		else if (range.end > list->items[kept - 1].end)
			list->items[kept - 1].end = range.end;
	}
	list->count = kept;
}

uint32_t range_list_after(const struct range_list *list, taddr addr)
{
	uint32_t low = 0, high = list->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (list->items[middle].end <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}
