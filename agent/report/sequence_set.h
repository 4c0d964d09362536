/*
 * Different sequences of numbers, such as stacks of frames, each kept once and named by its place
 * in the order in which they were first met.
 */
#ifndef AGENT_REPORT_SEQUENCE_SET_H
#define AGENT_REPORT_SEQUENCE_SET_H

#include <stddef.h>
#include <stdint.h>

#include "proto/base/error.h"

struct sequence; /* an array: items, and how many */

/* All zero is an empty set. */
struct sequence_set {
	uint32_t *items; /* of all sequences, one after the other */
	size_t item_count, item_capacity;
	struct sequence *sequences;
	uint32_t count;
	uint32_t *buckets; /* places plus 1, found by hash; 0: free */
	size_t bucket_count;
};

/* The place of a sequence, which is added if it is not there. */
must_check struct error *sequence_set_add(struct sequence_set *set, const uint32_t *items,
					  uint32_t count, uint32_t *ret);

/* The items of the sequence at a place, *ret_count of them, until the next addition. */
const uint32_t *sequence_set_at(const struct sequence_set *set, uint32_t place,
				uint32_t *ret_count);

void sequence_set_fini(struct sequence_set *set);

#endif
