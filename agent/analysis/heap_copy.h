/*
 * A copy of the part of the heap that holds pointers, so that objects can be looked at when the
 * target's memory is gone: the spans that are scanned, and nothing else. It is read like any other
 * memory; what was not copied is not readable.
 */
#ifndef AGENT_ANALYSIS_HEAP_COPY_H
#define AGENT_ANALYSIS_HEAP_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

struct span;
struct span_table;

/* Is the span among those that are copied? */
bool heap_copy_has(const struct span *span);

/* What a copy takes, in bytes. */
uint64_t heap_copy_need(const struct span_table *spans);

/*
 * Copies with thread_count threads. ERROR_OUT_OF_MEMORY beyond memory_limit bytes; 0 is no limit. A
 * span that cannot be read is left out. The span table is borrowed for the copy's life, memory for
 * the call. The caller frees *ret with memory_free.
 */
must_check struct error *heap_copy_new(struct memory *memory, const struct span_table *spans,
				       unsigned thread_count, uint64_t memory_limit,
				       struct memory **ret);

#endif
