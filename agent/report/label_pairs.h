/* A set of labels as a repeated field of messages. */
#ifndef AGENT_REPORT_LABEL_PAIRS_H
#define AGENT_REPORT_LABEL_PAIRS_H

#include <stddef.h>

#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"

struct label_set;

/* Appends the pairs of a set that was decoded. */
must_check struct error *label_pairs_fill(const struct label_set *set,
					  Goheapd__LabelPair ***ret_pairs, size_t *ret_count);

#endif
