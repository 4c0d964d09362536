/*
 * Claiming: what threads have found becomes part of the walk. The first reference to an object is
 * its chain; later ones may still tell more of what it is. Which one is the first has been settled
 * by the claims, so that threads can work on:
 *
 *	judge    every piece: which of its candidates are met by it, and what they are
 *	         (then everybody's place is known)
 *	place    every piece: what is met gets its place, and goes on
 *	rest     one thread, in order: whatever tells more of an object than that it is there
 */
#include <assert.h>

#include "agent/analysis/reference_private.h"

enum { PREFETCH = 16, ALONE_MAX = 4096 /* candidates that one thread settles as quickly */ };

/* What became of a candidate. */
enum {
	OUTCOME_MET = 1,
	OUTCOME_GOES_ON = 2,  /* is an item of the next level */
	OUTCOME_EXTENT = 4,   /* with an extent of its own */
	OUTCOME_USED = 8,     /* what is used of it has an entry of its own */
	OUTCOME_SPECIAL = 16, /* there is more to it */
};

static uint64_t value_size(const struct reference_walk *walk, shape_id shape)
{
	return go_type_at(walk->input.types, shape_type(shape))->size;
}

void walk_coverage(const struct reference_walk *walk, const struct walk_span *span, shape_id shape,
		   const struct extent *extent, uint64_t *ret_begin, uint64_t *ret_end)
{
	uint64_t size, room = span->elem_size - extent->offset;

	*ret_begin = extent->offset;
	*ret_end = span->elem_size;
	if (shape_kind(shape) != SHAPE_VALUE && shape_kind(shape) != SHAPE_ARRAY) {
		*ret_begin = span->header;
		return;
	}
	size = value_size(walk, shape);
	if (shape_kind(shape) == SHAPE_VALUE)
		*ret_end = extent->offset + (size < room ? size : room);
	else if (size && extent->capacity < room / size)
		*ret_end = extent->offset + extent->capacity * size;
}

/*
 * Can nothing tell more of an object? What begins with it and takes more than half of its slot is
 * what it was allocated as, as far as one can tell. (A block that is only bytes to a pointer to its
 * start may be more to another one.)
 */
static bool is_settled(const struct reference_walk *walk, const struct walk_span *span,
		       shape_id shape, const struct extent *extent)
{
	uint64_t begin, end;

	if (!shape_is_typed(shape))
		return false;
	walk_coverage(walk, span, shape, extent, &begin, &end);
	return begin <= span->header && (end - begin) * 2 > span->elem_size - span->header;
}

static bool is_default(const struct walk_span *span, shape_id shape, const struct extent *extent)
{
	return shape_kind(shape) != SHAPE_ARRAY && extent->offset == span->header;
}

static struct extent extent_of(const struct walk_span *span, const struct candidate *c)
{
	return (struct extent){
		.offset = shape_is_typed(c->shape) ? c->offset : span->header,
		.length = c->length,
		.capacity = c->capacity,
	};
}

static bool is_reference(const struct candidate *c)
{
	return c->kind == CANDIDATE_REFERENCE || c->kind == CANDIDATE_STRING;
}

/* Of a string's or slice's block the part in use, of other blocks all. */
static uint64_t used_bytes(const struct reference_walk *walk, const struct candidate *c)
{
	if (c->kind == CANDIDATE_STRING)
		return c->length;
	if (shape_kind(c->shape) == SHAPE_ARRAY)
		return c->length * value_size(walk, c->shape);
	return UINT64_MAX;
}

/* ---- judging ---- */

static void judge_met(const struct reference_walk *walk, struct piece *piece, struct candidate *c)
{
	const struct walk_span *span = walk_class_of(walk, c->object);
	struct extent extent = extent_of(span, c);
	bool settled = is_settled(walk, span, c->shape, &extent);
	uint64_t used;

	state_store(&walk->states[c->object], c->shape | (settled ? STATE_SETTLED : 0));
	c->outcome = OUTCOME_MET;
	c->size_class = span->size_class;
	piece->met++;
	piece->bytes += span->elem_size;
	if (walk->wastes) {
		used = used_bytes(walk, c);
		if (!span->size_class ||
		    (used < span->elem_size && span->elem_size - used >= WASTE_ELSEWHERE)) {
			c->outcome |= OUTCOME_USED;
			piece->used++;
		}
	}
	if (span->noscan)
		return;
	if (!settled) {
		c->outcome |= OUTCOME_SPECIAL;
		piece->specials++;
	}
	if (!shape_is_typed(c->shape) && !span->tells)
		return;
	c->outcome |= OUTCOME_GOES_ON;
	piece->items++;
	if (!is_default(span, c->shape, &extent)) {
		c->outcome |= OUTCOME_EXTENT;
		piece->extents++;
	}
}

/*
 * Others may be judging the object's first reference at the same time, so this may take more for
 * special than is; never less.
 */
static void judge_one(const struct reference_walk *walk, struct piece *piece, struct candidate *c,
		      walk_state claim)
{
	c->outcome = 0;
	if (is_reference(c)) {
		walk_state state = state_load(&walk->states[c->object]);

		if (state == claim) {
			judge_met(walk, piece, c);
			return;
		}
		if (!shape_is_typed(c->shape) || state_is_settled(state))
			return;
	}
	c->outcome = OUTCOME_SPECIAL;
	piece->specials++;
}

static void prefetch(const struct reference_walk *walk, uint32_t object)
{
	__builtin_prefetch(&walk->states[object], 1);
	__builtin_prefetch(&walk->lookup->hints[object / OBJECTS_PER_HINT]);
}

static void judge(const struct reference_walk *walk, struct piece *piece, uint32_t number)
{
	struct candidate *candidates = reference_list_at(piece->list, piece->first);

	piece->met = piece->items = piece->extents = piece->used = piece->specials = 0;
	piece->bytes = 0;
	for (size_t i = 0; i < piece->count; i++) {
		uint32_t claim = number * PIECE_CANDIDATES_MAX + (uint32_t)i;

		if (i + PREFETCH < piece->count)
			prefetch(walk, candidates[i + PREFETCH].object);
		judge_one(walk, piece, &candidates[i], state_of_claim(claim));
	}
}

/* ---- places ---- */

static struct error *reserve(struct reference_list *list, uint64_t more, uint64_t *ret_first)
{
	struct error *err = reference_list_reserve(list, list->count + more);

	*ret_first = list->count;
	if (!err)
		list->count += more;
	return err;
}

static struct error *assign(struct reference_walk *walk, struct piece *piece)
{
	struct error *err;

	if (piece->met > walk->live_count - walk->count)
		return error_new(ERROR_CORRUPT_TARGET,
				 "references: more objects than the %u that are live",
				 walk->live_count);
	piece->first_place = walk->count;
	walk->count += piece->met;
	walk->met_bytes += piece->bytes;
	err = reserve(&walk->next, piece->items, &piece->first_item);
	if (!err)
		err = reserve(&walk->next_extents, piece->extents, &piece->first_extent);
	if (!err)
		err = reserve(&walk->used, piece->used, &piece->first_used);
	return err;
}

struct placing {
	struct reference_walk *walk;
	uint32_t place;
	struct walk_item *item;
	uint64_t extent;
	struct walk_used *used;
};

static uint64_t elem_size_of(const struct reference_walk *walk, const struct candidate *c)
{
	return c->size_class ? walk->class_sizes[c->size_class]
			     : walk_span_of(walk, c->object)->elem_size;
}

static void place_in_order(struct placing *p, const struct candidate *c)
{
	struct reference_walk *walk = p->walk;
	uint64_t used = used_bytes(walk, c), size = elem_size_of(walk, c);

	if (used > size)
		used = size;
	if (walk->order)
		walk->order[p->place] = c->object;
	walk->parents[p->place] = c->parent;
	walk->places_steps[p->place] = c->step;
	walk->size_classes[p->place] = c->size_class;
	if (c->outcome & OUTCOME_USED) {
		walk->wastes[p->place] = WASTE_ELSEWHERE;
		*p->used++ = (struct walk_used){ p->place, size, used };
	} else {
		walk->wastes[p->place] = (uint8_t)(size - used);
	}
}

static void place_item(struct placing *p, const struct candidate *c)
{
	struct walk_item item = { .object = c->object, .place = p->place, .shape = c->shape };

	if (c->outcome & OUTCOME_EXTENT) {
		*(struct extent *)reference_list_at(&p->walk->next_extents, p->extent) =
		    extent_of(walk_class_of(p->walk, c->object), c);
		item.extent = (uint32_t)++p->extent;
	}
	*p->item++ = item;
}

static void place_one(struct placing *p, struct candidate *c)
{
	if (p->walk->parents)
		place_in_order(p, c);
	if (c->outcome & OUTCOME_GOES_ON)
		place_item(p, c);
	c->parent = p->place++; /* for what is special about it */
}

static void place(struct reference_walk *walk, const struct piece *piece)
{
	struct candidate *candidates = reference_list_at(piece->list, piece->first);
	struct placing p = {
		.walk = walk,
		.place = piece->first_place,
		.extent = piece->first_extent,
	};

	if (piece->items)
		p.item = reference_list_at(&walk->next, piece->first_item);
	if (piece->used)
		p.used = reference_list_at(&walk->used, piece->first_used);
	for (size_t i = 0; i < piece->count; i++)
		if (candidates[i].outcome & OUTCOME_MET)
			place_one(&p, &candidates[i]);
}

/* ---- the rest, in order ---- */

static struct error *add_item(struct reference_walk *walk, const struct walk_span *span,
			      uint32_t object, uint32_t place, shape_id shape,
			      const struct extent *extent)
{
	struct walk_item *item;
	struct extent *kept;
	uint32_t number = 0;
	struct error *err;

	if (!is_default(span, shape, extent)) {
		err = reference_list_add(&walk->next_extents, (void **)&kept);
		if (err)
			return err;
		*kept = *extent;
		number = (uint32_t)walk->next_extents.count;
	}
	err = reference_list_add(&walk->next, (void **)&item);
	if (err)
		return err;
	*item = (struct walk_item){ object, place, shape, number };
	return NULL;
}

static struct error *list_rest(struct reference_walk *walk, uint32_t object, uint32_t place)
{
	struct walk_item *item;
	struct error *err = reference_list_add(&walk->next_rest, (void **)&item);

	if (err)
		return err;
	*item = (struct walk_item){ .object = object, .place = place };
	return NULL;
}

static struct error *note_unsettled(struct reference_walk *walk, const struct walk_span *span,
				    uint32_t object, uint32_t place, shape_id shape,
				    const struct extent *extent, struct unsettled **ret)
{
	uint64_t begin = 0, end = 0;
	struct error *err = unsettled_add(&walk->unsettled, object, ret);

	if (err)
		return err;
	if (shape_is_typed(shape))
		walk_coverage(walk, span, shape, extent, &begin, &end);
	(*ret)->place = place;
	(*ret)->begin = (uint32_t)(begin / 8);
	(*ret)->end = (uint32_t)(end / 8);
	return NULL;
}

/* What was met now, and is not all known. */
static struct error *note_met(struct reference_walk *walk, const struct walk_span *span,
			      const struct candidate *c)
{
	struct extent extent = extent_of(span, c);
	struct unsettled *unsettled;
	struct error *err =
	    note_unsettled(walk, span, c->object, c->parent, c->shape, &extent, &unsettled);

	if (err || c->outcome & OUTCOME_GOES_ON)
		return err;
	unsettled->is_listed = true;
	return list_rest(walk, c->object, c->parent);
}

static void set_shape(struct reference_walk *walk, const struct walk_span *span,
		      const struct candidate *c, const struct extent *extent)
{
	bool settled = is_settled(walk, span, c->shape, extent);

	state_store(&walk->states[c->object], c->shape | (settled ? STATE_SETTLED : 0));
}

/* Of blocks without pointers the largest value is what they are. */
static void improve_plain(struct reference_walk *walk, const struct walk_span *span,
			  const struct candidate *c, const struct extent *extent)
{
	shape_id old = state_shape(state_load(&walk->states[c->object]));

	if (shape_is_typed(old) &&
	    (shape_kind(old) == SHAPE_ARRAY || value_size(walk, old) >= value_size(walk, c->shape)))
		return;
	set_shape(walk, span, c, extent);
}

static struct error *improve(struct reference_walk *walk, const struct walk_span *span,
			     const struct candidate *c, const struct extent *extent)
{
	struct unsettled *unsettled = unsettled_find(&walk->unsettled, c->object);
	uint64_t begin, end;

	if (!unsettled)
		return NULL;
	walk_coverage(walk, span, c->shape, extent, &begin, &end);
	if (unsettled->end > unsettled->begin &&
	    (begin / 8 > unsettled->begin || end / 8 < unsettled->end ||
	     end / 8 - begin / 8 == unsettled->end - unsettled->begin))
		return NULL;
	unsettled->begin = (uint32_t)(begin / 8);
	unsettled->end = (uint32_t)(end / 8);
	set_shape(walk, span, c, extent);
	return add_item(walk, span, c->object, unsettled->place, c->shape, extent);
}

/* A later reference to an object. */
static struct error *take_more(struct reference_walk *walk, const struct walk_span *span,
			       const struct candidate *c)
{
	struct extent extent = extent_of(span, c);

	if (state_is_settled(state_load(&walk->states[c->object])))
		return NULL;
	if (!span->noscan)
		return improve(walk, span, c, &extent);
	improve_plain(walk, span, c, &extent);
	return NULL;
}

/* What is told of an object by itself. */
static struct error *take_shape(struct reference_walk *walk, const struct walk_span *span,
				const struct candidate *c)
{
	struct extent extent = { c->offset, c->length, c->capacity };
	struct unsettled *unsettled;

	if (!state_is_met(state_load(&walk->states[c->object])))
		return NULL; /* what a finalizer will revive is not met itself */
	set_shape(walk, span, c, &extent);
	if (is_settled(walk, span, c->shape, &extent))
		return NULL;
	return note_unsettled(walk, span, c->object, c->parent, c->shape, &extent, &unsettled);
}

/* Nothing explains some of its words now, but what reaches it may still do so. */
static struct error *take_rest(struct reference_walk *walk, const struct walk_span *span,
			       const struct candidate *c)
{
	struct unsettled *unsettled = unsettled_find(&walk->unsettled, c->object);
	struct error *err = NULL;

	if (!unsettled) {
		struct extent extent = { .offset = span->header };
		walk_state state = state_load(&walk->states[c->object]);

		err = note_unsettled(walk, span, c->object, c->parent, state_shape(state), &extent,
				     &unsettled);
		state_store(&walk->states[c->object], state_shape(state));
	}
	if (err || unsettled->is_listed)
		return err;
	unsettled->is_listed = true;
	return list_rest(walk, c->object, c->parent);
}

static struct error *take_special(struct reference_walk *walk, const struct candidate *c)
{
	const struct walk_span *span = walk_span_of(walk, c->object);

	if (c->outcome & OUTCOME_MET)
		return note_met(walk, span, c);
	if (is_reference(c))
		return take_more(walk, span, c);
	return c->kind == CANDIDATE_SHAPE ? take_shape(walk, span, c) : take_rest(walk, span, c);
}

static struct error *take_specials(struct reference_walk *walk, const struct piece *piece)
{
	const struct candidate *candidates = reference_list_at(piece->list, piece->first);
	struct error *err = NULL;

	for (size_t i = 0; i < piece->count && piece->specials && !err; i++)
		if (candidates[i].outcome & OUTCOME_SPECIAL)
			err = take_special(walk, &candidates[i]);
	return err;
}

/* ---- all of it ---- */

struct settling {
	struct reference_walk *walk;
	struct piece *pieces;
	uint32_t count;
	bool places; /* else it judges */
};

static void settle_piece(const struct settling *s, uint32_t i)
{
	if (atomic_exchange_explicit(&s->pieces[i].taken, true, memory_order_relaxed))
		return;
	if (s->places)
		place(s->walk, &s->pieces[i]);
	else
		judge(s->walk, &s->pieces[i], i);
}

/* First what it has found itself, then what is left. */
static struct error *settle_pieces(void *arg, unsigned thread)
{
	const struct settling *s = arg;

	for (uint32_t i = 0; i < s->count; i++)
		if (s->pieces[i].thread == thread)
			settle_piece(s, i);
	for (uint32_t i = 0; i < s->count; i++)
		settle_piece(s, i);
	return NULL;
}

static struct error *run(struct settling *s, unsigned threads, bool places)
{
	s->places = places;
	for (uint32_t i = 0; i < s->count; i++)
		atomic_store_explicit(&s->pieces[i].taken, false, memory_order_relaxed);
	return threads > 1 ? workers_run(threads, settle_pieces, s) : settle_pieces(s, 0);
}

struct error *walk_settle(struct reference_walk *walk, struct piece *pieces, uint32_t count)
{
	struct settling s = { .walk = walk, .pieces = pieces, .count = count };
	unsigned threads;
	size_t candidates = 0;
	struct error *err;

	assert(count <= PIECES_MAX);
	for (uint32_t i = 0; i < count; i++)
		candidates += pieces[i].count;
	threads = count > 1 && candidates > ALONE_MAX ? walk->thread_count : 1;
	err = run(&s, threads, false);
	for (uint32_t i = 0; i < count && !err; i++)
		err = assign(walk, &pieces[i]);
	if (!err)
		err = run(&s, threads, true);
	for (uint32_t i = 0; i < count && !err; i++)
		err = take_specials(walk, &pieces[i]);
	return err;
}

struct error *walk_settle_list(struct reference_walk *walk, struct reference_list *list)
{
	struct piece piece = { .list = list, .count = list->count };
	struct error *err = walk_settle(walk, &piece, 1);

	list->count = 0;
	return err;
}
