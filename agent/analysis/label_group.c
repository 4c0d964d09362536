#include "agent/analysis/label_group.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "agent/analysis/graph_private.h"
#include "agent/analysis/label_component.h"
#include "agent/analysis/workers.h"

enum { SPANS_AT_ONCE = 256, OBJECTS_AT_ONCE = 256 << 10, EDGES_AHEAD = 16 };

/* Of a component whose group is not known yet: several groups lead to it. */
#define GROUP_SEVERAL (UINT32_MAX - 1)

struct folding {
	const struct graph *graph;
	struct budget *budget;
	struct components components;
	uint64_t *entered; /* by object */
	uint32_t *group;   /* by component less the first: its group, or which leads to it so far */
	struct pages entered_pages, group_pages;
	struct groups *groups;
	/* Of the sweep for edges. */
	_Atomic uint32_t next_span;
	struct pair_list *lists; /* by thread */
};

static void folding_fini(struct folding *f)
{
	components_fini(&f->components);
	pages_fini(&f->entered_pages);
	pages_fini(&f->group_pages);
}

/* ---- what is done to each object ---- */

struct object_walk {
	struct folding *f;
	uint32_t *of;
	void (*visit)(const struct folding *f, uint32_t *of);
	_Atomic uint64_t next;
};

static struct error *walk_objects(void *arg, unsigned thread)
{
	struct object_walk *walk = arg;
	uint64_t end = walk->f->graph->lookup->object_end, start;

	(void)thread;
	while ((start = atomic_fetch_add(&walk->next, OBJECTS_AT_ONCE)) < end)
		for (uint64_t i = start; i < end && i - start < OBJECTS_AT_ONCE; i++)
			walk->visit(walk->f, &walk->of[i]);
	return NULL;
}

/* A colour becomes what components_find wants. */
static void prepare_object(const struct folding *f, uint32_t *of)
{
	(void)f;
	*of = color_is_shared(*of) ? 0 : COMPONENT_NONE;
}

static void name_group(const struct folding *f, uint32_t *of)
{
	if (*of != COMPONENT_NONE)
		*of = f->group[*of - f->components.first];
}

/* ---- folding ---- */

static struct error *note_entered(struct folding *f, const struct pair_list *entries)
{
	uint64_t words = bitmap_words(f->graph->lookup->object_end);
	struct error *err = pages_init(&f->entered_pages, f->budget, words * sizeof(uint64_t));

	if (err)
		return err;
	f->entered = f->entered_pages.data;
	for (uint64_t i = 0; i < entries->count; i++)
		bitmap_set(f->entered, pair_second(entries->pairs[i]));
	return NULL;
}

/* Tells the components to which this one leads. */
static void lead_on(struct folding *f, uint32_t object, uint32_t component, uint32_t group)
{
	uint32_t count;
	const uint32_t *edges = graph_edges(f->graph, object, &count);

	for (uint32_t i = 0; i < count; i++) {
		uint32_t target = f->components.of[edges[i]], *place;

		if (target == COMPONENT_NONE || target == component)
			continue;
		place = &f->group[target - f->components.first];
		if (*place == GROUP_NONE)
			*place = group;
		else if (*place != group)
			*place = GROUP_SEVERAL;
	}
}

static uint32_t choose_group(struct folding *f, uint32_t component, bool entered)
{
	uint32_t *place = &f->group[component - f->components.first];

	if (entered || *place == GROUP_NONE || *place == GROUP_SEVERAL)
		*place = f->groups->count++;
	return *place;
}

static void fold_component(struct folding *f, const uint32_t *objects, uint64_t count)
{
	uint32_t component = f->components.of[objects[0]], group;
	bool entered = false;

	for (uint64_t i = 0; i < count; i++)
		entered |= bitmap_get(f->entered, objects[i]);
	group = choose_group(f, component, entered);
	for (uint64_t i = 0; i < count; i++) {
		uint32_t span = span_lookup_span_of(f->graph->lookup, objects[i]);

		f->groups->sizes[group].objects++;
		f->groups->sizes[group].bytes += span_table_at(f->graph->spans, span)->elem_size;
		lead_on(f, objects[i], component, group);
	}
}

/* From the components that only parties lead to, to those they lead to. */
static struct error *fold(struct folding *f)
{
	const struct components *c = &f->components;
	uint64_t end = c->object_count, start;
	struct error *err = pages_init(&f->group_pages, f->budget, c->count * sizeof(uint32_t));

	if (!err)
		err = pages_init(&f->groups->size_pages, f->budget,
				 c->count * sizeof(struct size_count));
	if (err)
		return err;
	f->group = f->group_pages.data;
	f->groups->sizes = f->groups->size_pages.data;
	for (uint32_t i = 0; i < c->count; i++)
		f->group[i] = GROUP_NONE;
	for (; end; end = start) {
		for (start = end - 1;
		     start && c->of[c->order[start - 1]] == c->of[c->order[start]];)
			start--;
		fold_component(f, c->order + start, end - start);
	}
	pages_trim(&f->groups->size_pages, f->groups->count * sizeof(struct size_count));
	return NULL;
}

static struct error *connect_span(struct folding *f, uint32_t i, struct pair_list *edges)
{
	const struct span *span = span_table_at(f->graph->spans, i);
	const struct graph_row *row = &f->graph->rows[i];
	struct error *err = NULL;

	for (uint32_t slot = 0; row->edges && slot < span->elem_count && !err; slot++) {
		uint32_t group = f->groups->of[span->first_object + slot];

		if (group == GROUP_NONE)
			continue;
		for (uint32_t e = row->ends[slot]; e < row->ends[slot + 1] && !err; e++) {
			uint32_t target = f->groups->of[row->edges[e]];

			if (e + EDGES_AHEAD < row->ends[span->elem_count])
				__builtin_prefetch(&f->groups->of[row->edges[e + EDGES_AHEAD]]);
			if (target != GROUP_NONE && target != group)
				err = pair_list_add(edges, group, target);
		}
	}
	return err;
}

static struct error *run_connect(void *arg, unsigned thread)
{
	struct folding *f = arg;
	uint32_t span_count = span_table_count(f->graph->spans), start;
	struct error *err = NULL;

	while (!err && (start = atomic_fetch_add(&f->next_span, SPANS_AT_ONCE)) < span_count)
		for (uint32_t i = start; i < span_count && i - start < SPANS_AT_ONCE && !err; i++)
			err = connect_span(f, i, &f->lists[thread]);
	return err;
}

static struct error *connect(struct folding *f, unsigned threads)
{
	struct pair_list *lists scoped(freep) = calloc(threads, sizeof(*lists));
	struct error *err;

	if (!lists)
		return &error_nomem;
	f->lists = lists;
	for (unsigned i = 0; i < threads; i++)
		pair_list_init(&lists[i], f->budget);
	err = workers_run(threads, run_connect, f);
	for (unsigned i = 0; i < threads; i++) {
		if (!err)
			err = pair_list_join(&f->groups->edges, &lists[i]);
		pair_list_fini(&lists[i]);
	}
	return err ? err : pair_list_sort(&f->groups->edges);
}

static struct error *find(struct folding *f, struct coloring *coloring, uint64_t shared_count,
			  struct pair_list *entries)
{
	unsigned threads = workers_clamp(coloring->input->thread_count);
	uint32_t *of = coloring->pages.data;
	struct object_walk prepare = { .f = f, .of = of, .visit = prepare_object };
	struct object_walk name = { .f = f, .of = of, .visit = name_group };
	struct error *err = workers_run(threads, walk_objects, &prepare);

	if (!err)
		err = components_find(f->graph, of, shared_count, f->budget, &f->components);
	if (!err)
		err = note_entered(f, entries);
	if (!err)
		err = fold(f);
	if (!err)
		err = workers_run(threads, walk_objects, &name);
	if (err)
		return err;
	folding_fini(f);
	f->groups->of = of;
	for (uint64_t i = 0; i < entries->count; i++)
		entries->pairs[i] = (uint64_t)of[pair_second(entries->pairs[i])] << 32 |
				    pair_first(entries->pairs[i]);
	err = pair_list_sort_by_first(entries);
	return err ? err : connect(f, threads);
}

struct error *groups_find(struct coloring *coloring, uint64_t shared_count,
			  struct pair_list *entries, struct groups *ret)
{
	struct folding f = {
		.graph = coloring->input->graph,
		.budget = coloring->budget,
		.groups = ret,
	};
	struct error *err;

	ret->count = 0;
	ret->of = NULL;
	ret->sizes = NULL;
	ret->size_pages = (struct pages){ 0 };
	pair_list_init(&ret->edges, coloring->budget);
	err = find(&f, coloring, shared_count, entries);
	folding_fini(&f);
	if (err)
		groups_fini(ret);
	return err;
}

void groups_fini(struct groups *groups)
{
	pages_fini(&groups->size_pages);
	pair_list_fini(&groups->edges);
}
