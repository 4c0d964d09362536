/*
 * The roots of one frame: by its stack maps and stack objects where the collector could have found
 * it like that, word by word where not. runtime/mgcmark.go, scanframeworker; stkframe.go,
 * getStackMap.
 */
#ifndef AGENT_GORUNTIME_FRAME_ROOTS_H
#define AGENT_GORUNTIME_FRAME_ROOTS_H

#include <stdbool.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

struct frame;
struct goroutine;
struct pc_cache;
struct stack_scan_state;

/* *ret_exact is false if words were taken conservatively. */
must_check struct error *frame_roots(const struct frame *frame, const struct goroutine *g,
				     bool in_runtime, struct pc_cache *cache, struct memory *memory,
				     struct stack_scan_state *scan, bool *ret_exact);

#endif
