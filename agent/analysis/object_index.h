/*
 * The lookups that graph and marking do tens of millions of times, laid out for that: from an
 * address to its object, and from an object to its span. Made once from a span table and fixed
 * from then on, so any number of threads may look things up.
 *
 * An address is found in three steps, each one load: its 64 MiB block, its page's span, the span's
 * own numbers. The steps stand apart so that a caller can prefetch for many addresses at once.
 */
#ifndef AGENT_ANALYSIS_OBJECT_INDEX_H
#define AGENT_ANALYSIS_OBJECT_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/analysis/pages.h"
#include "agent/goruntime/span.h"

enum {
	INDEX_PAGE_SHIFT = 13, /* GO_PAGE_SIZE */
	INDEX_BLOCK_SHIFT = 26,
	INDEX_BLOCK_PAGES = 1 << (INDEX_BLOCK_SHIFT - INDEX_PAGE_SHIFT),
	INDEX_ADDRESS_BITS = 48, /* runtime/malloc.go, heapAddrBits on linux/amd64 */
	INDEX_GROUP_SHIFT = 6,   /* objects that share an entry of the way back */
};

/* One in-use span, in address order. */
struct indexed_span {
	taddr base;
	uint64_t size; /* bytes from base in which pointers are good */
	uint32_t first;
	uint32_t count;
	uint32_t reciprocal; /* 2^32 / elem_size rounded up; 0 for a single object */
	uint32_t number;     /* in the span table */
};

struct object_index {
	const struct span_table *table;
	taddr start, end; /* all in-use spans lie between */
	struct indexed_span *spans;
	uint32_t span_count;
	uint32_t object_end;

	struct pages block_pages, page_pages, span_pages, group_pages;
	uint32_t *blocks;     /* by address: number of the block's run of page entries, 0: none */
	uint32_t *page_spans; /* by page: span index + 1, 0: none */
	uint32_t *groups;     /* by object >> INDEX_GROUP_SHIFT: span of the group's first object */
};

/* The table is borrowed. */
must_check struct error *object_index_init(struct object_index *index, struct budget *budget,
					   const struct span_table *table);
void object_index_fini(struct object_index *index);

/* Might addr lead to an object? Most words that are no pointers end here. */
static inline bool object_index_near(const struct object_index *index, taddr addr)
{
	return addr - index->start < index->end - index->start;
}

/* The page's entry; addr must be near. */
static inline const uint32_t *object_index_page(const struct object_index *index, taddr addr)
{
	uint64_t block = index->blocks[addr >> INDEX_BLOCK_SHIFT];

	return &index->page_spans[block * INDEX_BLOCK_PAGES +
				  (addr >> INDEX_PAGE_SHIFT) % INDEX_BLOCK_PAGES];
}

/* The object that addr points to or into, by its page's entry; OBJECT_NONE if there is none. */
static inline uint32_t object_index_in_page(const struct object_index *index, uint32_t page_span,
					    taddr addr)
{
	const struct indexed_span *span;
	uint64_t offset;

	if (!page_span)
		return OBJECT_NONE;
	span = &index->spans[page_span - 1];
	offset = addr - span->base;
	if (offset >= span->size)
		return OBJECT_NONE;
	return span->first + (uint32_t)(offset * span->reciprocal >> 32);
}

/* Position among index->spans of the span of an object, which must exist. */
static inline uint32_t object_index_span_of(const struct object_index *index, uint32_t object)
{
	uint32_t i = index->groups[object >> INDEX_GROUP_SHIFT];

	while (i + 1 < index->span_count && index->spans[i + 1].first <= object)
		i++;
	return i;
}

#endif
