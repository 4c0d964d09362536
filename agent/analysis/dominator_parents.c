/*
 * From semidominators to dominators: the dominator of a number is the lowest common ancestor, in
 * the tree of dominators, of its semidominator and its parent in the search's tree, so that the
 * tree grows downwards, from lower numbers to higher ones.
 *
 * L. Georgiadis, R. E. Tarjan, R. F. Werneck, "Finding dominators in practice" (2006).
 *
 * Walking up a tree step by step would take for ever in a list of a million whose values are held
 * from elsewhere, too. So each number knows a second ancestor to leap to, such that any way up
 * takes a logarithm of its length (E. W. Myers, "An applicative random-access stack", 1983).
 *
 * Objects without edges come last. Their dominator is the lowest common ancestor of all that lead
 * to them, of which there mostly is one; they are as many as threads can do at a time.
 */
#include <stdatomic.h>

#include "agent/analysis/dominators_private.h"
#include "agent/analysis/label_owner.h"
#include "agent/analysis/workers.h"

enum { SPANS_AT_ONCE = 256, EDGES_AHEAD = 16 };

/* By number; of the top: itself. */
struct ladder {
	const uint32_t *parents;
	uint32_t *leaps, *depths;
};

static void add_rung(const struct ladder *ladder, uint32_t number, uint32_t parent)
{
	uint32_t leap = ladder->leaps[parent], *depths = ladder->depths;

	depths[number] = depths[parent] + 1;
	if (depths[parent] - depths[leap] == depths[leap] - depths[ladder->leaps[leap]])
		ladder->leaps[number] = ladder->leaps[leap];
	else
		ladder->leaps[number] = parent;
}

/* The nearest ancestor, or the number itself, that is no higher than limit. */
static uint32_t climb_to(const struct ladder *ladder, uint32_t number, uint32_t limit)
{
	while (number > limit)
		number =
		    ladder->leaps[number] < limit ? ladder->parents[number] : ladder->leaps[number];
	return number;
}

static uint32_t climb_to_depth(const struct ladder *ladder, uint32_t number, uint32_t depth)
{
	while (ladder->depths[number] > depth) {
		uint32_t leap = ladder->leaps[number];

		number = ladder->depths[leap] < depth ? ladder->parents[number] : leap;
	}
	return number;
}

static uint32_t common_ancestor(const struct ladder *ladder, uint32_t a, uint32_t b)
{
	if (ladder->depths[a] > ladder->depths[b])
		a = climb_to_depth(ladder, a, ladder->depths[b]);
	else
		b = climb_to_depth(ladder, b, ladder->depths[a]);
	while (a != b) {
		if (ladder->leaps[a] != ladder->leaps[b]) {
			a = ladder->leaps[a];
			b = ladder->leaps[b];
		} else {
			a = ladder->parents[a];
			b = ladder->parents[b];
		}
	}
	return a;
}

static struct ladder grow_tree(const struct dominator_search *search)
{
	const struct dominators *tree = search->tree;
	const struct ladder ladder = {
		.parents = tree->parents,
		.leaps = search->firsts,
		.depths = search->seconds,
	};

	ladder.leaps[NUMBER_TOP] = NUMBER_TOP;
	ladder.depths[NUMBER_TOP] = 0;
	for (uint32_t n = NUMBER_TOP + 1; n < tree->number_end; n++) {
		tree->parents[n] = climb_to(&ladder, tree->parents[n], search->semis[n]);
		add_rung(&ladder, n, tree->parents[n]);
	}
	return ladder;
}

/* ---- objects without edges ---- */

struct leaf_walk {
	const struct dominator_search *search;
	const struct ladder *ladder;
	_Atomic uint32_t next_span;
};

/* Whichever threads come first, the outcome is the same. */
static void join_leaf(const struct leaf_walk *walk, uint32_t from, uint32_t object)
{
	_Atomic uint32_t *place = &walk->search->tree->numbers[object];
	uint32_t had = atomic_load_explicit(place, memory_order_relaxed), common;

	do {
		common = had == NUMBER_NONE ? from : common_ancestor(walk->ladder, had, from);
	} while (common != had &&
		 !atomic_compare_exchange_weak_explicit(place, &had, common, memory_order_relaxed,
							memory_order_relaxed));
}

static bool is_leaf(const struct leaf_walk *walk, uint32_t object)
{
	return !bitmap_get(walk->search->entries, object);
}

static void follow_span(const struct leaf_walk *walk, uint32_t span)
{
	const struct dominators *tree = walk->search->tree;
	const struct graph_row *row = &tree->graph->rows[span];
	uint32_t first = tree->graph->lookup->first_objects[span];
	uint32_t count = tree->graph->lookup->first_objects[span + 1] - first;

	for (uint32_t slot = 0; row->edges && slot < count; slot++) {
		uint32_t from;

		if (row->ends[slot] == row->ends[slot + 1])
			continue;
		from = atomic_load_explicit(&tree->numbers[first + slot], memory_order_relaxed);
		if (from == NUMBER_NONE)
			continue;
		for (uint32_t i = row->ends[slot]; i < row->ends[slot + 1]; i++) {
			if (row->ends[count] - i > EDGES_AHEAD)
				__builtin_prefetch(
				    (void *)&tree->numbers[row->edges[i + EDGES_AHEAD]], 1);
			if (is_leaf(walk, row->edges[i]))
				join_leaf(walk, from, row->edges[i]);
		}
	}
}

static struct error *run_follow(void *arg, unsigned thread)
{
	struct leaf_walk *walk = arg;
	uint32_t span_count = span_table_count(walk->search->tree->graph->spans), start;

	(void)thread;
	while ((start = atomic_fetch_add(&walk->next_span, SPANS_AT_ONCE)) < span_count)
		for (uint32_t i = start; i < span_count && i - start < SPANS_AT_ONCE; i++)
			follow_span(walk, i);
	return NULL;
}

/* What a group owns is in its list once, and nothing else leads there. */
static void follow_groups(const struct leaf_walk *walk)
{
	const struct dominator_search *search = walk->search;

	for (uint32_t group = 0; group < search->tree->group_count; group++) {
		uint64_t count;
		const uint32_t *targets = dominator_search_targets(search, group, &count);
		uint32_t from = search->tree->group_numbers[group], edge_count;

		for (uint64_t i = 0; i < count; i++) {
			graph_edges(search->tree->graph, targets[i], &edge_count);
			if (!edge_count)
				join_leaf(walk, from, targets[i]);
		}
	}
}

/* From now on entries are all that is no leaf, or somebody's own. */
static void note_owned(struct dominator_search *search)
{
	const struct label_owners *owners = search->input->owners;

	for (size_t i = 0; owners && i < owners->count; i++)
		bitmap_set(search->entries, owners->items[i].object);
	bitmap_set(search->entries, OBJECT_NONE);
}

struct error *dominator_parents_find(struct dominator_search *search)
{
	const struct ladder ladder = grow_tree(search);
	struct leaf_walk walk = { .search = search, .ladder = &ladder };

	note_owned(search);
	follow_groups(&walk);
	return workers_run(search->thread_count, run_follow, &walk);
}
