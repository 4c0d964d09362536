/*
 * A made-up heap that stands in for agent/goruntime where a test wants to say exactly what is in
 * it: spans, objects, pointers between them, free slots, specials. It implements what the headers
 * span.h, heap_bits.h and special.h promise, for tests that do not link agent/goruntime.
 */
#ifndef TESTS_SUPPORT_FAKE_HEAP_H
#define TESTS_SUPPORT_FAKE_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/goruntime/root.h"
#include "agent/goruntime/span.h"
#include "agent/goruntime/special.h"
#include "agent/target/memory.h"

struct fake_heap;

struct fake_heap *fake_heap_new(void);
void fake_heap_free(struct fake_heap *heap);

/*
 * Adds an in-use span behind the last one and returns its index. Spans of one slot are large
 * objects. All slots are allocated at first, and hold zeros.
 */
uint32_t fake_heap_add(struct fake_heap *heap, uint64_t elem_size, uint32_t elem_count,
		       bool noscan);
/* Leaves pages between the last span and the next. */
void fake_heap_gap(struct fake_heap *heap, uint64_t pages);

/* To change before fake_heap_finish. */
struct span *fake_heap_span(struct fake_heap *heap, uint32_t span);

/* Numbers the objects; no spans can be added afterwards. */
void fake_heap_finish(struct fake_heap *heap);

struct memory *fake_heap_memory(struct fake_heap *heap);
const struct span_table *fake_heap_spans(const struct fake_heap *heap);
const struct special_table *fake_heap_specials(const struct fake_heap *heap);

uint32_t fake_heap_object(const struct fake_heap *heap, uint32_t span, uint32_t slot);
taddr fake_heap_addr(const struct fake_heap *heap, uint32_t object);

/* Puts a pointer to addr into a word of an object. */
void fake_heap_point(struct fake_heap *heap, uint32_t object, uint64_t word, taddr addr);

/* Puts a number, which is no pointer, there. */
void fake_heap_store(struct fake_heap *heap, uint32_t object, uint64_t word, uint64_t value);

enum fake_slot { FAKE_ALLOCATED, FAKE_FREE, FAKE_CONDEMNED, FAKE_IN_FLIGHT };
void fake_heap_set_slot(struct fake_heap *heap, uint32_t object, enum fake_slot state);

/* Reading the span fails from now on. */
void fake_heap_break(struct fake_heap *heap, uint32_t span);

void fake_heap_add_special(struct fake_heap *heap, uint32_t object, enum special_kind kind);
/* The same if the record is read. */
void fake_heap_add_record(struct fake_heap *heap, uint32_t object, enum special_kind kind,
			  taddr record);

#endif
