#include "agent/report/scan_report.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "agent/analysis/graph.h"
#include "agent/analysis/mark.h"
#include "agent/goruntime/goroutine.h"
#include "agent/goruntime/module.h"
#include "agent/goruntime/page_alloc.h"
#include "agent/goruntime/span.h"
#include "agent/goruntime/special.h"
#include "agent/goruntime/stack.h"
#include "agent/report/decoded.h"
#include "agent/report/goroutine_list.h"
#include "agent/report/label_report.h"
#include "agent/report/mapping_list.h"
#include "agent/report/memory_tree.h"
#include "agent/report/message.h"
#include "agent/report/overview.h"
#include "agent/report/process_map.h"
#include "agent/report/resident.h"
#include "agent/report/self_check.h"

/* The walk and the kernel's own figure are taken at different instants: this far is no wonder. */
enum { RSS_SLACK_BYTES = 16 << 20, RSS_SLACK_PERCENT = 5 };

struct error *scan_report_new(Goheapd__ScanResult **ret)
{
	Goheapd__ScanResult *result = malloc(sizeof(*result));

	if (!result)
		return &error_nomem;
	goheapd__scan_result__init(result);
	result->scan = malloc(sizeof(*result->scan));
	if (!result->scan) {
		free(result);
		return &error_nomem;
	}
	goheapd__scan_info__init(result->scan);
	*ret = result;
	return NULL;
}

struct error *scan_report_read(const struct decoded *decoded, Goheapd__ScanResult *result)
{
	struct error *err =
	    overview_gc(decoded->request->memory, decoded->request->layout, &result->gc);

	if (err)
		return err;
	result->scan->has_gc_cycles = true;
	result->scan->gc_cycles = result->gc->cycles;
	return message_string(result->gc->phase, &result->scan->gc_phase);
}

static struct error *fill_heap(const struct decoded *d, const struct heap_usage *usage,
			       Goheapd__ScanResult *result)
{
	const struct span_totals *spans = span_table_totals(d->spans);
	Goheapd__HeapTotals *heap = malloc(sizeof(*heap));

	if (!heap)
		return &error_nomem;
	goheapd__heap_totals__init(heap);
	result->heap = heap;
	heap->free_bytes = usage->free_slots.bytes;
	heap->round_bytes = usage->round.bytes;
	heap->allocated_bytes = spans->allocated_bytes;
	heap->allocated_objects = spans->allocated_objects;
	heap->has_goal_bytes = result->gc->has_goal_bytes;
	heap->goal_bytes = result->gc->goal_bytes;
	heap->has_marked_bytes_last_gc = true;
	heap->marked_bytes_last_gc = result->gc->live_last_gc_bytes;
	if (d->mark) {
		const struct mark_totals *mark = mark_totals(d->mark);

		heap->has_live_bytes = heap->has_live_objects = true;
		heap->live_bytes = mark->live_bytes;
		heap->live_objects = mark->live_objects;
		heap->has_finalizable_bytes = heap->has_finalizable_objects = true;
		heap->finalizable_bytes = mark->finalizable_bytes;
		heap->finalizable_objects = mark->finalizable_objects;
		heap->has_garbage_bytes = heap->has_garbage_objects = true;
		heap->garbage_bytes = mark->garbage_bytes;
		heap->garbage_objects = mark->garbage_objects;
	}
	return NULL;
}

static struct error *fill_stacks(const struct decoded *d, Goheapd__ScanResult *result)
{
	Goheapd__StackTotals *stacks = malloc(sizeof(*stacks));

	if (!stacks)
		return &error_nomem;
	goheapd__stack_totals__init(stacks);
	result->stacks = stacks;
	for (uint32_t i = 0; i < goroutine_table_count(d->goroutines); i++) {
		const struct goroutine *g = goroutine_table_at(d->goroutines, i);

		if (!goroutine_is_alive(g))
			continue;
		stacks->goroutines++;
		stacks->bytes += goroutine_stack_bytes(g);
		stacks->in_use_bytes += d->scans[i].in_use_bytes;
	}
	return NULL;
}

static void count_stacks(const struct decoded *d, Goheapd__Trust *trust)
{
	for (uint32_t i = 0; i < goroutine_table_count(d->goroutines); i++) {
		if (!goroutine_is_alive(goroutine_table_at(d->goroutines, i)))
			continue;
		trust->goroutines++;
		switch (d->scans[i].trust) {
		case STACK_EXACT:
			trust->exact_stacks++;
			break;
		case STACK_CONSERVATIVE:
			trust->conservative_stacks++;
			break;
		case STACK_SKIPPED:
			trust->skipped_stacks++;
			break;
		}
	}
}

static struct error *fill_self_check(const struct decoded *d, Goheapd__Trust *trust)
{
	const struct self_check_input input = {
		.spans = span_table_totals(d->spans),
		.pages = page_alloc_totals(d->pages),
		.goroutines = d->goroutines,
		.skipped_specials = d->specials ? special_table_skipped(d->specials) : 0,
		.thread_count = d->request->thread_count,
	};
	char verdict[SELF_CHECK_SIZE];

	self_check(&input, verdict);
	return message_text(verdict, &trust->self_check);
}

static struct error *fill_trust(const struct decoded *d, Goheapd__ScanResult *result)
{
	Goheapd__Trust *trust = malloc(sizeof(*trust));

	if (!trust)
		return &error_nomem;
	goheapd__trust__init(trust);
	result->scan->trust = trust;
	count_stacks(d, trust);
	trust->skipped_bytes = span_table_totals(d->spans)->skipped_bytes;
	if (d->mark) {
		const struct mark_totals *mark = mark_totals(d->mark);

		trust->skipped_bytes += graph_totals(d->graph)->skipped_bytes;
		trust->has_conservative_only_bytes = true;
		trust->conservative_only_bytes = mark->conservative_only_bytes;
		trust->has_system_stack_only_bytes = true;
		trust->system_stack_only_bytes = mark->system_stack_only_bytes;
		trust->has_free_slot_hits = true;
		trust->free_slot_hits = mark->free_slot_hits;
	}
	return fill_self_check(d, trust);
}

/* The walk of the page tables against the kernel's own figure. */
static struct error *compare_rss(const struct decoded *d, uint64_t walked,
				 Goheapd__ScanResult *result)
{
	uint64_t kernel = d->kernel_rss_bytes;
	uint64_t apart = walked > kernel ? walked - kernel : kernel - walked;

	if (!kernel)
		return NULL;
	result->has_rss_bytes = true;
	result->rss_bytes = kernel;
	if (apart <= RSS_SLACK_BYTES || apart <= kernel / 100 * RSS_SLACK_PERCENT)
		return NULL;
	return message_warn(result->scan, "rss_differs",
			    "the page tables show %" PRIu64
			    " MiB in RAM, the kernel counts %" PRIu64 " MiB",
			    walked >> 20, kernel >> 20);
}

static struct error *warn_of_modules(const struct decoded *d, Goheapd__ScanResult *result)
{
	uint32_t unread = 0;

	for (uint32_t i = 0; i < module_table_count(d->modules); i++)
		unread += !module_table_at(d->modules, i)->pclntab;
	if (!unread)
		return NULL;
	return message_warn(result->scan, "plugins_unread",
			    "the tables of %" PRIu32 " of %" PRIu32
			    " modules are not in RAM, and reading them would touch the target: "
			    "stacks that they have a part in are conservative",
			    unread, module_table_count(d->modules));
}

static struct error *warn_of_skips(const struct decoded *d, Goheapd__ScanResult *result)
{
	uint64_t skipped = resident_skipped_bytes(d->resident);
	struct error *err = NULL;

	if (skipped)
		err = message_warn(result->scan, "mappings_skipped",
				   "resident figures leave out %" PRIu64
				   " GiB of mappings: too large to walk on this kernel",
				   skipped >> 30);
	if (!err)
		err = warn_of_modules(d, result);
	if (!err && d->request->pagemap_fd < 0)
		err = message_warn(result->scan, "no_pagemap",
				   "the page tables cannot be read: resident figures are 0");
	return err;
}

static struct error *fill_address_space(const struct decoded *d, const struct heap_usage *usage,
					Goheapd__ScanResult *result)
{
	const struct process_map_input process = {
		.maps = d->maps,
		.exe = d->request->exe,
		.modules = d->modules,
		.goroutines = d->goroutines,
		.threads = d->request->threads,
		.thread_count = d->request->thread_count,
		.metadata = &d->metadata,
		.spans = d->spans,
		.pages = d->pages,
	};
	struct address_map regions scoped(address_map_fini) = { 0 };
	const struct memory_tree_input tree = {
		.maps = d->maps,
		.regions = &regions,
		.resident = d->resident,
		.heap = usage,
		.marked = d->mark != NULL,
	};
	struct error *err = process_map_init(&process, &regions);

	if (!err && d->request->want_memory)
		err = memory_tree_make(&tree, &result->memory);
	if (!err && result->memory)
		err = compare_rss(d, result->memory->resident_bytes, result);
	if (!err && d->request->want_mappings)
		err = mapping_list_fill(d->maps, &regions, d->resident, result);
	return err;
}

struct error *scan_report_finish(const struct decoded *decoded, Goheapd__ScanResult *result)
{
	const struct heap_pages heap = {
		.spans = decoded->spans,
		.mark = decoded->mark,
		.stacks = &decoded->stacks,
		.pages = decoded->pages,
	};
	struct heap_usage usage;
	struct error *err;

	heap_usage_count(&heap, decoded->resident, &usage);
	err = fill_heap(decoded, &usage, result);
	if (!err)
		err = fill_stacks(decoded, result);
	if (!err)
		err = fill_trust(decoded, result);
	if (!err)
		err = fill_address_space(decoded, &usage, result);
	if (!err && decoded->list)
		err = goroutine_list_fill(decoded->list, result);
	if (!err && decoded->request->want_labels)
		err = label_report_fill(decoded, decoded->request->want_label_detail, result);
	if (!err && decoded->request->want_labels)
		err = label_report_warn(decoded, result->scan);
	if (!err)
		err = warn_of_skips(decoded, result);
	result->scan->depth =
	    decoded->request->census ? GOHEAPD__DEPTH__DEPTH_CENSUS : GOHEAPD__DEPTH__DEPTH_FULL;
	result->scan->bytes_read = atomic_load(&decoded->request->memory->bytes_read);
	return err;
}
