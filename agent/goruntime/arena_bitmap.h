/*
 * Pointer bits that are kept by arena: two bits a word (to go1.19) or one (go1.20 and 1.21, and
 * 1.22 without allocation headers). A reader serves one thread.
 */
#ifndef AGENT_GORUNTIME_ARENA_BITMAP_H
#define AGENT_GORUNTIME_ARENA_BITMAP_H

#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

struct arena_bitmap;
struct arena_table;
struct layout;
struct span;

/* All arguments are borrowed. */
must_check struct error *arena_bitmap_new(struct memory *memory, const struct layout *layout,
					  const struct arena_table *arenas,
					  struct arena_bitmap **ret);
void arena_bitmap_free(struct arena_bitmap *bitmap);
DEFINE_FREEP(arena_bitmap, arena_bitmap_free)

/* As heap_bits_read, for a span that is not noscan; mask is all clear. */
must_check struct error *arena_bitmap_read(struct arena_bitmap *bitmap, const struct span *span,
					   uint64_t offset, uint32_t word_count, uint64_t *mask);

#endif
