/*
 * Stack maps: which words of a frame's locals or arguments are live pointers at a call. The linker
 * writes, for each function, {count int32, bits int32} and count bitmaps of bits bits each, every
 * one on a byte boundary; runtime/symtab.go, stackmap, unchanged since go1.15.
 */
#ifndef AGENT_GORUNTIME_STACK_MAP_H
#define AGENT_GORUNTIME_STACK_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

/* Owned: free bits with free(). All zero is an empty map. */
struct stack_map {
	uint8_t *bits;
	uint32_t bit_count;
};

static inline bool stack_map_has(const struct stack_map *map, uint32_t word)
{
	return map->bits[word / 8] >> word % 8 & 1;
}

/* The index-th map of the stackmap at addr. ERROR_CORRUPT_TARGET if it has no such map. */
must_check struct error *stack_map_read(struct memory *memory, taddr addr, uint32_t index,
					struct stack_map *ret);

/*
 * The map of a closure that calls reflect.makeFuncStub or methodValueCall, which the stub has at
 * 0(SP): {fn, *bitvector, size of the arguments without results}; runtime/traceback.go and
 * stkframe.go, reflectMethodValue. Results are left out unless results_valid. *ret_found is false
 * if the word there is not such a closure for the function at entry.
 */
must_check struct error *stack_map_read_reflect(struct memory *memory, taddr closure, taddr entry,
						bool results_valid, bool *ret_found,
						struct stack_map *ret);

#endif
