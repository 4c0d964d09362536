/* The walk is that of mark.c, with a colour in place of a mark. */
#include "agent/analysis/label_color.h"

#include <stdlib.h>

#include "agent/analysis/graph_private.h"
#include "agent/analysis/label_owner.h"
#include "agent/analysis/root_set.h"
#include "agent/analysis/work_pool.h"
#include "agent/analysis/workers.h"
#include "agent/goruntime/special.h"

enum {
	QUEUE_SIZE = 32, /* a power of two */
	QUEUE_EDGES = 20,
	QUEUE_COLORS = 10,
	EDGES_TO_PREFETCH = 16,
	EDGES_AHEAD = 16, /* where edges are looked at in their order */
	AT_ONCE = 1024,
};

struct painting {
	struct coloring *coloring;
	enum mark_phase phase;
	_Atomic uint64_t next_span, next_root, next_special;
	_Atomic uint64_t found_bytes; /* in a later phase */
	struct work_pool pool;
};

struct queued {
	uint32_t object;
	uint32_t slot;
	const struct graph_row *row;
};

/* One thread's. */
struct painter {
	struct painting *painting;
	const struct graph *graph;
	_Atomic uint32_t *colors;
	uint64_t found_bytes;
	struct work work;
	uint32_t head, length;
	struct queued queue[QUEUE_SIZE];
};

/* Of an object that nothing led to before. */
static void count_found(struct painter *p, uint32_t object)
{
	uint32_t span;

	if (p->painting->phase == MARK_EXACT)
		return;
	span = span_lookup_span_of(p->graph->lookup, object);
	p->found_bytes += span_table_at(p->graph->spans, span)->elem_size;
}

static struct error *visit_owned(struct painter *p, uint32_t object)
{
	uint32_t old = atomic_fetch_or_explicit(&p->colors[object], (uint32_t)COLOR_FOUND,
						memory_order_relaxed);

	if (old & COLOR_FOUND)
		return NULL;
	count_found(p, object);
	return old & COLOR_HAS_EDGES ? work_push(&p->work, object) : NULL;
}

/* Raises an object's colour; what it leads to must then be raised too. */
static struct error *visit(struct painter *p, uint32_t object, uint32_t color)
{
	uint32_t old = atomic_load_explicit(&p->colors[object], memory_order_relaxed), raised;

	do {
		uint32_t bare = old & COLOR_MASK;

		if (old & COLOR_OWNED)
			return visit_owned(p, object);
		if (bare == color || bare == COLOR_SHARED)
			return NULL;
		raised = (old & COLOR_HAS_EDGES) | (bare ? (uint32_t)COLOR_SHARED : color);
	} while (!atomic_compare_exchange_weak_explicit(
	    &p->colors[object], &old, raised, memory_order_relaxed, memory_order_relaxed));
	if (!(old & COLOR_MASK))
		count_found(p, object);
	return old & COLOR_HAS_EDGES ? work_push(&p->work, object) : NULL;
}

static struct error *visit_edges(struct painter *p, const struct queued *queued)
{
	uint32_t color =
	    atomic_load_explicit(&p->colors[queued->object], memory_order_relaxed) & COLOR_MASK;
	struct error *err = NULL;

	for (uint32_t i = queued->row->ends[queued->slot];
	     i < queued->row->ends[queued->slot + 1] && !err; i++)
		if (queued->row->edges[i] != OBJECT_NONE)
			err = visit(p, queued->row->edges[i], color);
	return err;
}

static const struct queued *queued_at(const struct painter *p, uint32_t place)
{
	return &p->queue[(p->head + place) % QUEUE_SIZE];
}

static void prefetch_colors(const struct painter *p, const struct queued *queued)
{
	const uint32_t *ends = &queued->row->ends[queued->slot];
	uint32_t count = ends[1] - ends[0];

	if (count > EDGES_TO_PREFETCH)
		count = EDGES_TO_PREFETCH;
	for (uint32_t i = 0; i < count; i++)
		__builtin_prefetch(&p->colors[queued->row->edges[ends[0] + i]], 1);
}

static void enqueue(struct painter *p, uint32_t object)
{
	uint32_t span = span_lookup_span_of(p->graph->lookup, object);
	struct queued *last = &p->queue[(p->head + p->length) % QUEUE_SIZE];

	last->object = object;
	last->row = &p->graph->rows[span];
	last->slot = object - p->graph->lookup->first_objects[span];
	__builtin_prefetch(&last->row->ends[last->slot]);
	p->length++;
	if (p->length > QUEUE_EDGES) {
		const struct queued *next = queued_at(p, QUEUE_EDGES);

		__builtin_prefetch(&next->row->edges[next->row->ends[next->slot]]);
	}
	if (p->length > QUEUE_COLORS)
		prefetch_colors(p, queued_at(p, QUEUE_COLORS));
}

static struct error *drain(struct painter *p)
{
	uint32_t object;
	struct error *err;

	for (;;) {
		while (p->length < QUEUE_SIZE && work_pop(&p->work, &object))
			enqueue(p, object);
		if (!p->length)
			return NULL;
		p->length--;
		err = visit_edges(p, &p->queue[p->head]);
		p->head = (p->head + 1) % QUEUE_SIZE;
		if (!err)
			err = work_share(&p->work);
		if (err)
			return err;
	}
}

static bool next_piece(_Atomic uint64_t *next, uint64_t count, uint64_t *ret_start,
		       uint64_t *ret_end)
{
	uint64_t start = atomic_fetch_add(next, AT_ONCE);

	if (start >= count)
		return false;
	*ret_start = start;
	*ret_end = count - start < AT_ONCE ? count : start + AT_ONCE;
	return true;
}

static struct error *paint_roots(struct painter *p, uint64_t start, uint64_t end)
{
	const struct label_attribution *input = p->painting->coloring->input;
	struct error *err = NULL;

	for (uint64_t i = start; i < end && !err; i++) {
		const struct heap_root *root = root_set_at(input->roots, i);

		if (mark_phase_of((enum root_kind)root->kind) == p->painting->phase)
			err = visit(p, root->object, label_party_of_root(input, root) + 1);
	}
	return err ? err : drain(p);
}

/* The fields of an object with a finalizer are roots; runtime/mgcmark.go, markrootSpans. */
static struct error *paint_specials(struct painter *p, uint64_t start, uint64_t end)
{
	const struct label_attribution *input = p->painting->coloring->input;
	struct error *err = NULL;

	for (uint64_t i = start; i < end && !err; i++) {
		const struct special *special = special_table_at(input->specials, (uint32_t)i);
		const uint32_t *edges;
		uint32_t count;

		if (special->kind != SPECIAL_FINALIZER)
			continue;
		edges = graph_edges(p->graph, special->object, &count);
		for (uint32_t e = 0; e < count && !err; e++)
			if (edges[e] != OBJECT_NONE)
				err = visit(p, edges[e], label_global_party(input) + 1);
	}
	return err ? err : drain(p);
}

static struct error *paint_all(struct painter *p)
{
	struct painting *painting = p->painting;
	const struct label_attribution *input = painting->coloring->input;
	uint64_t specials =
	    painting->phase == MARK_EXACT ? special_table_count(input->specials) : 0;
	uint64_t start, end;
	struct error *err = NULL;

	while (!err && next_piece(&painting->next_root, root_set_count(input->roots), &start, &end))
		err = paint_roots(p, start, end);
	while (!err && next_piece(&painting->next_special, specials, &start, &end))
		err = paint_specials(p, start, end);
	while (!err && work_refill(&p->work))
		err = drain(p);
	return err;
}

static struct error *run_painter(void *arg, unsigned i)
{
	struct painting *painting = arg;
	struct painter p = { .painting = painting, .colors = painting->coloring->colors };
	struct error *err;

	(void)i;
	p.graph = painting->coloring->input->graph;
	err = work_join(&p.work, &painting->pool);
	if (err)
		return err;
	err = paint_all(&p);
	if (err)
		work_abort(&p.work);
	work_leave(&p.work);
	atomic_fetch_add(&painting->found_bytes, p.found_bytes);
	return err;
}

static void note_edges(struct coloring *coloring, uint32_t i)
{
	const struct span *span = span_table_at(coloring->input->graph->spans, i);
	const struct graph_row *row = &coloring->input->graph->rows[i];
	_Atomic uint32_t *colors = coloring->colors + span->first_object;

	for (uint32_t slot = 0; row->edges && slot < span->elem_count; slot++)
		if (row->ends[slot] != row->ends[slot + 1])
			atomic_store_explicit(&colors[slot], COLOR_HAS_EDGES, memory_order_relaxed);
}

static struct error *run_note_edges(void *arg, unsigned i)
{
	struct painting *painting = arg;
	uint64_t start, end;

	(void)i;
	while (next_piece(&painting->next_span,
			  span_table_count(painting->coloring->input->graph->spans), &start, &end))
		for (; start < end; start++)
			note_edges(painting->coloring, (uint32_t)start);
	return NULL;
}

/* Before any walk: what is owned keeps its colour. */
static void claim_owned(struct coloring *coloring)
{
	const struct label_attribution *input = coloring->input;

	for (size_t i = 0; i < input->owners->count; i++) {
		const struct label_owner *owner = &input->owners->items[i];

		atomic_fetch_or_explicit(&coloring->colors[owner->object],
					 COLOR_OWNED | (label_party_of_owner(input, owner) + 1),
					 memory_order_relaxed);
	}
}

/* What is owned and was not found is nobody's. */
static void disown_garbage(struct coloring *coloring)
{
	const struct label_owners *owners = coloring->input->owners;

	for (size_t i = 0; i < owners->count; i++) {
		_Atomic uint32_t *color = &coloring->colors[owners->items[i].object];

		if (!(atomic_load_explicit(color, memory_order_relaxed) & COLOR_FOUND))
			atomic_fetch_and_explicit(color, ~(uint32_t)COLOR_MASK,
						  memory_order_relaxed);
	}
}

static struct error *paint_phase(struct coloring *coloring, enum mark_phase phase)
{
	struct painting painting = { .coloring = coloring, .phase = phase };
	unsigned threads = workers_clamp(coloring->input->thread_count);
	struct error *err;

	work_pool_init(&painting.pool);
	err = workers_run(threads, run_painter, &painting);
	work_pool_fini(&painting.pool);
	coloring->later_bytes[phase] = painting.found_bytes;
	return err;
}

static struct error *paint(struct coloring *coloring)
{
	struct painting painting = { .coloring = coloring };
	unsigned threads = workers_clamp(coloring->input->thread_count);
	struct error *err = workers_run(threads, run_note_edges, &painting);

	if (err)
		return err;
	claim_owned(coloring);
	for (enum mark_phase phase = MARK_EXACT; phase < MARK_PHASE_COUNT && !err; phase++)
		err = paint_phase(coloring, phase);
	disown_garbage(coloring);
	return err;
}

struct error *coloring_init(struct coloring *coloring, const struct label_attribution *input,
			    struct budget *budget)
{
	uint64_t objects = input->graph->lookup->object_end;
	struct error *err;

	*coloring = (struct coloring){ .input = input, .budget = budget };
	err = pages_init(&coloring->pages, budget, objects * sizeof(*coloring->colors));
	if (err)
		return err;
	coloring->colors = coloring->pages.data;
	err = paint(coloring);
	if (err)
		coloring_fini(coloring);
	return err;
}

void coloring_fini(struct coloring *coloring)
{
	pages_fini(&coloring->pages);
	coloring->colors = NULL;
}

/* ---- what each party holds alone ---- */

struct counting {
	const struct coloring *coloring;
	object_state *states;      /* or NULL */
	struct party_usage *usage; /* by thread and party */
	_Atomic uint64_t next_span;
	_Atomic uint64_t shared_objects, shared_bytes;
};

static void count_span(struct counting *c, const struct span *span, struct party_usage *usage)
{
	uint64_t shared = 0;

	for (uint32_t slot = 0; slot < span->elem_count; slot++) {
		uint32_t object = span->first_object + slot;
		uint32_t color = color_of(c->coloring, object) & COLOR_MASK;

		if (!color)
			continue;
		if (c->states)
			c->states[object] |= STATE_LIVE;
		if (color == COLOR_SHARED) {
			shared++;
		} else {
			usage[color - 1].exclusive.objects++;
			usage[color - 1].exclusive.bytes += span->elem_size;
		}
	}
	if (!shared)
		return;
	atomic_fetch_add_explicit(&c->shared_objects, shared, memory_order_relaxed);
	atomic_fetch_add_explicit(&c->shared_bytes, shared * span->elem_size, memory_order_relaxed);
}

static struct error *run_count(void *arg, unsigned thread)
{
	struct counting *c = arg;
	const struct label_attribution *input = c->coloring->input;
	struct party_usage *usage = c->usage + (size_t)thread * input->party_count;
	uint64_t start, end;

	while (next_piece(&c->next_span, span_table_count(input->graph->spans), &start, &end))
		for (; start < end; start++)
			count_span(c, span_table_at(input->graph->spans, (uint32_t)start), usage);
	return NULL;
}

struct error *coloring_count(const struct coloring *coloring, object_state *states,
			     struct party_usage *usage, struct size_count *ret_shared)
{
	uint32_t parties = coloring->input->party_count;
	unsigned threads = workers_clamp(coloring->input->thread_count);
	struct counting counting = { .coloring = coloring, .states = states };
	struct error *err;

	counting.usage = calloc(threads * (size_t)parties, sizeof(*counting.usage));
	if (!counting.usage)
		return &error_nomem;
	err = workers_run(threads, run_count, &counting);
	for (size_t i = 0; i < threads * (size_t)parties; i++) {
		usage[i % parties].exclusive.objects += counting.usage[i].exclusive.objects;
		usage[i % parties].exclusive.bytes += counting.usage[i].exclusive.bytes;
	}
	free(counting.usage);
	*ret_shared = (struct size_count){ .objects = counting.shared_objects,
					   .bytes = counting.shared_bytes };
	return err;
}

/* ---- entries ---- */

struct entering {
	const struct coloring *coloring;
	_Atomic uint64_t next_span;
	struct pair_list *lists; /* by thread */
};

static struct error *enter_span(const struct coloring *coloring, uint32_t i,
				struct pair_list *entries)
{
	const struct span *span = span_table_at(coloring->input->graph->spans, i);
	const struct graph_row *row = &coloring->input->graph->rows[i];
	struct error *err = NULL;

	for (uint32_t slot = 0; row->edges && slot < span->elem_count && !err; slot++) {
		uint32_t color = color_of(coloring, span->first_object + slot) & COLOR_MASK;

		if (!color_is_party(color))
			continue;
		for (uint32_t e = row->ends[slot]; e < row->ends[slot + 1] && !err; e++) {
			uint32_t target = row->edges[e];

			if (e + EDGES_AHEAD < row->ends[span->elem_count])
				__builtin_prefetch(&coloring->colors[row->edges[e + EDGES_AHEAD]]);
			if (color_is_shared(color_of(coloring, target)))
				err = pair_list_add(entries, color - 1, target);
		}
	}
	return err;
}

static struct error *run_enter(void *arg, unsigned thread)
{
	struct entering *entering = arg;
	uint64_t start, end;
	struct error *err = NULL;

	while (!err &&
	       next_piece(&entering->next_span,
			  span_table_count(entering->coloring->input->graph->spans), &start, &end))
		for (; start < end && !err; start++)
			err = enter_span(entering->coloring, (uint32_t)start,
					 &entering->lists[thread]);
	return err;
}

static struct error *enter_roots(const struct coloring *coloring, struct pair_list *entries)
{
	const struct label_attribution *input = coloring->input;
	struct error *err = NULL;

	for (uint64_t i = 0; i < root_set_count(input->roots) && !err; i++) {
		const struct heap_root *root = root_set_at(input->roots, i);

		if (color_is_shared(color_of(coloring, root->object)))
			err =
			    pair_list_add(entries, label_party_of_root(input, root), root->object);
	}
	for (uint32_t i = 0; i < special_table_count(input->specials) && !err; i++) {
		const struct special *special = special_table_at(input->specials, i);
		const uint32_t *edges;
		uint32_t count;

		if (special->kind != SPECIAL_FINALIZER)
			continue;
		edges = graph_edges(input->graph, special->object, &count);
		for (uint32_t e = 0; e < count && !err; e++)
			if (color_is_shared(color_of(coloring, edges[e])))
				err = pair_list_add(entries, label_global_party(input), edges[e]);
	}
	return err;
}

struct error *coloring_entries(const struct coloring *coloring, struct pair_list *entries)
{
	unsigned threads = workers_clamp(coloring->input->thread_count);
	struct pair_list *lists scoped(freep) = calloc(threads, sizeof(*lists));
	struct entering entering = { .coloring = coloring, .lists = lists };
	struct error *err;

	if (!lists)
		return &error_nomem;
	for (unsigned i = 0; i < threads; i++)
		pair_list_init(&lists[i], coloring->budget);
	err = workers_run(threads, run_enter, &entering);
	if (!err)
		err = enter_roots(coloring, entries);
	for (unsigned i = 0; i < threads; i++) {
		if (!err)
			err = pair_list_join(entries, &lists[i]);
		pair_list_fini(&lists[i]);
	}
	return err;
}
