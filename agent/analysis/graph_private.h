/*
 * What graph, its extraction and marking share: the rows of the graph, laid out for walking.
 */
#ifndef AGENT_ANALYSIS_GRAPH_PRIVATE_H
#define AGENT_ANALYSIS_GRAPH_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/analysis/graph.h"
#include "agent/analysis/pages.h"
#include "agent/goruntime/span_lookup.h"

struct layout;
struct memory;

/*
 * The edges of one span's objects lie side by side: those of slot i are edges[ends[i]] to
 * edges[ends[i + 1]]. Spans without pointers have neither.
 */
struct graph_row {
	const uint32_t *edges;
	const struct edge_note *notes; /* of each edge; NULL: nothing was noted */
	uint32_t *ends;                /* count + 1 of them */
};

/*
 * What was seen beside a pointer when it was read, so that the walk need not read most objects
 * again: where in its slot the word is, and the two words behind it, which are length and capacity
 * if it begins a slice. Of small slots only.
 */
struct edge_note {
	uint8_t word; /* of the slot; with NOTE_INTERIOR: it does not lead to the start of a slot */
	uint8_t length, capacity; /* NOTE_UNKNOWN: more than a byte can tell, or not in the slot */
};

enum {
	NOTE_INTERIOR = 0x80,
	NOTE_WORD = 0x7f,
	NOTE_UNKNOWN = 0xff,
	NOTED_SLOT_MAX = (NOTE_WORD + 1) * 8, /* bytes */
};

struct graph {
	struct budget budget;
	const struct span_table *spans;
	const struct span_lookup *lookup; /* of spans */
	struct graph_row *rows;           /* by span */
	uint64_t *present;                /* by object: exact pointers may lead there */
	struct pages row_pages, ends_pages, present_pages;
	struct edge_chunk *chunks, *note_chunks;
	bool noted; /* notes are wanted */
	struct graph_totals totals;
};

/* For arrays beside the graph and its marking: what these leave of the memory limit. */
static inline struct budget graph_budget_left(const struct graph *graph)
{
	return (struct budget){
		.limit = graph->budget.limit,
		.reserved = graph->budget.reserved + graph->budget.used,
	};
}

/* A run of edges of one thread, or of notes; many in a list make up the edge array. */
struct edge_chunk {
	struct edge_chunk *next;
	struct pages pages;
	uint64_t used; /* edges */
};

/* Fills the rows, by several threads; adds to chunks and totals. */
must_check struct error *graph_extract(struct graph *graph, struct memory *memory,
				       const struct layout *layout, unsigned thread_count);

#endif
