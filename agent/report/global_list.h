/* Global variables, and what would be freed with each. */
#ifndef AGENT_REPORT_GLOBAL_LIST_H
#define AGENT_REPORT_GLOBAL_LIST_H

#include <stddef.h>

#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"

struct retained;

/*
 * Adds rows of a message to *rows, which is empty: limit of them at most, largest first. Those that
 * retain nothing are left out.
 */
must_check struct error *global_list_fill(const struct retained *retained, size_t limit,
					  Goheapd__GlobalRow ***rows, size_t *count);

#endif
