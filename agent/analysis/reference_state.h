/*
 * What is known of an object during a walk, in one word: that nobody has met it, or who claims it
 * at present, or its shape and whether that is final. Threads that find references to one object
 * at the same time each put down their claim; the least one stays, whoever came first.
 */
#ifndef AGENT_ANALYSIS_REFERENCE_STATE_H
#define AGENT_ANALYSIS_REFERENCE_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/analysis/reference_shape.h"

typedef uint32_t walk_state;

/* Claims have a kind that no shape has. */
enum { STATE_CLAIM = (1 << SHAPE_KIND_BITS) - 1, STATE_CLAIMS_MAX = 1 << (32 - SHAPE_KIND_BITS) };
_Static_assert((int)STATE_CLAIM >= (int)SHAPE_KIND_END, "a kind that no shape has");

#define STATE_SETTLED (UINT32_C(1) << 31) /* nothing can tell more of it */

/* The claim with a number below STATE_CLAIMS_MAX. */
static inline walk_state state_of_claim(uint32_t number)
{
	return number << SHAPE_KIND_BITS | (uint32_t)STATE_CLAIM;
}

static inline bool state_is_claim(walk_state state)
{
	return (state & STATE_CLAIM) == STATE_CLAIM;
}

static inline bool state_is_met(walk_state state)
{
	return state != SHAPE_UNMET && !state_is_claim(state);
}

/* Of one that is met, or of one that is not: SHAPE_UNMET. */
static inline shape_id state_shape(walk_state state)
{
	return state & ~STATE_SETTLED;
}

static inline bool state_is_settled(walk_state state)
{
	return state & STATE_SETTLED && !state_is_claim(state);
}

static inline walk_state state_load(const _Atomic walk_state *state)
{
	return atomic_load_explicit(state, memory_order_relaxed);
}

static inline void state_store(_Atomic walk_state *state, walk_state value)
{
	atomic_store_explicit(state, value, memory_order_relaxed);
}

/* Puts down a claim, unless the object is met or a lesser claim is there. */
static inline void state_claim(_Atomic walk_state *state, walk_state claim)
{
	walk_state seen = state_load(state);

	while ((seen == SHAPE_UNMET || (state_is_claim(seen) && seen > claim)) &&
	       !atomic_compare_exchange_weak_explicit(state, &seen, claim, memory_order_relaxed,
						      memory_order_relaxed))
		;
}

#endif
