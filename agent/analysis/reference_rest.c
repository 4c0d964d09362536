/*
 * Edges that nothing explains: of objects whose type nobody tells, and words that no plan of a type
 * accounts for. They are followed last, without a type, but for interfaces among them.
 */
#include "agent/analysis/reference_expander.h"

enum { GUESS_WORDS = 4096 }; /* looked at in one go */

/* What is below something without a type already is counted with it. */
static uint32_t rest_step(const struct reference_walk *walk, const struct walk_item *item)
{
	uint32_t step;

	if (!walk->parents || walk_is_root(item->place) ||
	    walk_is_root(walk->parents[item->place]) ||
	    shape_is_typed(state_shape(state_load(&walk->states[item->object]))))
		return STEP_UNTYPED;
	step = walk->places_steps[item->place];
	return step == STEP_UNTYPED || step == STEP_NONE ? STEP_NONE : STEP_UNTYPED;
}

static struct error *add_edges(struct expander *x, const struct item_state *state, uint32_t step)
{
	struct error *err = NULL;

	for (uint32_t i = 0; i < state->edge_count && !err; i++) {
		uint32_t object = state->edges[i];

		if (object == OBJECT_NONE || state_is_met(state_load(&x->walk->states[object])))
			continue;
		err = expander_add(x, &(struct candidate){ .kind = CANDIDATE_REFERENCE,
							   .object = object,
							   .parent = state->place,
							   .step = step,
							   .shape = SHAPE_UNTYPED });
	}
	return err;
}

/* Looks for interfaces among some words; the one before the first of them is there, too. */
static struct error *guess_words(struct expander *x, uint32_t state, uint32_t step,
				 const uint64_t *words, uint64_t count)
{
	struct error *err = NULL;

	for (uint64_t i = 0; i < count && !err; i++) {
		const struct plan_slot *slot;

		if (!span_lookup_page(x->walk->lookup, words[i]) ||
		    span_lookup_page(x->walk->lookup, words[i - 1]))
			continue;
		err = expander_guess_interface(x, words[i - 1], step, &slot);
		if (!err && slot)
			err = expander_add_word(x, state, &words[i], slot);
	}
	return err;
}

/* What an object of unknown type has in interfaces is known all the same. */
static struct error *guess_interfaces(struct expander *x, uint32_t i, uint32_t step)
{
	struct item_state *state = &x->states[i];
	uint64_t end = state->span->elem_size / 8;
	struct error *err = NULL;

	for (uint64_t first = 1; first < end && state->edge_count && !err; first += GUESS_WORDS) {
		uint64_t count = end - first < GUESS_WORDS ? end - first : GUESS_WORDS;
		const uint64_t *words;

		err = expander_words(x, state, first - 1, count + 1, &words);
		if (!err && words)
			err = guess_words(x, i, step, words + 1, count);
	}
	return err ? err : expander_flush(x);
}

struct error *expand_rest(struct expander *x, const struct walk_item *items, uint32_t count,
			  const struct expansion *to)
{
	struct error *err = NULL;

	x->to = *to;
	for (uint32_t i = 0; i < count; i++)
		expander_begin(x, &items[i], &x->states[i]);
	for (uint32_t i = 0; i < count && !err; i++) {
		uint32_t step = rest_step(x->walk, &items[i]);

		expander_find_edges(&x->states[i]);
		err = guess_interfaces(x, i, step);
		if (!err)
			err = add_edges(x, &x->states[i], step);
	}
	return err;
}
