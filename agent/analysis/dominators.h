/*
 * The dominator tree of the live objects: an object's dominator is the last one that every chain
 * from a root to it goes through, so what an object dominates would be freed with it, which is its
 * retained size. Roots hang from one of the groups the caller makes of them (a global variable, a
 * goroutine), these from the top, so that groups retain, too.
 */
#ifndef AGENT_ANALYSIS_DOMINATORS_H
#define AGENT_ANALYSIS_DOMINATORS_H

#include <stdint.h>

#include "proto/base/error.h"

struct dominators;
struct graph;
struct mark;
struct root_set;
struct special_table;

enum { DOMINATOR_TOP = UINT32_MAX };

/* All borrowed for the tree's life. */
struct dominator_input {
	const struct graph *graph;
	const struct mark *mark;
	const struct root_set *roots;
	const struct special_table *specials;
	/* The group of each root, by its place in roots, and how many groups there are. */
	const uint32_t *root_groups;
	uint32_t group_count;
	uint32_t special_group; /* of what objects with finalizers lead to */
	unsigned thread_count;
	uint64_t memory_limit; /* bytes; 0: none. ERROR_OUT_OF_MEMORY says what it would need. */
};

must_check struct error *dominators_find(const struct dominator_input *input,
					 struct dominators **ret);
void dominators_free(struct dominators *dominators);
DEFINE_FREEP(dominators, dominators_free)

/*
 * Nodes are numbered: objects by their number, the group g as dominators_group_node(g). The
 * immediate dominator of a live object or group; DOMINATOR_TOP: nothing dominates it.
 */
uint32_t dominators_group_node(const struct dominators *dominators, uint32_t group);
uint32_t dominators_parent(const struct dominators *dominators, uint32_t node);

/* Bytes that would be freed with the node, itself included. */
uint64_t dominators_retained(const struct dominators *dominators, uint32_t node);

#endif
