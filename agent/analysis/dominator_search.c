/*
 * The depth-first search by which everything is numbered, without recursion: the way back is in the
 * parents, and how far the edges of each object on it have been followed in an array beside them.
 *
 * An edge that does not belong to the search's tree leads either down it, to a higher number, or
 * back up or across to a lower one. The former ends in a node that its source is an ancestor of,
 * which is all there is to know of it: the lowest such source is a first guess of the
 * semidominator. The latter are counted, since they have to be looked at backwards later on; in a
 * heap that is mostly trees there are few.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "agent/analysis/dominators_private.h"
#include "agent/analysis/label_owner.h"
#include "agent/analysis/mark.h"
#include "agent/analysis/root_set.h"
#include "agent/analysis/workers.h"
#include "agent/goruntime/special.h"

enum { SPANS_AT_ONCE = 1024, EDGES_TO_PREFETCH = 8 };

/* ---- which objects take part ---- */

struct entry_walk {
	struct dominator_search *search;
	_Atomic uint32_t next_span;
	_Atomic uint64_t count;
};

/* Spans share words of the bitmap, and threads share spans. */
static void or_bits(uint64_t *bits, uint64_t index, uint64_t value)
{
	unsigned shift = index % BITMAP_WORD_BITS;
	uint64_t *word = &bits[index / BITMAP_WORD_BITS];

	__atomic_fetch_or(word, value << shift, __ATOMIC_RELAXED);
	if (shift && value >> (BITMAP_WORD_BITS - shift))
		__atomic_fetch_or(word + 1, value >> (BITMAP_WORD_BITS - shift), __ATOMIC_RELAXED);
}

static uint64_t entry_bits(const struct dominator_search *search, const struct graph_row *row,
			   uint32_t first_object, uint32_t slot, uint32_t end)
{
	uint64_t bits = 0;

	for (uint32_t i = slot; i < end; i++)
		if (row->ends[i] != row->ends[i + 1] &&
		    mark_is_live(search->tree->mark, first_object + i))
			bits |= UINT64_C(1) << (i - slot);
	return bits;
}

static uint64_t note_span_entries(struct dominator_search *search, uint32_t span)
{
	const struct graph *graph = search->tree->graph;
	const struct graph_row *row = &graph->rows[span];
	uint32_t first = graph->lookup->first_objects[span];
	uint32_t count = graph->lookup->first_objects[span + 1] - first;
	uint64_t entries = 0;

	for (uint32_t slot = 0; row->edges && slot < count; slot += BITMAP_WORD_BITS) {
		uint32_t end = count - slot < BITMAP_WORD_BITS ? count : slot + BITMAP_WORD_BITS;
		uint64_t bits = entry_bits(search, row, first, slot, end);

		entries += (uint64_t)__builtin_popcountll(bits);
		if (bits)
			or_bits(search->entries, first + (uint64_t)slot, bits);
	}
	return entries;
}

static struct error *run_note_entries(void *arg, unsigned thread)
{
	struct entry_walk *walk = arg;
	uint32_t span_count = span_table_count(walk->search->tree->graph->spans), start;
	uint64_t count = 0;

	(void)thread;
	while ((start = atomic_fetch_add(&walk->next_span, SPANS_AT_ONCE)) < span_count)
		for (uint32_t i = start; i < span_count && i - start < SPANS_AT_ONCE; i++)
			count += note_span_entries(walk->search, i);
	atomic_fetch_add(&walk->count, count);
	return NULL;
}

static struct error *note_entries(struct dominator_search *search, uint64_t *ret_count)
{
	struct entry_walk walk = { .search = search };
	struct dominators *tree = search->tree;
	uint64_t size = bitmap_words(tree->object_end) * sizeof(uint64_t);
	struct error *err = pages_init(&search->entry_pages, &tree->budget, size);

	if (err)
		return err;
	search->entries = search->entry_pages.data;
	err = workers_run(search->thread_count, run_note_entries, &walk);
	*ret_count = walk.count;
	return err;
}

/* ---- what groups lead to ---- */

/* Of what is being listed: NULL targets only counts. */
struct target_list {
	const struct dominator_search *search;
	const uint64_t *owned; /* by object */
	uint32_t *targets;
	uint64_t *ends; /* by group: so many, or where the next one goes */
};

static void add_target(struct target_list *list, uint32_t group, uint32_t object)
{
	if (list->targets)
		list->targets[list->ends[group]] = object;
	list->ends[group]++;
}

static void list_roots(struct target_list *list)
{
	const struct dominator_input *input = list->search->input;

	for (uint64_t i = 0; i < root_set_count(input->roots); i++) {
		uint32_t object = root_set_at(input->roots, i)->object;

		if (!bitmap_get(list->owned, object))
			add_target(list, input->root_groups[i], object);
	}
}

static void list_owned(struct target_list *list)
{
	const struct dominator_input *input = list->search->input;

	for (size_t i = 0; input->owners && i < input->owners->count; i++) {
		uint32_t object = input->owners->items[i].object;

		if (mark_is_live(input->mark, object))
			add_target(list, input->owner_groups[i], object);
	}
}

/* The fields of an object with a finalizer are roots, as they are when marking. */
static void list_specials(struct target_list *list)
{
	const struct dominator_input *input = list->search->input;

	for (uint32_t i = 0; i < special_table_count(input->specials); i++) {
		const struct special *special = special_table_at(input->specials, i);
		const uint32_t *edges;
		uint32_t count;

		if (special->kind != SPECIAL_FINALIZER)
			continue;
		edges = graph_edges(input->graph, special->object, &count);
		for (uint32_t e = 0; e < count; e++)
			if (edges[e] != OBJECT_NONE && !bitmap_get(list->owned, edges[e]))
				add_target(list, input->special_group, edges[e]);
	}
}

static void list_all(struct target_list *list)
{
	list_roots(list);
	list_owned(list);
	list_specials(list);
}

/* Counts become beginnings, which the second listing moves on to be ends. */
static struct error *fill_targets(struct dominator_search *search, struct target_list *list)
{
	uint64_t sum = 0;
	struct error *err;

	for (uint32_t g = 0; g < search->tree->group_count; g++) {
		uint64_t count = list->ends[g];

		list->ends[g] = sum;
		sum += count;
	}
	err = pages_init(&search->group_target_pages, &search->tree->budget,
			 sum * sizeof(*search->group_targets));
	if (err || !sum)
		return err;
	search->group_targets = list->targets = search->group_target_pages.data;
	list_all(list);
	return NULL;
}

static void note_owned(struct dominator_search *search, uint64_t *owned)
{
	const struct label_owners *owners = search->input->owners;

	for (size_t i = 0; owners && i < owners->count; i++) {
		bitmap_set(owned, owners->items[i].object);
		bitmap_clear_range(search->entries, owners->items[i].object, 1);
	}
}

static struct error *list_targets(struct dominator_search *search)
{
	struct dominators *tree = search->tree;
	struct pages owned_pages = { 0 };
	uint64_t words = bitmap_words(tree->object_end);
	struct target_list list = { .search = search };
	struct error *err = pages_init(&search->group_end_pages, &tree->budget,
				       tree->group_count * sizeof(*search->group_ends));

	if (!err)
		err = pages_init(&owned_pages, &tree->budget, words * sizeof(uint64_t));
	if (err)
		return err;
	search->group_ends = search->group_end_pages.data;
	note_owned(search, owned_pages.data);
	list.owned = owned_pages.data;
	list.ends = search->group_ends;
	list_all(&list);
	err = fill_targets(search, &list);
	pages_fini(&owned_pages);
	return err;
}

const uint32_t *dominator_search_targets(const struct dominator_search *search, uint32_t group,
					 uint64_t *ret_count)
{
	uint64_t start = group ? search->group_ends[group - 1] : 0;

	*ret_count = search->group_ends[group] - start;
	return *ret_count ? search->group_targets + start : NULL;
}

/* ---- the search ---- */

/* Where it stands: at a number, before an edge of it. */
struct searcher {
	struct dominator_search *search;
	const struct graph *graph;
	const uint64_t *entries;
	uint32_t *numbers; /* nobody else has them now */
	uint32_t *nodes, *parents, *semis, *left;
	uint32_t at, last;
	const uint32_t *edge, *end;
};

/* Where the object's edges end, and that one before it; *ret_row is its span's. */
static const uint32_t *ends_of(const struct searcher *s, uint32_t object,
			       const struct graph_row **ret_row)
{
	uint32_t span = span_lookup_span_of(s->graph->lookup, object);

	*ret_row = &s->graph->rows[span];
	return &(*ret_row)->ends[object - s->graph->lookup->first_objects[span]];
}

static void look_at_edges(struct searcher *s, uint32_t object)
{
	const struct graph_row *row;
	const uint32_t *ends = ends_of(s, object, &row);

	s->edge = row->edges + ends[0];
	s->end = row->edges + ends[1];
}

/*
 * There is nothing to do until the edges of an object are there, so those that are next in line are
 * asked for early: of all that an object leads to where their edges are, and of the second the
 * edges themselves when the first is entered.
 */
static void prefetch_targets(const struct searcher *s)
{
	const struct graph_row *row;

	for (uint32_t i = 0; i < EDGES_TO_PREFETCH && s->edge + i < s->end; i++) {
		if (!bitmap_get(s->entries, s->edge[i]))
			continue;
		__builtin_prefetch(&s->numbers[s->edge[i]], 1);
		__builtin_prefetch(ends_of(s, s->edge[i], &row));
	}
}

static void prefetch_edges(const struct searcher *s, uint32_t object)
{
	const struct graph_row *row;
	const uint32_t *ends = ends_of(s, object, &row);

	__builtin_prefetch(row->edges + ends[0]);
}

static uint32_t take_number(struct searcher *s, uint32_t node, uint32_t parent)
{
	uint32_t number = s->last++;

	s->nodes[number] = node;
	s->parents[number] = s->semis[number] = parent;
	return number;
}

static void enter(struct searcher *s, uint32_t object, uint32_t parent)
{
	look_at_edges(s, object);
	prefetch_targets(s);
	s->at = s->numbers[object] = take_number(s, object, parent);
}

/* An edge from the number at to an object with a number. */
static void meet(struct searcher *s, uint32_t at, uint32_t object)
{
	struct dominator_search *search = s->search;
	uint32_t number = s->numbers[object];

	if (number > at) {
		if (at < s->semis[number])
			s->semis[number] = at;
	} else if (number < at) {
		bitmap_set(search->crossed, object);
		search->crossings[number]++;
		search->crossing_count++;
	}
}

static void skip_leaves(struct searcher *s)
{
	while (s->edge < s->end && !bitmap_get(s->entries, *s->edge))
		s->edge++;
}

/* The next object to go to, or OBJECT_NONE when all edges have been followed. */
static uint32_t next_object(struct searcher *s)
{
	for (;;) {
		uint32_t object;

		skip_leaves(s);
		if (s->edge == s->end)
			return OBJECT_NONE;
		object = *s->edge++;
		if (!s->numbers[object])
			return object;
		meet(s, s->at, object);
	}
}

/* Back to the last number with edges left, but not as far as top; false: there is none. */
static bool go_back(struct searcher *s, uint32_t top)
{
	do {
		s->at = s->parents[s->at];
		if (s->at == top)
			return false;
	} while (!s->left[s->at]);
	look_at_edges(s, s->nodes[s->at]);
	s->edge = s->end - s->left[s->at];
	return true;
}

static void search_from(struct searcher *s, uint32_t object, uint32_t group)
{
	enter(s, object, group);
	do {
		while ((object = next_object(s)) != OBJECT_NONE) {
			skip_leaves(s);
			s->left[s->at] = (uint32_t)(s->end - s->edge);
			if (s->edge < s->end)
				prefetch_edges(s, *s->edge);
			enter(s, object, s->at);
		}
	} while (go_back(s, group));
}

/* A group leads to what is its own, too, but not to what has no edges. */
static bool has_edges(const struct searcher *s, uint32_t object)
{
	uint32_t count;

	if (bitmap_get(s->entries, object))
		return true;
	graph_edges(s->graph, object, &count);
	return count;
}

static void search_group(struct searcher *s, uint32_t group)
{
	struct dominators *tree = s->search->tree;
	uint32_t number = take_number(s, dominators_group_node(tree, group), NUMBER_TOP);
	uint64_t count;
	const uint32_t *targets = dominator_search_targets(s->search, group, &count);

	tree->group_numbers[group] = number;
	for (uint64_t i = 0; i < count; i++) {
		if (!has_edges(s, targets[i]))
			continue;
		if (s->numbers[targets[i]])
			meet(s, number, targets[i]);
		else
			search_from(s, targets[i], number);
	}
}

static void search_all(struct dominator_search *search)
{
	struct dominators *tree = search->tree;
	struct searcher s = {
		.search = search,
		.graph = tree->graph,
		.entries = search->entries,
		.numbers = tree->number_pages.data,
		.nodes = tree->nodes,
		.parents = tree->parents,
		.semis = search->semis,
		.left = search->firsts,
		.last = NUMBER_TOP,
	};

	take_number(&s, DOMINATOR_TOP, NUMBER_NONE);
	for (uint32_t group = 0; group < tree->group_count; group++)
		search_group(&s, group);
	/* What is live is what the roots lead to, and owners only say from where. */
	assert(s.last == tree->number_end);
}

/* ---- memory ---- */

struct array {
	struct pages *pages;
	void *place; /* of the pointer to it */
	uint64_t size;
};

static struct error *make_arrays(struct dominators *tree, const struct array *arrays, size_t count)
{
	struct error *err = NULL;

	for (size_t i = 0; i < count && !err; i++) {
		err = pages_init(arrays[i].pages, &tree->budget, arrays[i].size);
		if (!err)
			memcpy(arrays[i].place, &arrays[i].pages->data, sizeof(void *));
	}
	return err;
}

/* So that who asks learns at once what all of it would need. */
static struct error *check_limit(const struct dominators *tree, const struct array *arrays,
				 size_t count)
{
	uint64_t need = tree->budget.used;

	for (size_t i = 0; i < count; i++)
		need += arrays[i].size;
	if (!tree->budget.limit || need <= tree->budget.limit)
		return NULL;
	return error_new(ERROR_OUT_OF_MEMORY,
			 "the dominator tree needs at least %" PRIu64 " MiB, %" PRIu64
			 " MiB are left for it",
			 (need >> 20) + 1, tree->budget.limit >> 20);
}

static struct error *allocate(struct dominator_search *search, uint64_t entry_count)
{
	struct dominators *tree = search->tree;
	uint64_t numbers = entry_count + tree->group_count + NUMBER_TOP + 1;
	uint64_t bytes = numbers * sizeof(uint32_t), bits = bitmap_words(tree->object_end) * 8;
	const struct array arrays[] = {
		{ &tree->group_number_pages, &tree->group_numbers,
		  tree->group_count * sizeof(uint32_t) },
		{ &tree->number_pages, &tree->numbers, tree->object_end * sizeof(uint32_t) },
		{ &tree->node_pages, &tree->nodes, bytes },
		{ &tree->parent_pages, &tree->parents, bytes },
		{ &tree->retained_pages, &tree->retained, 2 * bytes },
		{ &search->semi_pages, &search->semis, bytes },
		{ &search->crossing_pages, &search->crossings, bytes },
		{ &search->crossed_pages, &search->crossed, bits },
	};
	size_t count = sizeof(arrays) / sizeof(arrays[0]);
	struct error *err = check_limit(tree, arrays, count);

	if (!err)
		err = make_arrays(tree, arrays, count);
	if (err)
		return err;
	tree->number_end = (uint32_t)numbers;
	search->firsts = (uint32_t *)tree->retained;
	search->seconds = search->firsts + numbers;
	return NULL;
}

static struct error *check_count(const struct dominators *tree)
{
	if ((uint64_t)tree->object_end + tree->group_count < DOMINATOR_NONE - NUMBER_TOP)
		return NULL;
	return error_new(ERROR_LIMIT, "more than 2^32 objects and roots' groups");
}

struct error *dominator_search_run(struct dominator_search *search)
{
	uint64_t entry_count = 0;
	struct error *err = check_count(search->tree);

	if (!err)
		err = note_entries(search, &entry_count);
	if (!err)
		err = list_targets(search);
	if (!err)
		err = allocate(search, entry_count);
	if (!err)
		search_all(search);
	return err;
}
