/*
 * The memory tree: what each part of a process's address space is for, how much of it there is and
 * how much is in RAM. Every node with children is exactly their sum in both figures.
 */
#ifndef AGENT_REPORT_MEMORY_TREE_H
#define AGENT_REPORT_MEMORY_TREE_H

#include "agent/report/heap_usage.h"
#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"

struct address_map;
struct maps;
struct resident;

struct memory_tree_input {
	const struct maps *maps;
	const struct address_map *regions; /* painted; of these maps */
	const struct resident *resident;
	const struct heap_usage *heap;
	bool marked; /* the heap's allocated slots are told apart by reachability */
};

/* The caller frees *ret with goheapd__memory_node__free_unpacked(ret, NULL). */
must_check struct error *memory_tree_make(const struct memory_tree_input *input,
					  Goheapd__MemoryNode **ret);

/* What a region of that kind counts for; the heap's regions are counted by heap_usage instead. */
struct region;
struct usage memory_tree_region(const struct resident *resident, const struct region *region);

#endif
