/*
 * Who points to an object: other objects, field by field, and roots. Of a live object those that
 * are live, or that a finalizer will revive; of another all that are allocated.
 */
#ifndef AGENT_REPORT_REFERRER_LIST_H
#define AGENT_REPORT_REFERRER_LIST_H

#include <stdint.h>

#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"

struct analysed;

enum { REFERRER_LIST_MAX = 1000 };

/* Fills the message's referrers, roots first, then objects by address, and referrers_cut. */
must_check struct error *referrer_list_fill(const struct analysed *analysed, uint32_t object,
					    Goheapd__Object *message);

#endif
