#include "tests/support/live_scan.h"

#include "agent/analysis/graph.h"
#include "agent/analysis/mark.h"
#include "agent/analysis/root_set.h"
#include "agent/goruntime/collector.h"
#include "agent/goruntime/goroutine.h"
#include "agent/goruntime/module.h"
#include "agent/goruntime/page_alloc.h"
#include "agent/goruntime/span.h"
#include "agent/goruntime/special.h"
#include "agent/goruntime/stack.h"
#include "tests/support/live_target.h"

void live_scan_fini(struct live_scan *scan)
{
	mark_free(scan->mark);
	graph_free(scan->graph);
	root_set_free(scan->roots);
	special_table_free(scan->specials);
	page_alloc_free(scan->pages);
	stack_walker_free(scan->walker);
	goroutine_table_free(scan->goroutines);
	span_table_free(scan->spans);
	*scan = (struct live_scan){ 0 };
}

static struct error *read_tables(const struct live_target *t, const struct stopped_thread *threads,
				 uint32_t thread_count, struct live_scan *scan)
{
	struct error *err = span_table_read(t->memory, t->layout, &scan->spans);

	if (!err)
		err = goroutine_table_read(t->memory, t->layout, scan->modules, threads,
					   thread_count, &scan->goroutines);
	if (!err)
		err = stack_walker_new(t->memory, t->layout, scan->modules, scan->goroutines,
				       &scan->walker);
	if (!err)
		err = page_alloc_read(t->memory, t->layout, scan->spans, &scan->pages);
	if (!err)
		err = special_table_read(t->memory, t->layout, scan->spans, &scan->specials);
	return err;
}

static struct error *stack_roots_of_all(const struct live_scan *scan, struct root_sink *sink,
					uint32_t *ret_conservative, uint32_t *ret_skipped)
{
	struct error *err = NULL;

	for (uint32_t i = 0; !err && i < goroutine_table_count(scan->goroutines); i++) {
		struct stack_scan stack;

		if (!goroutine_is_alive(goroutine_table_at(scan->goroutines, i)))
			continue;
		err = stack_roots(scan->walker, i, sink, &stack);
		if (err)
			return err;
		*ret_conservative += stack.trust == STACK_CONSERVATIVE;
		*ret_skipped += stack.trust == STACK_SKIPPED;
	}
	return err;
}

static struct error *other_roots(const struct live_target *t, const struct live_scan *scan,
				 struct root_sink *sink)
{
	struct error *err = module_table_roots(scan->modules, t->memory, t->layout, sink);

	if (!err)
		err = stack_system_roots(scan->walker, sink);
	if (!err)
		err = special_table_roots(scan->specials, t->memory, t->layout, sink);
	if (!err)
		err = special_queue_roots(t->memory, t->layout, sink);
	return err;
}

struct error *live_scan_roots(const struct live_target *target, const struct live_scan *scan,
			      struct root_sink *sink)
{
	uint32_t conservative = 0, skipped = 0;
	struct error *err = stack_roots_of_all(scan, sink, &conservative, &skipped);

	return err ? err : other_roots(target, scan, sink);
}

static struct error *read_roots(const struct live_target *t, struct live_scan *scan)
{
	struct error *err = root_set_new(scan->spans, &scan->roots);

	if (!err)
		err = stack_roots_of_all(scan, root_set_sink(scan->roots),
					 &scan->conservative_stacks, &scan->skipped_stacks);
	return err ? err : other_roots(t, scan, root_set_sink(scan->roots));
}

static struct error *read_phase(const struct live_target *t, struct live_scan *scan)
{
	struct collector collector;
	struct error *err = collector_read(t->memory, t->layout, &collector);

	if (!err)
		scan->phase = collector_phase_name(collector.phase);
	return err;
}

static void check_sums(struct live_scan *scan, uint32_t thread_count)
{
	const struct self_check_input input = {
		.spans = span_table_totals(scan->spans),
		.pages = page_alloc_totals(scan->pages),
		.goroutines = scan->goroutines,
		.skipped_specials = special_table_skipped(scan->specials),
		.thread_count = thread_count,
	};

	self_check(&input, scan->self_check);
}

struct error *live_scan_init(const struct live_target *target, const struct module_table *modules,
			     const struct stopped_thread *threads, uint32_t thread_count,
			     struct live_scan *ret)
{
	struct live_scan scan = { .modules = modules };
	struct error *err = read_tables(target, threads, thread_count, &scan);

	if (!err)
		err = read_phase(target, &scan);
	if (!err)
		err = read_roots(target, &scan);
	if (!err)
		err = graph_read(target->memory, target->layout, scan.spans, 1, 0, &scan.graph);
	if (!err)
		err = mark_run(scan.graph, scan.roots, scan.specials, 1, &scan.mark);
	memory_fini(target->memory); /* forget what was cached: the process may go on */
	if (err) {
		live_scan_fini(&scan);
		return err;
	}
	check_sums(&scan, thread_count);
	*ret = scan;
	return NULL;
}

struct live_count live_scan_count(const struct live_scan *scan, uint64_t elem_size)
{
	struct live_count count = { 0 };

	for (uint32_t i = 0; i < span_table_count(scan->spans); i++) {
		const struct span *span = span_table_at(scan->spans, i);

		if (span->state != SPAN_IN_USE || span->elem_size != elem_size)
			continue;
		for (uint32_t slot = 0; slot < span->elem_count; slot++) {
			count.live += mark_is_live(scan->mark, span->first_object + slot);
			count.present += span_slot_present(scan->spans, span, slot);
		}
	}
	return count;
}
