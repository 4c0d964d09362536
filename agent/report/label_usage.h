/*
 * A partition of the goroutines into parties, and what each has: goroutines, stacks and, where
 * there is a graph, memory. Parties are named ones, then system goroutines, then globals.
 */
#ifndef AGENT_REPORT_LABEL_USAGE_H
#define AGENT_REPORT_LABEL_USAGE_H

#include <stdint.h>

#include "agent/analysis/label_attribution.h"
#include "proto/base/error.h"

struct decoded;
struct label_grouping;
struct mark;

struct party_goroutines {
	uint64_t count, stack_bytes;
	uint64_t parked; /* waiting for something */
};

struct label_usage {
	uint32_t *party_of;   /* by goroutine: for the caller to fill, but for system goroutines */
	uint32_t party_count; /* the last two are system and global */
	struct party_goroutines *goroutines; /* by party */
	struct party_usage *memory;          /* by party; NULL without a graph */
};

/* All goroutines that are not system's are of party 0. Give *usage back with _fini. */
must_check struct error *label_usage_init(struct label_usage *usage, const struct decoded *decoded,
					  uint32_t named_count);
void label_usage_fini(struct label_usage *usage);

/* The partition by label set: sets by number, then goroutines without labels. */
must_check struct error *label_usage_init_sets(struct label_usage *usage,
					       const struct decoded *decoded);

/* Party 0 are those that the request selects. */
must_check struct error *label_usage_init_selection(struct label_usage *usage,
						    const struct decoded *decoded);

/* By group; one party more are those that a selection leaves out. */
must_check struct error *label_usage_init_groups(struct label_usage *usage,
						 const struct decoded *decoded,
						 const struct label_grouping *grouping);

/* The same partition, to ask more of it; all that it points to is borrowed. */
struct label_attribution label_usage_attribution(const struct label_usage *usage,
						 const struct decoded *decoded);

/* Marks the graph for all uses, and has the memory of parties counted by that. */
must_check struct error *label_usage_mark(struct label_usage *usage, const struct decoded *decoded,
					  struct mark **ret);

/* Counts, once parties are set. */
must_check struct error *label_usage_count(struct label_usage *usage,
					   const struct decoded *decoded);

#endif
