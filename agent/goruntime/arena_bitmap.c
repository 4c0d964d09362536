/*
 * One bit: bit k of the bitmap is whether word k of the arena is a pointer. The allocator writes
 * the bits of the whole slot (mbitmap.go, writeHeapBits.flush), so that noMorePtrs, which lets the
 * collector stop early, adds nothing.
 *
 * Two bits: each byte has the bits of four words, below whether they are pointers, above whether
 * there is more to scan. Behind the first word of an object without "more" lies what the slot's
 * last object left there. To go1.15 the "more" bit of the second word is used for something else
 * (checkmarks, which have got a map of their own since), and does not say anything.
 */
#include "agent/goruntime/arena_bitmap.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include "agent/goruntime/arena.h"
#include "agent/goruntime/bitmap.h"
#include "agent/goruntime/layout.h"
#include "agent/goruntime/span.h"
#include "proto/base/bytes.h"

enum {
	WORD = 8,
	RUN_WORDS = 1 << 14, /* words whose bits are read at once */
	WORDS_PER_PAIR_BYTE = 4,
};

struct arena_bitmap {
	struct memory *memory;
	const struct arena_table *arenas;
	uint32_t offset;     /* of the bitmap in a heapArena */
	unsigned bits;       /* for each word: 1 or 2 */
	bool second_ignored; /* the "more" bit of an object's second word */
	uint64_t *more;      /* "more" bits of the run at hand */
	uint32_t more_words; /* that there is room for */
	uint8_t buffer[RUN_WORDS * 2 / 8];
};

struct error *arena_bitmap_new(struct memory *memory, const struct layout *layout,
			       const struct arena_table *arenas, struct arena_bitmap **ret)
{
	uint64_t words = arena_table_arena_bytes(arenas) / WORD;
	uint64_t bits = (uint64_t)layout->heap_arena_bitmap.size * 8 / words;
	struct arena_bitmap *bitmap;

	if (bits != 1 && bits != 2)
		return error_new(ERROR_UNSUPPORTED, "%" PRIu64 " bits for each word of the heap",
				 bits);
	bitmap = calloc(1, sizeof(*bitmap));
	if (!bitmap)
		return &error_nomem;
	bitmap->memory = memory;
	bitmap->arenas = arenas;
	bitmap->offset = layout->heap_arena_bitmap.offset;
	bitmap->bits = (unsigned)bits;
	bitmap->second_ignored = !layout_has(layout, heap_arena_checkmarks);
	*ret = bitmap;
	return NULL;
}

void arena_bitmap_free(struct arena_bitmap *bitmap)
{
	if (!bitmap)
		return;
	free(bitmap->more);
	free(bitmap);
}

static struct error *make_room(struct arena_bitmap *bitmap, uint32_t words)
{
	uint64_t *more;

	if (words <= bitmap->more_words)
		return NULL;
	more = realloc(bitmap->more, words * sizeof(*more));
	if (!more)
		return &error_nomem;
	bitmap->more = more;
	bitmap->more_words = words;
	return NULL;
}

/* Pointer bits of 64 words, and of the same words whether there is more to scan. */
static void split_pairs(const uint8_t *bytes, uint64_t *ret_pointers, uint64_t *ret_more)
{
	uint64_t pointers = 0, more = 0;

	for (unsigned i = 0; i < BITMAP_WORD_BITS / WORDS_PER_PAIR_BYTE; i++) {
		pointers |= (uint64_t)(bytes[i] & 0xf) << i * WORDS_PER_PAIR_BYTE;
		more |= (uint64_t)(bytes[i] >> 4) << i * WORDS_PER_PAIR_BYTE;
	}
	*ret_pointers = pointers;
	*ret_more = more;
}

/* Reads the bits of up to RUN_WORDS words that lie in one arena. */
static struct error *read_run(struct arena_bitmap *bitmap, const struct arena *arena, taddr addr,
			      uint32_t word_count, uint64_t *pointers, uint64_t *more)
{
	uint64_t first = (addr - arena->start) / WORD;
	struct error *err = memory_read_bulk(
	    bitmap->memory, arena->metadata + bitmap->offset + first * bitmap->bits / 8,
	    bitmap->buffer, word_count * bitmap->bits / 8);

	if (err)
		return err;
	for (uint32_t i = 0; i < word_count / BITMAP_WORD_BITS; i++) {
		if (bitmap->bits == 1)
			pointers[i] = load_u64le(bitmap->buffer + 8 * i);
		else
			split_pairs(bitmap->buffer + 16 * i, &pointers[i], &more[i]);
	}
	return NULL;
}

static struct error *read_all(struct arena_bitmap *bitmap, taddr addr, uint32_t word_count,
			      uint64_t *pointers, uint64_t *more)
{
	uint64_t arena_bytes = arena_table_arena_bytes(bitmap->arenas);

	while (word_count) {
		const struct arena *arena = arena_table_find(bitmap->arenas, addr);
		uint32_t count = word_count < RUN_WORDS ? word_count : RUN_WORDS;
		struct error *err;

		if (!arena)
			return error_new(ERROR_CORRUPT_TARGET, "0x%" PRIx64 ": no arena", addr);
		if (count > (arena->start + arena_bytes - addr) / WORD)
			count = (uint32_t)((arena->start + arena_bytes - addr) / WORD);
		err = read_run(bitmap, arena, addr, count, pointers, more);
		if (err)
			return err;
		pointers += count / BITMAP_WORD_BITS;
		if (more)
			more += count / BITMAP_WORD_BITS;
		addr += (uint64_t)count * WORD;
		word_count -= count;
	}
	return NULL;
}

/* Clears the pointer bits of an object from the first word on that has nothing more to scan. */
static void cut_object(uint64_t *pointers, const uint64_t *more, uint64_t first, uint64_t count,
		       bool second_ignored)
{
	for (uint64_t done = 0; done < count;) {
		uint64_t part = count - done < BITMAP_WORD_BITS ? count - done : BITMAP_WORD_BITS;
		uint64_t ends =
		    ~bitmap_load(more, first + done, (unsigned)part) & bitmap_low_mask(part);

		if (!done && second_ignored)
			ends &= ~UINT64_C(2);
		if (!ends) {
			done += part;
			continue;
		}
		done += (uint64_t)__builtin_ctzll(ends);
		bitmap_clear_range(pointers, first + done, count - done);
		return;
	}
}

static void cut_objects(const struct arena_bitmap *bitmap, const struct span *span, uint64_t offset,
			uint32_t word_count, uint64_t *pointers, const uint64_t *more)
{
	uint64_t slot_words = span->elem_size / WORD;

	if (span->elem_count == 1) {
		/* A run of a large object: what lies beyond its end is clear. */
		uint64_t left = offset / WORD < slot_words ? slot_words - offset / WORD : 0;

		cut_object(pointers, more, 0, left < word_count ? left : word_count,
			   bitmap->second_ignored && !offset);
		return;
	}
	for (uint32_t i = 0; i < span->elem_count; i++)
		cut_object(pointers, more, i * slot_words, slot_words, bitmap->second_ignored);
}

struct error *arena_bitmap_read(struct arena_bitmap *bitmap, const struct span *span,
				uint64_t offset, uint32_t word_count, uint64_t *mask)
{
	struct error *err = NULL;

	if (bitmap->bits == 2)
		err = make_room(bitmap, word_count / BITMAP_WORD_BITS);
	if (!err)
		err = read_all(bitmap, span->base + offset, word_count, mask, bitmap->more);
	if (!err && bitmap->bits == 2)
		cut_objects(bitmap, span, offset, word_count, mask, bitmap->more);
	return err;
}
