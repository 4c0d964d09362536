/*
 * Which pages of a process are in RAM, or were touched at all: one walk of its page tables, as
 * /proc/PID/pagemap shows them. Kept as two bits a page for every 2 MiB in which anything is.
 */
#ifndef AGENT_REPORT_RESIDENT_H
#define AGENT_REPORT_RESIDENT_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

struct maps;
struct resident;

/* Walks all accessible mappings; pagemap -1 gives an empty walk. The caller frees *ret. */
must_check struct error *resident_read(int pagemap, const struct maps *maps, struct resident **ret);
void resident_free(struct resident *resident);
DEFINE_FREEP(resident, resident_free)

struct resident_bytes {
	uint64_t resident; /* on pages in RAM */
	uint64_t touched;  /* on pages in RAM or swapped out */
};

/* Of the bytes from start to end, however they lie on pages. */
struct resident_bytes resident_count(const struct resident *resident, taddr start, taddr end);

/* Mappings left out, for the walk would have been too long. */
uint64_t resident_skipped_bytes(const struct resident *resident);

/* For makers of walks: pages must come in address order. */
must_check struct error *resident_new(struct resident **ret);
must_check struct error *resident_add(struct resident *resident, taddr start, taddr end,
				      bool in_ram);

#endif
