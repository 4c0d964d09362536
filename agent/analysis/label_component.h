/*
 * Strongly connected components of the shared part of the graph, in topological order: objects that
 * lead to each other are reached by the same parties.
 */
#ifndef AGENT_ANALYSIS_LABEL_COMPONENT_H
#define AGENT_ANALYSIS_LABEL_COMPONENT_H

#include <stdint.h>

#include "agent/analysis/pages.h"
#include "proto/base/error.h"

struct graph;

/* For objects that are not in the shared part. */
#define COMPONENT_NONE UINT32_MAX

struct components {
	uint32_t *of;    /* by object: first to first + count - 1, or COMPONENT_NONE; borrowed */
	uint32_t *order; /* all objects of the part; components side by side, highest first */
	uint64_t object_count;
	uint32_t first, count; /* an edge between two components leads to the higher one */
	struct pages order_pages;
};

/* of holds 0 for each of object_count objects of the part, which no edge leaves but to NONE. */
must_check struct error *components_find(const struct graph *graph, uint32_t *of,
					 uint64_t object_count, struct budget *budget,
					 struct components *ret);
void components_fini(struct components *components);

#endif
