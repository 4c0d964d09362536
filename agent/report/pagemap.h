/*
 * The page tables of a process through a descriptor of /proc/PID/pagemap: by the PAGEMAP_SCAN call
 * where the kernel has it (since Linux 6.7), which steps over what was never touched and tells
 * zero pages apart, and otherwise entry by entry.
 */
#ifndef AGENT_REPORT_PAGEMAP_H
#define AGENT_REPORT_PAGEMAP_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

enum { PAGEMAP_PAGE_SIZE = 4096 };

/* Takes pages [start, end), in RAM or swapped out; an error ends the walk. */
typedef struct error *pagemap_visit(void *arg, taddr start, taddr end, bool in_ram);

/*
 * Visits the touched pages of [start, end), which are page aligned, in address order. *scan says
 * whether to try PAGEMAP_SCAN and becomes false where the kernel lacks it.
 */
must_check struct error *pagemap_walk(int pagemap, taddr start, taddr end, bool *scan,
				      pagemap_visit *visit, void *arg);

#endif
