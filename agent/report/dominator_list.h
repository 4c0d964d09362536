/* The children of a node of the dominator tree, largest first, page by page. */
#ifndef AGENT_REPORT_DOMINATOR_LIST_H
#define AGENT_REPORT_DOMINATOR_LIST_H

#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"

struct analysed;

/*
 * Fills result->dominators. ERROR_BAD_REQUEST for a limit of none or more than OBJECT_LIST_MAX,
 * ERROR_NOT_FOUND for an object that is none, or that is not live.
 */
must_check struct error *dominator_list_fill(const struct analysed *analysed,
					     const Goheapd__DominatorsQuery *query,
					     Goheapd__ScanResult *result);

#endif
