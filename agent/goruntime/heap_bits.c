/*
 * Three questions decide where the bits of a span are, none of them about versions:
 *
 *   does heapArena have a bitmap?      then bits of all spans are there, one or two for each word
 *   is the element size at most        then they are at the end of the span, below its mark bits
 *   minSizeForMallocHeader?            if those are there too
 *   is it a small size class?          then each object begins with its type, else the span has it
 *
 * runtime/mbitmap.go; the arena's bitmap: to go1.21, and with GOEXPERIMENT=noallocheaders in 1.22.
 */
#include "agent/goruntime/heap_bits.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/goruntime/arena_bitmap.h"
#include "agent/goruntime/gtype_tile.h"
#include "agent/goruntime/layout.h"
#include "agent/goruntime/span_lookup.h"

enum { WORD = 8, HEAP_BITS_RUN = BITMAP_WORD_BITS * WORD };

struct heap_bits {
	const struct layout *layout;
	const struct span_lookup *lookup;
	struct arena_bitmap *arena_bitmap; /* NULL: this runtime has none */
	struct gtype_tiles *tiles;
	uint64_t skipped_bytes;
};

/* What is asked for. */
struct request {
	const struct span *span;
	uint64_t offset;
	const uint64_t *words;
	uint32_t word_count;
	uint64_t *mask;
};

static struct error *check_constants(const struct layout *layout)
{
	if (layout->const_malloc_header_size.known &&
	    layout->const_malloc_header_size.value == WORD &&
	    layout->const_min_size_for_malloc_header.known && layout_has(layout, mspan_large_type))
		return NULL;
	return error_new(ERROR_UNSUPPORTED, "no pointer bits that we know in this Go runtime");
}

struct error *heap_bits_new(struct memory *memory, const struct layout *layout,
			    const struct span_table *spans, struct heap_bits **ret)
{
	struct heap_bits *bits scoped(heap_bits_freep) = calloc(1, sizeof(*bits));
	struct error *err;

	if (!bits)
		return &error_nomem;
	bits->layout = layout;
	bits->lookup = span_table_lookup(spans);
	if (layout_has(layout, heap_arena_bitmap))
		err =
		    arena_bitmap_new(memory, layout, span_table_arenas(spans), &bits->arena_bitmap);
	else
		err = check_constants(layout);
	if (!err)
		err = gtype_tiles_new(memory, layout, &bits->tiles);
	if (err)
		return err;
	*ret = take(bits);
	return NULL;
}

void heap_bits_free(struct heap_bits *bits)
{
	if (!bits)
		return;
	arena_bitmap_free(bits->arena_bitmap);
	gtype_tiles_free(bits->tiles);
	free(bits);
}

uint64_t heap_bits_skipped_bytes(const struct heap_bits *bits)
{
	return bits->skipped_bytes;
}

/*
 * Bits in the span: one for each word of it, counted from its start, in its last 64th; or below
 * the mark bits, where those are the last (mbitmap.go, spanHeapBitsRange).
 */
static void read_span_bits(const struct heap_bits *bits, const struct request *q)
{
	uint64_t above = q->span->inline_marks ? bits->layout->span_inline_marks.size / WORD : 0;
	uint64_t size = q->word_count / BITMAP_WORD_BITS;

	if (above < q->word_count - size)
		memcpy(q->mask, q->words + q->word_count - above - size, size * sizeof(*q->mask));
}

static bool is_present(const struct heap_bits *bits, const struct span *span, uint32_t slot)
{
	return span_lookup_bit(bits->lookup->present, span, slot);
}

/* Handed out, but perhaps not initialised at the stop. */
static bool is_in_flight(const struct span *span, uint32_t slot)
{
	return slot >= span->free_index_for_scan && slot < span->free_index;
}

/* Objects that begin with their type; it is the type of what follows, or of its elements. */
static struct error *read_headers(struct heap_bits *bits, const struct request *q)
{
	const struct span *span = q->span;
	uint64_t slot_words = span->elem_size / WORD;

	for (uint32_t slot = 0; slot < span->elem_count; slot++) {
		uint64_t first = slot * slot_words;
		const struct gtype_tile *tile;
		struct error *err;

		if (!is_present(bits, span, slot))
			continue;
		err = gtype_tiles_find(bits->tiles, q->words[first], span->elem_size - WORD, &tile);
		if (err)
			return err;
		if (tile)
			gtype_tile_paint(tile, 0, slot_words - 1, q->mask, first + 1);
		else if (!is_in_flight(span, slot))
			bits->skipped_bytes += span->elem_size;
	}
	return NULL;
}

/*
 * A large object, whose type the span has. None means that its memory was still being zeroed at
 * the stop (mbitmap.go, typePointersOfUnchecked). The type of a user arena's chunk is made up by
 * the runtime for the purpose (arena.go, allocUserArenaChunk), and read like any other.
 */
static struct error *read_large(struct heap_bits *bits, const struct request *q)
{
	const struct span *span = q->span;
	const struct gtype_tile *tile;
	struct error *err;

	if (!span->large_type || !is_present(bits, span, 0))
		return NULL;
	err = gtype_tiles_find(bits->tiles, span->large_type, span->elem_size, &tile);
	if (err)
		return err;
	if (tile)
		gtype_tile_paint(tile, q->offset / WORD, q->word_count, q->mask, 0);
	else
		bits->skipped_bytes += (uint64_t)q->word_count * WORD;
	return NULL;
}

/* Clears the bits of words beyond the last slot. */
static void clear_tail(const struct request *q)
{
	uint64_t end = q->span->elem_size * q->span->elem_count / WORD;
	uint64_t first = q->offset / WORD, keep = end > first ? end - first : 0;

	for (uint64_t i = 0; i < q->word_count / BITMAP_WORD_BITS; i++) {
		uint64_t before = i * BITMAP_WORD_BITS;

		if (keep < before + BITMAP_WORD_BITS)
			q->mask[i] &= bitmap_low_mask(keep > before ? keep - before : 0);
	}
}

static bool is_large(const struct span *span)
{
	return span->span_class >> 1 == 0;
}

/* Whether the run is one that may be asked for; callers are ours, but spans are the target's. */
static bool is_askable(const struct request *q)
{
	uint64_t size = q->span->page_count * GO_PAGE_SIZE;

	if (q->span->state != SPAN_IN_USE || q->word_count % BITMAP_WORD_BITS ||
	    q->offset % HEAP_BITS_RUN || q->offset > size ||
	    (uint64_t)q->word_count * WORD > size - q->offset)
		return false;
	return is_large(q->span) || (!q->offset && (uint64_t)q->word_count * WORD == size);
}

struct error *heap_bits_read(struct heap_bits *bits, const struct span *span, uint64_t offset,
			     const uint64_t *words, uint32_t word_count, uint64_t *mask)
{
	struct request q = { span, offset, words, word_count, mask };
	struct error *err = NULL;

	if (!is_askable(&q))
		return error_new(ERROR_FORMAT, "span 0x%" PRIx64 ": no such run", span->base);
	memset(mask, 0, word_count / BITMAP_WORD_BITS * sizeof(*mask));
	if (span->noscan)
		return NULL;
	if (bits->arena_bitmap)
		err = arena_bitmap_read(bits->arena_bitmap, span, offset, word_count, mask);
	else if (is_large(span))
		err = read_large(bits, &q);
	else if (span->elem_size <= (uint64_t)bits->layout->const_min_size_for_malloc_header.value)
		read_span_bits(bits, &q);
	else
		err = read_headers(bits, &q);
	if (err)
		return err;
	clear_tail(&q);
	return NULL;
}
