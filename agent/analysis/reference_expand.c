/*
 * From objects to what they lead to. A thread takes some items, which come in the order of their
 * addresses, reads neighbours in one go, and looks at the words that the plans of their shapes
 * name. Looking up a word is two loads from large tables, so that words go through in batches, each
 * step prefetching for the next.
 *
 * What counts is the graph: a word leads somewhere if the collector has followed it, which is so if
 * its object is the next one among the edges (they are in the order of the words). An edge that no
 * word of the shape accounts for is left to be followed later, without a type.
 */
#include <stdlib.h>

#include "agent/analysis/reference_expander.h"

enum {
	SEARCH_EDGES = 16, /* what a search for one edge may cost, for each edge of the object */
	SEARCH_MIN = 1024,
};

struct error *expander_new(struct reference_walk *walk, struct expander **ret)
{
	struct expander *x = calloc(1, sizeof(*x));

	if (!x)
		return &error_nomem;
	x->walk = walk;
	x->window = malloc(WINDOW_BYTES);
	if (!x->window) {
		free(x);
		return &error_nomem;
	}
	*ret = x;
	return NULL;
}

void expander_free(struct expander *x)
{
	if (!x)
		return;
	free(x->window);
	free(x);
}

/* ---- words in hand ---- */

/*
 * Is the object the next one that the collector was led to? Edges that are passed over on the way
 * are left for later; looking for them must not cost more than there are.
 */
static bool take_edge(struct item_state *state, uint32_t object)
{
	uint32_t i = state->edge;

	if (i < state->edge_count && state->edges[i] == object) {
		state->edge++;
		return true;
	}
	for (; i < state->edge_count && state->search_left; i++, state->search_left--) {
		if (state->edges[i] != object)
			continue;
		state->has_rest = true;
		state->edge = i + 1;
		return true;
	}
	return false;
}

static struct candidate reference_to(const struct item_state *state, const struct target *target,
				     const struct plan_slot *slot)
{
	return (struct candidate){
		.kind = CANDIDATE_REFERENCE,
		.object = target->object,
		.parent = state->place,
		.step = slot->step,
		.shape = slot->shape,
		.offset = target->offset,
	};
}

/* How many elements there is room for. */
static uint64_t room_for(const struct target *target, uint64_t elem_size)
{
	return (target->span->elem_size - target->offset) / elem_size;
}

static void take_slice(const struct pending *word, const struct target *target,
		       struct candidate *candidate)
{
	uint64_t size = word->slot->elem_size, room;

	if (!size)
		return;
	room = room_for(target, size);
	candidate->capacity = word->next[1] < room ? word->next[1] : room;
	candidate->length =
	    word->next[0] < candidate->capacity ? word->next[0] : candidate->capacity;
}

static void take_string(const struct pending *word, const struct target *target,
			struct candidate *candidate)
{
	uint64_t room = target->span->elem_size - target->offset;

	candidate->kind = CANDIDATE_STRING;
	candidate->length = word->next[0] < room ? word->next[0] : room;
}

/* Of a swiss map: its only group, or a directory of tables. */
static void take_map(const struct pending *word, struct candidate *candidate)
{
	if (word->next[0])
		candidate->shape = shape_of(SHAPE_SWISS_DIRECTORY, shape_type(candidate->shape));
}

/* What an array of unknown length has, which is as many as there is room for. */
static void take_pointer(const struct expander *x, const struct target *target,
			 struct candidate *candidate)
{
	uint64_t size;

	if (shape_kind(candidate->shape) != SHAPE_ARRAY)
		return;
	size = go_type_at(x->walk->input.types, shape_type(candidate->shape))->size;
	if (size)
		candidate->length = candidate->capacity = room_for(target, size);
}

/* Nothing larger than the room that is left is what an interface holds. */
static bool fits(const struct expander *x, const struct target *target, shape_id shape)
{
	return shape_kind(shape) != SHAPE_VALUE ||
	       go_type_at(x->walk->input.types, shape_type(shape))->size <=
		   target->span->elem_size - target->offset;
}

static struct error *take_word(struct expander *x, const struct pending *word,
			       struct item_state *state, const struct target *target)
{
	struct candidate candidate = reference_to(state, target, word->slot);
	struct error *err = NULL;
	bool is_known = true;

	switch (word->slot->kind) {
	case SLOT_SLICE:
		take_slice(word, target, &candidate);
		break;
	case SLOT_STRING:
		take_string(word, target, &candidate);
		break;
	case SLOT_MAP:
		take_map(word, &candidate);
		break;
	case SLOT_EFACE:
	case SLOT_IFACE:
		err = expander_take_interface(x, word, &candidate, &is_known);
		is_known = is_known && fits(x, target, candidate.shape);
		break;
	case SLOT_TIMER:
		candidate.parent = walk_root_parent(x->walk->timer_root);
		candidate.step = STEP_NONE;
		break;
	default:
		take_pointer(x, target, &candidate);
	}
	if (err)
		return err;
	if (is_known)
		return expander_add(x, &candidate);
	state->has_rest = true;
	return NULL;
}

static void find_target(const struct walk_span *span, taddr value, struct target *ret)
{
	uint64_t skip = value - span->base, index;

	*ret = (struct target){ .span = span };
	if (skip >= span->size)
		return;
	index = skip * span->reciprocal >> 32;
	ret->object = span->first_object + (uint32_t)index;
	ret->offset = skip - index * span->elem_size;
}

struct error *expander_flush(struct expander *x)
{
	const struct reference_walk *walk = x->walk;
	struct error *err = NULL;

	for (uint32_t i = 0; i < x->pending_count; i++) {
		x->span_places[i] = *x->pending[i].page;
		__builtin_prefetch(&walk->spans[x->span_places[i]]);
	}
	for (uint32_t i = 0; i < x->pending_count; i++) {
		find_target(&walk->spans[x->span_places[i]], x->pending[i].value, &x->targets[i]);
		__builtin_prefetch(&walk->states[x->targets[i].object], 1);
	}
	for (uint32_t i = 0; i < x->pending_count && !err; i++) {
		struct item_state *state = &x->states[x->pending[i].state];
		const struct target *target = &x->targets[i];

		if (target->object == OBJECT_NONE || !take_edge(state, target->object) ||
		    state_is_settled(state_load(&walk->states[target->object])))
			continue;
		err = take_word(x, &x->pending[i], state, target);
	}
	x->pending_count = 0;
	return err;
}

/* ---- words by plan ---- */

struct error *expander_add_word(struct expander *x, uint32_t state, const uint64_t *word,
				const struct plan_slot *slot)
{
	const uint32_t *page = span_lookup_page(x->walk->lookup, *word);
	struct pending *pending;

	if (!page)
		return NULL;
	__builtin_prefetch(page);
	pending = &x->pending[x->pending_count++];
	pending->value = *word;
	pending->page = page;
	pending->slot = slot;
	pending->state = state;
	if (slot->kind == SLOT_SLICE || slot->kind == SLOT_STRING) {
		pending->next[0] = word[1];
		pending->next[1] = slot->kind == SLOT_SLICE ? word[2] : 0;
	} else if (slot->kind == SLOT_EFACE || slot->kind == SLOT_IFACE) {
		pending->next[0] = word[-1];
	} else if (slot->kind == SLOT_MAP) {
		pending->next[0] = word[1];
	}
	return x->pending_count == PENDING_MAX ? expander_flush(x) : NULL;
}

struct error *expander_look(struct expander *x, const uint64_t *word, const struct plan_slot *slot)
{
	struct error *err = expander_add_word(x, 0, word, slot);

	return err ? err : expander_flush(x);
}

static struct error *expand_elements(struct expander *x, uint32_t state, uint64_t offset,
				     const struct elements *elements, unsigned depth);

static struct error *expand_slots(struct expander *x, uint32_t state, uint64_t offset,
				  const struct plan *plan, unsigned depth)
{
	struct error *err = NULL;

	for (uint32_t i = 0; i < plan->slot_count && !err; i++) {
		const struct plan_slot *slot = &plan->slots[i];
		const uint64_t *words;

		if (slot->kind == SLOT_ARRAY) {
			const struct elements elements = {
				.elem = shape_type(slot->shape),
				.size = slot->elem_size,
				.prefix = slot->step,
				.length = slot->count,
				.count = slot->count,
			};

			err = expand_elements(x, state, offset + slot->word * UINT64_C(8),
					      &elements, depth + 1);
			continue;
		}
		err = expander_words(x, &x->states[state], offset / 8, plan->words, &words);
		if (!err && words)
			err = expander_add_word(x, state, &words[slot->word], slot);
	}
	return err;
}

/* Does the object end before the period does? */
static bool is_beyond(const struct expander *x, uint32_t state, uint64_t offset, uint64_t words)
{
	uint64_t size = x->states[state].span->elem_size;

	return !words || offset > size || words > (size - offset) / 8;
}

static struct error *expand_elements(struct expander *x, uint32_t state, uint64_t offset,
				     const struct elements *elements, unsigned depth)
{
	struct error *err = NULL;

	if (depth > PLAN_DEPTH_MAX || elements->size % 8 || !elements->size)
		return NULL;
	for (uint64_t i = 0; i < elements->count && !err; i++, offset += elements->size) {
		const struct plan *plan;

		err = expander_element_plan(x, elements->elem, elements->prefix,
					    element_class(i, elements->length), &plan);
		if (err || is_beyond(x, state, offset, plan->words))
			break;
		err = expand_slots(x, state, offset, plan, depth);
	}
	return err;
}

static struct error *expand_blocks(struct expander *x, uint32_t state, uint64_t offset,
				   shape_id shape)
{
	const struct plan *plan;
	struct error *err = expander_plan(x, shape, STEP_NONE, &plan);

	if (err || !plan->words)
		return err;
	while (!err && !is_beyond(x, state, offset, plan->words)) {
		err = expand_slots(x, state, offset, plan, 0);
		offset += plan->words * 8;
		if (!shape_repeats(shape_kind(shape)))
			break;
	}
	return err;
}

static struct error *expand_shape(struct expander *x, uint32_t state, shape_id shape,
				  const struct extent *extent)
{
	const struct go_type *type = go_type_at(x->walk->input.types, shape_type(shape));
	struct elements elements = { .prefix = STEP_NONE };

	if (shape_kind(shape) == SHAPE_ARRAY) {
		elements.elem = shape_type(shape);
		elements.size = type->size;
		elements.length = extent->length;
		elements.count = extent->capacity;
	} else if (shape_kind(shape) == SHAPE_VALUE && type->kind == GO_KIND_ARRAY) {
		elements.elem = type->elem;
		elements.size = go_type_at(x->walk->input.types, type->elem)->size;
		elements.length = elements.count = type->length;
	} else {
		return expand_blocks(x, state, extent->offset, shape);
	}
	return type->ptr_bytes ? expand_elements(x, state, extent->offset, &elements, 0) : NULL;
}

/* ---- items ---- */

void expander_begin(const struct expander *x, const struct walk_item *item,
		    struct item_state *state)
{
	const struct walk_span *span = walk_span_of(x->walk, item->object);
	const struct graph_row *row = &x->walk->graph->rows[span - x->walk->spans - 1];
	uint32_t slot = item->object - span->first_object;

	state->object = item->object;
	state->place = item->place;
	state->span = span;
	state->row = row->edges ? row : NULL;
	state->slot = slot;
	state->edge = state->edge_count = 0;
	state->edges = NULL;
	state->notes = NULL;
	state->noted.plan = NULL;
	state->search_left = 0;
	state->addr = walk_slot_of(span, item->object);
	state->has_rest = false;
	if (state->row)
		__builtin_prefetch(&row->ends[slot]);
}

void expander_find_edges(struct item_state *state)
{
	const struct graph_row *row = state->row;

	if (!row)
		return;
	state->edges = row->edges + row->ends[state->slot];
	state->notes = row->notes ? row->notes + row->ends[state->slot] : NULL;
	state->edge_count = row->ends[state->slot + 1] - row->ends[state->slot];
	state->search_left = SEARCH_MIN + SEARCH_EDGES * (uint64_t)state->edge_count;
	__builtin_prefetch(state->edges);
	if (state->notes)
		__builtin_prefetch(state->notes);
}

struct extent expander_extent_of(const struct expander *x, const struct walk_item *item,
				 const struct walk_span *span)
{
	const struct reference_list *extents = &x->walk->extents;

	if (item->extent)
		return *(const struct extent *)reference_list_at(extents, item->extent - 1);
	return (struct extent){ .offset = span->header };
}

/* Blocks of a container begin where the object does, wherever the pointer leads. */
static void align_blocks(const struct walk_span *span, shape_id shape, struct extent *extent)
{
	if (shape_repeats(shape_kind(shape)) && shape_kind(shape) != SHAPE_ARRAY)
		extent->offset = span->header;
}

static struct error *expand_item(struct expander *x, const struct walk_item *item, uint32_t i)
{
	struct item_state *state = &x->states[i];
	struct extent extent = expander_extent_of(x, item, state->span);
	shape_id shape = item->shape;
	bool is_done;
	struct error *err = expander_expand_noted(x, state, &is_done);

	if (err || is_done)
		return err;
	err = expander_resolve(x, state, &shape, &extent);
	if (err || !state->edge_count)
		return err;
	if (!shape_is_typed(shape)) {
		state->has_rest = true;
		return NULL;
	}
	align_blocks(state->span, shape, &extent);
	return expand_shape(x, i, shape, &extent);
}

/* Does it lead anywhere, or say itself what it is? */
static bool has_more(const struct item_state *state, const struct walk_item *item)
{
	return state->edge_count || expander_must_resolve(state->span, item->shape);
}

/* Does anything have to be read of it, as far as one can tell without looking at its edges? */
static bool needs_reading(const struct item_state *state, const struct walk_item *item)
{
	return has_more(state, item) && (!state->noted.plan || state->noted.plan->reads);
}

static struct error *add_rest(struct expander *x, const struct item_state *state)
{
	if (!state->has_rest && state->edge == state->edge_count)
		return NULL;
	return expander_add(x, &(struct candidate){ .kind = CANDIDATE_REST,
						    .object = state->object,
						    .parent = state->place });
}

/* Which items lie so near each other that they are read in one go. */
static void plan_window(struct expander *x, const struct walk_item *items, uint32_t i,
			uint32_t count)
{
	taddr end = x->states[i].addr + x->states[i].span->elem_size;

	x->ahead_end = end;
	for (uint32_t k = i + 1; k < count; k++) {
		const struct item_state *state = &x->states[k];

		if (state->addr < end || state->addr - end > WINDOW_GAP ||
		    state->addr + state->span->elem_size - x->states[i].addr > WINDOW_BYTES / 2)
			break;
		end = state->addr + state->span->elem_size;
		if (needs_reading(state, &items[k]))
			x->ahead_end = end;
	}
}

/* What the edges lead to is looked at soon. */
static void prefetch_targets(const struct reference_walk *walk, const struct item_state *state)
{
	for (uint32_t i = 0; i < state->edge_count; i++)
		if (state->edges[i] != OBJECT_NONE)
			__builtin_prefetch(&walk->states[state->edges[i]], 1);
}

static struct error *prepare_items(struct expander *x, const struct walk_item *items,
				   uint32_t count)
{
	struct error *err = NULL;

	for (uint32_t i = 0; i < count; i++)
		expander_begin(x, &items[i], &x->states[i]);
	for (uint32_t i = 0; i < count; i++)
		expander_find_edges(&x->states[i]);
	for (uint32_t i = 0; i < count && !err; i++) {
		err = expander_prepare_noted(x, &items[i], &x->states[i]);
		if (x->states[i].noted.plan)
			prefetch_targets(x->walk, &x->states[i]);
	}
	return err;
}

struct error *expand_items(struct expander *x, const struct walk_item *items, uint32_t count,
			   const struct expansion *to)
{
	struct error *err;

	x->to = *to;
	err = prepare_items(x, items, count);
	for (uint32_t i = 0; i < count && !err; i++) {
		const struct item_state *state = &x->states[i];

		if (!has_more(state, &items[i]))
			continue;
		if (needs_reading(state, &items[i]) &&
		    (state->addr + state->span->elem_size > x->ahead_end ||
		     state->addr < x->window_start))
			plan_window(x, items, i, count);
		err = expand_item(x, &items[i], i);
	}
	if (!err)
		err = expander_flush(x);
	for (uint32_t i = 0; i < count && !err; i++)
		err = add_rest(x, &x->states[i]);
	return err;
}
