/*
 * Threads take spans, each with tallies of its own, which are put together in the end.
 */
#include "agent/report/histogram.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "agent/analysis/dominators.h"
#include "agent/analysis/graph.h"
#include "agent/analysis/mark.h"
#include "agent/analysis/reference_walk.h"
#include "agent/analysis/workers.h"
#include "agent/goruntime/span.h"
#include "agent/report/analysed.h"
#include "agent/report/global_list.h"
#include "agent/report/retained.h"
#include "agent/report/type_tally.h"

enum { SPANS_AT_ONCE = 256 };

/* By enum object_state. */
struct tallies {
	struct type_tally of[OBJECT_STATE_END];
};

struct counting {
	const struct analysed *analysed;
	bool garbage; /* what is not live, too */
	_Atomic uint32_t next_span;
	struct tallies *by_thread;
};

static void tallies_fini(struct tallies *tallies)
{
	for (unsigned i = 0; i < OBJECT_STATE_END; i++)
		type_tally_fini(&tallies->of[i]);
}

/* One that is not live, if it is there. */
static struct error *count_garbage(const struct counting *counting, const struct span *span,
				   uint32_t slot, struct tallies *tallies)
{
	uint32_t object = span->first_object + slot;
	struct object_type type;
	struct error *err;

	if (!span_slot_allocated(graph_spans(counting->analysed->graph), span, slot))
		return NULL;
	err = object_type(counting->analysed, object, &type);
	return err ? err
		   : type_tally_add(&tallies->of[object_state(counting->analysed, object)], type, 1,
				    span->elem_size);
}

static struct error *count_span(const struct counting *counting, uint32_t index,
				struct tallies *tallies)
{
	const struct span *span = span_table_at(graph_spans(counting->analysed->graph), index);
	uint32_t first = span->first_object, run;
	struct error *err = NULL;

	if (span->state != SPAN_IN_USE)
		return NULL;
	for (uint32_t slot = 0; !err && slot < span->elem_count; slot += run) {
		struct object_type type;
		bool is_live;

		run = reference_walk_run_of(counting->analysed->walk, first + slot,
					    first + span->elem_count, &is_live, &type.type,
					    &type.is_array);
		if (is_live)
			err = type_tally_add(&tallies->of[OBJECT_LIVE], type, run,
					     run * span->elem_size);
		for (uint32_t i = 0; !is_live && counting->garbage && !err && i < run; i++)
			err = count_garbage(counting, span, slot + i, tallies);
	}
	return err;
}

static struct error *count_some(void *arg, unsigned thread)
{
	struct counting *counting = arg;
	uint32_t end = span_table_count(graph_spans(counting->analysed->graph)), start;
	struct error *err = NULL;

	while (!err && (start = atomic_fetch_add(&counting->next_span, SPANS_AT_ONCE)) < end)
		for (uint32_t i = 0; !err && i < SPANS_AT_ONCE && i < end - start; i++)
			err = count_span(counting, start + i, &counting->by_thread[thread]);
	return err;
}

/* Into the first thread's. */
static struct error *put_together(struct tallies *by_thread, unsigned count)
{
	struct error *err = NULL;

	for (unsigned i = 1; !err && i < count; i++)
		for (unsigned k = 0; !err && k < OBJECT_STATE_END; k++)
			err = type_tally_add_all(&by_thread[0].of[k], &by_thread[i].of[k]);
	return err;
}

static struct error *fill_live(const struct go_types *types, const struct type_tally *tally,
			       Goheapd__Histogram *histogram)
{
	struct error *err = type_tally_rows(tally, types, &histogram->types, &histogram->n_types);

	for (size_t i = 0; i < histogram->n_types; i++)
		histogram->typed_bytes += histogram->types[i]->bytes;
	histogram->unknown_objects = tally->unknown.objects;
	histogram->unknown_bytes = tally->unknown.bytes;
	return err;
}

static struct error *fill_others(const struct go_types *types, const struct tallies *tallies,
				 Goheapd__Histogram *histogram)
{
	const struct type_tally *garbage = &tallies->of[OBJECT_GARBAGE];
	const struct type_tally *finalizable = &tallies->of[OBJECT_FINALIZABLE];
	struct error *err =
	    type_tally_rows(garbage, types, &histogram->garbage, &histogram->n_garbage);

	if (!err)
		err = type_tally_rows(finalizable, types, &histogram->finalizable,
				      &histogram->n_finalizable);
	histogram->has_garbage_unknown_objects = histogram->has_garbage_unknown_bytes = true;
	histogram->garbage_unknown_objects = garbage->unknown.objects;
	histogram->garbage_unknown_bytes = garbage->unknown.bytes;
	histogram->has_finalizable_unknown_objects = true;
	histogram->has_finalizable_unknown_bytes = true;
	histogram->finalizable_unknown_objects = finalizable->unknown.objects;
	histogram->finalizable_unknown_bytes = finalizable->unknown.bytes;
	return err;
}

/* ---- what is retained ---- */

struct row_finder {
	const struct analysed *analysed;
	const struct type_tally *tally;
	uint32_t *rows;
};

static uint32_t row_of(const void *arg, uint32_t object)
{
	const struct row_finder *finder = arg;
	struct object_type type = { .type = TYPE_UNKNOWN };

	type.type = reference_walk_type(finder->analysed->walk, object, &type.is_array);
	return type_tally_row(finder->tally, finder->rows, type);
}

static struct error *retain_by_type(const struct row_finder *finder, Goheapd__Histogram *histogram)
{
	const struct dominator_classes classes = {
		.class_of = row_of,
		.arg = finder,
		.class_count = (uint32_t)histogram->n_types,
		.thread_count = finder->analysed->thread_count,
		.memory_limit = finder->analysed->memory_limit,
	};
	uint64_t *retained scoped(freep) = calloc(histogram->n_types + 1, sizeof(*retained));
	struct error *err;

	if (!retained)
		return &error_nomem;
	err = dominators_retained_by_class(retained_dominators(finder->analysed->retained),
					   &classes, retained);
	for (size_t i = 0; !err && i < histogram->n_types; i++) {
		histogram->types[i]->has_retained_bytes = true;
		histogram->types[i]->retained_bytes = retained[i];
	}
	return err;
}

static struct error *fill_retained(const struct counting *counting, Goheapd__Histogram *histogram)
{
	const struct analysed *a = counting->analysed;
	struct row_finder finder = { .analysed = a,
				     .tally = &counting->by_thread[0].of[OBJECT_LIVE] };
	struct error *err = type_tally_find_rows(finder.tally, a->types, histogram->types,
						 histogram->n_types, &finder.rows);

	if (!err)
		err = retain_by_type(&finder, histogram);
	if (!err)
		err = global_list_fill(a->retained, SIZE_MAX, &histogram->globals,
				       &histogram->n_globals);
	free(finder.rows);
	return err;
}

static struct error *fill(const struct counting *counting, Goheapd__ScanResult *result)
{
	const struct go_types *types = counting->analysed->types;
	Goheapd__Histogram *histogram = malloc(sizeof(*histogram));
	struct error *err;

	if (!histogram)
		return &error_nomem;
	goheapd__histogram__init(histogram);
	result->histogram = histogram;
	err = fill_live(types, &counting->by_thread[0].of[OBJECT_LIVE], histogram);
	if (!err && counting->analysed->retained)
		err = fill_retained(counting, histogram);
	if (!err && counting->garbage)
		err = fill_others(types, &counting->by_thread[0], histogram);
	return err;
}

struct error *histogram_fill(const struct analysed *analysed, const Goheapd__HistogramQuery *query,
			     Goheapd__ScanResult *result)
{
	unsigned threads = workers_clamp(analysed->thread_count);
	struct counting counting = { .analysed = analysed, .garbage = query->garbage };
	struct error *err;

	counting.by_thread = calloc(threads, sizeof(*counting.by_thread));
	if (!counting.by_thread)
		return &error_nomem;
	err = workers_run(threads, count_some, &counting);
	if (!err)
		err = put_together(counting.by_thread, threads);
	if (!err)
		err = fill(&counting, result);
	for (unsigned i = 0; i < threads; i++)
		tallies_fini(&counting.by_thread[i]);
	free(counting.by_thread);
	return err;
}
