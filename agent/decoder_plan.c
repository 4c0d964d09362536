#include "agent/decoder_plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/binary/pclntab.h"
#include "agent/decoder_target.h"
#include "agent/goruntime/collector.h"
#include "agent/goruntime/layout.h"
#include "agent/goruntime/module.h"
#include "agent/goruntime/stack.h"
#include "agent/target/memory.h"

/* ---- the functions of an injection ---- */

/* One name can stand for several functions: ABI0 and a wrapper of it. */
enum { CANDIDATES_MAX = 4 };

struct candidates {
	const char *name;
	uint64_t entries[CANDIDATES_MAX];
	size_t count;
};

enum { OSYIELD, EXIT, SIGRETURN, SIGRETURN_OLD, FUNCTION_COUNT };

/* All of them in one walk: the table is ordered by address. */
static struct error *find_functions(const struct pclntab *pclntab, struct candidates *candidates)
{
	uint32_t count = pclntab_func_count(pclntab);

	for (uint32_t i = 0; i < count; i++) {
		struct pclntab_func func;
		struct error *err = pclntab_at(pclntab, i, &func);

		if (err)
			return err;
		for (size_t j = 0; j < FUNCTION_COUNT; j++) {
			struct candidates *wanted = &candidates[j];

			if (wanted->count < CANDIDATES_MAX && !strcmp(func.name, wanted->name))
				wanted->entries[wanted->count++] = func.entry;
		}
	}
	return NULL;
}

static void fill_injection(const struct layout *layout, struct candidates *candidates,
			   Goheapd__Injection *ret)
{
	struct candidates *sigreturn =
	    candidates[SIGRETURN].count ? &candidates[SIGRETURN] : &candidates[SIGRETURN_OLD];

	ret->osyield = candidates[OSYIELD].entries;
	ret->n_osyield = candidates[OSYIELD].count;
	ret->exit = candidates[EXIT].entries;
	ret->n_exit = candidates[EXIT].count;
	ret->sigreturn = sigreturn->entries;
	ret->n_sigreturn = sigreturn->count;
	ret->allm = layout->global_allm.addr;
	ret->m_alllink = layout->m_all_link.offset;
	ret->m_procid = layout->m_procid.offset;
	ret->m_gsignal = layout->m_gsignal.offset;
	ret->g_m = layout->g_m.offset;
	ret->g_stack_lo = layout->g_stack_lo.offset;
	ret->g_stack_hi = layout->g_stack_hi.offset;
}

/* The same program, run again, may lie elsewhere. */
static void fill_entry(const struct decoder_target *target, Goheapd__Injection *ret)
{
	ret->has_entry = true;
	ret->entry = target->entry;
}

/* ---- the ranges ---- */

struct ranges {
	struct pc_range *found; /* owned */
	uint32_t count;
	Goheapd__PcRange *messages;
	Goheapd__PcRange **pointers;
};

static void ranges_fini(struct ranges *ranges)
{
	free(ranges->found);
	free(ranges->messages);
	free(ranges->pointers);
}

static int compare_ranges(const void *a, const void *b)
{
	const struct pc_range *left = a, *right = b;

	return left->start < right->start ? -1 : left->start > right->start;
}

static struct error *find_ranges(const struct pclntab *pclntab, struct ranges *ranges)
{
	struct error *err = stack_unwalkable_ranges(pclntab, &ranges->found, &ranges->count);

	if (err)
		return err;
	ranges->messages = calloc(ranges->count + 1, sizeof(*ranges->messages));
	ranges->pointers = calloc(ranges->count + 1, sizeof(*ranges->pointers));
	if (!ranges->messages || !ranges->pointers)
		return &error_nomem;
	qsort(ranges->found, ranges->count, sizeof(*ranges->found), compare_ranges);
	for (uint32_t i = 0; i < ranges->count; i++) {
		goheapd__pc_range__init(&ranges->messages[i]);
		ranges->messages[i].start = ranges->found[i].start;
		ranges->messages[i].end = ranges->found[i].end;
		ranges->pointers[i] = &ranges->messages[i];
	}
	return NULL;
}

/* ---- the message ---- */

/* Stacks are read while the target stands still, unless there is a snapshot of it. */
static struct error *predict_stacks(const struct decoder_target *target, uint64_t *ret_us)
{
	uint64_t count = 0;
	struct error *err = NULL;

	if (target->opened->mode != GOHEAPD__MODE__MODE_FORK)
		err = runtime_goroutine_count(target->memory, target->layout, &count);
	if (!err)
		*ret_us = count * STACK_SCAN_US;
	return err;
}

/* The length of mheap_.allspans as it is now; that it cannot be read is no failure yet. */
static bool count_spans(const struct decoder_target *target, uint64_t *ret)
{
	const struct layout *layout = target->layout;
	taddr length = layout->global_mheap.addr + layout->mheap_allspans.offset + 8;
	struct error *err = memory_u64(target->memory, length, ret);
	bool read = !err;

	error_free(err);
	return read;
}

static struct error *send_plan(struct decoder *decoder, Goheapd__Plan *plan)
{
	Goheapd__PlanEvent event = GOHEAPD__PLAN_EVENT__INIT;

	event.body_case = GOHEAPD__PLAN_EVENT__BODY_PLAN;
	event.plan = plan;
	return frame_send(decoder->keeper, &frame_plan_event, &event.base, NULL, 0);
}

struct error *decoder_plan_send(struct decoder *decoder, const struct decoder_target *target)
{
	const struct pclntab *pclntab = module_table_at(target->modules, 0)->pclntab;
	struct candidates candidates[FUNCTION_COUNT] = {
		[OSYIELD] = { .name = "runtime.osyield" },
		[EXIT] = { .name = "runtime.exit" },
		/* since go1.19; before, and in cgo programs, the other */
		[SIGRETURN] = { .name = "runtime.sigreturn__sigaction" },
		[SIGRETURN_OLD] = { .name = "runtime.sigreturn" },
	};
	Goheapd__Plan plan = GOHEAPD__PLAN__INIT;
	Goheapd__Injection injection = GOHEAPD__INJECTION__INIT;
	struct ranges ranges = { 0 };
	struct error *err = find_functions(pclntab, candidates);

	if (!err)
		err = find_ranges(pclntab, &ranges);
	if (!err) {
		fill_injection(target->layout, candidates, &injection);
		fill_entry(target, &injection);
		plan.injection = &injection;
		plan.unwalkable = ranges.pointers;
		plan.n_unwalkable = ranges.count;
		plan.has_span_count = count_spans(target, &plan.span_count);
		err = predict_stacks(target, &plan.stacks_us);
	}
	if (!err)
		err = send_plan(decoder, &plan);
	ranges_fini(&ranges);
	return err;
}
