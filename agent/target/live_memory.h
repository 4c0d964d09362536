/*
 * The memory of the stopped target itself. Reading must not grow it: a page that was never
 * touched would be made by reading it, so only pages that pagemap calls present or swapped are
 * read. Of the others, private anonymous ones are zeros, those of the executable are read from
 * its file, and the rest cannot be read (ERROR_FAULT).
 */
#ifndef AGENT_TARGET_LIVE_MEMORY_H
#define AGENT_TARGET_LIVE_MEMORY_H

#include "agent/target/memory.h"

/* All borrowed for the life of the memory. */
struct live_memory_files {
	int mem, pagemap, maps;
	int exe;              /* -1: none */
	const char *exe_name; /* what the link to it says; NULL: not known */
};

/* The target must be stopped from here on: its maps are read once. */
must_check struct error *live_memory_open(const struct live_memory_files *files,
					  struct memory **ret);

#endif
