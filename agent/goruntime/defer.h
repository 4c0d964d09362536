/*
 * Defer records: a chain from g._defer through records on the stack and in the heap, whose words
 * the collector scans with the stack. runtime/mgcmark.go, scanstack; runtime/traceback.go,
 * tracebackdefers (to go1.16).
 */
#ifndef AGENT_GORUNTIME_DEFER_H
#define AGENT_GORUNTIME_DEFER_H

#include "agent/target/memory.h"
#include "proto/base/error.h"

struct layout;
struct pc_cache;
struct stack_scan_state;

enum { DEFERS_MAX = 1 << 20 };

/* Scans the records from first on, 0 being none. ERROR_LIMIT for a chain without end. */
must_check struct error *defer_roots(struct memory *memory, const struct layout *layout,
				     struct pc_cache *cache, taddr first,
				     struct stack_scan_state *scan);

#endif
