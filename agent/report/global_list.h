/* Global variables, and what would be freed with each. */
#ifndef AGENT_REPORT_GLOBAL_LIST_H
#define AGENT_REPORT_GLOBAL_LIST_H

#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"

struct retained;

/* Fills the histogram's globals, largest first; those that retain nothing are left out. */
must_check struct error *global_list_fill(const struct retained *retained,
					  Goheapd__Histogram *histogram);

#endif
