/* The mappings of a process as messages, each with what it holds. */
#ifndef AGENT_REPORT_MAPPING_LIST_H
#define AGENT_REPORT_MAPPING_LIST_H

#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"

struct address_map;
struct maps;
struct resident;

/* Fills result->mappings; the regions are those of these maps. */
must_check struct error *mapping_list_fill(const struct maps *maps,
					   const struct address_map *regions,
					   const struct resident *resident,
					   Goheapd__ScanResult *result);

#endif
