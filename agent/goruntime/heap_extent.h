/*
 * How much there is of a heap, by its spans alone: what a scan's need of memory is reckoned from,
 * before the stop (of a running process, so that it is only nearly right) and after it.
 */
#ifndef AGENT_GORUNTIME_HEAP_EXTENT_H
#define AGENT_GORUNTIME_HEAP_EXTENT_H

#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

struct layout;
struct span_table;

struct heap_extent {
	uint64_t spans;         /* in use or manual */
	uint64_t slots;         /* of all spans in use, free ones included */
	uint64_t pointer_slots; /* of spans that hold pointers */
	uint64_t pointer_words; /* of these slots: as many pointers as there can be */
	uint64_t largest_words; /* of a single object among them */
};

/* From a sample, where there are very many spans. */
must_check struct error *heap_extent_read(struct memory *memory, const struct layout *layout,
					  struct heap_extent *ret);
void heap_extent_of(const struct span_table *spans, struct heap_extent *ret);

#endif
