/*
 * One walk of marking, by several threads: from roots of one phase and one party on, to all that
 * they lead to. A walk gives that party's bit alone, so of two threads that meet at an object both
 * store the same, and no locked instruction is needed.
 */
#ifndef AGENT_ANALYSIS_MARK_WALK_H
#define AGENT_ANALYSIS_MARK_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/analysis/label_attribution.h"
#include "agent/analysis/root_set.h"
#include "agent/analysis/work_pool.h"

struct graph;
struct mark;
struct special_table;

/*
 * Of an object. A party's bit is given with that of being live, except that an owned object has its
 * owner's from the beginning, and no other party's ever.
 */
enum {
	STATE_PARTIES = 0x0f,
	STATE_LIVE = 0x10,
	STATE_HAS_EDGES = 0x20,
	STATE_FINALIZABLE = 0x40,
	STATE_OWNED = 0x80,
};

typedef _Atomic uint8_t object_state;

enum mark_phase {
	MARK_EXACT,
	MARK_CONSERVATIVE,
	MARK_SYSTEM_STACK,
	MARK_PHASE_COUNT,
};

static inline enum mark_phase mark_phase_of(enum root_kind kind)
{
	if (kind == ROOT_SYSTEM_STACK)
		return MARK_SYSTEM_STACK;
	return root_kind_is_conservative(kind) ? MARK_CONSERVATIVE : MARK_EXACT;
}

/*
 * Owned objects that walks of other parties found to be live, in the order in which they did: for
 * walks of their owners' parties. There is room for all.
 */
struct owned_list {
	uint32_t *objects;
	_Atomic uint64_t count;
};

/* What is to be walked; all borrowed. */
struct mark_walk {
	const struct graph *graph;
	object_state *states; /* by object */
	const struct root_set *roots;
	const struct special_table *specials;
	const struct label_attribution *parties; /* NULL: there is only party 0 */
	struct owned_list *owned;
	enum mark_phase phase;
	uint32_t party;
	bool from_roots;      /* and not only from what is owned */
	uint64_t owned_start; /* what of the list is older has been followed */
};

static inline uint32_t mark_party_of_root(const struct label_attribution *parties,
					  const struct heap_root *root)
{
	return parties ? label_party_of_root(parties, root) : 0;
}

/* Finalizers' objects are roots of this party, for what they point to. */
static inline uint32_t mark_party_of_specials(const struct label_attribution *parties)
{
	return parties ? label_global_party(parties) : 0;
}

/* Marks without a walk: states, all zero, for the caller to say in them what is live. */
must_check struct error *mark_begin(const struct graph *graph, struct mark **ret);
object_state *mark_states(struct mark *mark);

/* What is live, by phase: bytes, and objects in the end. Fills all other totals. */
must_check struct error *mark_complete(struct mark *mark, const struct root_set *roots,
				       const struct special_table *specials, unsigned thread_count,
				       uint64_t live_objects,
				       const uint64_t live_bytes[MARK_PHASE_COUNT]);

must_check struct error *mark_walk_run(const struct mark_walk *walk, unsigned thread_count);

#endif
