/* What the files that expand objects share: one thread's windows, caches and words in hand. */
#ifndef AGENT_ANALYSIS_REFERENCE_EXPANDER_H
#define AGENT_ANALYSIS_REFERENCE_EXPANDER_H

#include "agent/analysis/reference_private.h"

enum {
	WINDOW_BYTES = 512 << 10,
	WINDOW_PAGE = 4096, /* bytes: windows begin and end at multiples of it */
	WINDOW_GAP = 4096,  /* bytes between objects that are read along */
	PENDING_MAX = 256,
	CACHE_SIZE = 2048, /* entries of each cache, a power of two */
};

/* How an item is expanded by the notes of its edges, as far as they tell enough. */
struct noted_shape {
	const struct plan *plan; /* of a value or block, or of the first element; NULL: it is not */
	uint64_t first, end;     /* words of the slot: where it begins, and where the slot ends */
	bool repeats;            /* blocks */
	bool is_array;           /* elements: count of them are looked at, length are in use */
	type_id elem;
	uint64_t length, count;
};

/* An item being expanded. */
struct item_state {
	uint32_t object, place;
	const struct walk_span *span;
	const struct graph_row *row; /* NULL: its span has no pointers */
	uint32_t slot;
	uint32_t edge, edge_count; /* those before edge are accounted for, or has_rest */
	const uint32_t *edges;
	const struct edge_note *notes; /* of the edges, or NULL */
	struct noted_shape noted;
	uint64_t search_left;
	taddr addr; /* of the slot */
	bool has_rest;
};

/* A word that may be a pointer, with those beside it that its kind of slot needs. */
struct pending {
	taddr value;
	const uint32_t *page;
	const struct plan_slot *slot;
	uint64_t next[2];
	uint32_t state;
};

struct target {
	const struct walk_span *span;
	uint32_t object; /* OBJECT_NONE: it leads nowhere */
	uint64_t offset; /* in the slot */
};

/* Elements of an array: count of them are looked at, length are in use. */
struct elements {
	type_id elem;
	uint32_t prefix;
	uint64_t size, length, count;
};

/* What was asked before, found by hash; the last one stays. */
struct cached_plan {
	uint64_t key; /* + 1 */
	uint32_t extra;
	const struct plan *plan;
};

struct cached_type {
	uint64_t word; /* a descriptor or itab */
	bool is_itab;
	type_id type;
};

struct cached_step {
	uint64_t key; /* + 1: step and type */
	uint32_t step;
};

struct expander {
	struct reference_walk *walk;
	struct expansion to;

	uint8_t *window;
	taddr window_start, window_end; /* what is in it */
	taddr ahead_end;                /* how far reading goes on at least */
	uint64_t large_words;

	uint32_t pending_count;
	struct pending pending[PENDING_MAX];
	uint32_t span_places[PENDING_MAX];
	struct target targets[PENDING_MAX];
	struct item_state states[EXPAND_ITEMS_MAX];

	struct cached_plan plans[CACHE_SIZE], elements[CACHE_SIZE];
	struct cached_type types[CACHE_SIZE];
	struct cached_step steps[CACHE_SIZE];
};

enum { SETTLE_AT = 1 << 16 }; /* candidates of an item that has very many */

/*
 * Room for a candidate at the end of the list, to be filled in place: putting it together elsewhere
 * and moving it costs more than all the rest. Then it is claimed.
 */
static inline struct error *expander_room(struct expander *x, struct candidate **ret)
{
	struct reference_list *list = x->to.list;

	if (list->count == list->capacity) {
		struct error *err = reference_list_reserve(list, list->count + 1);

		if (err)
			return err;
	}
	*ret = (struct candidate *)list->pages.data + list->count++;
	return NULL;
}

static inline struct error *expander_claim(struct expander *x, const struct candidate *candidate)
{
	struct reference_list *list = x->to.list;
	size_t place = list->count - 1 - x->to.first;

	if (!x->to.claims)
		return NULL;
	walk_put_claim(x->walk, candidate, x->to.piece, place);
	if (x->to.settles && list->count >= SETTLE_AT)
		return walk_settle_list(x->walk, list);
	if (place >= PIECE_CANDIDATES_MAX - 1)
		return error_new(ERROR_LIMIT, "references: too many of them at once");
	return NULL;
}

/* Appends and claims a candidate. */
static inline struct error *expander_add(struct expander *x, const struct candidate *candidate)
{
	struct candidate *room;
	struct error *err = expander_room(x, &room);

	if (err)
		return err;
	*room = *candidate;
	return expander_claim(x, room);
}

/* Where in its slot an item's shape is, and how much of it. */
struct extent expander_extent_of(const struct expander *expander, const struct walk_item *item,
				 const struct walk_span *span);

/* Works off the words in hand. */
must_check struct error *expander_flush(struct expander *expander);

/* Looks at one word of the first item that is being expanded; those beside it are there. */
must_check struct error *expander_look(struct expander *expander, const uint64_t *word,
				       const struct plan_slot *slot);

/* Makes ready for an item; its edges are found in a second step, when what tells of them is near.
 */
void expander_begin(const struct expander *expander, const struct walk_item *item,
		    struct item_state *state);
void expander_find_edges(struct item_state *state);

/* Adds the word at a place of the item's slot, if it may be a pointer into the heap. */
must_check struct error *expander_add_word(struct expander *expander, uint32_t state,
					   const uint64_t *word, const struct plan_slot *slot);

/* reference_noted.c */

/* Sees whether an item can be expanded by notes, and makes ready for it. Its edges are known. */
must_check struct error *expander_prepare_noted(struct expander *expander,
						const struct walk_item *item,
						struct item_state *state);

/*
 * Expands an item by notes, if all of its edges allow it. *ret_done is false, and nothing has
 * happened, if it must be read.
 */
must_check struct error *expander_expand_noted(struct expander *expander, struct item_state *state,
					       bool *ret_done);

/* reference_expander.c */

/*
 * Points *ret_words to count words from the first one of an item's slot on, until the next call;
 * NULL in it: they cannot be read, or are too many.
 */
must_check struct error *expander_words(struct expander *expander, struct item_state *state,
					uint64_t first, uint64_t count, const uint64_t **ret_words);

/* One word anywhere in the target; 0 and *ret_is_read false for what cannot be read. */
must_check struct error *expander_word(struct expander *expander, taddr addr, uint64_t *ret,
				       bool *ret_is_read);

must_check struct error *expander_plan(struct expander *expander, shape_id shape, uint32_t prefix,
				       const struct plan **ret);
must_check struct error *expander_element_plan(struct expander *expander, type_id elem,
					       uint32_t prefix, unsigned class,
					       const struct plan **ret);

/* The type of a descriptor's address, or the dynamic type of an itab's. */
must_check struct error *expander_type(struct expander *expander, uint64_t word, bool is_itab,
				       type_id *ret);

/*
 * What is in an interface, by the type word beside it: its shape and step are put in the candidate.
 * *ret_is_known is false if its type is not known.
 */
must_check struct error *expander_take_interface(struct expander *expander,
						 const struct pending *word,
						 struct candidate *candidate, bool *ret_is_known);

/*
 * Where no type tells of a word, the one before it may: a type descriptor or an itab stands in
 * front of the data of an interface. *ret is a slot of that kind for the word, whose step begins
 * with step (STEP_NONE or STEP_UNTYPED); NULL: it is neither.
 */
must_check struct error *expander_guess_interface(struct expander *expander, uint64_t before,
						  uint32_t step, const struct plan_slot **ret);

/* Must an object of a shape be read to know what it is, even if it leads nowhere? */
bool expander_must_resolve(const struct walk_span *span, shape_id shape);

/*
 * What an object says itself goes before what led to it: changes shape and extent, and adds a
 * candidate that says so.
 */
must_check struct error *expander_resolve(struct expander *expander, struct item_state *state,
					  shape_id *shape, struct extent *extent);

#endif
