#include "agent/analysis/graph_private.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "agent/analysis/workers.h"

enum { SPANS_AT_ONCE = 1024 };

/*
 * Edges of an object need its span's row and one 32-bit end per object of a span with pointers;
 * everything else is per span. For a heap of small nodes that is about a fifth of its size.
 */

static void free_chunks(struct edge_chunk **chunks)
{
	struct edge_chunk *chunk = take(*chunks);

	while (chunk) {
		struct edge_chunk *next = chunk->next;

		pages_fini(&chunk->pages);
		free(chunk);
		chunk = next;
	}
}

void graph_free(struct graph *graph)
{
	if (!graph)
		return;
	free_chunks(&graph->chunks);
	free_chunks(&graph->note_chunks);
	pages_fini(&graph->present_pages);
	pages_fini(&graph->ends_pages);
	pages_fini(&graph->row_pages);
	free(graph);
}

/* The words of one object are numbered in 32 bits; objects are, by the span table. */
static struct error *count_ends(const struct graph *graph, uint64_t *ret)
{
	uint64_t ends = 0;

	for (uint32_t i = 0; i < span_table_count(graph->spans); i++) {
		const struct span *span = span_table_at(graph->spans, i);

		if (!span->elem_count || span->noscan)
			continue;
		if (span->page_count * GO_PAGE_SIZE / 8 > UINT32_MAX)
			return error_new(ERROR_LIMIT, "an object of %" PRIu64 " GiB",
					 span->page_count * GO_PAGE_SIZE >> 30);
		ends += span->elem_count + UINT64_C(1);
	}
	*ret = ends;
	return NULL;
}

static struct error *make_rows(struct graph *graph)
{
	uint32_t span_count = span_table_count(graph->spans), *ends;
	uint64_t end_count;
	struct error *err = count_ends(graph, &end_count);

	if (err)
		return err;
	err = pages_init(&graph->row_pages, &graph->budget, span_count * sizeof(*graph->rows));
	if (err)
		return err;
	err = pages_init(&graph->ends_pages, &graph->budget, end_count * sizeof(*ends));
	if (err)
		return err;

	graph->rows = graph->row_pages.data;
	ends = graph->ends_pages.data;
	for (uint32_t i = 0; i < span_count; i++) {
		const struct span *span = span_table_at(graph->spans, i);

		if (!span->elem_count || span->noscan)
			continue;
		graph->rows[i].ends = ends;
		ends += span->elem_count + UINT64_C(1);
	}
	return NULL;
}

struct noting {
	struct graph *graph;
	_Atomic uint32_t next_span;
};

/* The first and last words of a span are its neighbours', too, who may be another thread's. */
static void or_present(uint64_t *present, uint64_t index, unsigned count, uint64_t value)
{
	unsigned shift = index % BITMAP_WORD_BITS;
	uint64_t *word = &present[index / BITMAP_WORD_BITS];

	__atomic_fetch_or(word, value << shift, __ATOMIC_RELAXED);
	if (shift + count > BITMAP_WORD_BITS)
		__atomic_fetch_or(word + 1, value >> (BITMAP_WORD_BITS - shift), __ATOMIC_RELAXED);
}

static void note_span_present(struct graph *graph, const struct span *span)
{
	for (uint32_t slot = 0; slot < span->elem_count; slot += BITMAP_WORD_BITS) {
		uint32_t left = span->elem_count - slot;
		unsigned count = left < BITMAP_WORD_BITS ? left : BITMAP_WORD_BITS;
		uint64_t bits = bitmap_load(graph->lookup->present, span->bits + slot, count);

		if (bits)
			or_present(graph->present, span->first_object + slot, count, bits);
	}
}

static struct error *run_note_present(void *arg, unsigned thread)
{
	struct noting *noting = arg;
	const struct span_table *spans = noting->graph->spans;
	uint32_t span_count = span_table_count(spans), start;

	(void)thread;
	while ((start = atomic_fetch_add(&noting->next_span, SPANS_AT_ONCE)) < span_count)
		for (uint32_t i = start; i < span_count && i - start < SPANS_AT_ONCE; i++)
			note_span_present(noting->graph, span_table_at(spans, i));
	return NULL;
}

/* The span table keeps its bits by span and slot; looking up an edge wants them by object. */
static struct error *note_present(struct graph *graph, unsigned thread_count)
{
	struct noting noting = { .graph = graph };
	uint64_t words = bitmap_words(graph->lookup->object_end);
	struct error *err =
	    pages_init(&graph->present_pages, &graph->budget, words * sizeof(uint64_t));

	if (err)
		return err;
	graph->present = graph->present_pages.data;
	return workers_run(thread_count, run_note_present, &noting);
}

static struct error *read_graph(struct graph *graph, struct memory *memory,
				const struct layout *layout, unsigned thread_count)
{
	struct error *err = make_rows(graph);

	if (err)
		return err;
	err = note_present(graph, thread_count);
	if (err)
		return err;
	return graph_extract(graph, memory, layout, thread_count);
}

static struct error *make(struct memory *memory, const struct layout *layout,
			  const struct span_table *spans, unsigned thread_count,
			  uint64_t memory_limit, bool noted, struct graph **ret)
{
	struct graph *graph scoped(graph_freep) = calloc(1, sizeof(*graph));
	struct error *err;

	if (!graph)
		return &error_nomem;
	graph->spans = spans;
	graph->lookup = span_table_lookup(spans);
	graph->noted = noted;
	graph->budget.limit = memory_limit;
	/* What marking will take, a byte for each object, must fit beside the graph. */
	graph->budget.reserved = graph->lookup->object_end;
	err = read_graph(graph, memory, layout, thread_count);
	if (err)
		return error_context(err, "object graph");
	*ret = take(graph);
	return NULL;
}

struct error *graph_read(struct memory *memory, const struct layout *layout,
			 const struct span_table *spans, unsigned thread_count,
			 uint64_t memory_limit, struct graph **ret)
{
	return make(memory, layout, spans, thread_count, memory_limit, false, ret);
}

struct error *graph_read_noted(struct memory *memory, const struct layout *layout,
			       const struct span_table *spans, unsigned thread_count,
			       uint64_t memory_limit, struct graph **ret)
{
	return make(memory, layout, spans, thread_count, memory_limit, true, ret);
}

void graph_drop_notes(struct graph *graph)
{
	for (uint32_t i = 0; i < span_table_count(graph->spans); i++)
		graph->rows[i].notes = NULL;
	free_chunks(&graph->note_chunks);
}

const uint32_t *graph_edges(const struct graph *graph, uint32_t object, uint32_t *ret_count)
{
	uint32_t i = span_lookup_span_of(graph->lookup, object);
	const struct graph_row *row = &graph->rows[i];
	uint32_t slot = object - graph->lookup->first_objects[i];

	if (!row->edges) {
		*ret_count = 0;
		return NULL;
	}
	*ret_count = row->ends[slot + 1] - row->ends[slot];
	return row->edges + row->ends[slot];
}

const struct span_table *graph_spans(const struct graph *graph)
{
	return graph->spans;
}

const struct graph_totals *graph_totals(const struct graph *graph)
{
	return &graph->totals;
}

uint64_t graph_memory_left(const struct graph *graph)
{
	struct budget left = graph_budget_left(graph);

	if (!left.limit)
		return 0;
	return left.limit > left.reserved ? left.limit - left.reserved : 1;
}
