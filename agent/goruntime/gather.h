/*
 * Many small reads at known addresses, done in address order and in runs: a heap of a gibibyte has
 * 136,000 span structures, and one system call for each costs more than all the rest of a scan.
 */
#ifndef AGENT_GORUNTIME_GATHER_H
#define AGENT_GORUNTIME_GATHER_H

#include <stddef.h>
#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

struct gather_item {
	taddr addr;
	uint32_t size;
	uint32_t tag; /* the caller's: which item this is */
};

/* Takes the bytes of one item; NULL if they cannot be read. */
typedef void gather_visit(void *arg, const struct gather_item *item, const uint8_t *bytes);

/* Visits every item in address order; items is sorted in place. Fails only if the target is gone.
 */
must_check struct error *gather_read(struct memory *memory, struct gather_item *items, size_t count,
				     gather_visit *visit, void *arg);

#endif
