/*
 * What the steps of finding dominators share. Only objects with edges take part in them: these, the
 * groups and the top are numbered in the order of a depth-first search, so that all work arrays are
 * as short as can be, and an object without edges costs four bytes.
 */
#ifndef AGENT_ANALYSIS_DOMINATORS_PRIVATE_H
#define AGENT_ANALYSIS_DOMINATORS_PRIVATE_H

#include "agent/analysis/dominators.h"
#include "agent/analysis/graph_private.h"
#include "agent/goruntime/bitmap.h"

/* Numbers. Those of groups, and of objects with edges, are higher. */
enum { NUMBER_NONE = 0, NUMBER_TOP = 1 };

struct dominators {
	const struct graph *graph;
	const struct mark *mark;
	struct budget budget;
	uint32_t object_end, group_count;
	uint32_t number_end;     /* highest number + 1 */
	uint32_t *group_numbers; /* by group */
	/* By object: its number, or if it has no edges that of its dominator; 0: not live. */
	_Atomic uint32_t *numbers;
	uint32_t *nodes;    /* by number: the object, or the node of the group */
	uint32_t *parents;  /* by number: of the dominator, which is lower; of the top NONE */
	uint64_t *retained; /* by number */
	struct pages group_number_pages, number_pages, node_pages, parent_pages, retained_pages;
};

/* What is needed until the tree is there. */
struct dominator_search {
	const struct dominator_input *input;
	struct dominators *tree;
	/* What groups lead to: those of group g end at group_ends[g], and begin where others end.
	 */
	uint64_t *group_ends;
	uint32_t *group_targets;
	/*
	 * By object: a live one with edges that is nobody's own, which the search may enter. Later,
	 * for leaves, all that have edges or an owner.
	 */
	uint64_t *entries;
	/* By object: pointers from higher numbers lead to it, back or across the search's tree. */
	uint64_t *crossed;
	/* By number: */
	uint32_t *semis;             /* number of the semidominator, in the end */
	_Atomic uint32_t *crossings; /* such pointers */
	/* Two for each number, for one step after the other; retained sizes at last. */
	uint32_t *firsts, *seconds;
	uint64_t crossing_count;
	struct pages group_end_pages, group_target_pages, entry_pages, crossed_pages, semi_pages,
	    crossing_pages;
	unsigned thread_count;
};

static inline bool dominators_node_is_group(const struct dominators *tree, uint32_t node)
{
	return node >= tree->object_end;
}

/* The number of a node; NUMBER_NONE of objects without edges, which dominate nothing. */
uint32_t dominator_number(const struct dominators *tree, uint32_t node);

/* What a group leads to, objects of other owners left out; they belong to the search. */
const uint32_t *dominator_search_targets(const struct dominator_search *search, uint32_t group,
					 uint64_t *ret_count);

/* Numbers all that is live and has edges; parents are the search's then, semis a first guess. */
must_check struct error *dominator_search_run(struct dominator_search *search);

/* Turns first guesses into semidominators. */
must_check struct error *dominator_semis_find(struct dominator_search *search);

/* From the search's tree to the dominators': of what has edges, and then of what has none. */
must_check struct error *dominator_parents_find(struct dominator_search *search);

#endif
