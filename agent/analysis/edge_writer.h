/*
 * Where one thread puts the edges it finds, or what it notes of each: chunks of huge pages, each
 * holding the edges of many spans. The edges of one span lie side by side, so a span that outgrows
 * its chunk is moved to a larger one.
 */
#ifndef AGENT_ANALYSIS_EDGE_WRITER_H
#define AGENT_ANALYSIS_EDGE_WRITER_H

#include <stdint.h>

#include "agent/analysis/graph_private.h"

struct edge_writer {
	struct budget *budget;
	size_t item_size;          /* of an edge, or of what is noted of one */
	struct edge_chunk *chunks; /* newest first */
	uint64_t start;            /* in the newest chunk: first edge of the span in work */
};

void edge_writer_init(struct edge_writer *writer, struct budget *budget, size_t item_size);

/* Adds the chunks, trimmed to what is used, to *chunks. */
void edge_writer_finish(struct edge_writer *writer, struct edge_chunk **chunks);

/* Begins a span. */
void edge_writer_begin(struct edge_writer *writer);

/* Points *ret at room for count more edges of the span; edge_writer_add says how many came. */
must_check struct error *edge_writer_room(struct edge_writer *writer, uint64_t count, void **ret);
static inline void edge_writer_add(struct edge_writer *writer, uint64_t count)
{
	writer->chunks->used += count;
}

/* The edges of the span so far, NULL if there are none. They stay put once the next span begins. */
const void *edge_writer_edges(const struct edge_writer *writer);

#endif
