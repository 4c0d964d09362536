/*
 * The compact object graph: for every object its outgoing edges as 32-bit object numbers, in
 * compressed sparse rows, extracted from the snapshot in one pass over its span memory by several
 * threads. Objects are numbered as agent/goruntime/span.h says.
 */
#ifndef AGENT_ANALYSIS_GRAPH_H
#define AGENT_ANALYSIS_GRAPH_H

#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

struct layout;
struct span_table;
struct graph;

/*
 * ERROR_LIMIT for more than 2^32 - 2 slots, ERROR_OUT_OF_MEMORY (saying what it would need) if
 * memory_limit bytes do not suffice; 0 is no limit. The span table is borrowed for the graph's
 * life, memory and layout for the call.
 */
must_check struct error *graph_read(struct memory *memory, const struct layout *layout,
				    const struct span_table *spans, unsigned thread_count,
				    uint64_t memory_limit, struct graph **ret);

/* The same, with notes of each edge for a walk (agent/analysis/reference_walk.h). */
must_check struct error *graph_read_noted(struct memory *memory, const struct layout *layout,
					  const struct span_table *spans, unsigned thread_count,
					  uint64_t memory_limit, struct graph **ret);

/* Gives back what was noted, if it was. */
void graph_drop_notes(struct graph *graph);

void graph_free(struct graph *graph);
DEFINE_FREEP(graph, graph_free)

/*
 * Edges of an object; they belong to the graph. An edge OBJECT_NONE is an exact pointer that leads
 * to a slot where no object is present: none in a right scan. Objects that a collection condemned
 * have their edges too, since a finalizer may revive them; nothing present leads to them.
 */
const uint32_t *graph_edges(const struct graph *graph, uint32_t object, uint32_t *ret_count);

const struct span_table *graph_spans(const struct graph *graph);

struct graph_totals {
	uint64_t edges;
	uint64_t skipped_bytes;   /* objects or spans that could not be read or typed */
	uint64_t free_slot_edges; /* exact pointers of present objects that lead to free slots */
};

const struct graph_totals *graph_totals(const struct graph *graph);

/* What its memory limit leaves beside it and its marking, at least 1; 0: there is no limit. */
uint64_t graph_memory_left(const struct graph *graph);

#endif
