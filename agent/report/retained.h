/*
 * Retained sizes of a scan: the dominator tree with what roots belong to, each global variable,
 * each goroutine with all of its stack, and what the runtime keeps. A goroutine's g and the sudogs
 * it waits on are its own, whoever else points to them (label_owner.h), so that a goroutine retains
 * what would be freed if it ended.
 */
#ifndef AGENT_REPORT_RETAINED_H
#define AGENT_REPORT_RETAINED_H

#include <stdint.h>

#include "agent/goruntime/variable_table.h"
#include "proto/base/error.h"

struct dominators;
struct goroutine_table;
struct graph;
struct label_owners;
struct mark;
struct retained;
struct root_set;
struct special_table;

/* Graph, mark and variables are borrowed for its life, all else for the call. */
struct retained_input {
	const struct graph *graph;
	const struct mark *mark;
	const struct root_set *roots;
	const struct special_table *specials;
	const struct label_owners *owners; /* NULL: none */
	const struct goroutine_table *goroutines;
	const struct variable_table *variables; /* NULL: globals are one group */
	unsigned thread_count;
	uint64_t memory_limit; /* bytes; 0: none. ERROR_OUT_OF_MEMORY says what it would need. */
};

must_check struct error *retained_find(const struct retained_input *input, struct retained **ret);
void retained_free(struct retained *retained);
DEFINE_FREEP(retained, retained_free)

/* Belongs to it. */
const struct dominators *retained_dominators(const struct retained *retained);

/* What a group of the tree is. */
struct retained_group {
	/* Of a global or what the runtime keeps as variable_table has it; "goroutine 17". */
	const char *name;
	const char *package;
	uint32_t goroutine; /* index in the goroutine table, or ROOT_NO_GOROUTINE */
	uint8_t kind;       /* enum variable_kind; of goroutines VARIABLE_LOCAL */
};

struct retained_group retained_group_at(const struct retained *retained, uint32_t group);

/* The node of a goroutine; DOMINATOR_NONE: it has no roots and owns nothing. */
uint32_t retained_goroutine_node(const struct retained *retained, uint32_t goroutine);

/* Bytes that would be freed if the goroutine ended, its stack not included. */
uint64_t retained_of_goroutine(const struct retained *retained, uint32_t goroutine);

#endif
