/*
 * What the files of the walk share: its state, which only one thread changes at a time, and what
 * threads hand to it.
 */
#ifndef AGENT_ANALYSIS_REFERENCE_PRIVATE_H
#define AGENT_ANALYSIS_REFERENCE_PRIVATE_H

#include "agent/analysis/graph_private.h"
#include "agent/analysis/reference_list.h"
#include "agent/analysis/reference_plan.h"
#include "agent/analysis/reference_state.h"
#include "agent/analysis/reference_unsettled.h"
#include "agent/analysis/reference_walk.h"
#include "agent/analysis/workers.h"
#include "agent/goruntime/bitmap.h"

/* All that the walk asks of a span, in one place: by span index + 1, 0 is none. */
struct walk_span {
	taddr base;
	uint64_t size; /* of the slots */
	uint64_t elem_size;
	uint32_t first_object, reciprocal;
	uint8_t header;     /* bytes in front of each object */
	uint8_t size_class; /* 0: large objects */
	bool noscan;
	bool tells; /* its objects say themselves what they are */
	taddr large_type;
};

/* runtime/mheap.go, spanClass: seven bits are the size class, where 0 is of large objects. */
enum { SIZE_CLASSES_MAX = 128, SPAN_CLASSES = 256 };

/* An object to go on from. */
struct walk_item {
	uint32_t object, place;
	shape_id shape;
	uint32_t extent; /* where it is in the extents, + 1; 0: the shape begins with the object */
};

struct extent {
	uint64_t offset;           /* in the slot: what the shape is of begins there */
	uint64_t length, capacity; /* of an array: elements */
};

/* What was found at a word; claimed in the order in which it was found. */
enum candidate_kind {
	CANDIDATE_REFERENCE, /* to an object */
	CANDIDATE_STRING,    /* the same: a string's bytes */
	CANDIDATE_SHAPE,     /* an object says what it is itself */
	CANDIDATE_REST,      /* an object has edges that its shape does not explain */
};

enum { LENGTH_UNKNOWN = UINT32_MAX };

/* There are very many. */
struct candidate {
	uint32_t object;
	uint32_t parent; /* its place, or walk_root_parent of its root */
	uint32_t step;
	shape_id shape;
	uint64_t offset;   /* in the slot */
	uint64_t length;   /* elements of an array; of a string bytes */
	uint64_t capacity; /* of an array */
	uint8_t kind;
	uint8_t outcome;    /* of claiming it */
	uint8_t size_class; /* of an object that was met by it */
};

/* Some candidates that one thread found one after the other, and what became of them. */
struct piece {
	unsigned thread;             /* that found them, in whose cache they are */
	atomic_bool taken;           /* by a thread that works on them */
	struct reference_list *list; /* of struct candidate */
	size_t first, count;         /* in list */
	uint32_t met, items, extents,
	    used;             /* of those that were met: what each list gets of them */
	uint32_t first_place; /* of those that were met */
	uint64_t first_item, first_extent, first_used; /* in their lists */
	uint32_t specials; /* that are more than met, or something else */
	uint64_t bytes;    /* that were met */
};

/*
 * Claims are numbered by piece and place in it, so that the least one is what a single thread would
 * have found first.
 */
enum {
	PIECES_MAX = 64,
	PIECE_CANDIDATES_MAX = STATE_CLAIMS_MAX / PIECES_MAX,
};

/* An object's bytes, and those in use, where two bytes do not tell that. */
struct walk_used {
	uint32_t place;
	uint64_t bytes, used_bytes;
};

/* The name of the roots that finalizers of one type are. */
struct made_name {
	type_id type;
	char *name;
};

struct reference_walk {
	struct reference_input input;
	struct memory *memory; /* of the objects, while the walk runs */
	const struct graph *graph;
	const struct span_lookup *lookup;
	struct budget budget;
	struct step_table *steps;
	struct plan_table *plans;

	struct walk_span *spans;
	/* What spans of a class have in common, where they do; so small that it stays in the cache.
	 */
	struct walk_span class_spans[SPAN_CLASSES];
	uint8_t *span_classes; /* by span index; 0: it is not like the others */
	uint32_t live_count;   /* of mark: so many places there will be */
	unsigned thread_count;

	/* By place. */
	struct pages order_pages, parent_pages, step_pages, class_pages, waste_pages;
	uint32_t *order; /* objects; NULL: nobody asks for them */
	uint32_t *parents, *places_steps;
	uint8_t *size_classes; /* so that a size takes no look at the object's span */
	uint8_t *wastes;       /* bytes of the block that are not in use; WASTE_ELSEWHERE */
	uint64_t class_sizes[SIZE_CLASSES_MAX];
	uint32_t count;
	struct reference_list used; /* of struct walk_used, by place */

	/* By object. */
	struct pages state_pages;
	_Atomic walk_state *states;

	struct unsettled_table unsettled;            /* of objects with pointers */
	struct reference_list frontier, next;        /* of struct walk_item */
	struct reference_list extents, next_extents; /* of struct extent */
	struct reference_list lists[WORKERS_MAX];    /* of struct candidate, by thread */
	struct reference_list rest,
	    next_rest; /* of struct walk_item: objects in part unexplained */

	struct reference_list roots; /* of struct reference_root */
	uint32_t *root_buckets;      /* numbers + 1 of roots, by name and goroutine */
	uint32_t root_bucket_count;
	uint32_t timer_root;
	struct reference_list seeds;   /* of struct seed */
	struct reference_list revived; /* of struct revived */
	struct made_name *made_names;
	size_t made_name_count;

	uint64_t met_bytes; /* of the objects that were met, count of them */
};

enum {
	WASTE_ELSEWHERE = UINT8_MAX,
	ROOTS_MAX = 1 << 26,
	PLACES_MAX = UINT32_MAX - ROOTS_MAX, /* parents from here on are roots */
};

static inline uint32_t walk_root_parent(uint32_t root)
{
	return UINT32_MAX - 1 - root;
}

static inline bool walk_is_root(uint32_t parent)
{
	return parent >= (uint32_t)PLACES_MAX;
}

/*
 * When roots have their turn: what names and types tell first, so that as much as possible is
 * reached by chains that say something.
 */
enum seed_rank {
	SEED_GLOBAL,
	SEED_LOCAL,
	SEED_UNTYPED,
	SEED_CONSERVATIVE,
	SEED_CONSERVATIVE_UNTYPED,
	SEED_SYSTEM,
	SEED_RANKS
};

struct seed {
	struct candidate candidate;
	uint8_t rank;
};

/* An object with a finalizer, as far as its record tells, and the root that this is. */
struct revived {
	uint32_t object, root;
	shape_id shape;
};

/* The span and slot of an object. */
static inline const struct walk_span *walk_span_of(const struct reference_walk *walk,
						   uint32_t object)
{
	return &walk->spans[span_lookup_span_of(walk->lookup, object) + 1];
}

/* The same, but for what differs between spans of one class: where it is, and its first object. */
static inline const struct walk_span *walk_class_of(const struct reference_walk *walk,
						    uint32_t object)
{
	uint32_t index = span_lookup_span_of(walk->lookup, object);
	uint8_t span_class = walk->span_classes[index];

	return span_class ? &walk->class_spans[span_class] : &walk->spans[index + 1];
}

static inline taddr walk_slot_of(const struct walk_span *span, uint32_t object)
{
	return span->base + (uint64_t)(object - span->first_object) * span->elem_size;
}

static inline struct error *candidate_add(struct reference_list *list,
					  const struct candidate *candidate)
{
	struct candidate *item;
	struct error *err = reference_list_add(list, (void **)&item);

	if (!err)
		*item = *candidate;
	return err;
}

/* reference_claim.c */

/* Claims a candidate that a piece is to have at a place, if it is a reference. */
static inline void walk_put_claim(struct reference_walk *walk, const struct candidate *candidate,
				  uint32_t piece, size_t place)
{
	if (candidate->kind == CANDIDATE_REFERENCE || candidate->kind == CANDIDATE_STRING)
		state_claim(&walk->states[candidate->object],
			    state_of_claim(piece * PIECE_CANDIDATES_MAX + (uint32_t)place));
}

/*
 * Makes what was claimed part of the walk, in the order of the pieces and of the candidates in
 * them, all of which have been claimed. Only the lists of pieces are set.
 */
must_check struct error *walk_settle(struct reference_walk *walk, struct piece *pieces,
				     uint32_t count);

/* The same for all of a list, claimed as the first piece; empties it. */
must_check struct error *walk_settle_list(struct reference_walk *walk, struct reference_list *list);

/* reference_expand.c */

struct expander;

must_check struct error *expander_new(struct reference_walk *walk, struct expander **ret);
void expander_free(struct expander *expander);
DEFINE_FREEP(expander, expander_free)

enum { EXPAND_ITEMS_MAX = 256, HUGE_EDGES = 1 << 17 };

/* Where what is found goes: to the end of a list. */
struct expansion {
	struct reference_list *list;
	uint32_t piece; /* its number */
	size_t first;   /* of the list: where the piece begins */
	bool claims;    /* else it is only looked at */
	bool
	    settles; /* no other thread does anything: settles as it goes, the list being its own */
};

/*
 * Appends what count items, at most EXPAND_ITEMS_MAX, lead to, and claims it. Otherwise it only
 * reads the walk.
 */
must_check struct error *expand_items(struct expander *expander, const struct walk_item *items,
				      uint32_t count, const struct expansion *to);

/* reference_rest.c: the same for the edges that nothing explains. */
must_check struct error *expand_rest(struct expander *expander, const struct walk_item *items,
				     uint32_t count, const struct expansion *to);

/* reference_root.c: roots and what they lead to; while the memory of the variables is there. */
must_check struct error *walk_read_roots(struct reference_walk *walk);
must_check struct error *walk_add_root(struct reference_walk *walk, struct reference_root root,
				       uint32_t *ret);
/* Claims the roots of one rank. */
must_check struct error *walk_claim_seeds(struct reference_walk *walk, enum seed_rank rank);

/*
 * reference_sort.c: sorts items by object, equal ones staying in their order, with a list that is
 * empty for help, whose pages may become the other one's.
 */
must_check struct error *walk_sort(const struct reference_walk *walk, struct reference_list *list,
				   struct reference_list *other);

/* reference_level.c: goes on from the frontier until nothing more is met. */
must_check struct error *walk_levels(struct reference_walk *walk, struct expander **expanders);
/* What objects lead to that nothing explains, once; false in *ret_more: there is none. */
must_check struct error *walk_rest(struct reference_walk *walk, struct expander **expanders,
				   bool *ret_more);

/* What an object of a shape covers: [*ret_begin, *ret_end) of the slot. */
void walk_coverage(const struct reference_walk *walk, const struct walk_span *span, shape_id shape,
		   const struct extent *extent, uint64_t *ret_begin, uint64_t *ret_end);

#endif
