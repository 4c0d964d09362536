/*
 * Attribution: how much of the heap each party reaches, holds alone and shares with others. A
 * party is a set of goroutines; any partition of them will do (label sets, values of a label,
 * creators). The last two parties are always there: system goroutines with system stacks, and
 * globals (data, bss, specials, queues, timers).
 *
 * Marking itself tells a few parties apart (mark.h). For more:
 *
 *	colours   one walk tells what each party holds alone, and what is shared
 *	groups    the shared part is folded: objects that the same parties must reach become one
 *	reach     who reaches each group, many parties at a time by bit mask; parties that enter
 *	          the shared part by the same groups are one
 */
#ifndef AGENT_ANALYSIS_LABEL_ATTRIBUTION_H
#define AGENT_ANALYSIS_LABEL_ATTRIBUTION_H

#include <stdint.h>

#include "proto/base/error.h"

struct graph;
struct heap_root;
struct label_owner;
struct label_owners;
struct mark;
struct root_set;
struct special_table;

/* All borrowed for the call. */
struct label_attribution {
	const struct graph *graph;
	const struct root_set *roots;
	const struct special_table *specials;
	const struct label_owners *owners;
	const uint32_t *party_of; /* by goroutine; of those that have roots or own something */
	uint32_t party_count;     /* system and global included */
	unsigned thread_count;
};

/* The party that a root's object is reached by. */
uint32_t label_party_of_root(const struct label_attribution *input, const struct heap_root *root);

/* The party that an owned object belongs to. */
uint32_t label_party_of_owner(const struct label_attribution *input,
			      const struct label_owner *owner);

static inline uint32_t label_system_party(const struct label_attribution *input)
{
	return input->party_count - 2;
}

static inline uint32_t label_global_party(const struct label_attribution *input)
{
	return input->party_count - 1;
}

struct size_count {
	uint64_t bytes, objects;
};

struct party_usage {
	struct size_count reachable;
	struct size_count exclusive; /* what no other party reaches */
	/* What globals, and what system goroutines, reach too; nothing of their own. */
	struct size_count global_overlap, system_overlap;
	/*
	 * Each object's bytes divided among those that reach it, what is left over being given to
	 * the first: the shares of all parties sum to what is live.
	 */
	uint64_t share_bytes;
};

/*
 * Fills usage, zeroed by the caller, for party_count parties. ERROR_OUT_OF_MEMORY if it does not
 * fit what the graph leaves of its memory limit, ERROR_LIMIT for too many parties. Owners may own
 * what is not live.
 */
must_check struct error *label_attribute(const struct label_attribution *input,
					 struct party_usage *usage);

/* The same, and the graph is marked by the way; the caller frees *ret with mark_free. */
must_check struct error *label_mark(const struct label_attribution *input,
				    struct party_usage *usage, struct mark **ret);

#endif
