/*
 * The looking-up part of a span table, for inner loops: the graph looks up every word that may be
 * a pointer, hundreds of millions in a large heap. All of it is read-only and inline; a caller
 * that has many words in hand does each step for all of them before the next, with prefetches
 * between, so that the cache misses overlap.
 */
#ifndef AGENT_GORUNTIME_SPAN_LOOKUP_H
#define AGENT_GORUNTIME_SPAN_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/goruntime/bitmap.h"
#include "agent/goruntime/span.h"

enum { GO_PAGE_SHIFT = 13, OBJECTS_PER_HINT = 64 };

/* What finding an object needs of its span; 24 bytes, so that many stay in the cache. */
struct span_slots {
	taddr base;
	uint64_t size; /* of the slots; 0 for a span that has none, such as a manual one */
	uint32_t first_object;
	uint32_t reciprocal;
};

struct span_lookup {
	taddr start;     /* of the lowest arena */
	uint64_t extent; /* from there to the end of the highest */
	unsigned arena_shift;
	uint32_t arena_page_mask;
	const uint32_t *arena_rows;     /* by arena: its row in pages; row 0 is all zeros */
	const uint32_t *pages;          /* by row and page: span index + 1, 0 for none */
	const struct span_slots *slots; /* by span index + 1; entry 0 has no slots */
	const uint32_t *first_objects;  /* by span index; one more than there are spans */
	const uint32_t *hints;          /* by object / OBJECTS_PER_HINT: span index to start from */
	uint32_t object_end;
	const uint64_t *allocated, *present, *conservative; /* by span.bits + slot */
};

/* Belongs to the table. */
const struct span_lookup *span_table_lookup(const struct span_table *table);

/* Where the page entry of addr lies, to prefetch it; NULL outside of all arenas. */
static inline const uint32_t *span_lookup_page(const struct span_lookup *lookup, taddr addr)
{
	uint64_t skip = addr - lookup->start;
	size_t row, page;

	if (skip >= lookup->extent)
		return NULL;
	row = lookup->arena_rows[skip >> lookup->arena_shift];
	page = skip >> GO_PAGE_SHIFT & lookup->arena_page_mask;
	return &lookup->pages[row * ((size_t)lookup->arena_page_mask + 1) + page];
}

/* The object in the slots of a span that addr falls in, or OBJECT_NONE. */
static inline uint32_t span_slots_object(const struct span_slots *slots, taddr addr)
{
	uint64_t skip = addr - slots->base;

	if (skip >= slots->size)
		return OBJECT_NONE;
	return slots->first_object + (uint32_t)(skip * slots->reciprocal >> 32);
}

static inline uint32_t span_lookup_object(const struct span_lookup *lookup, taddr addr)
{
	const uint32_t *page = span_lookup_page(lookup, addr);

	return page ? span_slots_object(&lookup->slots[*page], addr) : OBJECT_NONE;
}

/* Index of the span of an object, which must be one. */
static inline uint32_t span_lookup_span_of(const struct span_lookup *lookup, uint32_t object)
{
	uint32_t index = lookup->hints[object / OBJECTS_PER_HINT];

	while (lookup->first_objects[index + 1] <= object)
		index++;
	return index;
}

/* One of lookup's bitmaps (lookup->present, ...) for a slot. */
static inline bool span_lookup_bit(const uint64_t *bits, const struct span *span, uint32_t slot)
{
	return bitmap_get(bits, span->bits + slot);
}

#endif
