/*
 * Names and types that the program made while it runs: runtime.reflectOffs, a map from the number
 * that stands in a descriptor to the address meant (runtime/type.go). Read once, when the first
 * number is asked for.
 */
#ifndef AGENT_GORUNTIME_REFLECT_OFFSETS_H
#define AGENT_GORUNTIME_REFLECT_OFFSETS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/goruntime/addr_map.h"
#include "agent/target/memory.h"
#include "proto/base/error.h"

struct layout;
struct type_memory;

/* All zero is one that was not read yet. */
struct reflect_offsets {
	struct addr_map addrs; /* by number + 2^32, to be no 0; the target's addresses */
	bool is_read;
};

void reflect_offsets_fini(struct reflect_offsets *offsets);

/* 0 for a number that is not there. Fails only if memory runs out or the target is gone. */
must_check struct error *reflect_offsets_find(struct reflect_offsets *offsets,
					      struct type_memory *memory,
					      const struct layout *layout, int32_t number,
					      taddr *ret);

/* Reads the map now and keeps what its entries point to for when memory is gone. */
must_check struct error *reflect_offsets_keep(struct reflect_offsets *offsets,
					      struct type_memory *memory,
					      const struct layout *layout);

#endif
