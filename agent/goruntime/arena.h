/*
 * Arenas: the pieces of address space (64 MiB on 64-bit Linux) that the Go heap is made of, each
 * with a runtime.heapArena that says which span each of its pages belongs to. runtime/mheap.go.
 */
#ifndef AGENT_GORUNTIME_ARENA_H
#define AGENT_GORUNTIME_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

struct layout;
struct arena_table;

struct arena {
	taddr start;    /* of the address space that it covers */
	taddr metadata; /* its heapArena */
};

/*
 * Reads the lists of arenas in use (mheap_.heapArenas and userArenaArenas, or allArenas) and looks
 * each up in mheap_.arenas. ERROR_CORRUPT_TARGET if the two contradict each other.
 */
must_check struct error *arena_table_read(struct memory *memory, const struct layout *layout,
					  struct arena_table **ret);
void arena_table_free(struct arena_table *table);
DEFINE_FREEP(arena_table, arena_table_free)

/*
 * Adds the arenas that cover these addresses, where there are any: those of user arenas are on no
 * list before go1.25 (runtime/malloc.go, sysAlloc without register).
 */
must_check struct error *arena_table_add(struct arena_table *table, struct memory *memory,
					 const struct layout *layout, const taddr *addrs,
					 size_t count);

/* In address order, each once. */
uint32_t arena_table_count(const struct arena_table *table);
const struct arena *arena_table_at(const struct arena_table *table, uint32_t index);

/* The arena that covers addr, or NULL. It belongs to the table. */
const struct arena *arena_table_find(const struct arena_table *table, taddr addr);

/* Address space that one arena covers: a power of two. */
uint64_t arena_table_arena_bytes(const struct arena_table *table);

#endif
