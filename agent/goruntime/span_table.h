/* The insides of a span table, for the files that make and serve it. */
#ifndef AGENT_GORUNTIME_SPAN_TABLE_H
#define AGENT_GORUNTIME_SPAN_TABLE_H

#include "agent/goruntime/arena.h"
#include "agent/goruntime/span.h"
#include "agent/goruntime/span_lookup.h"

/* Where the state of a span's slots is read from, which only the making of a table needs. */
struct span_source {
	taddr mspan;
	taddr alloc_bits, mark_bits;
	uint32_t alloc_count;
};

/* An mspan structure that may describe a span. */
struct span_candidate {
	struct span span;
	struct span_source source;
};

struct span_table {
	struct span_lookup lookup; /* points into what follows */
	struct arena_table *arenas;
	struct span *spans;
	uint32_t count;
	uint32_t *arena_rows, *pages, *first_objects, *hints;
	struct span_slots *slots;
	uint64_t bit_count; /* of each of these */
	uint64_t *allocated, *present, *conservative;
	struct span_totals totals;
};

static inline uint64_t span_bytes(const struct span *span)
{
	return span->page_count * GO_PAGE_SIZE;
}

/*
 * Numbers for count objects more, from *next on: in 32 bits, of which the last is left for "none"
 * of arrays that hold numbers.
 */
must_check struct error *span_take_numbers(uint64_t *next, uint32_t count, uint32_t *ret_first);

/* Counts a span that contradicts the arenas or its own class. */
void span_totals_skip(struct span_totals *totals, const struct span *span);

/* span_read.c: the caller frees *ret with free(). */
must_check struct error *span_read_candidates(struct memory *memory, const struct layout *layout,
					      struct span_totals *totals,
					      struct span_candidate **ret, uint32_t *ret_count);

/*
 * The same of every stride-th structure, so that there are no more than most: for reckoning with
 * heaps of any size.
 */
must_check struct error *span_read_sample(struct memory *memory, const struct layout *layout,
					  size_t most, struct span_totals *totals,
					  struct span_candidate **ret, uint32_t *ret_count,
					  uint32_t *ret_stride);

/* span_confirm.c: an empty page table over all arenas. */
must_check struct error *span_table_make_pages(struct span_table *table);

/*
 * span_confirm.c: makes spans of the candidates that the arenas confirm, and all that finds them
 * and their objects. *ret_sources, one for each span, is the caller's to free.
 */
must_check struct error *span_table_confirm(struct memory *memory, const struct layout *layout,
					    struct span_candidate *candidates, uint32_t count,
					    struct span_table *table,
					    struct span_source **ret_sources);

/* span_bits.c: fills the bitmaps and what of the totals comes from them. */
must_check struct error *span_table_read_bits(struct memory *memory, const struct layout *layout,
					      const struct span_source *sources,
					      struct span_table *table);

#endif
