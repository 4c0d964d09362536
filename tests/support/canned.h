/*
 * Messages as an agent would send them, with every field set, made up so that each number occurs
 * once and an answer shows where it came from. All memory is static: nothing is freed.
 */
#ifndef TESTS_SUPPORT_CANNED_H
#define TESTS_SUPPORT_CANNED_H

#include "proto/goheapd.pb-c.h"

enum { CANNED_PID = 4242, CANNED_NAMESAKE = 4243, CANNED_TICKS = 990 };

/* A process that is fit to be inspected. Change the copy. */
Goheapd__Process canned_process(void);

Goheapd__OverviewResult *canned_overview(void);

/* A full scan with memory, labels, goroutines and mappings. */
Goheapd__ScanResult *canned_scan(void);

#endif
