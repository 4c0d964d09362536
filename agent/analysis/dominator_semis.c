/*
 * Semidominators: for each number the lowest one from which a chain leads to it over higher numbers
 * alone. Numbers are looked at downwards, each with the edges that lead to it from higher numbers
 * (from lower ones the search has noted all there is to know), of which the lowest semidominator on
 * the search's path to where they begin counts: path compression keeps that short.
 *
 * T. Lengauer, R. E. Tarjan, "A fast algorithm for finding dominators in a flowgraph" (1979).
 *
 * The edges backwards are made for a part of the numbers at a time, so that they never take more
 * than an eighth of what all of them would.
 */
#include <stdatomic.h>
#include <string.h>

#include "agent/analysis/dominators_private.h"
#include "agent/analysis/workers.h"

enum {
	SPANS_AT_ONCE = 256,
	PARTS_MAX = 8,
	EDGES_AHEAD = 16,
};

/* Sources of crossing edges to the numbers from first up to end, and how they are found. */
struct crossing_part {
	struct dominator_search *search;
	uint32_t first, end;
	uint32_t *sources;
	_Atomic uint32_t next_span;
};

static void note_crossing(struct crossing_part *part, uint32_t from, uint32_t object)
{
	const struct dominator_search *search = part->search;
	uint32_t to;

	if (!bitmap_get(search->crossed, object))
		return;
	to = search->tree->numbers[object];
	if (to < from && to >= part->first && to < part->end)
		part->sources[atomic_fetch_add_explicit(&search->crossings[to], 1,
							memory_order_relaxed)] = from;
}

/* Edges of a span lie side by side, so what is to be looked at soon is known. */
static void prefetch_number(const struct dominator_search *search, uint32_t object)
{
	if (bitmap_get(search->crossed, object))
		__builtin_prefetch((const void *)&search->tree->numbers[object]);
}

static void follow_span(struct crossing_part *part, uint32_t span)
{
	const struct dominators *tree = part->search->tree;
	const struct graph_row *row = &tree->graph->rows[span];
	uint32_t first = tree->graph->lookup->first_objects[span];
	uint32_t count = tree->graph->lookup->first_objects[span + 1] - first;

	for (uint32_t slot = 0; row->edges && slot < count; slot++) {
		uint32_t from = tree->numbers[first + slot];

		if (from <= part->first)
			continue;
		for (uint32_t i = row->ends[slot]; i < row->ends[slot + 1]; i++) {
			if (row->ends[count] - i > EDGES_AHEAD)
				prefetch_number(part->search, row->edges[i + EDGES_AHEAD]);
			note_crossing(part, from, row->edges[i]);
		}
	}
}

static struct error *run_follow(void *arg, unsigned thread)
{
	struct crossing_part *part = arg;
	uint32_t span_count = span_table_count(part->search->tree->graph->spans), start;

	(void)thread;
	while ((start = atomic_fetch_add(&part->next_span, SPANS_AT_ONCE)) < span_count)
		for (uint32_t i = start; i < span_count && i - start < SPANS_AT_ONCE; i++)
			follow_span(part, i);
	return NULL;
}

static void follow_groups(struct crossing_part *part)
{
	const struct dominators *tree = part->search->tree;

	for (uint32_t group = 0; group < tree->group_count; group++) {
		uint64_t count;
		const uint32_t *targets = dominator_search_targets(part->search, group, &count);

		for (uint64_t i = 0; i < count; i++)
			note_crossing(part, tree->group_numbers[group], targets[i]);
	}
}

/* Counts become beginnings, which filling moves on to be ends. */
static struct error *fill_sources(struct crossing_part *part)
{
	_Atomic uint32_t *crossings = part->search->crossings;
	uint32_t sum = 0;

	for (uint32_t n = part->first; n < part->end; n++) {
		uint32_t count = crossings[n];

		crossings[n] = sum;
		sum += count;
	}
	if (!sum)
		return NULL;
	follow_groups(part);
	return workers_run(part->search->thread_count, run_follow, part);
}

/* ---- the forest ---- */

/*
 * Numbers above the one in work form trees, as the search's tree has them, of which each number
 * knows an ancestor and the lowest semidominator from itself up to below that ancestor.
 */
struct forest {
	uint32_t *ancestors, *lowest;
};

/*
 * The lowest semidominator from a number up to the last of its ancestors above limit. The way up is
 * kept in the ancestors themselves, turned around, and put right on the way down: each then has the
 * last one's.
 */
static uint32_t lowest_above(const struct forest *forest, uint32_t number, uint32_t limit)
{
	uint32_t *ancestors = forest->ancestors, *lowest = forest->lowest;
	uint32_t at = number, below = NUMBER_NONE, beyond, least;

	while (ancestors[at] > limit) {
		uint32_t above = ancestors[at];

		ancestors[at] = below;
		below = at;
		at = above;
	}
	beyond = ancestors[at];
	least = lowest[at];
	while (below != NUMBER_NONE) {
		at = below;
		below = ancestors[at];
		ancestors[at] = beyond;
		if (least < lowest[at])
			lowest[at] = least;
		else
			least = lowest[at];
	}
	return least;
}

static void find_semis(const struct crossing_part *part, const struct forest *forest)
{
	const struct dominator_search *search = part->search;

	for (uint32_t n = part->end; n-- > part->first;) {
		uint32_t semi = search->semis[n];
		uint32_t i = n == part->first ? 0 : search->crossings[n - 1];

		for (; i < search->crossings[n]; i++) {
			uint32_t found = lowest_above(forest, part->sources[i], n);

			if (found < semi)
				semi = found;
		}
		search->semis[n] = forest->lowest[n] = semi;
	}
}

/* ---- part by part ---- */

/* As many numbers below end as lead to no more edges than that, but at least one. */
static uint32_t part_first(const struct dominator_search *search, uint32_t end, uint64_t edges)
{
	uint64_t sum = 0;

	while (end > NUMBER_TOP + 1) {
		sum += search->crossings[end - 1];
		if (sum > edges)
			break;
		end--;
	}
	return end;
}

static uint64_t part_edges(const struct dominator_search *search)
{
	uint64_t edges = 2 * (uint64_t)search->tree->number_end;
	uint32_t most = 0;

	if (edges < search->crossing_count / PARTS_MAX)
		edges = search->crossing_count / PARTS_MAX;
	for (uint32_t n = 0; n < search->tree->number_end; n++)
		if (search->crossings[n] > most)
			most = search->crossings[n];
	if (edges < most)
		edges = most;
	return edges < search->crossing_count ? edges : search->crossing_count;
}

static struct error *run_parts(struct dominator_search *search, uint32_t *sources, uint64_t edges)
{
	const struct dominators *tree = search->tree;
	const struct forest forest = { .ancestors = search->firsts, .lowest = search->seconds };
	uint32_t end = tree->number_end;
	struct error *err = NULL;

	memcpy(forest.ancestors, tree->parents, tree->number_end * sizeof(*forest.ancestors));
	while (end > NUMBER_TOP + 1 && !err) {
		struct crossing_part part = {
			.search = search,
			.first = part_first(search, end, edges),
			.end = end,
			.sources = sources,
		};

		err = fill_sources(&part);
		if (!err)
			find_semis(&part, &forest);
		end = part.first;
	}
	return err;
}

struct error *dominator_semis_find(struct dominator_search *search)
{
	struct pages pages;
	uint64_t edges;
	struct error *err;

	if (!search->crossing_count)
		return NULL; /* all edges lead down the search's tree */
	if (search->crossing_count > UINT32_MAX)
		return error_new(ERROR_LIMIT, "more than 2^32 pointers that lead back");
	edges = part_edges(search);
	err = pages_init(&pages, &search->tree->budget, edges * sizeof(uint32_t));
	if (err)
		return err;
	err = run_parts(search, pages.data, edges);
	pages_fini(&pages);
	return err;
}
