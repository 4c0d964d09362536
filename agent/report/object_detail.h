/* One object: what it is, what is in it, who points to it, and what keeps it alive. */
#ifndef AGENT_REPORT_OBJECT_DETAIL_H
#define AGENT_REPORT_OBJECT_DETAIL_H

#include "agent/target/memory.h"
#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"

struct analysed;

/* The allocated object at an address in it; ERROR_NOT_FOUND if there is none. */
must_check struct error *object_detail_find(const struct analysed *analysed, taddr address,
					    uint32_t *ret);

/*
 * Fills result->object; result->scan, if it is there, gets a warning where bytes were not kept.
 */
must_check struct error *object_detail_fill(const struct analysed *analysed,
					    const Goheapd__ObjectQuery *query,
					    Goheapd__ScanResult *result);

#endif
