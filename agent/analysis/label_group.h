/*
 * The shared part of the graph, folded: an object that no party enters, and to which objects of one
 * group alone lead, is reached by the same parties as these, and joins the group. A dictionary that
 * a thousand parties share by its root becomes a single group.
 */
#ifndef AGENT_ANALYSIS_LABEL_GROUP_H
#define AGENT_ANALYSIS_LABEL_GROUP_H

#include <stdint.h>

#include "agent/analysis/label_color.h"

#define GROUP_NONE UINT32_MAX

struct groups {
	uint32_t count;
	uint32_t *of;             /* by object: its group, or GROUP_NONE; borrowed */
	struct size_count *sizes; /* by group */
	struct pages size_pages;
	struct pair_list edges; /* between groups, sorted, to the higher one always */
};

/*
 * Takes the colours of a colouring with shared_count shared objects for its own use. Entries, pairs
 * of party and object, become pairs of group and party, sorted by group.
 */
must_check struct error *groups_find(struct coloring *coloring, uint64_t shared_count,
				     struct pair_list *entries, struct groups *ret);
void groups_fini(struct groups *groups);

#endif
