#include "agent/goruntime/heap_extent.h"

#include <stdlib.h>

#include "agent/goruntime/span_table.h"

enum { SAMPLE_MAX = 1 << 20 }; /* spans; more than a heap of 8 GiB has */

static void add_span(struct heap_extent *extent, const struct span *span)
{
	uint64_t words = span->elem_size / 8;

	extent->spans++;
	if (span->state != SPAN_IN_USE)
		return;
	extent->slots += span->elem_count;
	if (span->noscan)
		return;
	extent->pointer_slots += span->elem_count;
	extent->pointer_words += span->elem_count * words;
	if (words > extent->largest_words)
		extent->largest_words = words;
}

struct error *heap_extent_read(struct memory *memory, const struct layout *layout,
			       struct heap_extent *ret)
{
	struct span_candidate *candidates scoped(freep) = NULL;
	struct span_totals totals = { 0 };
	uint32_t count, stride;
	struct error *err =
	    span_read_sample(memory, layout, SAMPLE_MAX, &totals, &candidates, &count, &stride);

	if (err)
		return error_context(err, "extent of the heap");
	*ret = (struct heap_extent){ 0 };
	for (uint32_t i = 0; i < count; i++)
		add_span(ret, &candidates[i].span);
	ret->spans *= stride;
	ret->slots *= stride;
	ret->pointer_slots *= stride;
	ret->pointer_words *= stride;
	return NULL;
}

void heap_extent_of(const struct span_table *spans, struct heap_extent *ret)
{
	*ret = (struct heap_extent){ 0 };
	for (uint32_t i = 0; i < span_table_count(spans); i++)
		add_span(ret, span_table_at(spans, i));
}
