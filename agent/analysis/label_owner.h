/*
 * Objects that belong to one goroutine, or to the runtime, whoever else points to them. Tables of
 * the runtime lead from anywhere to everywhere: runtime.allgs to every g, the sudogs in a channel
 * or in the semaphore table to those who wait (and through their elem and waitlink to what these
 * wait with), a sleeper's timer to the P and all other timers, a running g to its M and all others.
 * For attribution, pointers into these objects do not count. Each is held by its owner alone:
 *
 *	a g, and the sudogs it waits on     its goroutine
 *	Ms and Ps                           the runtime: they are global
 *
 * What these objects point to counts as ever. A channel is not among them: it belongs to whoever
 * reaches it.
 */
#ifndef AGENT_ANALYSIS_LABEL_OWNER_H
#define AGENT_ANALYSIS_LABEL_OWNER_H

#include <stddef.h>
#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

struct goroutine_table;
struct graph;
struct layout;

struct label_owner {
	uint32_t object;
	uint32_t goroutine; /* index in the goroutine table, or ROOT_NO_GOROUTINE */
};

/* All zero is an empty list. */
struct label_owners {
	struct label_owner *items; /* no object twice */
	size_t count, capacity;
};

/*
 * Reads the target's memory. What looks like a sudog may be one that was thrown away, and is not
 * live then. The caller gives *ret back with _fini.
 */
must_check struct error *label_owners_read(struct memory *memory, const struct layout *layout,
					   const struct graph *graph,
					   const struct goroutine_table *goroutines,
					   struct label_owners *ret);

void label_owners_fini(struct label_owners *owners);

#endif
