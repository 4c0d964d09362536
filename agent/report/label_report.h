/* Labels as messages: which sets there are, and what each holds. */
#ifndef AGENT_REPORT_LABEL_REPORT_H
#define AGENT_REPORT_LABEL_REPORT_H

#include <stdbool.h>

#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"

struct decoded;

/* Fills result->labels, with what detail=1 adds to it; the target's memory is not read. */
must_check struct error *label_report_fill(const struct decoded *decoded, bool detail,
					   Goheapd__ScanResult *result);

/* Warns of labels that could not be read, and of shares that do not add up. */
must_check struct error *label_report_warn(const struct decoded *decoded, Goheapd__ScanInfo *scan);

#endif
