/* Labels as messages: which sets there are, and what each holds. */
#ifndef AGENT_REPORT_LABEL_REPORT_H
#define AGENT_REPORT_LABEL_REPORT_H

#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"

struct decoded;

/* Fills result->labels; the target's memory is not read. */
must_check struct error *label_report_fill(const struct decoded *decoded,
					   Goheapd__ScanResult *result);

#endif
