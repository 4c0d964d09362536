/* Ranges of addresses: gathered in any order, then sorted and joined. */
#ifndef AGENT_REPORT_RANGE_LIST_H
#define AGENT_REPORT_RANGE_LIST_H

#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

struct range {
	taddr start, end;
};

/* All zero is an empty list. */
struct range_list {
	struct range *items;
	uint32_t count, capacity;
};

/* An empty range is left out. */
must_check struct error *range_list_add(struct range_list *list, taddr start, taddr end);
void range_list_fini(struct range_list *list);

/* Sorts; what overlaps or touches becomes one. */
void range_list_join(struct range_list *list);

/* Index of the first range of a joined list that ends after addr. */
uint32_t range_list_after(const struct range_list *list, taddr addr);

#endif
