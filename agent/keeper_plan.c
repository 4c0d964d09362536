#include "agent/keeper_plan.h"

#include <stdio.h>
#include <stdlib.h>

static void copy_candidates(const uint64_t *entries, size_t count, struct inject_function *ret)
{
	for (size_t i = 0; i < count && i < INJECT_CANDIDATES; i++)
		ret->entry[i] = entries[i];
}

void keeper_plan_injection(const Goheapd__Injection *message, struct inject_plan *ret)
{
	*ret = (struct inject_plan){
		.allm = message->allm,
		.entry = message->has_entry ? message->entry : 0,
		.m_alllink = message->m_alllink,
		.m_procid = message->m_procid,
		.m_gsignal = message->m_gsignal,
		.g_m = message->g_m,
		.g_stack_lo = message->g_stack_lo,
		.g_stack_hi = message->g_stack_hi,
	};
	copy_candidates(message->osyield, message->n_osyield, &ret->osyield);
	copy_candidates(message->exit, message->n_exit, &ret->exit);
	copy_candidates(message->sigreturn, message->n_sigreturn, &ret->sigreturn);
}

static struct error *take_ranges(struct keeper_plan *plan, const Goheapd__Plan *message)
{
	uint64_t end = 0;

	plan->unwalkable = calloc(message->n_unwalkable + 1, sizeof(*plan->unwalkable));
	if (!plan->unwalkable)
		return &error_nomem;
	for (size_t i = 0; i < message->n_unwalkable; i++) {
		const Goheapd__PcRange *range = message->unwalkable[i];

		if (range->start < end || range->end <= range->start)
			return error_new(ERROR_FORMAT, "unwalkable ranges out of order");
		end = range->end;
		plan->unwalkable[i] = (struct address_range){ range->start, range->end };
	}
	plan->unwalkable_count = (uint32_t)message->n_unwalkable;
	return NULL;
}

struct error *keeper_plan_take(struct keeper_plan *plan, const Goheapd__Plan *message)
{
	const ProtobufCBinaryData *reason = &message->no_injection;

	plan->has_injection = message->injection != NULL;
	if (plan->has_injection)
		keeper_plan_injection(message->injection, &plan->injection);
	else
		snprintf(plan->no_injection, sizeof(plan->no_injection), "%.*s",
			 reason->len < sizeof(plan->no_injection) ? (int)reason->len
								  : (int)sizeof(plan->no_injection),
			 reason->len ? (const char *)reason->data : "");
	return take_ranges(plan, message);
}

void keeper_plan_fini(struct keeper_plan *plan)
{
	free(take(plan->unwalkable));
}
