/*
 * Which party holds each object. Parties are what memory is attributed to: sets of goroutines that
 * together are all of them, and the globals. Colours form a lattice of three levels, none < one
 * party < shared, so that an object's colour changes twice at most and one walk serves all parties.
 */
#ifndef AGENT_ANALYSIS_LABEL_COLOR_H
#define AGENT_ANALYSIS_LABEL_COLOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/analysis/label_attribution.h"
#include "agent/analysis/mark_walk.h"
#include "agent/analysis/pages.h"
#include "agent/analysis/pair_list.h"

/*
 * Of one object: a party's number plus 1, COLOR_SHARED or 0, and flags. An owned object has its
 * party's colour from the beginning and for good; what is found to lead to it makes it live, and no
 * more.
 */
enum {
	COLOR_MASK = (1 << 29) - 1,
	COLOR_SHARED = COLOR_MASK,
	COLOR_FOUND = 1 << 29, /* of what is owned */
	COLOR_HAS_EDGES = 1 << 30,
	PARTIES_MAX = COLOR_MASK - 2,
};
#define COLOR_OWNED (UINT32_C(1) << 31)

struct coloring {
	const struct label_attribution *input;
	struct budget *budget;
	struct pages pages;
	_Atomic uint32_t *colors; /* by object */
	/* Found in the later phases of marking only; by phase. */
	uint64_t later_bytes[MARK_PHASE_COUNT];
};

static inline uint32_t color_of(const struct coloring *coloring, uint32_t object)
{
	return atomic_load_explicit(&coloring->colors[object], memory_order_relaxed);
}

/* Somebody has it alone; what is owned and not live has lost its colour in the end. */
static inline bool color_is_party(uint32_t color)
{
	return color & COLOR_MASK && (color & COLOR_MASK) != COLOR_SHARED;
}

static inline bool color_is_shared(uint32_t color)
{
	return (color & COLOR_MASK) == COLOR_SHARED;
}

/* Colours all that is live. Input and budget are borrowed for the colouring's life. */
must_check struct error *coloring_init(struct coloring *coloring,
				       const struct label_attribution *input,
				       struct budget *budget);
void coloring_fini(struct coloring *coloring);

/*
 * Fills the states of a mark, or none, with what is live, and what each party holds alone into
 * usage; tells how much is shared.
 */
must_check struct error *coloring_count(const struct coloring *coloring, object_state *states,
					struct party_usage *usage, struct size_count *ret_shared);

/* Adds for each party the shared objects that roots and objects of its own lead to, in no order. */
must_check struct error *coloring_entries(const struct coloring *coloring,
					  struct pair_list *entries);

#endif
