/*
 * What the pages of the Go heap are used for, to the byte: spans by the state of their slots,
 * stacks, free pages; each with how much of it lies on pages that are in RAM.
 */
#ifndef AGENT_REPORT_HEAP_USAGE_H
#define AGENT_REPORT_HEAP_USAGE_H

#include <stdint.h>

#include "proto/base/error.h"

struct mark;
struct page_alloc;
struct range_list;
struct resident;
struct span_table;

struct usage {
	uint64_t bytes;    /* of address space in use */
	uint64_t resident; /* of them in RAM */
};

static inline void usage_add(struct usage *sum, struct usage more)
{
	sum->bytes += more.bytes;
	sum->resident += more.resident;
}

/* All of the heap is in exactly one of these. */
struct heap_usage {
	struct usage live, finalizable, garbage; /* allocated slots, if there is a mark */
	struct usage unmarked;                   /* allocated slots, if there is none */
	struct usage free_slots;
	struct usage round; /* ends of spans that hold no slot */
	struct usage stacks;
	struct usage manual; /* manual spans that are no stack */
	struct usage kept;   /* free pages the runtime holds on to */
	struct usage released;
};

struct heap_pages {
	const struct span_table *spans;
	const struct mark *mark;         /* NULL: without reachability */
	const struct range_list *stacks; /* joined */
	const struct page_alloc *pages;
};

void heap_usage_count(const struct heap_pages *heap, const struct resident *resident,
		      struct heap_usage *ret);

#endif
