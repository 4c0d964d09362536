/*
 * Depth first, after D. J. Pearce, "A space-efficient algorithm for finding strongly connected
 * components" (2016): one number for each object, which is its index while it is on a stack, and
 * then its component's, counted downwards so that it is above all indexes. No recursion: the path
 * is a stack of its own.
 */
#include "agent/analysis/label_component.h"

#include <stdbool.h>
#include <string.h>

#include "agent/analysis/graph_private.h"

enum { FIRST_CAPACITY = 4096, EDGES_TO_PREFETCH = 8 };

/* An object on the path, and how far its edges have been followed. */
struct step {
	const uint32_t *edges;
	uint32_t object, edge_count, next, index;
};

struct stack {
	struct pages pages;
	uint64_t count;
	size_t item_size;
};

struct search {
	const struct graph *graph;
	struct components *components;
	struct budget *budget;
	struct stack path;    /* of struct step */
	struct stack pending; /* of uint32_t: left, but their component is not complete */
	uint32_t index, component;
	uint64_t ordered;
};

static struct error *push(struct stack *stack, struct budget *budget, void **ret)
{
	uint64_t used = stack->count * stack->item_size;

	if (used + stack->item_size > stack->pages.size) {
		uint64_t size = used ? 2 * stack->pages.size : FIRST_CAPACITY * stack->item_size;
		struct pages grown;
		struct error *err = pages_init(&grown, budget, size);

		if (err)
			return err;
		if (used)
			memcpy(grown.data, stack->pages.data, used);
		pages_fini(&stack->pages);
		stack->pages = grown;
	}
	*ret = (uint8_t *)stack->pages.data + used;
	stack->count++;
	return NULL;
}

static struct step *top(const struct search *s)
{
	return (struct step *)s->path.pages.data + s->path.count - 1;
}

static struct error *enter(struct search *s, uint32_t object)
{
	void *place;
	struct step *step;
	struct error *err = push(&s->path, s->budget, &place);

	if (err)
		return err;
	step = place;
	*step = (struct step){ .object = object, .index = s->index };
	step->edges = graph_edges(s->graph, object, &step->edge_count);
	for (uint32_t i = 0; i < step->edge_count && i < EDGES_TO_PREFETCH; i++)
		__builtin_prefetch(&s->components->of[step->edges[i]]);
	s->components->of[object] = s->index++;
	return NULL;
}

static void assign(struct search *s, uint32_t object)
{
	s->components->of[object] = s->component;
	s->components->order[s->ordered++] = object;
	s->index--;
}

/* An object from which nothing earlier can be reached is the head of a component. */
static struct error *leave(struct search *s)
{
	const struct step step = *top(s);
	uint32_t *of = s->components->of, lowest = of[step.object];
	const uint32_t *pending = s->pending.pages.data;
	void *place;
	struct error *err;

	s->path.count--;
	if (lowest != step.index) {
		err = push(&s->pending, s->budget, &place);
		if (!err)
			*(uint32_t *)place = step.object;
		return err;
	}
	while (s->pending.count && of[pending[s->pending.count - 1]] >= lowest)
		assign(s, pending[--s->pending.count]);
	assign(s, step.object);
	s->component--;
	return NULL;
}

/* Follows one edge of the last object of the path, or leaves it. */
static struct error *advance(struct search *s)
{
	struct step *step = top(s);
	uint32_t *of = s->components->of, target;

	if (step->next == step->edge_count)
		return leave(s);
	target = step->edges[step->next];
	if (!of[target])
		return enter(s, target); /* and looks at this edge again afterwards */
	if (of[target] < of[step->object])
		of[step->object] = of[target];
	step->next++;
	return NULL;
}

static struct error *search_from(struct search *s, uint32_t object)
{
	struct error *err = enter(s, object);

	while (!err && s->path.count)
		err = advance(s);
	return err;
}

static struct error *search(struct search *s)
{
	uint32_t end = s->graph->lookup->object_end;
	struct error *err = NULL;

	for (uint32_t object = 1; object < end && !err; object++)
		if (!s->components->of[object])
			err = search_from(s, object);
	return err;
}

struct error *components_find(const struct graph *graph, uint32_t *of, uint64_t object_count,
			      struct budget *budget, struct components *ret)
{
	struct components components = { .of = of, .object_count = object_count };
	struct search s = {
		.graph = graph,
		.components = &components,
		.budget = budget,
		.path.item_size = sizeof(struct step),
		.pending.item_size = sizeof(uint32_t),
		.index = 1,
		.component = (uint32_t)object_count,
	};
	struct error *err =
	    pages_init(&components.order_pages, budget, object_count * sizeof(uint32_t));

	if (err)
		return err;
	components.order = components.order_pages.data;
	of[OBJECT_NONE] = COMPONENT_NONE;
	err = search(&s);
	pages_fini(&s.path.pages);
	pages_fini(&s.pending.pages);
	if (err) {
		components_fini(&components);
		return err;
	}
	components.first = s.component + 1;
	components.count = (uint32_t)object_count - s.component;
	*ret = components;
	return NULL;
}

void components_fini(struct components *components)
{
	pages_fini(&components->order_pages);
	components->order = NULL;
}
