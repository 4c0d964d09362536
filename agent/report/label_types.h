/* Of what types the memory is that each label set's goroutines hold alone. */
#ifndef AGENT_REPORT_LABEL_TYPES_H
#define AGENT_REPORT_LABEL_TYPES_H

#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"

struct analysed;
struct decoded;

enum { LABEL_TYPES_MAX = 5 };

/*
 * Fills top_types of the report's sets, of those without labels and of the system's, of what is
 * selected and of groups, with the five types that have the most bytes. The report is the one that
 * label_report_fill made of decoded.
 */
must_check struct error *label_types_fill(const struct decoded *decoded,
					  const struct analysed *analysed,
					  Goheapd__LabelReport *report);

#endif
