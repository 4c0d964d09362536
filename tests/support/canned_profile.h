/*
 * Reference chains for tests, in sum what canned_scan says is live.
 */
#ifndef TESTS_SUPPORT_CANNED_PROFILE_H
#define TESTS_SUPPORT_CANNED_PROFILE_H

#include "proto/goheapd.pb-c.h"

/*
 * As query asks, until the next call. What is not in any of its chains is the last one's, so that
 * the sum is what heap says is live; sessions have grown by so many of 96 bytes.
 */
Goheapd__ReferenceProfile *canned_profile(const Goheapd__HeapTotals *heap,
					  const Goheapd__ProfileQuery *query, unsigned growth);

/* What types they have, as far as that can be told; until the next call. */
Goheapd__Histogram *canned_types(const Goheapd__HeapTotals *heap, unsigned growth);

/* One of so many chains that no profile may show them all; give it back with free_unpacked. */
Goheapd__ReferenceProfile *canned_huge_profile(unsigned roots, unsigned depth);

#endif
