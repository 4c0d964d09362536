/* Growing arrays of the walk, in pages of its budget. */
#ifndef AGENT_ANALYSIS_REFERENCE_LIST_H
#define AGENT_ANALYSIS_REFERENCE_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "agent/analysis/pages.h"
#include "proto/base/error.h"

/* All zero but for its budget and item size is an empty list. */
struct reference_list {
	struct budget *budget;
	size_t item_size;
	struct pages pages;
	uint64_t count, capacity;
};

static inline void reference_list_init(struct reference_list *list, struct budget *budget,
				       size_t item_size)
{
	*list = (struct reference_list){ .budget = budget, .item_size = item_size };
}

void reference_list_fini(struct reference_list *list);

/* Room for count items in all. */
must_check struct error *reference_list_reserve(struct reference_list *list, uint64_t count);

/* Points *ret to a new item. */
static inline struct error *reference_list_add(struct reference_list *list, void **ret)
{
	if (list->count == list->capacity) {
		struct error *err = reference_list_reserve(list, list->count + 1);

		if (err)
			return err;
	}
	*ret = (uint8_t *)list->pages.data + list->count++ * list->item_size;
	return NULL;
}

static inline void *reference_list_at(const struct reference_list *list, uint64_t i)
{
	return (uint8_t *)list->pages.data + i * list->item_size;
}

#endif
