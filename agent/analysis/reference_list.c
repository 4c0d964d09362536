#include "agent/analysis/reference_list.h"

enum { ITEMS_MIN = 1024 };

void reference_list_fini(struct reference_list *list)
{
	pages_fini(&list->pages);
	list->count = list->capacity = 0;
}

struct error *reference_list_reserve(struct reference_list *list, uint64_t count)
{
	uint64_t capacity = list->capacity ? list->capacity : ITEMS_MIN;
	struct error *err;

	if (count <= list->capacity)
		return NULL;
	while (capacity < count)
		capacity += capacity / 2;
	err = pages_grow(&list->pages, list->budget, capacity * list->item_size);
	if (!err)
		list->capacity = capacity;
	return err;
}
