/*
 * Children of a node, found by looking at everything: those with edges by their numbers, which are
 * higher than the node's, the others by object. The best of a page are kept in a heap, the worst of
 * them on top.
 */
#include <stdlib.h>

#include "agent/analysis/dominators_private.h"

struct page {
	const struct dominator_child *after;
	struct dominator_child *children; /* a heap */
	uint32_t limit, count;
	bool more;
};

/* The order of pages. */
static bool comes_before(const struct dominator_child *a, const struct dominator_child *b)
{
	return a->retained != b->retained ? a->retained > b->retained : a->node < b->node;
}

static void swap(struct dominator_child *a, struct dominator_child *b)
{
	struct dominator_child held = *a;

	*a = *b;
	*b = held;
}

/* Lets the child at the top sink to its place among the first count. */
static void sink(struct dominator_child *heap, uint32_t count)
{
	for (uint64_t at = 0, child; (child = 2 * at + 1) < count; at = child) {
		if (child + 1 < count && comes_before(&heap[child], &heap[child + 1]))
			child++;
		if (!comes_before(&heap[at], &heap[child]))
			return;
		swap(&heap[at], &heap[child]);
	}
}

static void rise(struct dominator_child *heap, uint32_t at)
{
	while (at && comes_before(&heap[(at - 1) / 2], &heap[at])) {
		swap(&heap[at], &heap[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
}

static void add_child(struct page *page, uint32_t node, uint64_t retained)
{
	const struct dominator_child child = { .node = node, .retained = retained };

	if (page->after && !comes_before(page->after, &child))
		return;
	if (page->count < page->limit) {
		page->children[page->count] = child;
		rise(page->children, page->count++);
		return;
	}
	page->more = true;
	if (!page->limit || !comes_before(&child, page->children))
		return;
	page->children[0] = child;
	sink(page->children, page->count);
}

static void add_leaves(struct page *page, const struct dominators *tree, uint32_t number)
{
	const uint32_t *numbers = tree->number_pages.data;
	uint32_t node = tree->nodes[number];

	for (uint32_t i = 0; i < span_table_count(tree->graph->spans); i++) {
		const struct span *span = span_table_at(tree->graph->spans, i);
		uint32_t end = span->first_object + span->elem_count;

		for (uint32_t object = span->first_object; object < end; object++)
			if (numbers[object] == number && object != node)
				add_child(page, object, span->elem_size);
	}
}

/* The heap's worst goes behind all others, over and over. */
static void sort_page(struct page *page)
{
	for (uint32_t left = page->count; left > 1; left--) {
		swap(&page->children[0], &page->children[left - 1]);
		sink(page->children, left - 1);
	}
}

uint32_t dominators_children(const struct dominators *dominators, uint32_t node,
			     const struct dominator_child *after, struct dominator_child *children,
			     uint32_t limit, bool *ret_more)
{
	struct page page = { .after = after, .children = children, .limit = limit };
	uint32_t number = dominator_number(dominators, node);

	if (number != NUMBER_NONE) {
		for (uint32_t n = number + 1; n < dominators->number_end; n++)
			if (dominators->parents[n] == number)
				add_child(&page, dominators->nodes[n], dominators->retained[n]);
		add_leaves(&page, dominators, number);
		sort_page(&page);
	}
	*ret_more = page.more;
	return page.count;
}

/* ---- how many they are ---- */

struct counted {
	uint32_t number, place;
};

struct counting {
	uint64_t *wanted;      /* by number */
	struct counted *nodes; /* by number */
	uint32_t count;
	uint64_t *counts;
};

static int by_number(const void *a, const void *b)
{
	const struct counted *left = a, *right = b;

	return (left->number > right->number) - (left->number < right->number);
}

static void count_child(const struct counting *counting, uint32_t number)
{
	const struct counted key = { .number = number };
	const struct counted *found;

	if (!bitmap_get(counting->wanted, number))
		return;
	found = bsearch(&key, counting->nodes, counting->count, sizeof(key), by_number);
	counting->counts[found->place]++;
}

static void count_all(const struct counting *counting, const struct dominators *tree)
{
	const uint32_t *numbers = tree->number_pages.data;

	for (uint32_t n = NUMBER_TOP + 1; n < tree->number_end; n++)
		count_child(counting, tree->parents[n]);
	for (uint32_t object = 1; object < tree->object_end; object++)
		count_child(counting, numbers[object]);
}

/* What has edges was counted among its own children. */
static void leave_out_itself(const struct counting *counting, const struct dominators *tree)
{
	for (uint32_t i = 0; i < counting->count; i++)
		if (!dominators_node_is_group(tree, tree->nodes[counting->nodes[i].number]))
			counting->counts[counting->nodes[i].place]--;
}

struct error *dominators_count_children(const struct dominators *dominators,
					const struct dominator_child *children, uint32_t count,
					uint64_t *counts)
{
	uint64_t *wanted scoped(freep) =
	    calloc(bitmap_words(dominators->number_end), sizeof(*wanted));
	struct counted *nodes scoped(freep) = calloc(count + (size_t)1, sizeof(*nodes));
	struct counting counting = { .wanted = wanted, .nodes = nodes, .counts = counts };

	if (!wanted || !nodes)
		return &error_nomem;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t number = dominator_number(dominators, children[i].node);

		counts[i] = 0;
		if (number == NUMBER_NONE)
			continue;
		bitmap_set(wanted, number);
		nodes[counting.count++] = (struct counted){ .number = number, .place = i };
	}
	qsort(nodes, counting.count, sizeof(*nodes), by_number);
	count_all(&counting, dominators);
	leave_out_itself(&counting, dominators);
	return NULL;
}
