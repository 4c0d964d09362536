/*
 * Most objects need not be read to see what they lead to: the graph says which objects, and what
 * was noted of its edges says by which words, and how long strings and slices are.
 */
#include "agent/analysis/reference_expander.h"

/* ---- which slots the words of an item are ---- */

static struct error *prepare_array(struct expander *x, type_id elem, uint64_t length,
				   uint64_t count, struct noted_shape *noted)
{
	uint64_t size = go_type_at(x->walk->input.types, elem)->size;
	struct error *err;

	if (!size || size % 8)
		return NULL;
	noted->is_array = true;
	noted->elem = elem;
	noted->length = length;
	noted->count = count;
	err = expander_element_plan(x, elem, STEP_NONE, element_class(0, length), &noted->plan);
	if (!err && noted->plan->words != size / 8)
		noted->plan = NULL;
	return err;
}

struct error *expander_prepare_noted(struct expander *x, const struct walk_item *item,
				     struct item_state *state)
{
	const struct go_type *type = go_type_at(x->walk->input.types, shape_type(item->shape));
	struct noted_shape *noted = &state->noted;
	enum shape_kind kind = shape_kind(item->shape);
	struct extent extent;
	struct error *err;

	noted->plan = NULL;
	if (!state->notes || state->span->tells || !shape_is_typed(item->shape) ||
	    expander_must_resolve(state->span, item->shape))
		return NULL;
	extent = expander_extent_of(x, item, state->span);
	noted->repeats = shape_repeats(kind);
	/* Blocks of a container begin where the object does, wherever the pointer leads. */
	noted->first = noted->repeats && kind != SHAPE_ARRAY ? 0 : extent.offset / 8;
	noted->end = state->span->elem_size / 8;
	noted->is_array = false;
	if (kind == SHAPE_ARRAY)
		err = prepare_array(x, shape_type(item->shape), extent.length, extent.capacity,
				    noted);
	else if (kind == SHAPE_VALUE && type->kind == GO_KIND_ARRAY)
		err = prepare_array(x, type->elem, type->length, type->length, noted);
	else
		err = expander_plan(x, item->shape, STEP_NONE, &noted->plan);
	if (!err && noted->plan && (!noted->plan->words || !noted->plan->by_word))
		noted->plan = NULL;
	return err;
}

/* The slot that a word is, or NULL. */
static struct error *find_slot(struct expander *x, const struct noted_shape *noted, uint64_t word,
			       const struct plan_slot **ret)
{
	const struct plan *plan = noted->plan;
	uint64_t index = 0;
	struct error *err = NULL;

	*ret = NULL;
	if (word < noted->first)
		return NULL;
	word -= noted->first;
	if (noted->repeats || noted->is_array) {
		index = word / plan->words;
		word %= plan->words;
	}
	if (noted->first + (index + 1) * plan->words > noted->end)
		return NULL; /* it ends before the period does */
	if (noted->is_array) {
		if (index >= noted->count)
			return NULL;
		err = expander_element_plan(x, noted->elem, STEP_NONE,
					    element_class(index, noted->length), &plan);
	}
	if (!err && word < plan->words && plan->by_word && plan->by_word[word])
		*ret = &plan->slots[plan->by_word[word] - 1];
	return err;
}

/* Does the note tell all that the slot asks for? */
static bool tells_enough(const struct edge_note *note, const struct plan_slot *slot)
{
	if (note->word & NOTE_INTERIOR || plan_slot_reads(slot))
		return false;
	switch (slot->kind) {
	case SLOT_SLICE:
		return note->length != NOTE_UNKNOWN && note->capacity != NOTE_UNKNOWN;
	case SLOT_STRING:
	case SLOT_MAP:
		return note->length != NOTE_UNKNOWN;
	default:
		return true;
	}
}

/* The slots of all edges, NULL for one that nothing explains; false: the item must be read. */
static struct error *find_slots(struct expander *x, struct item_state *state,
				const struct plan_slot **slots, bool *ret_enough)
{
	struct error *err = NULL;

	*ret_enough = true;
	for (uint32_t i = 0; i < state->edge_count && !err && *ret_enough; i++) {
		const struct edge_note *note = &state->notes[i];

		err = find_slot(x, &state->noted, note->word & NOTE_WORD, &slots[i]);
		if (!err && slots[i])
			*ret_enough = tells_enough(note, slots[i]);
	}
	return err;
}

/* ---- what they lead to ---- */

static void fill_noted(struct candidate *c, const struct plan_slot *slot,
		       const struct edge_note *note)
{
	c->step = slot->step;
	c->shape = slot->shape;
	c->kind = slot->kind == SLOT_STRING ? CANDIDATE_STRING : CANDIDATE_REFERENCE;
	c->offset = 0;
	c->length = c->capacity = 0;
	if (slot->kind == SLOT_SLICE && slot->elem_size) {
		c->capacity = note->capacity;
		c->length = note->length < note->capacity ? note->length : note->capacity;
	} else if (slot->kind == SLOT_STRING) {
		c->length = note->length;
	} else if (slot->kind == SLOT_MAP && note->length) {
		c->shape = shape_of(SHAPE_SWISS_DIRECTORY, shape_type(slot->shape));
	}
}

static struct error *take_noted(struct expander *x, const struct item_state *state,
				const struct plan_slot *slot, uint32_t object,
				const struct edge_note *note)
{
	struct candidate *c;
	struct error *err = expander_room(x, &c);

	if (err)
		return err;
	c->object = object;
	c->parent = state->place;
	fill_noted(c, slot, note);
	if (slot->kind == SLOT_TIMER) {
		c->parent = walk_root_parent(x->walk->timer_root);
		c->step = STEP_NONE;
	}
	return expander_claim(x, c);
}

struct error *expander_expand_noted(struct expander *x, struct item_state *state, bool *ret_done)
{
	const struct plan_slot *slots[NOTED_SLOT_MAX / 8];
	struct error *err;

	*ret_done = false;
	if (!state->noted.plan || state->edge_count > NOTED_SLOT_MAX / 8)
		return NULL;
	err = find_slots(x, state, slots, ret_done);
	if (err || !*ret_done)
		return err;
	/* What was found in items before this one comes before what this one leads to. */
	if (x->pending_count)
		err = expander_flush(x);
	for (uint32_t i = 0; i < state->edge_count && !err; i++) {
		uint32_t object = state->edges[i];

		if (object == OBJECT_NONE)
			continue;
		if (!slots[i])
			state->has_rest = true;
		else if (!state_is_settled(state_load(&x->walk->states[object])))
			err = take_noted(x, state, slots[i], object, &state->notes[i]);
	}
	state->edge = state->edge_count;
	return err;
}
