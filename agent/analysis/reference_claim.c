/*
 * Claiming: what threads have found becomes part of the walk, in the order of what it was found
 * from, by one thread. The first reference to an object is its chain; later ones may still tell
 * more of what it is.
 */
#include <assert.h>

#include "agent/analysis/reference_private.h"

enum { PREFETCH = 16 };

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

static struct error *add_item(struct reference_walk *walk, uint32_t object, uint32_t place,
			      shape_id shape, const struct extent *extent, bool is_default)
{
	struct walk_item *item;
	struct extent *kept;
	struct error *err;

	if (!is_default) {
		err = reference_list_add(&walk->next_extents, (void **)&kept);
		if (err)
			return err;
		*kept = *extent;
	}
	err = reference_list_add(&walk->next, (void **)&item);
	if (err)
		return err;
	*item = (struct walk_item){ .object = object,
				    .place = place,
				    .shape = shape,
				    .extent = is_default ? 0 : (uint32_t)walk->next_extents.count };
	return NULL;
}

static bool is_default(const struct walk_span *span, shape_id shape, const struct extent *extent)
{
	return shape_kind(shape) != SHAPE_ARRAY && extent->offset == span->header;
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

/* ---- an object that is met ---- */

/* Of a string's or slice's block the part in use, of other blocks all. */
static uint64_t used_bytes(const struct reference_walk *walk, const struct candidate *c)
{
	if (c->kind == CANDIDATE_STRING)
		return c->length;
	if (shape_kind(c->shape) == SHAPE_ARRAY)
		return c->length * value_size(walk, c->shape);
	return UINT64_MAX;
}

static struct error *note_used(struct reference_walk *walk, uint32_t place, uint64_t size,
			       uint64_t used)
{
	struct walk_used *kept;
	struct error *err;

	if (used >= size || !walk->wastes)
		return NULL;
	if (size - used < WASTE_ELSEWHERE) {
		walk->wastes[place] = (uint8_t)(size - used);
		return NULL;
	}
	err = reference_list_add(&walk->used, (void **)&kept);
	if (err)
		return err;
	walk->wastes[place] = WASTE_ELSEWHERE;
	*kept = (struct walk_used){ .place = place, .bytes = used };
	return NULL;
}

static struct error *go_on_from(struct reference_walk *walk, const struct walk_span *span,
				const struct candidate *c, uint32_t place,
				const struct extent *extent)
{
	struct unsettled *unsettled;
	struct error *err = NULL;

	if (!bitmap_get(walk->settled, c->object))
		err = note_unsettled(walk, span, c->object, place, c->shape, extent, &unsettled);
	if (err)
		return err;
	if (shape_is_typed(c->shape) || span->tells)
		return add_item(walk, c->object, place, c->shape, extent,
				is_default(span, c->shape, extent));
	unsettled->is_listed = true;
	return list_rest(walk, c->object, place);
}

static struct error *meet(struct reference_walk *walk, const struct walk_span *span,
			  const struct candidate *c, const struct extent *extent)
{
	uint32_t place = walk->count;
	struct error *err;

	if (place == walk->live_count)
		return error_new(ERROR_CORRUPT_TARGET,
				 "references: more objects than the %u that are live", place);
	walk->count++;
	bitmap_set(walk->met, c->object);
	walk->shapes[c->object] = c->shape;
	if (walk->order) {
		walk->order[place] = c->object;
		walk->parents[place] = c->parent;
		walk->places_steps[place] = c->step;
		walk->size_classes[place] = span->size_class;
	}
	walk->totals.objects++;
	walk->totals.bytes += span->elem_size;
	if (is_settled(walk, span, c->shape, extent))
		bitmap_set(walk->settled, c->object);
	err = note_used(walk, place, span->elem_size, used_bytes(walk, c));
	return err || span->noscan ? err : go_on_from(walk, span, c, place, extent);
}

/* ---- one that was met before ---- */

/* Of blocks without pointers the largest value is what they are. */
static void improve_plain(struct reference_walk *walk, const struct walk_span *span,
			  const struct candidate *c, const struct extent *extent)
{
	shape_id old = walk->shapes[c->object];

	if (shape_is_typed(old) &&
	    (shape_kind(old) == SHAPE_ARRAY || value_size(walk, old) >= value_size(walk, c->shape)))
		return;
	walk->shapes[c->object] = c->shape;
	if (is_settled(walk, span, c->shape, extent))
		bitmap_set(walk->settled, c->object);
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
	walk->shapes[c->object] = c->shape;
	if (is_settled(walk, span, c->shape, extent))
		bitmap_set(walk->settled, c->object);
	return add_item(walk, c->object, unsettled->place, c->shape, extent,
			is_default(span, c->shape, extent));
}

static struct error *claim_reference(struct reference_walk *walk, const struct candidate *c)
{
	const struct walk_span *span = walk_span_of(walk, c->object);
	struct extent extent = { c->offset, c->length, c->capacity };

	if (!shape_is_typed(c->shape))
		extent.offset = span->header;
	if (!bitmap_get(walk->met, c->object))
		return meet(walk, span, c, &extent);
	if (!shape_is_typed(c->shape) || bitmap_get(walk->settled, c->object))
		return NULL;
	if (span->noscan) {
		improve_plain(walk, span, c, &extent);
		return NULL;
	}
	return improve(walk, span, c, &extent);
}

/* ---- what is told of an object by itself ---- */

static struct error *claim_shape(struct reference_walk *walk, const struct candidate *c)
{
	const struct walk_span *span = walk_span_of(walk, c->object);
	struct extent extent = { c->offset, c->length, c->capacity };
	struct unsettled *unsettled;

	if (!bitmap_get(walk->met, c->object))
		return NULL; /* what a finalizer will revive is not met itself */
	walk->shapes[c->object] = c->shape;
	if (is_settled(walk, span, c->shape, &extent)) {
		bitmap_set(walk->settled, c->object);
		return NULL;
	}
	bitmap_clear_range(walk->settled, c->object, 1);
	return note_unsettled(walk, span, c->object, c->parent, c->shape, &extent, &unsettled);
}

/* Nothing explains some of its words now, but what reaches it may still do so. */
static struct error *claim_rest(struct reference_walk *walk, const struct candidate *c)
{
	struct unsettled *unsettled = unsettled_find(&walk->unsettled, c->object);
	struct error *err = NULL;

	if (!unsettled) {
		const struct walk_span *span = walk_span_of(walk, c->object);
		struct extent extent = { .offset = span->header };

		err = note_unsettled(walk, span, c->object, c->parent, walk->shapes[c->object],
				     &extent, &unsettled);
		bitmap_clear_range(walk->settled, c->object, 1);
	}
	if (err || unsettled->is_listed)
		return err;
	unsettled->is_listed = true;
	return list_rest(walk, c->object, c->parent);
}

static void prefetch(const struct reference_walk *walk, uint32_t object)
{
	__builtin_prefetch(&walk->met[object / BITMAP_WORD_BITS], 1);
	__builtin_prefetch(&walk->shapes[object], 1);
	__builtin_prefetch(&walk->lookup->hints[object / OBJECTS_PER_HINT]);
}

struct error *walk_claim(struct reference_walk *walk, const struct candidate *candidates,
			 size_t count)
{
	struct error *err = NULL;

	for (size_t i = 0; i < count && !err; i++) {
		const struct candidate *c = &candidates[i];

		if (i + PREFETCH < count)
			prefetch(walk, candidates[i + PREFETCH].object);
		if (c->kind == CANDIDATE_REFERENCE || c->kind == CANDIDATE_STRING)
			err = claim_reference(walk, c);
		else if (c->kind == CANDIDATE_SHAPE)
			err = claim_shape(walk, c);
		else
			err = claim_rest(walk, c);
	}
	return err;
}
