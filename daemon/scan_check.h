/*
 * What the schema of an answer cannot say: numbers in it that name places of its own lists, which
 * who renders it then need not doubt.
 */
#ifndef DAEMON_SCAN_CHECK_H
#define DAEMON_SCAN_CHECK_H

#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"

must_check struct error *scan_check(const Goheapd__ScanResult *result);

/* Whether there is what was asked of objects, and adds up to what is live. */
must_check struct error *scan_check_analysis(const Goheapd__ScanResult *result,
					     const Goheapd__Analysis *analysis);

#endif
