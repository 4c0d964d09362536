/* Who keeps the memory alive: all chains of references as a tree of frames. */
#ifndef AGENT_REPORT_REFERENCE_PROFILE_H
#define AGENT_REPORT_REFERENCE_PROFILE_H

#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"

struct analysed;

/*
 * Fills result->profile, whose sums are those of what is live. What is small, and what is deeper
 * than the query wants it, is folded, so that neither the message nor the memory it takes to make
 * it grows with the number of different chains.
 */
must_check struct error *reference_profile_fill(const struct analysed *analysed,
						const Goheapd__ProfileQuery *query,
						Goheapd__ScanResult *result);

#endif
