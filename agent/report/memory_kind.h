/*
 * What memory is for: the ids of the memory tree (API: GET /pid/N/memusage) with their titles.
 * The kinds are the children of the process, in the order in which they are shown.
 */
#ifndef AGENT_REPORT_MEMORY_KIND_H
#define AGENT_REPORT_MEMORY_KIND_H

#include <stdbool.h>

enum memory_kind {
	MEMORY_TEXT,
	MEMORY_READONLY,
	MEMORY_DATA,
	MEMORY_BSS,
	MEMORY_HEAP,
	MEMORY_HEAP_METADATA,
	MEMORY_THREAD_STACKS,
	MEMORY_FILE_MAPS,
	MEMORY_C_MEMORY,
	MEMORY_SHARED,
	MEMORY_UNEXPLAINED,
	MEMORY_KIND_COUNT
};

const char *memory_kind_id(enum memory_kind kind);
const char *memory_kind_title(enum memory_kind kind);

/*
 * Files and what comes with the program count by their size; memory that a process takes as it
 * touches it counts by what was touched.
 */
bool memory_kind_counts_touched(enum memory_kind kind);

#endif
