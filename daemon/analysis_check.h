/*
 * What an agent says of objects, against itself and against what was asked: sums, orders, limits.
 * Who renders it then need not doubt it.
 */
#ifndef DAEMON_ANALYSIS_CHECK_H
#define DAEMON_ANALYSIS_CHECK_H

#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"

/* Of each part that was asked for: it is there, and fits. ERROR_SYSTEM or ERROR_FORMAT. */
must_check struct error *analysis_check(const Goheapd__ScanResult *result,
					const Goheapd__Analysis *analysis);

#endif
