/*
 * The page allocator: which pages of the heap's address space belong to no span, and which of
 * those the runtime has given back to the kernel. runtime/mpagealloc.go, mpagecache.go.
 */
#ifndef AGENT_GORUNTIME_PAGE_ALLOC_H
#define AGENT_GORUNTIME_PAGE_ALLOC_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

struct layout;
struct page_alloc;
struct span_table;

/* Free pages in a row. */
struct free_run {
	taddr start;
	uint64_t page_count;
	bool released; /* scavenged: given back to the kernel, until they are used again */
};

struct page_totals {
	uint64_t managed_pages;  /* of the address ranges that the allocator manages */
	uint64_t span_pages;     /* of these, in a span */
	uint64_t kept_pages;     /* free and not given back; those that Ps cache are among them */
	uint64_t released_pages; /* free and given back */
	uint64_t cached_pages;   /* of the free ones, those that wait in the cache of a P */
	uint64_t spanless_pages; /* allocated, without a span: since go1.26 the pages in front of
				    the heap's random start */
	uint64_t contradictions; /* pages that are both free and in a span */
	/* Of ranges that were being written, or are broken: left out. */
	uint64_t foreign_pages; /* in no arena */
	uint64_t broken_ranges;
};

/*
 * Reads the bitmaps of mheap_.pages and the page caches of the Ps, and compares them with the
 * spans. The caller frees *ret.
 */
must_check struct error *page_alloc_read(struct memory *memory, const struct layout *layout,
					 const struct span_table *spans, struct page_alloc **ret);
void page_alloc_free(struct page_alloc *pages);
DEFINE_FREEP(page_alloc, page_alloc_free)

/* Runs in address order; two that touch differ in released. */
uint64_t page_alloc_count(const struct page_alloc *pages);
const struct free_run *page_alloc_at(const struct page_alloc *pages, uint64_t index);

const struct page_totals *page_alloc_totals(const struct page_alloc *pages);

#endif
