/*
 * The runtime's own memory outside of the heap: arena tables, page summaries, span and cache
 * structures, bitmaps of slots, profiles. It is mapped piece by piece (runtime/mem.go, sysAlloc and
 * sysReserve), among the mappings of everybody else and often joined with them by the kernel, so
 * each piece is found through the structure that leads to it.
 */
#ifndef AGENT_GORUNTIME_METADATA_H
#define AGENT_GORUNTIME_METADATA_H

#include "agent/target/memory.h"
#include "proto/base/error.h"

struct arena_table;
struct layout;
struct module_table;

/* Takes one piece, in whole pages; pieces may overlap and be reserved rather than mapped. */
struct metadata_sink {
	struct error *(*add)(struct metadata_sink *sink, taddr start, uint64_t size);
};

/*
 * Hands in every piece that can be found. A list that cannot be followed to its end is cut; fails
 * only where the target is gone or the sink fails.
 */
must_check struct error *metadata_find(struct memory *memory, const struct layout *layout,
				       const struct arena_table *arenas,
				       const struct module_table *modules,
				       struct metadata_sink *sink);

#endif
