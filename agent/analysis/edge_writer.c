#include "agent/analysis/edge_writer.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK_EDGES = 2 << 20 };

void edge_writer_init(struct edge_writer *writer, struct budget *budget, size_t item_size)
{
	*writer = (struct edge_writer){ .budget = budget, .item_size = item_size };
}

static void trim(const struct edge_writer *writer, struct edge_chunk *chunk)
{
	pages_trim(&chunk->pages, chunk->used * writer->item_size);
}

static void *item_at(const struct edge_writer *writer, const struct edge_chunk *chunk, uint64_t i)
{
	return (uint8_t *)chunk->pages.data + i * writer->item_size;
}

void edge_writer_finish(struct edge_writer *writer, struct edge_chunk **chunks)
{
	struct edge_chunk *last = writer->chunks;

	if (!last)
		return;
	trim(writer, last);
	while (last->next)
		last = last->next;
	last->next = *chunks;
	*chunks = take(writer->chunks);
}

static uint64_t room_left(const struct edge_writer *writer, const struct edge_chunk *chunk)
{
	return chunk->pages.size / writer->item_size - chunk->used;
}

void edge_writer_begin(struct edge_writer *writer)
{
	writer->start = writer->chunks ? writer->chunks->used : 0;
}

static struct error *chunk_new(const struct edge_writer *writer, uint64_t edges,
			       struct edge_chunk **ret)
{
	struct edge_chunk *chunk = calloc(1, sizeof(*chunk));
	struct error *err;

	if (!chunk)
		return &error_nomem;
	err = pages_init(&chunk->pages, writer->budget, edges * writer->item_size);
	if (err) {
		free(chunk);
		return err;
	}
	*ret = chunk;
	return NULL;
}

/* Moves the span in work to a new chunk, with room for as much again as it has and needs. */
static struct error *start_chunk(struct edge_writer *writer, uint64_t count)
{
	struct edge_chunk *full = writer->chunks, *chunk;
	uint64_t moved = full ? full->used - writer->start : 0;
	uint64_t edges = 2 * moved + count;
	struct error *err = chunk_new(writer, edges > CHUNK_EDGES ? edges : CHUNK_EDGES, &chunk);

	if (err)
		return err;
	if (moved) {
		memcpy(chunk->pages.data, item_at(writer, full, writer->start),
		       moved * writer->item_size);
		full->used -= moved;
		chunk->used = moved;
	}
	if (full)
		trim(writer, full);
	chunk->next = full;
	writer->chunks = chunk;
	writer->start = 0;
	return NULL;
}

struct error *edge_writer_room(struct edge_writer *writer, uint64_t count, void **ret)
{
	struct error *err;

	if (!writer->chunks || room_left(writer, writer->chunks) < count) {
		err = start_chunk(writer, count);
		if (err)
			return err;
	}
	*ret = item_at(writer, writer->chunks, writer->chunks->used);
	return NULL;
}

const void *edge_writer_edges(const struct edge_writer *writer)
{
	if (!writer->chunks || writer->chunks->used == writer->start)
		return NULL;
	return item_at(writer, writer->chunks, writer->start);
}
