/*
 * The walk has rounds. Each begins with some roots, the most telling ones first, and goes level by
 * level as far as types lead. When no root is left, what nothing explains is followed step by step,
 * each time as far as types lead from there. In the end every live object must have been met.
 */
#include "agent/analysis/reference_walk.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/mark.h"
#include "agent/analysis/reference_private.h"
#include "agent/analysis/workers.h"
#include "agent/goruntime/object_header.h"

/* ---- making it ---- */

/* One size has one class, unless the target says otherwise: then the span is asked each time. */
static uint8_t take_size_class(struct reference_walk *walk, const struct span *span)
{
	uint8_t size_class = span->span_class >> 1;
	uint64_t *size = &walk->class_sizes[size_class];

	if (!*size)
		*size = span->elem_size;
	return *size == span->elem_size ? size_class : 0;
}

static uint8_t take_span_class(struct reference_walk *walk, const struct span *span,
			       const struct walk_span *facts)
{
	struct walk_span *of_class = &walk->class_spans[span->span_class];

	if (!of_class->elem_size)
		*of_class = *facts;
	return of_class->elem_size == facts->elem_size && of_class->header == facts->header &&
		       of_class->noscan == facts->noscan && of_class->tells == facts->tells
		   ? span->span_class
		   : 0;
}

static void describe_span(struct reference_walk *walk, uint32_t i)
{
	const struct span *span = span_table_at(walk->graph->spans, i);
	const struct span_slots *slots = &walk->lookup->slots[i + 1];
	bool has_objects = span->elem_count != 0;

	walk->spans[i + 1] = (struct walk_span){
		.base = span->base,
		.size = slots->size,
		.elem_size = span->elem_size,
		.first_object = span->first_object,
		.reciprocal = slots->reciprocal,
		.noscan = span->noscan,
		.large_type = has_objects ? span->large_type : 0,
	};
	if (has_objects)
		walk->spans[i + 1].header = (uint8_t)object_header_bytes(walk->input.layout, span);
	walk->spans[i + 1].tells = walk->spans[i + 1].header || walk->spans[i + 1].large_type;
	if (has_objects)
		walk->spans[i + 1].size_class = take_size_class(walk, span);
	if (walk->spans[i + 1].size_class)
		walk->span_classes[i] = take_span_class(walk, span, &walk->spans[i + 1]);
}

static struct error *describe_spans(struct reference_walk *walk)
{
	uint32_t count = span_table_count(walk->graph->spans);

	walk->spans = calloc((size_t)count + 1, sizeof(*walk->spans));
	walk->span_classes = calloc((size_t)count + 1, sizeof(*walk->span_classes));
	if (!walk->spans || !walk->span_classes)
		return &error_nomem;
	for (uint32_t i = 0; i < count; i++)
		describe_span(walk, i);
	return NULL;
}

static void init_lists(struct reference_walk *walk)
{
	struct reference_list *items[] = { &walk->frontier, &walk->next, &walk->rest,
					   &walk->next_rest };

	for (size_t i = 0; i < sizeof(items) / sizeof(items[0]); i++)
		reference_list_init(items[i], &walk->budget, sizeof(struct walk_item));
	reference_list_init(&walk->extents, &walk->budget, sizeof(struct extent));
	reference_list_init(&walk->next_extents, &walk->budget, sizeof(struct extent));
	reference_list_init(&walk->used, &walk->budget, sizeof(struct walk_used));
	reference_list_init(&walk->roots, &walk->budget, sizeof(struct reference_root));
	reference_list_init(&walk->seeds, &walk->budget, sizeof(struct seed));
	reference_list_init(&walk->revived, &walk->budget, sizeof(struct revived));
	for (size_t i = 0; i < WORKERS_MAX; i++)
		reference_list_init(&walk->lists[i], &walk->budget, sizeof(struct candidate));
	walk->unsettled.budget = &walk->budget;
}

static struct error *init(struct reference_walk *walk, const struct reference_input *input)
{
	uint64_t objects = span_table_object_end(graph_spans(input->graph));
	struct error *err;

	walk->input = *input;
	walk->memory = input->memory;
	walk->graph = input->graph;
	walk->lookup = input->graph->lookup;
	walk->budget.limit = input->memory_limit;
	walk->thread_count = workers_clamp(input->thread_count);
	init_lists(walk);
	err = step_table_new(&walk->steps);
	if (!err)
		err = plan_table_new(input->layout, input->types, walk->steps, &walk->plans);
	if (!err)
		err = describe_spans(walk);
	if (!err)
		err =
		    pages_init(&walk->state_pages, &walk->budget, objects * sizeof(*walk->states));
	walk->states = walk->state_pages.data;
	return err;
}

struct error *reference_walk_new(const struct reference_input *input, struct reference_walk **ret)
{
	struct reference_walk *walk scoped(reference_walk_freep) = calloc(1, sizeof(*walk));
	struct error *err;

	if (!walk)
		return &error_nomem;
	err = init(walk, input);
	if (!err)
		err = walk_read_roots(walk);
	if (err)
		return error_context(err, "references");
	walk->memory = NULL;
	*ret = take(walk);
	return NULL;
}

/* What only the walking itself needs. */
static void free_work(struct reference_walk *walk)
{
	struct reference_list *lists[] = { &walk->frontier,  &walk->next,    &walk->rest,
					   &walk->next_rest, &walk->extents, &walk->next_extents,
					   &walk->seeds,     &walk->revived };

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		reference_list_fini(lists[i]);
	for (size_t i = 0; i < WORKERS_MAX; i++)
		reference_list_fini(&walk->lists[i]);
	unsettled_fini(&walk->unsettled);
	plan_table_free(take(walk->plans));
	free(take(walk->spans));
	free(take(walk->span_classes));
	free(take(walk->root_buckets));
}

void reference_walk_free(struct reference_walk *walk)
{
	if (!walk)
		return;
	free_work(walk);
	reference_list_fini(&walk->used);
	reference_list_fini(&walk->roots);
	pages_fini(&walk->order_pages);
	pages_fini(&walk->parent_pages);
	pages_fini(&walk->step_pages);
	pages_fini(&walk->class_pages);
	pages_fini(&walk->waste_pages);
	pages_fini(&walk->state_pages);
	for (size_t i = 0; i < walk->made_name_count; i++)
		free(walk->made_names[i].name);
	free(walk->made_names);
	step_table_free(walk->steps);
	free(walk);
}

static struct error *make_places(struct reference_walk *walk, const struct mark *mark)
{
	uint64_t live = mark_totals(mark)->live_objects;
	struct error *err;

	if (live >= (uint32_t)PLACES_MAX)
		return error_new(ERROR_LIMIT, "%" PRIu64 " live objects", live);
	walk->live_count = (uint32_t)live;
	if (walk->input.types_only)
		live = 0; /* what there is by place stays empty */
	err = pages_init(&walk->order_pages, &walk->budget,
			 walk->input.anonymous ? 0 : live * sizeof(*walk->order));
	if (!err)
		err = pages_init(&walk->parent_pages, &walk->budget, live * sizeof(*walk->parents));
	if (!err)
		err = pages_init(&walk->step_pages, &walk->budget,
				 live * sizeof(*walk->places_steps));
	if (!err)
		err = pages_init(&walk->class_pages, &walk->budget, live);
	if (!err)
		err = pages_init(&walk->waste_pages, &walk->budget, live);
	walk->order = walk->order_pages.data;
	walk->parents = walk->parent_pages.data;
	walk->places_steps = walk->step_pages.data;
	walk->size_classes = walk->class_pages.data;
	walk->wastes = walk->waste_pages.data;
	return err;
}

/* ---- walking ---- */

static struct error *walk_round(struct reference_walk *walk, struct expander **expanders,
				enum seed_rank rank)
{
	struct error *err = walk_claim_seeds(walk, rank);

	return err ? err : walk_levels(walk, expanders);
}

/*
 * An object with a finalizer that is not live keeps alive what its fields lead to; of one that is
 * live they are fields like others.
 */
static struct error *add_revived(struct reference_walk *walk, const struct revived *revived)
{
	struct walk_item *item;
	struct error *err;

	if (state_is_met(state_load(&walk->states[revived->object])))
		return NULL;
	err = reference_list_add(&walk->next, (void **)&item);
	if (err)
		return err;
	*item = (struct walk_item){ .object = revived->object,
				    .place = walk_root_parent(revived->root),
				    .shape = revived->shape };
	return NULL;
}

static struct error *walk_revived(struct reference_walk *walk, struct expander **expanders)
{
	struct error *err = NULL;

	for (uint64_t i = 0; i < walk->revived.count && !err; i++)
		err = add_revived(walk, reference_list_at(&walk->revived, i));
	return err ? err : walk_levels(walk, expanders);
}

static struct error *walk_rounds(struct reference_walk *walk, struct expander **expanders)
{
	bool more = true;
	struct error *err = walk_claim_seeds(walk, SEED_GLOBAL);

	if (!err)
		err = walk_round(walk, expanders, SEED_LOCAL);
	if (!err)
		err = walk_round(walk, expanders, SEED_UNTYPED);
	if (!err)
		err = walk_revived(walk, expanders);
	for (enum seed_rank rank = SEED_CONSERVATIVE; rank < SEED_RANKS && !err; rank++)
		err = walk_round(walk, expanders, rank);
	while (more && !err) {
		err = walk_rest(walk, expanders, &more);
		if (!err)
			err = walk_levels(walk, expanders);
	}
	return err;
}

/* Every live object has its place, or we have made a mistake that must not go unnoticed. */
static struct error *check(const struct reference_walk *walk, const struct mark *mark)
{
	const struct mark_totals *live = mark_totals(mark);
	uint32_t end = span_table_object_end(walk->graph->spans), missing = 1;

	if (walk->count == live->live_objects && walk->met_bytes == live->live_bytes)
		return NULL;
	while (missing < end &&
	       (!mark_is_live(mark, missing) || state_is_met(state_load(&walk->states[missing]))))
		missing++;
	return error_new(ERROR_CORRUPT_TARGET,
			 "%" PRIu32 " of %" PRIu64 " live objects were met, the first other one is "
			 "object %" PRIu32,
			 walk->count, live->live_objects, missing);
}

static struct error *run_with(struct reference_walk *walk, struct expander **expanders)
{
	struct error *err = NULL;

	for (unsigned i = 0; i < walk->thread_count && !err; i++)
		err = expander_new(walk, &expanders[i]);
	if (!err)
		err = walk_rounds(walk, expanders);
	for (unsigned i = 0; i < walk->thread_count; i++)
		expander_free(expanders[i]);
	return err;
}

static struct error *run(struct reference_walk *walk, const struct mark *mark)
{
	struct expander **expanders scoped(freep) = calloc(walk->thread_count, sizeof(*expanders));
	struct error *err = expanders ? make_places(walk, mark) : &error_nomem;

	if (!err)
		err = run_with(walk, expanders);
	if (!err)
		err = check(walk, mark);
	return err;
}

struct error *reference_walk_run(struct reference_walk *walk, const struct mark *mark,
				 struct memory *memory)
{
	struct error *err;

	walk->memory = memory;
	err = run(walk, mark);
	walk->memory = NULL;
	free_work(walk);
	return err ? error_context(err, "references") : NULL;
}

/* ---- what it found ---- */

enum { PLACES_AHEAD = 32 }; /* whose parents are looked at soon */

static type_id type_of(const struct reference_walk *walk, shape_id shape, bool *ret_is_array)
{
	const struct go_types *types = walk->input.types;
	type_id type = shape_type(shape);

	*ret_is_array = shape_repeats(shape_kind(shape));
	switch (shape_kind(shape)) {
	case SHAPE_UNMET:
	case SHAPE_UNTYPED:
	case SHAPE_KIND_END:
		return TYPE_UNKNOWN;
	case SHAPE_BUCKETS:
	case SHAPE_SWISS_GROUPS:
		return go_type_at(types, type)->bucket;
	case SHAPE_CHANNEL_BUFFER:
		return go_type_at(types, type)->elem;
	case SHAPE_OVERFLOW_ARRAY:
	case SHAPE_SWISS_DIRECTORY:
		*ret_is_array = false;
		return type;
	default:
		return type;
	}
}

type_id reference_walk_type(const struct reference_walk *walk, uint32_t object, bool *ret_is_array)
{
	return type_of(walk, state_shape(state_load(&walk->states[object])), ret_is_array);
}

uint32_t reference_walk_run_of(const struct reference_walk *walk, uint32_t object, uint32_t end,
			       bool *ret_is_live, type_id *ret_type, bool *ret_is_array)
{
	shape_id shape = state_shape(state_load(&walk->states[object]));
	uint32_t next = object + 1;

	while (next < end && state_shape(state_load(&walk->states[next])) == shape)
		next++;
	*ret_is_live = shape != SHAPE_UNMET;
	*ret_type = type_of(walk, shape, ret_is_array);
	return next - object;
}

uint32_t reference_walk_count(const struct reference_walk *walk)
{
	return walk->count;
}

uint32_t reference_walk_object(const struct reference_walk *walk, uint32_t place)
{
	return walk->order[place];
}

/* They are listed in the order of places. */
static const struct walk_used *find_used(const struct reference_walk *walk, uint32_t place)
{
	uint64_t low = 0, high = walk->used.count;

	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;
		const struct walk_used *used = reference_list_at(&walk->used, middle);

		if (used->place <= place)
			low = middle;
		else
			high = middle;
	}
	return reference_list_at(&walk->used, low);
}

static struct reference reference_at(const struct reference_walk *walk, uint32_t place)
{
	uint32_t parent = walk->parents[place];
	struct reference reference = {
		.parent = parent,
		.step = walk->places_steps[place],
		.bytes = walk->class_sizes[walk->size_classes[place]],
	};

	if (walk_is_root(parent)) {
		reference.parent = REFERENCE_ROOT;
		reference.root = walk_root_parent(parent);
	}
	if (walk->wastes[place] == WASTE_ELSEWHERE) {
		const struct walk_used *used = find_used(walk, place);

		reference.bytes = used->bytes;
		reference.used_bytes = used->used_bytes;
	} else {
		reference.used_bytes = reference.bytes - walk->wastes[place];
	}
	return reference;
}

static uint64_t words_at(const struct reference_walk *walk, uint32_t place)
{
	uint8_t size_class = walk->size_classes[place];

	return (size_class ? walk->class_sizes[size_class] : find_used(walk, place)->bytes) / 8;
}

static void add_words(uint32_t *to, uint64_t words)
{
	*to = words < UINT32_MAX - *to ? *to + (uint32_t)words : UINT32_MAX;
}

/* Parents are before their places, so from the end each has got all of its own when it is added. */
uint64_t reference_walk_add_up(const struct reference_walk *walk, uint32_t *words)
{
	uint64_t total = 0;

	if (walk->count)
		memset(words, 0, walk->count * sizeof(*words));
	for (uint32_t place = walk->count; place-- > 0;) {
		uint32_t parent = walk->parents[place];
		uint64_t own = words_at(walk, place);

		if (place >= PLACES_AHEAD && !walk_is_root(walk->parents[place - PLACES_AHEAD]))
			__builtin_prefetch(&words[walk->parents[place - PLACES_AHEAD]], 1);
		add_words(&words[place], own);
		total += own;
		if (!walk_is_root(parent))
			add_words(&words[parent], words[place]);
	}
	return total * 8;
}

void reference_walk_read(const struct reference_walk *walk, uint32_t first, uint32_t count,
			 struct reference *ret)
{
	for (uint32_t i = 0; i < count; i++)
		ret[i] = reference_at(walk, first + i);
}

uint32_t reference_walk_root_count(const struct reference_walk *walk)
{
	return (uint32_t)walk->roots.count;
}

struct reference_root reference_walk_root(const struct reference_walk *walk, uint32_t number)
{
	return *(const struct reference_root *)reference_list_at(&walk->roots, number);
}

uint32_t reference_walk_step_frames(const struct reference_walk *walk, uint32_t step,
				    const char *const **ret)
{
	return step_table_frames(walk->steps, step, ret);
}
