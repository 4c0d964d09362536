/*
 * For tests: which objects of a heap are reachable, found again without the graph, the marks or the
 * slots' states that a scan works with: every allocated slot is an object, by what the runtime's
 * own structures say word for word, and all objects are followed by their pointer bits alone.
 */
#ifndef TESTS_SUPPORT_HEAP_TRACE_H
#define TESTS_SUPPORT_HEAP_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/error.h"

struct live_scan;
struct live_target;

/* How a span stands to the sweep; runtime/mheap.go, mspan.sweepgen. */
enum raw_sweep { RAW_SWEPT, RAW_CACHED, RAW_UNSWEPT, RAW_UNSWEPT_CACHED, RAW_SWEEPING, RAW_SWEEPS };

/* A span as its mspan has it; by the same index as the span table's. */
struct raw_span {
	bool found;
	enum raw_sweep sweep;
	uint64_t free_index;
	uint8_t *alloc_bits, *marks; /* marks: of either kind */
};

enum reach { REACH_NONE, REACH_EXACT, REACH_CONSERVATIVE };

struct heap_trace {
	struct raw_span *spans;
	uint32_t span_count;
	uint8_t *reach;  /* enum reach by object */
	uint64_t strays; /* exact pointers to slots that are not allocated */
};

/* Borrows the scan for the call. The caller calls heap_trace_fini on success. */
must_check struct error *heap_trace_init(const struct live_target *target,
					 const struct live_scan *scan, struct heap_trace *ret);
void heap_trace_fini(struct heap_trace *trace);

bool raw_span_allocated(const struct raw_span *span, uint32_t slot);
bool raw_span_marked(const struct raw_span *span, uint32_t slot);
/* In allocBits: of a swept span, what the last collection left. */
bool raw_span_survived(const struct raw_span *span, uint32_t slot);

#endif
