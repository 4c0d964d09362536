/*
 * Marking. Every object has a byte of state: is it live, has it edges. A thread marks by a plain
 * store, no locked instruction: of two that meet at an object both may go on to follow it, which
 * costs a little and changes nothing. Objects without edges end there.
 *
 * Nearly every step of a walk through a large heap is a cache miss, so objects to follow go
 * through a short queue on their way from the work block, and at three places of it what comes
 * next is prefetched:
 *
 *	work block --> [ ends . . . . edges . . . . states . . . ] --> visit edges --> work block
 *
 * where an object's edges begin and end, then the edges, then the states they lead to.
 */
#include "agent/analysis/mark.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/graph_private.h"
#include "agent/analysis/root_set.h"
#include "agent/analysis/work_pool.h"
#include "agent/analysis/workers.h"
#include "agent/goruntime/special.h"

enum {
	QUEUE_SIZE = 32,  /* a power of two */
	QUEUE_EDGES = 20, /* places from the head of the queue */
	QUEUE_STATES = 10,
	EDGES_TO_PREFETCH = 16, /* of one object */
	ROOTS_AT_ONCE = 1024,
};

enum phase { PHASE_EXACT, PHASE_CONSERVATIVE, PHASE_SYSTEM_STACK, PHASE_COUNT };

/* Bits of an object's state; the first changes while threads mark, the others do not. */
enum { STATE_LIVE = 1, STATE_HAS_EDGES = 2, STATE_FINALIZABLE = 4 };

typedef _Atomic uint8_t object_state;

struct mark {
	const struct graph *graph;
	struct budget budget;
	struct pages state_pages;
	object_state *states; /* by object */
	struct mark_totals totals;
};

/* One phase of marking. */
struct marking {
	struct mark *mark;
	const struct root_set *roots;
	const struct special_table *specials;
	enum phase phase;
	_Atomic uint64_t next_root;
	_Atomic uint64_t next_special;
	_Atomic uint64_t free_slot_hits;
	struct work_pool pool;
};

struct queued {
	uint32_t object;
	uint32_t slot;
	const struct graph_row *row;
};

/* One thread's. */
struct marker {
	struct marking *marking;
	object_state *states;
	const struct graph *graph;
	struct work work;
	uint64_t free_slot_hits;
	uint32_t head, length; /* of the queue */
	struct queued queue[QUEUE_SIZE];
};

void mark_free(struct mark *mark)
{
	if (!mark)
		return;
	pages_fini(&mark->state_pages);
	free(mark);
}

static struct error *visit(struct marker *m, uint32_t object)
{
	uint8_t state;

	if (object == OBJECT_NONE) {
		m->free_slot_hits++;
		return NULL;
	}
	state = atomic_load_explicit(&m->states[object], memory_order_relaxed);
	if (state & STATE_LIVE)
		return NULL;
	atomic_store_explicit(&m->states[object], state | STATE_LIVE, memory_order_relaxed);
	if (!(state & STATE_HAS_EDGES))
		return NULL;
	return work_push(&m->work, object);
}

static struct error *visit_edges(struct marker *m, const struct graph_row *row, uint32_t slot)
{
	for (uint32_t i = row->ends[slot]; i < row->ends[slot + 1]; i++) {
		struct error *err = visit(m, row->edges[i]);

		if (err)
			return err;
	}
	return NULL;
}

static const struct queued *queued_at(const struct marker *m, uint32_t place)
{
	return &m->queue[(m->head + place) % QUEUE_SIZE];
}

static void prefetch_edges(const struct queued *queued)
{
	__builtin_prefetch(&queued->row->edges[queued->row->ends[queued->slot]]);
}

static void prefetch_states(const struct marker *m, const struct queued *queued)
{
	const uint32_t *ends = &queued->row->ends[queued->slot];
	uint32_t count = ends[1] - ends[0];

	if (count > EDGES_TO_PREFETCH)
		count = EDGES_TO_PREFETCH;
	for (uint32_t i = 0; i < count; i++)
		__builtin_prefetch(&m->states[queued->row->edges[ends[0] + i]], 1);
}

static void enqueue(struct marker *m, uint32_t object)
{
	uint32_t span = span_lookup_span_of(m->graph->lookup, object);
	struct queued *last = &m->queue[(m->head + m->length) % QUEUE_SIZE];

	last->row = &m->graph->rows[span];
	last->slot = object - m->graph->lookup->first_objects[span];
	__builtin_prefetch(&last->row->ends[last->slot]);
	m->length++;
	if (m->length > QUEUE_EDGES)
		prefetch_edges(queued_at(m, QUEUE_EDGES));
	if (m->length > QUEUE_STATES)
		prefetch_states(m, queued_at(m, QUEUE_STATES));
}

/* Follows what is in the thread's own block, and what that leads to. */
static struct error *drain(struct marker *m)
{
	uint32_t object;
	struct error *err;

	for (;;) {
		while (m->length < QUEUE_SIZE && work_pop(&m->work, &object))
			enqueue(m, object);
		if (!m->length)
			return NULL;
		m->length--;
		err = visit_edges(m, m->queue[m->head].row, m->queue[m->head].slot);
		m->head = (m->head + 1) % QUEUE_SIZE;
		if (!err)
			err = work_share(&m->work);
		if (err)
			return err;
	}
}

static enum phase phase_of(enum root_kind kind)
{
	if (kind == ROOT_SYSTEM_STACK)
		return PHASE_SYSTEM_STACK;
	return root_kind_is_conservative(kind) ? PHASE_CONSERVATIVE : PHASE_EXACT;
}

static struct error *mark_roots(struct marker *m, uint64_t start, uint64_t end)
{
	struct marking *marking = m->marking;

	for (uint64_t i = start; i < end; i++) {
		const struct heap_root *root = root_set_at(marking->roots, i);
		struct error *err;

		if (phase_of((enum root_kind)root->kind) != marking->phase)
			continue;
		err = visit(m, root->object);
		if (err)
			return err;
	}
	return drain(m);
}

/*
 * The fields of an object with a finalizer are roots, the object itself is not
 * (runtime/mgcmark.go, markrootSpans).
 */
static struct error *mark_specials(struct marker *m, uint32_t start, uint32_t end)
{
	for (uint32_t i = start; i < end; i++) {
		const struct special *special = special_table_at(m->marking->specials, i);
		const uint32_t *edges;
		uint32_t count;
		struct error *err = NULL;

		if (special->kind != SPECIAL_FINALIZER)
			continue;
		edges = graph_edges(m->graph, special->object, &count);
		for (uint32_t e = 0; e < count && !err; e++)
			err = visit(m, edges[e]);
		if (err)
			return err;
	}
	return drain(m);
}

/* The next piece of a shared list of count items; false when there is none left. */
static bool next_piece(_Atomic uint64_t *next, uint64_t count, uint64_t *ret_start,
		       uint64_t *ret_end)
{
	uint64_t start = atomic_fetch_add(next, ROOTS_AT_ONCE);

	if (start >= count)
		return false;
	*ret_start = start;
	*ret_end = count - start < ROOTS_AT_ONCE ? count : start + ROOTS_AT_ONCE;
	return true;
}

static struct error *mark_all(struct marker *m)
{
	struct marking *marking = m->marking;
	uint64_t roots = root_set_count(marking->roots);
	uint64_t specials =
	    marking->phase == PHASE_EXACT ? special_table_count(marking->specials) : 0;
	uint64_t start, end;
	struct error *err = NULL;

	while (!err && next_piece(&marking->next_root, roots, &start, &end))
		err = mark_roots(m, start, end);
	while (!err && next_piece(&marking->next_special, specials, &start, &end))
		err = mark_specials(m, (uint32_t)start, (uint32_t)end);
	while (!err && work_refill(&m->work))
		err = drain(m);
	return err;
}

static struct error *run_marker(void *arg, unsigned i)
{
	struct marking *marking = arg;
	struct marker m = { .marking = marking, .states = marking->mark->states };
	struct error *err;

	(void)i;
	m.graph = marking->mark->graph;
	err = work_join(&m.work, &marking->pool);
	if (err)
		return err;
	err = mark_all(&m);
	if (err)
		work_abort(&m.work);
	work_leave(&m.work);
	atomic_fetch_add(&marking->free_slot_hits, m.free_slot_hits);
	return err;
}

static struct error *run_phase(struct mark *mark, const struct root_set *roots,
			       const struct special_table *specials, enum phase phase,
			       unsigned thread_count)
{
	struct marking marking = {
		.mark = mark, .roots = roots, .specials = specials, .phase = phase
	};
	struct error *err;

	work_pool_init(&marking.pool);
	err = workers_run(thread_count, run_marker, &marking);
	work_pool_fini(&marking.pool);
	mark->totals.free_slot_hits += marking.free_slot_hits;
	return err;
}

/* A walk over all spans, by several threads. */
struct span_walk {
	struct mark *mark;
	void (*visit)(struct span_walk *walk, uint32_t span);
	_Atomic uint64_t next_span;
	_Atomic uint64_t objects, bytes; /* of count_live */
};

static struct error *walk_spans(void *arg, unsigned i)
{
	struct span_walk *walk = arg;
	uint64_t start, end;

	(void)i;
	while (
	    next_piece(&walk->next_span, span_table_count(walk->mark->graph->spans), &start, &end))
		for (; start < end; start++)
			walk->visit(walk, (uint32_t)start);
	return NULL;
}

static void note_edges(struct span_walk *walk, uint32_t i)
{
	const struct span *span = span_table_at(walk->mark->graph->spans, i);
	const struct graph_row *row = &walk->mark->graph->rows[i];
	object_state *states = walk->mark->states + span->first_object;

	for (uint32_t slot = 0; row->edges && slot < span->elem_count; slot++)
		if (row->ends[slot] != row->ends[slot + 1])
			atomic_store_explicit(&states[slot], STATE_HAS_EDGES, memory_order_relaxed);
}

static void count_live(struct span_walk *walk, uint32_t i)
{
	const struct span *span = span_table_at(walk->mark->graph->spans, i);
	uint64_t live = mark_count(walk->mark, span->first_object, span->elem_count).live;

	atomic_fetch_add_explicit(&walk->objects, live, memory_order_relaxed);
	atomic_fetch_add_explicit(&walk->bytes, live * span->elem_size, memory_order_relaxed);
}

static void note_finalizable(struct mark *mark, const struct special_table *specials)
{
	const struct span_table *table = mark->graph->spans;
	struct mark_totals *totals = &mark->totals;

	for (uint32_t i = 0; i < special_table_count(specials); i++) {
		const struct special *special = special_table_at(specials, i);
		const struct span *span;

		if (special->kind != SPECIAL_FINALIZER || mark_is_live(mark, special->object) ||
		    mark_is_finalizable(mark, special->object))
			continue;
		span = span_table_span_of(table, special->object);
		if (!span_slot_allocated(table, span, special->object - span->first_object))
			continue;
		mark->states[special->object] |= STATE_FINALIZABLE;
		totals->finalizable_objects++;
		totals->finalizable_bytes += span->elem_size;
	}
}

static void count_garbage(struct mark *mark)
{
	const struct span_totals *spans = span_table_totals(mark->graph->spans);
	struct mark_totals *totals = &mark->totals;

	totals->garbage_objects =
	    spans->allocated_objects - totals->live_objects - totals->finalizable_objects;
	totals->garbage_bytes =
	    spans->allocated_bytes - totals->live_bytes - totals->finalizable_bytes;
}

/* Marks from the roots of one phase and counts what is live then. */
static struct error *run_counted(struct mark *mark, const struct root_set *roots,
				 const struct special_table *specials, enum phase phase,
				 unsigned thread_count, uint64_t *ret_bytes)
{
	struct span_walk count = { .mark = mark, .visit = count_live };
	struct error *err = run_phase(mark, roots, specials, phase, thread_count);

	if (!err)
		err = workers_run(thread_count, walk_spans, &count);
	mark->totals.live_objects = count.objects;
	*ret_bytes = count.bytes;
	return err;
}

static bool has_roots(const struct root_set *roots, enum phase phase)
{
	for (uint64_t i = 0; i < root_set_count(roots); i++)
		if (phase_of((enum root_kind)root_set_at(roots, i)->kind) == phase)
			return true;
	return false;
}

static struct error *run_phases(struct mark *mark, const struct root_set *roots,
				const struct special_table *specials, unsigned thread_count)
{
	struct span_walk edges = { .mark = mark, .visit = note_edges };
	uint64_t live_bytes[PHASE_COUNT];
	struct error *err = workers_run(thread_count, walk_spans, &edges);

	for (enum phase phase = PHASE_EXACT; !err && phase < PHASE_COUNT; phase++) {
		if (phase == PHASE_EXACT || has_roots(roots, phase))
			err = run_counted(mark, roots, specials, phase, thread_count,
					  &live_bytes[phase]);
		else
			live_bytes[phase] = live_bytes[phase - 1];
	}
	if (err)
		return err;
	mark->totals.live_bytes = live_bytes[PHASE_SYSTEM_STACK];
	mark->totals.conservative_only_bytes = mark->totals.live_bytes - live_bytes[PHASE_EXACT];
	mark->totals.system_stack_only_bytes =
	    mark->totals.live_bytes - live_bytes[PHASE_CONSERVATIVE];
	mark->totals.free_slot_hits += root_set_free_slot_hits(roots);
	return NULL;
}

static struct error *make_states(struct mark *mark)
{
	struct error *err =
	    pages_init(&mark->state_pages, &mark->budget, mark->graph->lookup->object_end);

	if (!err)
		mark->states = mark->state_pages.data;
	return err;
}

struct error *mark_run(const struct graph *graph, const struct root_set *roots,
		       const struct special_table *specials, unsigned thread_count,
		       struct mark **ret)
{
	struct mark *mark scoped(mark_freep) = calloc(1, sizeof(*mark));
	struct error *err;

	if (!mark)
		return &error_nomem;
	mark->graph = graph;
	err = make_states(mark);
	if (err)
		return error_context(err, "mark states");
	err = run_phases(mark, roots, specials, workers_clamp(thread_count));
	if (err)
		return error_context(err, "marking");
	note_finalizable(mark, specials);
	count_garbage(mark);
	*ret = take(mark);
	return NULL;
}

bool mark_is_live(const struct mark *mark, uint32_t object)
{
	return mark->states[object] & STATE_LIVE;
}

bool mark_is_finalizable(const struct mark *mark, uint32_t object)
{
	return mark->states[object] & STATE_FINALIZABLE;
}

/* How many of eight states have a bit: their bits, moved down, are added up by a product. */
static uint32_t count_eight(uint64_t states, unsigned bit)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);

	return (uint32_t)((states / bit & ones) * ones >> 56);
}

struct mark_counts mark_count(const struct mark *mark, uint32_t first, uint32_t count)
{
	const uint8_t *states = (const uint8_t *)mark->state_pages.data + first;
	struct mark_counts counts = { 0 };

	for (; count >= 8; count -= 8, states += 8) {
		uint64_t eight;

		memcpy(&eight, states, sizeof(eight));
		counts.live += count_eight(eight, STATE_LIVE);
		counts.finalizable += count_eight(eight, STATE_FINALIZABLE);
	}
	for (; count; count--, states++) {
		counts.live += (*states & STATE_LIVE) != 0;
		counts.finalizable += (*states & STATE_FINALIZABLE) != 0;
	}
	return counts;
}

const struct mark_totals *mark_totals(const struct mark *mark)
{
	return &mark->totals;
}
