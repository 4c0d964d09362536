/*
 * Which words of the heap are pointers, by the runtime's own bits, in every representation:
 * two bits a word in the arena (to go1.19), one bit a word (go1.20, 1.21), bits at the end of the
 * span, a type in front of the object, the span's large type (since go1.22), and the type masks,
 * GC programs and on-demand masks behind those. Which one a target uses is told by its layout.
 *
 * A reader caches what it met and serves one thread; make one for each. Several may share one
 * memory: it is read past its cache.
 */
#ifndef AGENT_GORUNTIME_HEAP_BITS_H
#define AGENT_GORUNTIME_HEAP_BITS_H

#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

struct layout;
struct span;
struct span_table;
struct heap_bits;

must_check struct error *heap_bits_new(struct memory *memory, const struct layout *layout,
				       const struct span_table *spans, struct heap_bits **ret);
void heap_bits_free(struct heap_bits *bits);
DEFINE_FREEP(heap_bits, heap_bits_free)

/*
 * Fills mask (one bit a word, bit i of mask[i / 64]) for word_count words of an in-use span from
 * byte offset on; words holds their content. A small-object span (span class above 1) is asked
 * for whole: offset 0, all its pages; a large object in runs that begin at multiples of 512 bytes.
 * Bits of free slots may be anything; bits beyond the last slot are clear. word_count is a
 * multiple of 64. A type that cannot be read leaves its object's bits clear and is counted.
 */
must_check struct error *heap_bits_read(struct heap_bits *bits, const struct span *span,
					uint64_t offset, const uint64_t *words, uint32_t word_count,
					uint64_t *mask);

/* Bytes of objects whose pointers could not be told, for scan.trust. */
uint64_t heap_bits_skipped_bytes(const struct heap_bits *bits);

#endif
