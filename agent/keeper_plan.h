/*
 * The decoder's plan for a stop, taken from its message with nothing in it trusted: what it says
 * can make a stop fail, never do harm.
 */
#ifndef AGENT_KEEPER_PLAN_H
#define AGENT_KEEPER_PLAN_H

#include "agent/keeper_orders.h"
#include "agent/target/fork_safety.h"
#include "agent/target/inject.h"
#include "agent/target/threads.h"

struct keeper_plan {
	struct address_range *unwalkable; /* sorted, not overlapping */
	uint32_t unwalkable_count;
	bool has_injection;
	struct inject_plan injection;
	char no_injection[FORK_SAFETY_REASON_SIZE]; /* why there is none */
};

/* ERROR_FORMAT for ranges out of order. */
must_check struct error *keeper_plan_take(struct keeper_plan *plan, const Goheapd__Plan *message);
void keeper_plan_fini(struct keeper_plan *plan);

/* An injection as agent/target takes it. */
void keeper_plan_injection(const Goheapd__Injection *message, struct inject_plan *ret);

#endif
