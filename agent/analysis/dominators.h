/*
 * The dominator tree of the live objects: an object's dominator is the last one that every chain
 * from a root to it goes through, so what an object dominates would be freed with it, which is its
 * retained size. Roots hang from one of the groups the caller makes of them (a global variable, a
 * goroutine), these from the top, so that groups retain, too. What two groups lead to hangs from
 * the top itself.
 *
 * Nothing changes once the tree is there: any number of threads may ask it.
 */
#ifndef AGENT_ANALYSIS_DOMINATORS_H
#define AGENT_ANALYSIS_DOMINATORS_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/error.h"

struct dominators;
struct graph;
struct label_owners;
struct mark;
struct root_set;
struct special_table;

enum {
	DOMINATOR_TOP = UINT32_MAX,
	DOMINATOR_NONE = UINT32_MAX - 1, /* no dominator: of objects that are not live */
	DOMINATOR_NO_CLASS = UINT32_MAX,
};

/* Graph and mark are borrowed for the tree's life, all else for the call. */
struct dominator_input {
	const struct graph *graph;
	const struct mark *mark;
	const struct root_set *roots;
	const struct special_table *specials;
	/* The group of each root, by its place in roots, and how many groups there are. */
	const uint32_t *root_groups;
	uint32_t group_count;
	uint32_t special_group; /* of what objects with finalizers lead to */
	/*
	 * Objects that belong to a group, whoever else points to them (label_owner.h), and the
	 * group of each, by its place. NULL: none.
	 */
	const struct label_owners *owners;
	const uint32_t *owner_groups;
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
uint32_t dominators_group_count(const struct dominators *dominators);
uint32_t dominators_parent(const struct dominators *dominators, uint32_t node);

/* The group that a node is; UINT32_MAX: an object. */
uint32_t dominators_node_group(const struct dominators *dominators, uint32_t node);

/*
 * Bytes that would be freed with the node, itself included; of DOMINATOR_TOP all that is live, of
 * what is not live none.
 */
uint64_t dominators_retained(const struct dominators *dominators, uint32_t node);

/* Bytes that the tree takes. */
uint64_t dominators_memory(const struct dominators *dominators);

/* ---- children, for pages: each call looks at all live objects once ---- */

struct dominator_child {
	uint32_t node;
	uint64_t retained;
};

/*
 * Those of a node (DOMINATOR_TOP: of the top, groups that retain nothing included), largest first,
 * of equal ones the lowest node first. after is the last one of the page before, or NULL; there is
 * room for limit of them, and how many came is returned. *ret_more: there are others behind.
 */
uint32_t dominators_children(const struct dominators *dominators, uint32_t node,
			     const struct dominator_child *after, struct dominator_child *children,
			     uint32_t limit, bool *ret_more);

/* How many children each of these nodes has, no two being the same; counts[i] of children[i]. */
must_check struct error *dominators_count_children(const struct dominators *dominators,
						   const struct dominator_child *children,
						   uint32_t count, uint64_t *counts);

/*
 * What the objects of each class (a type) retain together: the sum over those that no other object
 * of their class dominates. class_of says the class of a live object, or DOMINATOR_NO_CLASS, and is
 * called by several threads; fills retained, zeroed by the caller, for class_count classes.
 */
struct dominator_classes {
	uint32_t (*class_of)(const void *arg, uint32_t object);
	const void *arg;
	uint32_t class_count;
	unsigned thread_count;
	uint64_t memory_limit; /* as above */
};

must_check struct error *dominators_retained_by_class(const struct dominators *dominators,
						      const struct dominator_classes *classes,
						      uint64_t *retained);

#endif
