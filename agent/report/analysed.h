/*
 * What analysis has found of a decoded process, for the rooms that report on objects. All of it is
 * borrowed; it outlives the memory of the process when a scan is kept.
 */
#ifndef AGENT_REPORT_ANALYSED_H
#define AGENT_REPORT_ANALYSED_H

#include <stdint.h>

struct build_info;
struct go_types;
struct goroutine_table;
struct graph;
struct label_table;
struct layout;
struct mark;
struct memory;
struct reference_walk;
struct retained;
struct root_set;
struct special_table;
struct variable_table;

struct analysed {
	/*
	 * Of the objects: the snapshot, or the copy that was made of what has pointers, in which
	 * all else is ERROR_FAULT. NULL: nothing is left.
	 */
	struct memory *memory;
	const struct layout *layout;
	const struct graph *graph;
	const struct mark *mark;
	const struct root_set *roots;
	const struct special_table *specials;
	const struct variable_table *variables;
	struct go_types *types;
	const struct reference_walk *walk;
	const struct goroutine_table *goroutines;
	const struct label_table *labels; /* NULL: they were not wanted */
	const struct build_info *build;   /* for the modules of packages; NULL: not known */
	unsigned thread_count;
	uint64_t memory_limit; /* bytes that a report may take; 0: none */

	const struct retained *retained; /* NULL unless retained sizes are wanted */
};

#endif
