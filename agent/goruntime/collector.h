/*
 * What the collector and the heap say of themselves: the runtime's own counters, as MemStats and
 * GODEBUG=gctrace=1 give them out. Of a running process they may be in mid-change.
 */
#ifndef AGENT_GORUNTIME_COLLECTOR_H
#define AGENT_GORUNTIME_COLLECTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

struct layout;

/* runtime/mgc.go, gcphase; unchanged since go1.15. */
enum collector_phase { COLLECTOR_OFF = 0, COLLECTOR_MARK = 1, COLLECTOR_MARK_TERMINATION = 2 };

struct collector {
	uint32_t phase;          /* enum collector_phase */
	int32_t percent;         /* GOGC, -1 for off */
	bool has_memory_limit;   /* GOMEMLIMIT, since go1.19, and one is set */
	uint64_t memory_limit;   /* bytes */
	bool has_goal;           /* false: nothing would start a cycle */
	uint64_t goal;           /* NextGC: heap size at which the next cycle is to end */
	uint64_t marked;         /* heap that the last cycle found live */
	uint64_t live;           /* heap in use, as the pacer reckons */
	uint64_t cycles, forced; /* completed */
	uint64_t last_end_ns;    /* since the epoch, 0: never */
	uint64_t pause_total_ns;
	double cpu_fraction;
	bool has_limiter, limiter_active; /* of the collector's CPU share, since go1.19 */
};

must_check struct error *collector_read(struct memory *memory, const struct layout *layout,
					struct collector *ret);

/* The phase's name in answers. */
const char *collector_phase_name(uint32_t phase);

/* Bytes as the runtime counts them; runtime/mstats.go, MemStats. */
struct runtime_memory {
	uint64_t heap_in_use, heap_idle, heap_released;
	uint64_t stacks; /* StackSys */
	uint64_t sys;
};

must_check struct error *runtime_memory_read(struct memory *memory, const struct layout *layout,
					     struct runtime_memory *ret);

/* Goroutines that are not dead. */
must_check struct error *runtime_goroutine_count(struct memory *memory, const struct layout *layout,
						 uint64_t *ret);

#endif
