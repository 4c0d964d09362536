/*
 * The roots of a scan, each with its kind and goroutine, as objects of the graph: what the rooms
 * of agent/goruntime hand in word by word.
 */
#ifndef AGENT_ANALYSIS_ROOT_SET_H
#define AGENT_ANALYSIS_ROOT_SET_H

#include <stdint.h>

#include "agent/goruntime/root.h"

struct span_table;

/* 16 bytes: there can be many millions. */
struct heap_root {
	uint32_t object;
	uint32_t goroutine; /* or ROOT_NO_GOROUTINE */
	uint64_t slot : 56; /* as of a struct root */
	uint64_t kind : 8;  /* enum root_kind */
};

struct root_set;

/* The span table is borrowed. */
must_check struct error *root_set_new(const struct span_table *spans, struct root_set **ret);
void root_set_free(struct root_set *set);
DEFINE_FREEP(root_set, root_set_free)

/*
 * The sink to hand to producers. Words that lead nowhere in the heap are dropped; exact ones that
 * lead to free slots are counted; conservative ones are kept only where the runtime's own
 * conservative scan would.
 */
struct root_sink *root_set_sink(struct root_set *set);

uint64_t root_set_count(const struct root_set *set);
const struct heap_root *root_set_at(const struct root_set *set, uint64_t index);
uint64_t root_set_free_slot_hits(const struct root_set *set);

#endif
