/* Live objects by address, page by page. */
#ifndef AGENT_REPORT_OBJECT_LIST_H
#define AGENT_REPORT_OBJECT_LIST_H

#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"

struct analysed;

/* Rows of one page, and children of one dominator that a page lists. */
enum { OBJECT_LIST_MAX = 10000 };

/* Fills result->objects. ERROR_BAD_REQUEST for a limit of none or more than OBJECT_LIST_MAX. */
must_check struct error *object_list_fill(const struct analysed *analysed,
					  const Goheapd__ObjectsQuery *query,
					  Goheapd__ScanResult *result);

#endif
