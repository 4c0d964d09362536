/*
 * What the runtime says of itself in its own counters, read from a process that may be running:
 * the state of its collector, its memory figures and its number of goroutines. Counters of a
 * running process may be in mid-change; nothing here is decided by them.
 */
#ifndef AGENT_REPORT_OVERVIEW_H
#define AGENT_REPORT_OVERVIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"

struct layout;

/* From memory of malloc, for goheapd__gc_state__free_unpacked and its like. */
must_check struct error *overview_gc(struct memory *memory, const struct layout *layout,
				     Goheapd__GcState **ret);
must_check struct error *overview_memory(struct memory *memory, const struct layout *layout,
					 Goheapd__RuntimeMemory **ret);

/* Goroutines that are not dead. */
must_check struct error *overview_goroutines(struct memory *memory, const struct layout *layout,
					     uint64_t *ret);

/*
 * What a full scan would read of the target and need of our own memory, from above; many label sets
 * may take more.
 */
struct overview_cost {
	uint64_t read_bytes, memory_bytes;
};

must_check struct error *overview_cost(struct memory *memory, const struct layout *layout,
				       unsigned threads, struct overview_cost *ret);

#endif
