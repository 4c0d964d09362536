/*
 * Spans: the page runs of the Go heap, and the slots of each. A span table is read once from a
 * snapshot and does not change afterwards, so any number of threads may look things up in it.
 *
 * Objects are numbered: the slots of all in-use spans, span after span in address order, from 1.
 * Object 0 is none. A number says nothing about whether the slot is allocated.
 */
#ifndef AGENT_GORUNTIME_SPAN_H
#define AGENT_GORUNTIME_SPAN_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

struct arena_table;
struct layout;

enum {
	GO_PAGE_SIZE = 8192, /* runtime/malloc.go, _PageSize, every version in use */
	OBJECT_NONE = 0,
};

/* runtime/mheap.go, mSpanState, unchanged since go1.15. */
enum span_state { SPAN_DEAD = 0, SPAN_IN_USE = 1, SPAN_MANUAL = 2 };

/* What mspan.sweepgen says against mheap_.sweepgen; runtime/mheap.go, mspan.sweepgen. */
enum span_sweep { SPAN_SWEPT, SPAN_UNSWEPT, SPAN_SWEEPING };

struct span {
	taddr base;
	taddr limit;         /* end of the data in use; large: base + requested size */
	uint64_t page_count; /* of GO_PAGE_SIZE */
	uint64_t elem_size;  /* bytes per slot, malloc header included; 0 unless in use */
	uint32_t elem_count; /* slots */
	uint32_t first_object;
	uint32_t free_index;
	uint32_t free_index_for_scan; /* free_index where the runtime has none */
	uint32_t newest; /* slot + 1 that may be in flight, of a runtime without freeIndexForScan */
	uint32_t elem_reciprocal; /* ceil(2^32 / elem_size) for small objects, 0 for large */
	uint8_t state;            /* enum span_state */
	uint8_t span_class;       /* size class << 1 | noscan */
	uint8_t sweep;            /* enum span_sweep */
	bool noscan;              /* its objects hold no pointers */
	bool inline_marks;        /* green tea: mark bits in the span itself */
	bool user_arena;
	taddr specials;   /* first special record, 0 if none */
	taddr large_type; /* mspan.largeType, 0 if none or unknown to this runtime */
	uint64_t bits;    /* where the slots' bits begin in the table's bitmaps */
};

/*
 * A user arena chunk that was freed: in use until nothing points into it, but it counts as freed,
 * its memory is gone, and pointers that are left may be kept but not followed. It is address space
 * and no more; runtime/arena.go, setUserArenaChunkToFault, since go1.20.
 */
static inline bool span_is_quarantined(const struct span *span)
{
	return span->user_arena && span->noscan;
}

struct span_table;

/*
 * Reads mheap_.allspans, confirms each in-use span through the arenas, computes which slots are
 * allocated and which of an unswept span's are marked. Spans that contradict the arenas or their
 * own class are left out and counted. The caller frees *ret; layout and memory are borrowed.
 */
must_check struct error *span_table_read(struct memory *memory, const struct layout *layout,
					 struct span_table **ret);
void span_table_free(struct span_table *table);
DEFINE_FREEP(span_table, span_table_free)

/* In address order; spans of state SPAN_IN_USE and SPAN_MANUAL. */
uint32_t span_table_count(const struct span_table *table);
const struct span *span_table_at(const struct span_table *table, uint32_t index);

/* Highest object number + 1. */
uint32_t span_table_object_end(const struct span_table *table);

/* The span (in use or manual) that holds addr, or NULL. It belongs to the table. */
const struct span *span_table_find(const struct span_table *table, taddr addr);

/*
 * The object that addr points to or into, whatever its state, or OBJECT_NONE. Loops over many
 * words use span_lookup.h instead.
 */
uint32_t span_table_object(const struct span_table *table, taddr addr);

/* The span of an object. */
const struct span *span_table_span_of(const struct span_table *table, uint32_t object);

/* First byte of an object's slot. */
static inline taddr span_object_addr(const struct span *span, uint32_t object)
{
	return span->base + (uint64_t)(object - span->first_object) * span->elem_size;
}

/*
 * Is the slot allocated: by the allocator's rule (index < freeindex or allocBits), which is what
 * HeapObjects counts.
 */
bool span_slot_allocated(const struct span_table *table, const struct span *span, uint32_t slot);

/*
 * Allocated and not condemned: in an unswept span the last collection must have marked it. What
 * is allocated and condemned is garbage that the sweeper has not reached. This is where an exact
 * pointer may lead.
 */
bool span_slot_present(const struct span_table *table, const struct span *span, uint32_t slot);

/* Would the runtime's conservative scan take a word that leads to this slot for a pointer? */
bool span_slot_conservative(const struct span_table *table, const struct span *span, uint32_t slot);

struct span_totals {
	uint64_t in_use_pages, manual_pages;
	uint64_t user_arena_pages;     /* of the former: outside of the page allocator's ranges */
	uint64_t runtime_in_use_pages; /* mheap_.pagesInUse, for the self-check */
	uint64_t allocated_objects, allocated_bytes; /* HeapObjects, HeapAlloc by slots */
	uint64_t alloc_count_sum;                    /* of mspan.allocCount, for the self-check */
	/* Spans whose allocCount and slots differ: by one, as in mid-allocation; by more. */
	uint64_t uneven_spans, miscounted_spans;
	uint64_t empty_pages;      /* of in-use spans of which nothing is allocated */
	uint64_t reusable_objects; /* counted by allocCount, but free: mcache.reusableNoscan */
	uint64_t skipped_spans, skipped_bytes; /* contradictory: left out */
	uint64_t unswept_spans, sweeping_spans;
	uint64_t quarantined_bytes; /* freed user arena chunks: in use by state, unreadable */
};

const struct span_totals *span_table_totals(const struct span_table *table);

/* The arenas by which the spans were confirmed. They belong to the table. */
const struct arena_table *span_table_arenas(const struct span_table *table);

#endif
