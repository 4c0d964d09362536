/*
 * Whether what was decoded adds up to what the runtime itself counts. A sum that does not is a
 * sentence in the answer, never a silent wrong number.
 */
#ifndef AGENT_REPORT_SELF_CHECK_H
#define AGENT_REPORT_SELF_CHECK_H

#include <stdint.h>

#include "proto/base/error.h"

struct goroutine_table;
struct page_totals;
struct span_totals;

struct self_check_input {
	const struct span_totals *spans;
	const struct page_totals *pages;
	const struct goroutine_table *goroutines;
	uint64_t skipped_specials;
	uint32_t thread_count; /* each may have been stopped between two counters */
};

enum { SELF_CHECK_SIZE = 256 };

/* "ok", or what does not add up. */
void self_check(const struct self_check_input *input, char ret[SELF_CHECK_SIZE]);

#endif
