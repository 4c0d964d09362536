/*
 * Large arrays of the analysis: whole pages from the kernel, zeroed, in huge pages where it has
 * them, real only once touched. Together they stay within one budget, so that a scan that would
 * not fit is refused rather than killed. What is given back is used again.
 */
#ifndef AGENT_ANALYSIS_PAGES_H
#define AGENT_ANALYSIS_PAGES_H

#include <stddef.h>
#include <stdint.h>

#include "proto/base/error.h"

/* Shared by the threads of a scan. */
struct budget {
	uint64_t limit;    /* bytes; 0: none */
	uint64_t reserved; /* of the limit, for what comes later */
	_Atomic uint64_t used;
};

struct pages {
	void *data; /* NULL if size is 0 */
	size_t size;
	struct budget *budget;
};

/* ERROR_OUT_OF_MEMORY beyond the budget. The budget is borrowed for the pages' life. */
must_check struct error *pages_init(struct pages *pages, struct budget *budget, uint64_t size);
void pages_fini(struct pages *pages);

/*
 * Makes room for size bytes, more than there is, without touching what is there. On an error
 * everything stays as it was.
 */
must_check struct error *pages_grow(struct pages *pages, struct budget *budget, uint64_t size);

/* Gives back to the kernel what nobody has used again: when nothing is left to do for a while. */
void pages_drop_spares(void);

/* Gives back what lies beyond the first size bytes. */
void pages_trim(struct pages *pages, size_t size);

#endif
