/*
 * The memory of the stopped target itself. Reading must not grow it: a page that was never
 * touched would be made by reading it, so only pages that pagemap calls present or swapped are
 * read. Of the others, private anonymous ones are zeros, those of the executable and of plugins
 * are read from their files, and the rest cannot be read (ERROR_FAULT).
 */
#ifndef AGENT_TARGET_LIVE_MEMORY_H
#define AGENT_TARGET_LIVE_MEMORY_H

#include "agent/target/memory.h"

enum { LIVE_MEMORY_PLUGINS_MAX = 16 };

/* A file that is mapped into the target. */
struct live_memory_file {
	int fd;           /* -1: none */
	const char *name; /* as maps has it, or the link to the executable; NULL: not known */
};

/* All borrowed for the life of the memory. */
struct live_memory_files {
	int mem, pagemap, maps;
	int exe;              /* -1: none */
	const char *exe_name; /* what the link to it says; NULL: not known */
	const struct live_memory_file *plugins;
	unsigned plugin_count; /* up to LIVE_MEMORY_PLUGINS_MAX */
};

/* The target must be stopped from here on: its maps are read once. */
must_check struct error *live_memory_open(const struct live_memory_files *files,
					  struct memory **ret);

#endif
