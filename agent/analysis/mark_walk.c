/*
 * A thread marks by a plain store. Objects without edges end there.
 *
 * Nearly every step of a walk through a large heap is a cache miss, so objects to follow go
 * through a short queue on their way from the work block, and at three places of it what comes
 * next is prefetched:
 *
 *	work block --> [ ends . . . . edges . . . . states . . . ] --> visit edges --> work block
 *
 * where an object's edges begin and end, then the edges, then the states they lead to.
 */
#include "agent/analysis/mark_walk.h"

#include <stdatomic.h>

#include "agent/analysis/graph_private.h"
#include "agent/analysis/workers.h"
#include "agent/goruntime/special.h"

enum {
	QUEUE_SIZE = 32,  /* a power of two */
	QUEUE_EDGES = 20, /* places from the head of the queue */
	QUEUE_STATES = 10,
	EDGES_TO_PREFETCH = 16, /* of one object */
	ITEMS_AT_ONCE = 1024,
};

/* What the threads of a walk share. */
struct marking {
	const struct mark_walk *walk;
	uint64_t owned_end; /* where the list of what is owned ended at first */
	_Atomic uint64_t next_owned, next_root, next_special;
	struct work_pool pool;
};

struct queued {
	uint32_t slot;
	const struct graph_row *row;
};

/* One thread's. */
struct marker {
	struct marking *marking;
	const struct mark_walk *walk;
	object_state *states;
	const struct graph *graph;
	uint8_t party_bit;
	struct work work;
	uint32_t head, length; /* of the queue */
	struct queued queue[QUEUE_SIZE];
};

/*
 * Whoever leads to an owned object first makes it live, and no more. Only here are two parties at
 * one object at a time.
 */
static struct error *visit_owned(struct marker *m, uint32_t object)
{
	struct owned_list *list = m->walk->owned;
	uint8_t old =
	    atomic_fetch_or_explicit(&m->states[object], (uint8_t)STATE_LIVE, memory_order_relaxed);

	if (old & STATE_LIVE || !(old & STATE_HAS_EDGES))
		return NULL;
	if (old & m->party_bit)
		return work_push(&m->work, object);
	list->objects[atomic_fetch_add(&list->count, 1)] = object;
	return NULL;
}

static inline struct error *visit(struct marker *m, uint32_t object)
{
	uint8_t state = atomic_load_explicit(&m->states[object], memory_order_relaxed);

	if (state & STATE_OWNED)
		return visit_owned(m, object);
	if (state & m->party_bit || object == OBJECT_NONE)
		return NULL;
	atomic_store_explicit(&m->states[object], state | STATE_LIVE | m->party_bit,
			      memory_order_relaxed);
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

/* The next piece of a shared list of which end is the end; false when there is none left. */
static bool next_piece(_Atomic uint64_t *next, uint64_t end, uint64_t *ret_start, uint64_t *ret_end)
{
	uint64_t start = atomic_fetch_add(next, ITEMS_AT_ONCE);

	if (start >= end)
		return false;
	*ret_start = start;
	*ret_end = end - start < ITEMS_AT_ONCE ? end : start + ITEMS_AT_ONCE;
	return true;
}

/* Found live by another party's walk, and followed by none so far. */
static struct error *mark_owned(struct marker *m, uint64_t start, uint64_t end)
{
	struct error *err = NULL;

	for (uint64_t i = start; i < end && !err; i++) {
		uint32_t object = m->walk->owned->objects[i];

		if (atomic_load_explicit(&m->states[object], memory_order_relaxed) & m->party_bit)
			err = work_push(&m->work, object);
	}
	return err ? err : drain(m);
}

static struct error *mark_roots(struct marker *m, uint64_t start, uint64_t end)
{
	const struct mark_walk *walk = m->walk;
	struct error *err = NULL;

	for (uint64_t i = start; i < end && !err; i++) {
		const struct heap_root *root = root_set_at(walk->roots, i);

		if (mark_phase_of((enum root_kind)root->kind) == walk->phase &&
		    mark_party_of_root(walk->parties, root) == walk->party)
			err = visit(m, root->object);
	}
	return err ? err : drain(m);
}

/*
 * The fields of an object with a finalizer are roots, the object itself is not
 * (runtime/mgcmark.go, markrootSpans).
 */
static struct error *mark_specials(struct marker *m, uint32_t start, uint32_t end)
{
	for (uint32_t i = start; i < end; i++) {
		const struct special *special = special_table_at(m->walk->specials, i);
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

static uint64_t root_count(const struct mark_walk *walk)
{
	return walk->from_roots ? root_set_count(walk->roots) : 0;
}

static uint64_t special_count(const struct mark_walk *walk)
{
	return walk->from_roots && walk->phase == MARK_EXACT &&
		       walk->party == mark_party_of_specials(walk->parties)
		   ? special_table_count(walk->specials)
		   : 0;
}

static struct error *mark_all(struct marker *m)
{
	struct marking *marking = m->marking;
	uint64_t roots = root_count(m->walk), specials = special_count(m->walk), start, end;
	struct error *err = NULL;

	while (!err && next_piece(&marking->next_owned, marking->owned_end, &start, &end))
		err = mark_owned(m, start, end);
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
	struct marker m = {
		.marking = marking,
		.walk = marking->walk,
		.states = marking->walk->states,
		.graph = marking->walk->graph,
		.party_bit = (uint8_t)(1 << marking->walk->party),
	};
	struct error *err = work_join(&m.work, &marking->pool);

	(void)i;
	if (err)
		return err;
	err = mark_all(&m);
	if (err)
		work_abort(&m.work);
	work_leave(&m.work);
	return err;
}

struct error *mark_walk_run(const struct mark_walk *walk, unsigned thread_count)
{
	struct marking marking = { .walk = walk,
				   .owned_end = walk->owned->count,
				   .next_owned = walk->owned_start };
	struct error *err;

	work_pool_init(&marking.pool);
	err = workers_run(thread_count, run_marker, &marking);
	work_pool_fini(&marking.pool);
	return err;
}
