#include "agent/analysis/dominators.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/dominators_private.h"
#include "agent/analysis/mark.h"
#include "agent/analysis/workers.h"

enum { OBJECTS_AHEAD = 16 };

void dominators_free(struct dominators *dominators)
{
	if (!dominators)
		return;
	pages_fini(&dominators->group_number_pages);
	pages_fini(&dominators->number_pages);
	pages_fini(&dominators->node_pages);
	pages_fini(&dominators->parent_pages);
	pages_fini(&dominators->retained_pages);
	free(dominators);
}

static void search_fini(struct dominator_search *search)
{
	pages_fini(&search->group_end_pages);
	pages_fini(&search->group_target_pages);
	pages_fini(&search->entry_pages);
	pages_fini(&search->crossed_pages);
	pages_fini(&search->semi_pages);
	pages_fini(&search->crossing_pages);
}

/* An object with edges has its own number, one without its dominator's. */
static void add_sizes(struct dominators *tree)
{
	const uint32_t *numbers = tree->number_pages.data;

	for (uint32_t i = 0; i < span_table_count(tree->graph->spans); i++) {
		const struct span *span = span_table_at(tree->graph->spans, i);
		uint32_t end = span->first_object + span->elem_count;

		for (uint32_t object = span->first_object; object < end; object++) {
			if (end - object > OBJECTS_AHEAD)
				__builtin_prefetch(&tree->retained[numbers[object + OBJECTS_AHEAD]],
						   1);
			tree->retained[numbers[object]] += span->elem_size;
		}
	}
	tree->retained[NUMBER_NONE] = 0; /* what is not live */
}

/* Sizes take the place of work arrays. */
static void sum_sizes(struct dominators *tree)
{
	memset(tree->retained, 0, tree->number_end * sizeof(*tree->retained));
	add_sizes(tree);
	for (uint32_t n = tree->number_end; --n > NUMBER_TOP;)
		tree->retained[tree->parents[n]] += tree->retained[n];
}

static struct error *find(struct dominator_search *search)
{
	struct error *err = dominator_search_run(search);

	if (!err)
		err = dominator_semis_find(search);
	if (!err)
		err = dominator_parents_find(search);
	if (!err)
		sum_sizes(search->tree);
	return err;
}

struct error *dominators_find(const struct dominator_input *input, struct dominators **ret)
{
	struct dominators *tree scoped(dominators_freep) = calloc(1, sizeof(*tree));
	struct dominator_search search = {
		.input = input,
		.tree = tree,
		.thread_count = workers_clamp(input->thread_count),
	};
	struct error *err;

	if (!tree)
		return &error_nomem;
	tree->graph = input->graph;
	tree->mark = input->mark;
	tree->budget.limit = input->memory_limit;
	tree->object_end = input->graph->lookup->object_end;
	tree->group_count = input->group_count;
	err = find(&search);
	search_fini(&search);
	if (err)
		return error_context(err, "dominators");
	*ret = take(tree);
	return NULL;
}

uint32_t dominators_group_node(const struct dominators *dominators, uint32_t group)
{
	return dominators->object_end + group;
}

uint32_t dominators_group_count(const struct dominators *dominators)
{
	return dominators->group_count;
}

uint32_t dominators_node_group(const struct dominators *dominators, uint32_t node)
{
	if (node == DOMINATOR_TOP || node < dominators->object_end)
		return UINT32_MAX;
	return node - dominators->object_end;
}

/* *ret_itself: the number is the node's own, and not its dominator's. */
static uint32_t number_of(const struct dominators *tree, uint32_t node, bool *ret_itself)
{
	uint32_t number;

	if (node == DOMINATOR_TOP)
		number = NUMBER_TOP;
	else if (dominators_node_is_group(tree, node))
		number = tree->group_numbers[node - tree->object_end];
	else
		number = tree->numbers[node];
	*ret_itself = tree->nodes[number] == node;
	return number;
}

uint32_t dominator_number(const struct dominators *tree, uint32_t node)
{
	bool itself;
	uint32_t number = number_of(tree, node, &itself);

	return itself ? number : NUMBER_NONE;
}

uint32_t dominators_parent(const struct dominators *dominators, uint32_t node)
{
	bool itself;
	uint32_t number = number_of(dominators, node, &itself);

	if (number == NUMBER_NONE || node == DOMINATOR_TOP)
		return DOMINATOR_NONE;
	return dominators->nodes[itself ? dominators->parents[number] : number];
}

uint64_t dominators_retained(const struct dominators *dominators, uint32_t node)
{
	bool itself;
	uint32_t number = number_of(dominators, node, &itself);

	if (itself || number == NUMBER_NONE)
		return dominators->retained[number];
	return span_table_span_of(dominators->graph->spans, node)->elem_size;
}

uint64_t dominators_memory(const struct dominators *dominators)
{
	return dominators->budget.used;
}
