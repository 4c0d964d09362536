/* Objects by type: what is live, and if it is asked for what is not. */
#ifndef AGENT_REPORT_HISTOGRAM_H
#define AGENT_REPORT_HISTOGRAM_H

#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"

struct analysed;

/*
 * Fills result->histogram. Rows and what is unknown sum to what mark has counted, in each of the
 * three states. With analysed->retained, rows and global variables say what they retain.
 */
must_check struct error *histogram_fill(const struct analysed *analysed,
					const Goheapd__HistogramQuery *query,
					Goheapd__ScanResult *result);

#endif
