#include "agent/analysis/reference_list.h"

#include <string.h>

enum { ITEMS_MIN = 1024 };

void reference_list_fini(struct reference_list *list)
{
	pages_fini(&list->pages);
	list->count = list->capacity = 0;
}

struct error *reference_list_reserve(struct reference_list *list, uint64_t count)
{
	uint64_t capacity = list->capacity ? list->capacity : ITEMS_MIN;
	struct pages pages;
	struct error *err;

	if (count <= list->capacity)
		return NULL;
	while (capacity < count)
		capacity += capacity / 2;
	err = pages_init(&pages, list->budget, capacity * list->item_size);
	if (err)
		return err;
	if (list->count)
		memcpy(pages.data, list->pages.data, list->count * list->item_size);
	pages_fini(&list->pages);
	list->pages = pages;
	list->capacity = capacity;
	return NULL;
}
