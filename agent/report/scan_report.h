/* What a decoded process comes to, as the messages of a scan. */
#ifndef AGENT_REPORT_SCAN_REPORT_H
#define AGENT_REPORT_SCAN_REPORT_H

#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"

struct decoded;

/* A result with its scan, both empty. The caller frees it with free_unpacked. */
must_check struct error *scan_report_new(Goheapd__ScanResult **ret);

/* What is read while the memory is there: the collector's state. */
must_check struct error *scan_report_read(const struct decoded *decoded,
					  Goheapd__ScanResult *result);

/* The rest: memory, heap, stacks, mappings, goroutines, trust, warnings. */
must_check struct error *scan_report_finish(const struct decoded *decoded,
					    Goheapd__ScanResult *result);

#endif
