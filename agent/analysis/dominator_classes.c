/*
 * What the objects of each class retain together. An object counts if no other of its class
 * dominates it. In an order in which what a node dominates comes right behind it, all side by side,
 * that is told by where the last one that counted ends:
 *
 *	place    0    1     2    3    4     5
 *	class   top   A     B    A    B     A      A: 1 counts and ends before 4, so 3 does not, 5
 *does
 *	        `-----|-----|----'    |     |
 *	              `- ends at 4    `- 5  `- 6
 *
 * Objects without edges have no place. Whether one counts is asked for its dominator's place, of
 * where those that counted begin, and only if there are any: types with pointers rarely have
 * objects without edges, and others no objects with.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/dominators_private.h"
#include "agent/analysis/workers.h"

enum { SPANS_AT_ONCE = 256 };

struct class_sum {
	const struct dominators *tree;
	const struct dominator_classes *classes;
	uint64_t *retained; /* by class */
	struct budget budget;
	/* By number: how many it dominates, itself included, and its place. */
	uint32_t *sizes, *places;
	uint32_t *numbers; /* by place */
	/* By class: where the last one that counted ends; then where its begins end. */
	uint32_t *ends;
	uint32_t *begins;  /* places of those that count, class after class */
	uint64_t *counted; /* by place, as bits */
	struct pages size_pages, place_pages, number_pages, end_pages, begin_pages, counted_pages;
	_Atomic uint32_t next_span;
};

static void sum_fini(struct class_sum *sum)
{
	pages_fini(&sum->size_pages);
	pages_fini(&sum->place_pages);
	pages_fini(&sum->number_pages);
	pages_fini(&sum->end_pages);
	pages_fini(&sum->begin_pages);
	pages_fini(&sum->counted_pages);
}

static struct error *make(struct class_sum *sum, struct pages *pages, uint64_t count,
			  uint32_t **ret)
{
	struct error *err = pages_init(pages, &sum->budget, count * sizeof(uint32_t));

	*ret = pages->data;
	return err;
}

static struct error *sum_init(struct class_sum *sum)
{
	uint64_t count = sum->tree->number_end;
	struct error *err = make(sum, &sum->size_pages, count, &sum->sizes);

	if (!err)
		err = make(sum, &sum->place_pages, count, &sum->places);
	if (!err)
		err = make(sum, &sum->number_pages, count, &sum->numbers);
	if (!err)
		err = make(sum, &sum->end_pages, sum->classes->class_count, &sum->ends);
	if (!err)
		err = pages_init(&sum->counted_pages, &sum->budget,
				 bitmap_words(count) * sizeof(uint64_t));
	sum->counted = sum->counted_pages.data;
	return err;
}

/* Each number's place is the next one free in its dominator's range; ranges begin in numbers. */
static void find_places(struct class_sum *sum)
{
	const struct dominators *tree = sum->tree;
	uint32_t *next = sum->numbers;

	for (uint32_t n = NUMBER_TOP; n < tree->number_end; n++)
		sum->sizes[n] = 1;
	for (uint32_t n = tree->number_end; --n > NUMBER_TOP;)
		sum->sizes[tree->parents[n]] += sum->sizes[n];
	sum->places[NUMBER_TOP] = 0;
	next[NUMBER_TOP] = 1;
	for (uint32_t n = NUMBER_TOP + 1; n < tree->number_end; n++) {
		uint32_t *free_place = &next[tree->parents[n]];

		sum->places[n] = *free_place;
		next[n] = *free_place + 1;
		*free_place += sum->sizes[n];
	}
	for (uint32_t n = NUMBER_TOP; n < tree->number_end; n++)
		sum->numbers[sum->places[n]] = n;
}

static uint32_t class_at(const struct class_sum *sum, uint32_t place)
{
	uint32_t node = sum->tree->nodes[sum->numbers[place]];

	if (dominators_node_is_group(sum->tree, node))
		return DOMINATOR_NO_CLASS;
	return sum->classes->class_of(sum->classes->arg, node);
}

/* Places begin with the top's. */
static uint32_t place_end(const struct class_sum *sum)
{
	return sum->tree->number_end - NUMBER_TOP;
}

static uint64_t sum_places(struct class_sum *sum)
{
	uint64_t count = 0;

	for (uint32_t place = 1; place < place_end(sum); place++) {
		uint32_t class = class_at(sum, place);
		uint32_t number = sum->numbers[place];

		if (class == DOMINATOR_NO_CLASS || place < sum->ends[class])
			continue;
		sum->retained[class] += sum->tree->retained[number];
		sum->ends[class] = place + sum->sizes[number];
		bitmap_set(sum->counted, place);
		count++;
	}
	return count;
}

/* Where those that counted begin, by class: sorted by counting. */
static struct error *list_begins(struct class_sum *sum, uint64_t count)
{
	uint32_t total = 0;
	struct error *err = make(sum, &sum->begin_pages, count, &sum->begins);

	if (err)
		return err;
	memset(sum->ends, 0, sum->classes->class_count * sizeof(*sum->ends));
	for (uint32_t place = 1; place < place_end(sum); place++)
		if (bitmap_get(sum->counted, place))
			sum->ends[class_at(sum, place)]++;
	for (uint32_t class = 0; class < sum->classes->class_count; class ++) {
		uint32_t of_class = sum->ends[class];

		sum->ends[class] = total;
		total += of_class;
	}
	for (uint32_t place = 1; place < place_end(sum); place++)
		if (bitmap_get(sum->counted, place))
			sum->begins[sum->ends[class_at(sum, place)]++] = place;
	return NULL;
}

/* Is the place that of an object of the class, or of what such a one dominates? */
static bool is_dominated(const struct class_sum *sum, uint32_t class, uint32_t place)
{
	uint32_t low = class ? sum->ends[class - 1] : 0, high = sum->ends[class], begin;

	if (low == high || sum->begins[low] > place)
		return false;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (sum->begins[middle] <= place)
			low = middle;
		else
			high = middle;
	}
	begin = sum->begins[low];
	return place < begin + sum->sizes[sum->numbers[begin]];
}

static void sum_span_leaves(const struct class_sum *sum, uint32_t i, uint64_t *retained)
{
	const struct span *span = span_table_at(sum->tree->graph->spans, i);
	const struct graph_row *row = &sum->tree->graph->rows[i];

	for (uint32_t slot = 0; slot < span->elem_count; slot++) {
		uint32_t object = span->first_object + slot, class;
		uint32_t number = sum->tree->numbers[object];

		if (number == NUMBER_NONE || (row->edges && row->ends[slot] != row->ends[slot + 1]))
			continue;
		class = sum->classes->class_of(sum->classes->arg, object);
		if (class != DOMINATOR_NO_CLASS && !is_dominated(sum, class, sum->places[number]))
			retained[class] += span->elem_size;
	}
}

static struct error *run_sum_leaves(void *arg, unsigned thread)
{
	struct class_sum *sum = arg;
	uint32_t span_count = span_table_count(sum->tree->graph->spans), start;
	uint64_t *retained scoped(freep) = calloc(sum->classes->class_count + (size_t)1, 8);

	(void)thread;
	if (!retained)
		return &error_nomem;
	while ((start = atomic_fetch_add(&sum->next_span, SPANS_AT_ONCE)) < span_count)
		for (uint32_t i = start; i < span_count && i - start < SPANS_AT_ONCE; i++)
			sum_span_leaves(sum, i, retained);
	for (uint32_t class = 0; class < sum->classes->class_count; class ++)
		__atomic_fetch_add(&sum->retained[class], retained[class], __ATOMIC_RELAXED);
	return NULL;
}

static struct error *sum_all(struct class_sum *sum, unsigned thread_count)
{
	struct error *err = sum_init(sum);

	if (err)
		return err;
	find_places(sum);
	err = list_begins(sum, sum_places(sum));
	return err ? err : workers_run(thread_count, run_sum_leaves, sum);
}

struct error *dominators_retained_by_class(const struct dominators *dominators,
					   const struct dominator_classes *classes,
					   uint64_t *retained)
{
	struct class_sum sum = {
		.tree = dominators,
		.classes = classes,
		.retained = retained,
		.budget.limit = classes->memory_limit,
	};
	struct error *err = sum_all(&sum, workers_clamp(classes->thread_count));

	sum_fini(&sum);
	return err ? error_context(err, "retained sizes by class") : NULL;
}
