/*
 * A growing list of pairs of 32-bit numbers, to be sorted and freed of repetitions: who enters
 * what. A pair that was added a moment ago is not added again.
 */
#ifndef AGENT_ANALYSIS_PAIR_LIST_H
#define AGENT_ANALYSIS_PAIR_LIST_H

#include <stdint.h>

#include "agent/analysis/pages.h"

enum { PAIR_FILTER_SIZE = 4096 };

struct pair_list {
	struct budget *budget;
	struct pages pages;
	uint64_t *pairs; /* first << 32 | second */
	uint64_t count;
	uint64_t filter[PAIR_FILTER_SIZE]; /* by hash: a pair that is in the list, plus 1 */
};

static inline uint32_t pair_first(uint64_t pair)
{
	return (uint32_t)(pair >> 32);
}

static inline uint32_t pair_second(uint64_t pair)
{
	return (uint32_t)pair;
}

/* The budget is borrowed for the list's life. */
void pair_list_init(struct pair_list *list, struct budget *budget);
void pair_list_fini(struct pair_list *list);

must_check struct error *pair_list_add(struct pair_list *list, uint32_t first, uint32_t second);

/* Adds all of another list of the same budget, and leaves that empty. */
must_check struct error *pair_list_join(struct pair_list *list, struct pair_list *other);

/* Sorts by first, then second, and drops repetitions. */
must_check struct error *pair_list_sort(struct pair_list *list);

/* Sorts by first alone. */
must_check struct error *pair_list_sort_by_first(struct pair_list *list);

#endif
