/* Objects for tests, in sum what canned_scan says is live, finalizable and garbage. */
#ifndef TESTS_SUPPORT_CANNED_OBJECTS_H
#define TESTS_SUPPORT_CANNED_OBJECTS_H

#include "proto/goheapd.pb-c.h"

/* All memory is static. Each sets its part of a scan and returns what was asked for it. */
const Goheapd__Analysis *canned_histogram(Goheapd__ScanResult *result);
const Goheapd__Analysis *canned_objects(Goheapd__ScanResult *result);
const Goheapd__Analysis *canned_object(Goheapd__ScanResult *result);
const Goheapd__Analysis *canned_dominators(Goheapd__ScanResult *result);

/* The globals that memusage's text tells with detail=1. */
void canned_globals(Goheapd__ScanResult *result);

#endif
