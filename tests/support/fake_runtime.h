/*
 * A made-up Go runtime in made-up memory: mheap, arenas, mspan structures, bitmaps, types, special
 * records, queues and page bitmaps, laid out by a layout of its own (small arenas, so that tests
 * reach their ends). For tests of what reads these.
 */
#ifndef TESTS_SUPPORT_FAKE_RUNTIME_H
#define TESTS_SUPPORT_FAKE_RUNTIME_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/goruntime/layout.h"
#include "tests/support/fake_memory.h"

enum {
	FAKE_ARENA_BYTES = 256 << 10, /* 32 pages of the heap */
	FAKE_ARENAS = 4,              /* one after the other from FAKE_HEAP on */
	FAKE_SWEEPGEN = 10,
	FAKE_TINY_CLASS = 5,
};

static const taddr FAKE_HEAP = 0xc000000000;

struct fake_runtime {
	struct fake_memory *memory;
	struct layout layout;
	taddr allspans; /* the array */
	uint32_t span_count;
	taddr next; /* free room for bits, types and records */
};

/* Without arena bitmaps, inline marks and other options: see below. */
void fake_runtime_init(struct fake_runtime *runtime);
void fake_runtime_fini(struct fake_runtime *runtime);

/* Pointer bits by arena: 1 or 2 for each word. */
void fake_runtime_use_arena_bitmap(struct fake_runtime *runtime, unsigned bits);

/* The collector's marks in small spans (green tea). */
void fake_runtime_use_inline_marks(struct fake_runtime *runtime);

/* Explicitly freed objects wait on lists of a P (which is made). */
void fake_runtime_use_reusable(struct fake_runtime *runtime);

/* Zeroed room that nothing else uses, aligned to 64 bytes. */
taddr fake_runtime_room(struct fake_runtime *runtime, size_t size);

/* What an mspan says; what is 0 gets the usual value where one is named. */
struct fake_span {
	uint32_t page;       /* of the heap, counted from FAKE_HEAP */
	uint32_t page_count; /* 1 */
	uint32_t elem_size, elem_count;
	uint32_t free_index, free_index_for_scan;
	uint64_t alloc_bits[2], mark_bits[2], inline_marks[2];
	uint8_t span_class; /* size class * 2 + noscan; 0 is a large object with pointers */
	uint8_t state;      /* in use */
	int32_t sweep;      /* sweepgen against the heap's */
	uint32_t alloc_count;
	taddr limit; /* the end of the slots */
	taddr specials, large_type;
	bool user_arena, has_inline_marks;
	bool unknown_to_arena;
};

/* Adds a span and returns its mspan's address. */
taddr fake_runtime_span(struct fake_runtime *runtime, const struct fake_span *span);

/* Changes a field of a structure, or its first word. */
void fake_runtime_set(struct fake_runtime *runtime, taddr addr, struct layout_field field,
		      uint64_t value);

/* What of a type descriptor the collector needs. */
struct fake_type {
	uint64_t size, ptr_bytes;
	uint8_t kind, tflag;
	taddr gc_data;
};

taddr fake_runtime_type(struct fake_runtime *runtime, const struct fake_type *type);

/* A type whose mask is in its descriptor's gc_data, of up to 64 words. */
taddr fake_runtime_masked_type(struct fake_runtime *runtime, uint64_t size, uint64_t mask);

/* A special record that is followed by next. */
taddr fake_runtime_special(struct fake_runtime *runtime, uint64_t offset, int64_t kind, taddr next);

/* Address of a word of a page of the heap. */
taddr fake_heap_page(uint32_t page);

/* Sets runtime.allp to count Ps with an mcache each, and returns the first; they lie in a row. */
taddr fake_runtime_processors(struct fake_runtime *runtime, uint32_t count);

#endif
