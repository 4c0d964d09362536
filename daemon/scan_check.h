/*
 * What the schema of an answer cannot say: numbers in it that name places of its own lists, which
 * who renders it then need not doubt.
 */
#ifndef DAEMON_SCAN_CHECK_H
#define DAEMON_SCAN_CHECK_H

#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"

must_check struct error *scan_check(const Goheapd__ScanResult *result);

#endif
