/*
 * What labelled goroutines hold, as an agent would say it of the canned scan: the shares add up to
 * its live heap. All memory is static.
 */
#ifndef TESTS_SUPPORT_CANNED_LABELS_H
#define TESTS_SUPPORT_CANNED_LABELS_H

#include "proto/goheapd.pb-c.h"

/* Six sets, some of them of odd bytes. */
Goheapd__LabelReport *canned_labels(void);

/* Add what is asked for: a selection of so many goroutines, groups by job, then detail of all. */
void canned_select(Goheapd__LabelReport *report, unsigned goroutines);
void canned_group(Goheapd__LabelReport *report);
void canned_detail(void);

/* Takes away what a census does not know. */
void canned_label_census(Goheapd__LabelReport *report);

/* Gives the goroutines of the canned scan labels: odd ones, unreadable ones, none. */
void canned_goroutine_labels(Goheapd__ScanResult *result);

/* The first set has grown by so many goroutines of a KiB each. */
void canned_label_growth(Goheapd__LabelReport *report, unsigned growth);

#endif
