#include "agent/analysis/reference_expander.h"

#include <string.h>

#include "agent/analysis/reference_sudog.h"
#include "agent/analysis/reference_trie.h"

/* ---- memory ---- */

static taddr round_down(taddr addr)
{
	return addr & ~(taddr)(WINDOW_PAGE - 1);
}

static bool is_in_window(const struct expander *x, taddr start, taddr end)
{
	return start >= x->window_start && end <= x->window_end;
}

/* Makes the window [start, end); it is empty if that cannot be read. */
static struct error *read_window(struct expander *x, taddr start, taddr end)
{
	struct error *err = memory_read_bulk(x->walk->memory, start, x->window, end - start);

	x->window_start = x->window_end = start;
	if (!err)
		x->window_end = end;
	if (!err || error_code(err) != ERROR_FAULT)
		return err;
	error_free(err);
	return NULL;
}

/*
 * Whole pages, since the next words wanted may be near, and on to the end of the neighbours that
 * are to be read as well. What lies between them need not be readable.
 */
static struct error *move_window(struct expander *x, const struct walk_span *span, taddr start,
				 taddr end)
{
	taddr from = round_down(start) > span->base ? round_down(start) : span->base;
	taddr to = round_down(end + WINDOW_PAGE - 1);
	struct error *err;

	if (x->ahead_end > to)
		to = x->ahead_end;
	if (to - from > WINDOW_BYTES)
		to = end - from > WINDOW_BYTES ? end : from + WINDOW_BYTES;
	if (to - from > WINDOW_BYTES)
		from = start;
	err = read_window(x, from, to);
	if (err || is_in_window(x, start, end))
		return err;
	return read_window(x, start, end);
}

struct error *expander_words(struct expander *x, struct item_state *state, uint64_t first,
			     uint64_t count, const uint64_t **ret_words)
{
	taddr start = state->addr + first * 8, end = start + count * 8;
	struct error *err = NULL;

	*ret_words = memory_held(x->walk->memory, start, count * 8);
	if (*ret_words)
		return NULL;
	if (count > WINDOW_BYTES / 8)
		return NULL;
	if (!is_in_window(x, start, end))
		err = move_window(x, state->span, start, end);
	if (!err && is_in_window(x, start, end))
		*ret_words =
		    (const uint64_t *)(const void *)(x->window + (start - x->window_start));
	return err;
}

struct error *expander_word(struct expander *x, taddr addr, uint64_t *ret, bool *ret_is_read)
{
	struct item_state there = { .addr = addr, .span = &x->walk->spans[0] };
	const uint64_t *word = NULL;
	struct error *err = NULL;

	/* It may be any number that the target has. */
	if (addr % 8 == 0 && addr >= WINDOW_PAGE && addr < UINT64_C(1) << 56)
		err = expander_words(x, &there, 0, 1, &word);
	*ret_is_read = word;
	*ret = word ? *word : 0;
	return err;
}

/* ---- what was asked before ---- */

static size_t cache_place(uint64_t key)
{
	return (key * UINT64_C(0x9e3779b97f4a7c15) >> 40) % CACHE_SIZE;
}

struct error *expander_plan(struct expander *x, shape_id shape, uint32_t prefix,
			    const struct plan **ret)
{
	uint64_t key = (uint64_t)shape << 32 | prefix;
	struct cached_plan *cached = &x->plans[cache_place(key)];
	struct error *err = NULL;

	if (!cached->plan || cached->key != key) {
		cached->plan = NULL;
		cached->key = key;
		err = plan_table_find(x->walk->plans, shape, prefix, prefix != STEP_NONE,
				      &cached->plan);
	}
	*ret = cached->plan;
	return err;
}

struct error *expander_element_plan(struct expander *x, type_id elem, uint32_t prefix,
				    unsigned class, const struct plan **ret)
{
	uint64_t key = (uint64_t)elem << 32 | prefix;
	struct cached_plan *cached = &x->elements[cache_place(key * ELEMENT_CLASSES + class)];
	struct error *err = NULL;

	if (!cached->plan || cached->key != key || cached->extra != class) {
		cached->plan = NULL;
		cached->key = key;
		cached->extra = class;
		err = plan_table_element(x->walk->plans, elem, prefix, class, &cached->plan);
	}
	*ret = cached->plan;
	return err;
}

struct error *expander_type(struct expander *x, uint64_t word, bool is_itab, type_id *ret)
{
	struct cached_type *cached = &x->types[cache_place(word + is_itab)];
	struct go_types *types = x->walk->input.types;
	struct error *err = NULL;

	*ret = TYPE_UNKNOWN;
	if (!word)
		return NULL;
	if (cached->word != word || cached->is_itab != is_itab) {
		cached->word = 0;
		err = is_itab ? go_types_by_itab(types, word, &cached->type)
			      : go_types_by_descriptor(types, word, &cached->type);
		if (err)
			return err;
		cached->word = word;
		cached->is_itab = is_itab;
	}
	*ret = cached->type;
	return NULL;
}

static struct error *find_step(struct expander *x, uint32_t step, const char *name, type_id type,
			       uint32_t *ret)
{
	uint64_t key = (uint64_t)step << 32 | type;
	struct cached_step *cached = &x->steps[cache_place(key)];
	struct error *err = NULL;

	if (!cached->step || cached->key != key) {
		cached->step = 0;
		err = step_table_add(x->walk->steps, step, name,
				     go_type_at(x->walk->input.types, type)->name, &cached->step);
		cached->key = key;
	}
	*ret = cached->step;
	return err;
}

/* ---- interfaces ---- */

/* The data word is the value: whatever of it is a pointer is what leads on. */
static struct error *take_direct(struct expander *x, struct candidate *candidate, type_id type,
				 bool *ret_is_known)
{
	const struct plan *plan;
	struct error *err = expander_plan(x, shape_of(SHAPE_VALUE, type), candidate->step, &plan);

	if (err)
		return err;
	*ret_is_known = plan->slot_count && plan->slots[0].kind == SLOT_POINTER;
	if (!*ret_is_known)
		return NULL;
	candidate->shape = plan->slots[0].shape;
	candidate->step = plan->slots[0].step;
	return NULL;
}

struct error *expander_take_interface(struct expander *x, const struct pending *word,
				      struct candidate *candidate, bool *ret_is_known)
{
	const struct go_type *facts;
	type_id type;
	struct error *err = expander_type(x, word->next[0], word->slot->kind == SLOT_IFACE, &type);

	*ret_is_known = false;
	if (err || type == TYPE_UNKNOWN)
		return err;
	facts = go_type_at(x->walk->input.types, type);
	err = find_step(x, candidate->step, facts->direct_interface ? "$iface" : "$box", type,
			&candidate->step);
	if (err)
		return err;
	if (facts->direct_interface)
		return take_direct(x, candidate, type, ret_is_known);
	candidate->shape = shape_of(SHAPE_VALUE, type);
	*ret_is_known = true;
	return NULL;
}

struct error *expander_guess_interface(struct expander *x, uint64_t before, uint32_t step,
				       const struct plan_slot **ret)
{
	static const struct plan_slot slots[][2] = {
		{ { .kind = SLOT_EFACE, .step = STEP_NONE },
		  { .kind = SLOT_IFACE, .step = STEP_NONE } },
		{ { .kind = SLOT_EFACE, .step = STEP_UNTYPED },
		  { .kind = SLOT_IFACE, .step = STEP_UNTYPED } },
	};
	type_id type = TYPE_UNKNOWN;
	struct error *err = NULL;

	*ret = NULL;
	if (before < WINDOW_PAGE || before % 8)
		return NULL;
	for (unsigned is_itab = 0; !err && type == TYPE_UNKNOWN && is_itab < 2; is_itab++) {
		err = expander_type(x, before, is_itab, &type);
		*ret = &slots[step == STEP_UNTYPED][is_itab];
	}
	if (type == TYPE_UNKNOWN)
		*ret = NULL;
	return err;
}

/* ---- what objects say themselves ---- */

static bool is_told_by_words(shape_id shape)
{
	return shape_kind(shape) == SHAPE_FUNC || shape_kind(shape) == SHAPE_TRIE_NODE ||
	       shape_kind(shape) == SHAPE_SUDOG;
}

bool expander_must_resolve(const struct walk_span *span, shape_id shape)
{
	return !span->noscan &&
	       (is_told_by_words(shape) || (span->tells && !shape_is_typed(shape)));
}

static struct error *change(struct expander *x, const struct item_state *state, shape_id to,
			    uint64_t offset, uint64_t count, shape_id *shape, struct extent *extent)
{
	*shape = to;
	*extent = (struct extent){ .offset = offset, .length = count, .capacity = count };
	return expander_add(x, &(struct candidate){ .kind = CANDIDATE_SHAPE,
						    .object = state->object,
						    .parent = state->place,
						    .shape = to,
						    .offset = offset,
						    .length = count,
						    .capacity = count });
}

/*
 * The type in front of an object, or in its span, is what it was allocated as: laid end to end over
 * what there is room for, it is an array of it.
 */
static struct error *change_to_own(struct expander *x, const struct item_state *state, type_id type,
				   shape_id *shape, struct extent *extent)
{
	const struct walk_span *span = state->span;
	uint64_t size = go_type_at(x->walk->input.types, type)->size;
	uint64_t room = span->elem_size - span->header, count;
	bool is_there = extent->offset == span->header && shape_type(*shape) == type;

	if (span->large_type && span->size < room)
		room = span->size;
	if (!size || size > room)
		return NULL;
	count = room / size;
	if (is_there && shape_kind(*shape) == SHAPE_ARRAY) {
		extent->capacity = count;
		return NULL;
	}
	if (is_there && shape_kind(*shape) == SHAPE_VALUE && count == 1)
		return NULL;
	return change(x, state, shape_of(count > 1 ? SHAPE_ARRAY : SHAPE_VALUE, type), span->header,
		      count, shape, extent);
}

static bool has_own_type(shape_id shape)
{
	return shape_kind(shape) == SHAPE_UNTYPED || shape_kind(shape) == SHAPE_VALUE ||
	       shape_kind(shape) == SHAPE_ARRAY;
}

static struct error *resolve_own(struct expander *x, struct item_state *state, shape_id *shape,
				 struct extent *extent)
{
	taddr descriptor = state->span->large_type;
	const uint64_t *words;
	type_id type;
	struct error *err;

	if (!state->span->tells || !has_own_type(*shape))
		return NULL;
	if (!descriptor) {
		err = expander_words(x, state, 0, 1, &words);
		if (err || !words)
			return err;
		descriptor = words[0];
	}
	err = expander_type(x, descriptor, false, &type);
	if (err || type == TYPE_UNKNOWN)
		return err;
	return change_to_own(x, state, type, shape, extent);
}

static struct error *resolve_closure(struct expander *x, struct item_state *state, shape_id *shape,
				     struct extent *extent)
{
	const uint64_t *words;
	type_id type = TYPE_UNKNOWN;
	struct error *err = expander_words(x, state, extent->offset / 8, 1, &words);

	if (!err && words)
		err = go_types_by_closure(x->walk->input.types, words[0], &type);
	if (err)
		return err;
	return change(x, state,
		      type == TYPE_UNKNOWN ? (uint32_t)SHAPE_UNTYPED
					   : shape_of(SHAPE_CLOSURE, type),
		      extent->offset, 1, shape, extent);
}

static struct error *resolve_node(struct expander *x, struct item_state *state, shape_id *shape,
				  struct extent *extent)
{
	const uint64_t *words;
	type_id node = shape_type(*shape), type = TYPE_UNKNOWN;
	shape_id other = SHAPE_UNTYPED;
	struct error *err = expander_words(x, state, extent->offset / 8, 1, &words);

	if (!err && words) {
		bool is_entry = words[0] & 0xff;

		other = shape_of(is_entry ? SHAPE_TRIE_ENTRY : SHAPE_TRIE_INNER, node);
		if (is_entry)
			err = trie_entry_of_node(x->walk->input.types, node, &type);
	}
	if (err)
		return err;
	return change(x, state, type == TYPE_UNKNOWN ? other : shape_of(SHAPE_VALUE, type),
		      extent->offset, 1, shape, extent);
}

static struct error *resolve_sudog(struct expander *x, struct item_state *state, shape_id *shape,
				   struct extent *extent)
{
	type_id type;
	struct error *err = sudog_type(x, state, extent->offset, shape_type(*shape), &type);

	return err ? err
		   : change(x, state, shape_of(SHAPE_VALUE, type), extent->offset, 1, shape,
			    extent);
}

struct error *expander_resolve(struct expander *x, struct item_state *state, shape_id *shape,
			       struct extent *extent)
{
	if (shape_kind(*shape) == SHAPE_FUNC)
		return resolve_closure(x, state, shape, extent);
	if (shape_kind(*shape) == SHAPE_TRIE_NODE)
		return resolve_node(x, state, shape, extent);
	if (shape_kind(*shape) == SHAPE_SUDOG)
		return resolve_sudog(x, state, shape, extent);
	return resolve_own(x, state, shape, extent);
}
