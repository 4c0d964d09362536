/*
 * Marking: which objects the roots reach. First from exact roots alone, then from those that are
 * conservative words, then from system stacks, so that what lives only by the latter is known.
 * Where memory is to be attributed to few parties, marking tells them apart, and what each of them
 * reaches is known when it ends.
 */
#ifndef AGENT_ANALYSIS_MARK_H
#define AGENT_ANALYSIS_MARK_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/error.h"

struct graph;
struct label_attribution;
struct party_usage;
struct root_set;
struct special_table;
struct mark;

enum { MARK_PARTIES_MAX = 4 };

struct mark_totals {
	uint64_t live_objects, live_bytes;
	uint64_t finalizable_objects, finalizable_bytes;
	uint64_t garbage_objects, garbage_bytes;
	/* Live by conservative words alone, system stacks included. */
	uint64_t conservative_only_bytes;
	uint64_t system_stack_only_bytes;
	uint64_t free_slot_hits; /* of roots, and of edges of what is live or revives others */
};

/*
 * Marks with thread_count threads. Objects with finalizers are roots for what they point to, not
 * for themselves (runtime/mgcmark.go, markrootSpans). The graph is borrowed for the mark's life.
 */
must_check struct error *mark_run(const struct graph *graph, const struct root_set *roots,
				  const struct special_table *specials, unsigned thread_count,
				  struct mark **ret);
/*
 * The same, for MARK_PARTIES_MAX parties at most; the input is borrowed for the call. Memory for
 * one mark was reserved beside the graph; a second one is ERROR_OUT_OF_MEMORY if it does not fit.
 */
must_check struct error *mark_run_parties(const struct label_attribution *input, bool second,
					  struct mark **ret);
void mark_free(struct mark *mark);
DEFINE_FREEP(mark, mark_free)

bool mark_is_live(const struct mark *mark, uint32_t object);
bool mark_is_finalizable(const struct mark *mark, uint32_t object);

struct mark_counts {
	uint32_t live, finalizable;
};

/* Of the objects from first on. */
struct mark_counts mark_count(const struct mark *mark, uint32_t first, uint32_t count);
const struct mark_totals *mark_totals(const struct mark *mark);

/* Fills the usage, zeroed by the caller, of the parties that mark_run_parties was given. */
must_check struct error *mark_count_parties(const struct mark *mark, unsigned thread_count,
					    struct party_usage *usage);

#endif
