/*
 * Objects of which not everything is known yet: what reaches them may still tell more. By number,
 * in a table of open addresses; nothing is taken out.
 */
#ifndef AGENT_ANALYSIS_REFERENCE_UNSETTLED_H
#define AGENT_ANALYSIS_REFERENCE_UNSETTLED_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/analysis/pages.h"
#include "proto/base/error.h"

struct unsettled {
	uint32_t object; /* 0: free */
	uint32_t place;
	/* Words of the slot that its shape covers. */
	uint32_t begin, end;
	bool is_listed; /* among those whose rest is to be followed, or was */
};

struct unsettled_table {
	struct budget *budget;
	struct pages pages;
	uint64_t capacity, count; /* capacity: 0 or a power of two */
};

void unsettled_fini(struct unsettled_table *table);

/* NULL if it is not there. It belongs to the table, until something is added. */
struct unsettled *unsettled_find(const struct unsettled_table *table, uint32_t object);

/* The one of an object, which is added if it is not there. */
must_check struct error *unsettled_add(struct unsettled_table *table, uint32_t object,
				       struct unsettled **ret);

#endif
