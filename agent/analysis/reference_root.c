/*
 * Roots as the beginnings of chains. The word of a root belongs to a variable, whose type says what
 * it leads to: where in an array or a struct the word is, how long a slice is, what is in an
 * interface. All of this is read while the memory of variables is there, before anything is known
 * of what is live.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/mark_walk.h"
#include "agent/analysis/reference_special.h"
#include "agent/analysis/root_set.h"
#include "agent/goruntime/special.h"
#include "agent/goruntime/variable_table.h"

/* ---- numbers of roots ---- */

static struct reference_root *root_at(const struct reference_walk *walk, uint32_t number)
{
	return reference_list_at(&walk->roots, number);
}

static uint64_t hash(const struct reference_root *root)
{
	uint64_t h = (uintptr_t)root->name * UINT64_C(0x9e3779b97f4a7c15);

	return (h ^ h >> 29) + root->goroutine * UINT64_C(0x9e3779b97f4a7c15);
}

static uint32_t *find_bucket(const struct reference_walk *walk, const struct reference_root *root)
{
	uint32_t mask = walk->root_bucket_count - 1, i = (uint32_t)(hash(root) >> 16) & mask;

	for (; walk->root_buckets[i]; i = (i + 1) & mask) {
		const struct reference_root *other = root_at(walk, walk->root_buckets[i] - 1);

		if (other->name == root->name && other->goroutine == root->goroutine)
			break;
	}
	return &walk->root_buckets[i];
}

static struct error *grow_buckets(struct reference_walk *walk)
{
	uint32_t count = walk->root_bucket_count ? walk->root_bucket_count * 2 : 1024;
	uint32_t *buckets = calloc(count, sizeof(*buckets));

	if (!buckets)
		return &error_nomem;
	free(walk->root_buckets);
	walk->root_buckets = buckets;
	walk->root_bucket_count = count;
	for (uint32_t i = 0; i < walk->roots.count; i++)
		*find_bucket(walk, root_at(walk, i)) = i + 1;
	return NULL;
}

struct error *walk_add_root(struct reference_walk *walk, struct reference_root root, uint32_t *ret)
{
	uint32_t *bucket;
	void *added;
	struct error *err = NULL;

	if (walk->roots.count >= walk->root_bucket_count / 2)
		err = grow_buckets(walk);
	if (err)
		return err;
	bucket = find_bucket(walk, &root);
	if (!*bucket) {
		if (walk->roots.count == ROOTS_MAX)
			return error_new(ERROR_LIMIT, "more than %d variables", ROOTS_MAX);
		err = reference_list_add(&walk->roots, &added);
		if (err)
			return err;
		*(struct reference_root *)added = root;
		*bucket = (uint32_t)walk->roots.count;
	}
	*ret = *bucket - 1;
	return NULL;
}

/* ---- the words of variables ---- */

/* A word, and those beside it that its kind of slot may need. */
enum { WORDS_BEFORE = VARIABLE_BEFORE, WORDS = VARIABLE_AROUND };

static struct error *read_around(struct expander *x, const struct variable_word *place,
				 uint64_t *word, bool *ret_is_read)
{
	if (!place->in_register)
		return expander_word(x, place->addr, word, ret_is_read);
	*word = place->value;
	*ret_is_read = true;
	return NULL;
}

/*
 * If the root's own word cannot be read, *ret_is_read is false. What one before it may be, the type
 * of what is in an interface, is 0 then; those that follow it, lengths, are as large as can be.
 */
static struct error *read_words(struct expander *x, const struct variable *variable, taddr slot,
				uint64_t words[WORDS], bool *ret_is_read)
{
	struct error *err = NULL;

	*ret_is_read = false;
	for (unsigned i = 0; i < WORDS && !err; i++) {
		struct variable_word place = { .addr = slot + i * 8 - WORDS_BEFORE * 8 };
		bool is_read = false;

		if (variable->in_pieces)
			place = variable->around[i];
		err = read_around(x, &place, &words[i], &is_read);
		if (i == WORDS_BEFORE)
			*ret_is_read = is_read;
		else if (!is_read && i > WORDS_BEFORE)
			words[i] = UINT64_MAX;
	}
	return err;
}

/* A word of a variable that is being looked for, deeper and deeper. */
struct place {
	uint64_t word; /* from where plan begins */
	const struct plan *plan;
};

static const struct plan_slot *slot_before(const struct plan *plan, uint64_t word)
{
	uint32_t low = 0, high = plan->slot_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (plan->slots[middle].word <= word)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &plan->slots[low - 1] : NULL;
}

static struct error *enter_array(struct expander *x, const struct plan_slot *array,
				 struct place *place, bool *ret_is_there)
{
	uint64_t word = place->word - array->word, index;

	*ret_is_there = array->elem_size >= 8 && array->elem_size % 8 == 0;
	if (!*ret_is_there)
		return NULL;
	index = word / (array->elem_size / 8);
	*ret_is_there = index < array->count;
	place->word = word % (array->elem_size / 8);
	return expander_element_plan(x, shape_type(array->shape), array->step,
				     element_class(index, array->count), &place->plan);
}

static struct error *enter_variable(struct expander *x, const struct variable *variable,
				    struct place *place, bool *ret_is_there)
{
	uint64_t size = go_type_at(x->walk->input.types, variable->type)->size;
	const struct plan_slot whole = { .shape = shape_of(SHAPE_ARRAY, variable->type),
					 .step = STEP_NONE,
					 .elem_size = size,
					 .count = size ? (uint32_t)(variable->size / size) : 0 };

	if (variable->is_array)
		return enter_array(x, &whole, place, ret_is_there);
	*ret_is_there = true;
	return plan_table_find(x->walk->plans, shape_of(SHAPE_VALUE, variable->type), STEP_NONE,
			       true, &place->plan);
}

/* The slot of a word of a variable; NULL: its type does not say. */
static struct error *find_slot(struct expander *x, const struct variable *variable, uint64_t word,
			       const struct plan_slot **ret)
{
	struct place place = { .word = word };
	bool is_there;
	struct error *err = enter_variable(x, variable, &place, &is_there);

	*ret = NULL;
	for (unsigned depth = 0; !err && is_there && depth < PLAN_DEPTH_MAX; depth++) {
		const struct plan_slot *slot = slot_before(place.plan, place.word);

		if (!slot || (slot->kind != SLOT_ARRAY && slot->word != place.word))
			return NULL;
		if (slot->kind != SLOT_ARRAY) {
			*ret = slot;
			return NULL;
		}
		err = enter_array(x, slot, &place, &is_there);
	}
	return err;
}

/* ---- seeds ---- */

static struct error *add_seed(struct reference_walk *walk, const struct candidate *candidate,
			      enum seed_rank rank)
{
	void *seed;
	struct error *err = reference_list_add(&walk->seeds, &seed);

	if (err)
		return err;
	*(struct seed *)seed = (struct seed){ .candidate = *candidate, .rank = (uint8_t)rank };
	return NULL;
}

static enum seed_rank rank_of(const struct heap_root *root, const struct variable *variable,
			      bool is_typed)
{
	switch (mark_phase_of((enum root_kind)root->kind)) {
	case MARK_SYSTEM_STACK:
		return SEED_SYSTEM;
	case MARK_CONSERVATIVE:
		return is_typed ? SEED_CONSERVATIVE : SEED_CONSERVATIVE_UNTYPED;
	default:
		if (!is_typed)
			return SEED_UNTYPED;
		return variable->kind == VARIABLE_GLOBAL ? SEED_GLOBAL : SEED_LOCAL;
	}
}

struct root_reader {
	struct expander *expander;
	struct reference_list found;
};

/* Has the slot's kind look at the word, as if an object with this one edge were expanded. */
static struct error *look(struct root_reader *reader, uint32_t object, uint32_t parent,
			  const struct plan_slot *slot, const uint64_t words[WORDS])
{
	struct expander *x = reader->expander;

	reader->found.count = 0;
	x->to = (struct expansion){ .list = &reader->found };
	x->states[0] = (struct item_state){ .place = parent, .edges = &object, .edge_count = 1 };
	return expander_look(x, &words[WORDS_BEFORE], slot);
}

static struct error *find_by_type(struct root_reader *reader, const struct heap_root *root,
				  const struct variable *variable, uint32_t parent)
{
	uint64_t words[WORDS];
	const struct plan_slot *slot;
	uint64_t offset;
	bool is_read;
	struct error *err;

	reader->found.count = 0;
	if (variable->type == TYPE_UNKNOWN || !variable_offset(variable, root->slot, &offset) ||
	    offset % 8)
		return NULL;
	err = find_slot(reader->expander, variable, offset / 8, &slot);
	if (err || !slot)
		return err;
	err = read_words(reader->expander, variable, root->slot, words, &is_read);
	return err || !is_read ? err : look(reader, root->object, parent, slot, words);
}

/* A variable without a type may be an interface. */
static struct error *find_by_guess(struct root_reader *reader, const struct heap_root *root,
				   uint32_t parent)
{
	uint64_t words[WORDS] = { 0 };
	const struct plan_slot *slot = NULL;
	bool is_read = root->slot >= ROOT_REGISTER_SLOTS;
	struct error *err = NULL;

	if (is_read)
		err = expander_word(reader->expander, root->slot - 8, &words[WORDS_BEFORE - 1],
				    &is_read);
	if (!err && is_read)
		err = expander_word(reader->expander, root->slot, &words[WORDS_BEFORE], &is_read);
	if (!err && is_read)
		err = expander_guess_interface(reader->expander, words[WORDS_BEFORE - 1], STEP_NONE,
					       &slot);
	return err || !slot ? err : look(reader, root->object, parent, slot, words);
}

static struct error *add_root(struct reference_walk *walk, struct root_reader *reader,
			      const struct heap_root *root)
{
	struct variable variable;
	struct reference_root named;
	struct candidate candidate;
	shape_id shape;
	uint32_t number;
	struct error *err;

	variable_table_find(walk->input.variables, (enum root_kind)root->kind, root->goroutine,
			    root->slot, &variable);
	err = special_root_find(reader->expander, root, &variable.name, &shape);
	if (err)
		return err;
	named = (struct reference_root){ .name = variable.name,
					 .package = variable.package,
					 .file = variable.file,
					 .line = variable.line,
					 .goroutine = root->goroutine,
					 .variable_kind = variable.kind };
	err = walk_add_root(walk, named, &number);
	if (!err)
		err = find_by_type(reader, root, &variable, walk_root_parent(number));
	if (!err && !reader->found.count && !shape_is_typed(shape))
		err = find_by_guess(reader, root, walk_root_parent(number));
	if (err)
		return err;
	if (reader->found.count)
		return add_seed(walk, reference_list_at(&reader->found, 0),
				rank_of(root, &variable, true));
	candidate = (struct candidate){
		.kind = CANDIDATE_REFERENCE,
		.object = root->object,
		.parent = walk_root_parent(number),
		.step = STEP_NONE,
		.shape = shape,
		.offset = walk_span_of(walk, root->object)->header,
	};
	return add_seed(walk, &candidate,
			rank_of(root, &variable, shape_is_typed(candidate.shape)));
}

static struct error *add_timer_root(struct reference_walk *walk)
{
	static const struct reference_root timer = { .name = "timer",
						     .package = "",
						     .goroutine = ROOT_NO_GOROUTINE,
						     .variable_kind = VARIABLE_RUNTIME };

	return walk_add_root(walk, timer, &walk->timer_root);
}

static struct error *add_revived(struct reference_walk *walk, struct root_reader *reader,
				 const struct special *special)
{
	struct reference_root root = { .package = "",
				       .goroutine = ROOT_NO_GOROUTINE,
				       .variable_kind = VARIABLE_RUNTIME };
	type_id pointer;
	struct revived *revived;
	uint32_t number;
	struct error *err = finalizer_type(reader->expander, special->record, &pointer);

	if (!err)
		err = finalizer_name(walk, pointer, &root.name);
	if (!err)
		err = walk_add_root(walk, root, &number);
	if (!err)
		err = reference_list_add(&walk->revived, (void **)&revived);
	if (err)
		return err;
	*revived = (struct revived){ special->object, number, SHAPE_UNTYPED };
	if (pointer != TYPE_UNKNOWN)
		revived->shape =
		    shape_of(SHAPE_VALUE, go_type_at(walk->input.types, pointer)->elem);
	return NULL;
}

struct error *walk_read_roots(struct reference_walk *walk)
{
	const struct root_set *roots = walk->input.roots;
	struct root_reader reader = { 0 };
	struct error *err = expander_new(walk, &reader.expander);

	reference_list_init(&reader.found, &walk->budget, sizeof(struct candidate));
	if (!err)
		err = add_timer_root(walk);
	for (uint64_t i = 0; i < root_set_count(roots) && !err; i++)
		err = add_root(walk, &reader, root_set_at(roots, i));
	for (uint32_t i = 0; i < special_table_count(walk->input.specials) && !err; i++) {
		const struct special *special = special_table_at(walk->input.specials, i);

		if (special->kind == SPECIAL_FINALIZER)
			err = add_revived(walk, &reader, special);
	}
	reference_list_fini(&reader.found);
	expander_free(reader.expander);
	return err;
}

enum { SETTLE_SEEDS = 1 << 16 };

struct error *walk_claim_seeds(struct reference_walk *walk, enum seed_rank rank)
{
	struct reference_list *list = &walk->lists[0];
	struct error *err = NULL;

	list->count = 0;
	for (uint64_t i = 0; i < walk->seeds.count && !err; i++) {
		const struct seed *seed = reference_list_at(&walk->seeds, i);

		if (seed->rank != rank)
			continue;
		err = candidate_add(list, &seed->candidate);
		if (err)
			return err;
		walk_put_claim(walk, &seed->candidate, 0, list->count - 1);
		if (list->count == SETTLE_SEEDS)
			err = walk_settle_list(walk, list);
	}
	return err ? err : walk_settle_list(walk, list);
}
