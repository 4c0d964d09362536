/*
 * Marking. Every object has a byte of state: is it live, which parties reach it, has it edges. A
 * walk begins with the roots of one phase and one party (mark_walk.h). Phases come one after the
 * other, and what is live is counted in between; in each phase parties have their turns until no
 * walk finds another party's objects alive any more.
 *
 * Attribution to few parties is thus a by-product: pointers to owned objects (label_owner.h) keep
 * them alive, but only their owner's walk goes on from there.
 */
#include "agent/analysis/mark.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/graph_private.h"
#include "agent/analysis/label_owner.h"
#include "agent/analysis/mark_walk.h"
#include "agent/analysis/workers.h"
#include "agent/goruntime/special.h"

static_assert(STATE_PARTIES == (1 << MARK_PARTIES_MAX) - 1, "a bit of the state for each party");

enum { SPANS_AT_ONCE = 1024, COMBINATIONS = 1 << MARK_PARTIES_MAX };

struct mark {
	const struct graph *graph;
	uint32_t party_count;
	struct budget budget;
	struct pages state_pages;
	object_state *states; /* by object */
	struct mark_totals totals;
};

/* A marking under way. */
struct marking {
	struct mark *mark;
	struct mark_walk walk; /* the next one */
	unsigned thread_count;
	struct owned_list owned;
	uint64_t owned_seen[MARK_PARTIES_MAX]; /* what of the list each party has followed */
	bool has_roots[MARK_PHASE_COUNT][MARK_PARTIES_MAX];
	uint64_t live_objects, live_bytes[MARK_PHASE_COUNT];
};

void mark_free(struct mark *mark)
{
	if (!mark)
		return;
	pages_fini(&mark->state_pages);
	free(mark);
}

/* ---- walks over all spans, by several threads ---- */

struct span_walk {
	struct mark *mark;
	void (*visit)(struct span_walk *walk, uint32_t span);
	_Atomic uint32_t next_span;
	_Atomic uint64_t objects, bytes; /* of count_live */
	_Atomic uint64_t hits;           /* of count_free_slot_hits */
};

static struct error *walk_spans(void *arg, unsigned i)
{
	struct span_walk *walk = arg;
	uint32_t span_count = span_table_count(walk->mark->graph->spans), start;

	(void)i;
	while ((start = atomic_fetch_add(&walk->next_span, SPANS_AT_ONCE)) < span_count)
		for (uint32_t k = 0; k < SPANS_AT_ONCE && k < span_count - start; k++)
			walk->visit(walk, start + k);
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

static uint64_t free_slot_edges(const struct graph *graph, uint32_t object)
{
	uint32_t count;
	const uint32_t *edges = graph_edges(graph, object, &count);
	uint64_t hits = 0;

	for (uint32_t i = 0; i < count; i++)
		hits += edges[i] == OBJECT_NONE;
	return hits;
}

static void count_free_slot_hits(struct span_walk *walk, uint32_t i)
{
	const struct span *span = span_table_at(walk->mark->graph->spans, i);
	uint64_t hits = 0;

	for (uint32_t slot = 0; walk->mark->graph->rows[i].edges && slot < span->elem_count; slot++)
		if (mark_is_live(walk->mark, span->first_object + slot))
			hits += free_slot_edges(walk->mark->graph, span->first_object + slot);
	atomic_fetch_add_explicit(&walk->hits, hits, memory_order_relaxed);
}

/* ---- phases ---- */

static void note_roots(struct marking *m)
{
	const struct root_set *roots = m->walk.roots;

	for (uint64_t i = 0; i < root_set_count(roots); i++) {
		const struct heap_root *root = root_set_at(roots, i);
		enum mark_phase phase = mark_phase_of((enum root_kind)root->kind);

		m->has_roots[phase][mark_party_of_root(m->walk.parties, root)] = true;
	}
	if (special_table_count(m->walk.specials))
		m->has_roots[MARK_EXACT][mark_party_of_specials(m->walk.parties)] = true;
}

static struct error *walk_party(struct marking *m, uint32_t party, bool from_roots)
{
	uint64_t owned_end = m->owned.count;
	struct error *err;

	m->walk.party = party;
	m->walk.from_roots = from_roots;
	m->walk.owned_start = m->owned_seen[party];
	err = mark_walk_run(&m->walk, m->thread_count);
	m->owned_seen[party] = owned_end;
	return err;
}

static struct error *walk_roots(struct marking *m)
{
	struct error *err = NULL;

	for (uint32_t party = 0; party < m->mark->party_count && !err; party++)
		if (m->has_roots[m->walk.phase][party])
			err = walk_party(m, party, true);
	return err;
}

/* Each object enters the list once, so this ends. */
static struct error *walk_owned(struct marking *m)
{
	uint32_t parties = m->mark->party_count, quiet = 0;
	struct error *err = NULL;

	for (uint32_t party = 0; quiet < parties && !err; party = (party + 1) % parties) {
		quiet = m->owned_seen[party] == m->owned.count ? quiet + 1 : 0;
		if (!quiet)
			err = walk_party(m, party, false);
	}
	return err;
}

static bool phase_has_roots(const struct marking *m, enum mark_phase phase)
{
	for (uint32_t party = 0; party < m->mark->party_count; party++)
		if (m->has_roots[phase][party])
			return true;
	return false;
}

/* Marks from the roots of one phase and counts what is live then. */
static struct error *run_phase(struct marking *m, enum mark_phase phase)
{
	struct span_walk count = { .mark = m->mark, .visit = count_live };
	struct error *err;

	m->walk.phase = phase;
	err = walk_roots(m);
	if (!err)
		err = walk_owned(m);
	if (!err)
		err = workers_run(m->thread_count, walk_spans, &count);
	m->live_objects = count.objects;
	m->live_bytes[phase] = count.bytes;
	return err;
}

static struct error *run_phases(struct marking *m)
{
	struct error *err = NULL;

	for (enum mark_phase phase = MARK_EXACT; !err && phase < MARK_PHASE_COUNT; phase++) {
		if (phase == MARK_EXACT || phase_has_roots(m, phase))
			err = run_phase(m, phase);
		else
			m->live_bytes[phase] = m->live_bytes[phase - 1];
	}
	return err;
}

/* Before any walk: what is owned has its party. */
static struct error *claim_owned(struct marking *m)
{
	const struct label_attribution *parties = m->walk.parties;
	const struct label_owners *owners = parties ? parties->owners : NULL;

	if (!owners || !owners->count)
		return NULL;
	m->owned.objects = calloc(owners->count, sizeof(*m->owned.objects));
	if (!m->owned.objects)
		return &error_nomem;
	for (size_t i = 0; i < owners->count; i++) {
		uint32_t party = label_party_of_owner(parties, &owners->items[i]);

		m->mark->states[owners->items[i].object] |= (uint8_t)(STATE_OWNED | 1 << party);
	}
	return NULL;
}

static struct error *run(struct marking *m)
{
	struct span_walk edges = { .mark = m->mark, .visit = note_edges };
	struct error *err = workers_run(m->thread_count, walk_spans, &edges);

	if (!err)
		err = claim_owned(m);
	if (err)
		return err;
	note_roots(m);
	err = run_phases(m);
	free(m->owned.objects);
	return err;
}

/* ---- what is left to count ---- */

/* An object with a finalizer that is not live revives what it leads to all the same. */
static uint64_t count_finalizer_hits(const struct mark *mark, const struct special_table *specials)
{
	uint64_t hits = 0;

	for (uint32_t i = 0; i < special_table_count(specials); i++) {
		const struct special *special = special_table_at(specials, i);

		if (special->kind == SPECIAL_FINALIZER && !mark_is_live(mark, special->object))
			hits += free_slot_edges(mark->graph, special->object);
	}
	return hits;
}

/* There are none in a right scan. */
static struct error *note_free_slot_hits(struct mark *mark, const struct root_set *roots,
					 const struct special_table *specials,
					 unsigned thread_count)
{
	struct span_walk count = { .mark = mark, .visit = count_free_slot_hits };
	struct error *err;

	mark->totals.free_slot_hits = root_set_free_slot_hits(roots);
	if (!mark->graph->totals.free_slot_edges)
		return NULL;
	err = workers_run(thread_count, walk_spans, &count);
	mark->totals.free_slot_hits += count.hits + count_finalizer_hits(mark, specials);
	return err;
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

struct error *mark_complete(struct mark *mark, const struct root_set *roots,
			    const struct special_table *specials, unsigned thread_count,
			    uint64_t live_objects, const uint64_t live_bytes[MARK_PHASE_COUNT])
{
	struct mark_totals *totals = &mark->totals;

	totals->live_objects = live_objects;
	totals->live_bytes = live_bytes[MARK_SYSTEM_STACK];
	totals->conservative_only_bytes = totals->live_bytes - live_bytes[MARK_EXACT];
	totals->system_stack_only_bytes = totals->live_bytes - live_bytes[MARK_CONSERVATIVE];
	note_finalizable(mark, specials);
	count_garbage(mark);
	return note_free_slot_hits(mark, roots, specials, thread_count);
}

static struct error *mark_new(const struct graph *graph, struct budget budget, struct mark **ret)
{
	struct mark *mark scoped(mark_freep) = calloc(1, sizeof(*mark));
	struct error *err;

	if (!mark)
		return &error_nomem;
	mark->graph = graph;
	mark->budget = budget;
	err = pages_init(&mark->state_pages, &mark->budget, graph->lookup->object_end);
	if (err)
		return error_context(err, "mark states");
	mark->states = mark->state_pages.data;
	*ret = take(mark);
	return NULL;
}

struct error *mark_begin(const struct graph *graph, struct mark **ret)
{
	return mark_new(graph, (struct budget){ 0 }, ret);
}

object_state *mark_states(struct mark *mark)
{
	return mark->states;
}

static struct error *mark_all(struct marking *m, uint32_t party_count, struct budget budget,
			      struct mark **ret)
{
	struct mark *mark scoped(mark_freep) = NULL;
	struct error *err = mark_new(m->walk.graph, budget, &mark);

	if (err)
		return err;
	mark->party_count = party_count;
	m->mark = mark;
	m->walk.states = mark->states;
	m->walk.owned = &m->owned;
	err = run(m);
	if (!err)
		err = mark_complete(mark, m->walk.roots, m->walk.specials, m->thread_count,
				    m->live_objects, m->live_bytes);
	if (err)
		return error_context(err, "marking");
	*ret = take(mark);
	return NULL;
}

struct error *mark_run(const struct graph *graph, const struct root_set *roots,
		       const struct special_table *specials, unsigned thread_count,
		       struct mark **ret)
{
	struct marking marking = {
		.thread_count = workers_clamp(thread_count),
		.walk = { .graph = graph, .roots = roots, .specials = specials },
	};

	return mark_all(&marking, 1, (struct budget){ 0 }, ret);
}

struct error *mark_run_parties(const struct label_attribution *input, bool second,
			       struct mark **ret)
{
	struct budget budget = { 0 };
	struct marking marking = {
		.thread_count = workers_clamp(input->thread_count),
		.walk = { .graph = input->graph,
			  .roots = input->roots,
			  .specials = input->specials,
			  .parties = input },
	};

	assert(input->party_count <= MARK_PARTIES_MAX);
	if (second)
		budget = graph_budget_left(input->graph);
	return mark_all(&marking, input->party_count, budget, ret);
}

bool mark_is_live(const struct mark *mark, uint32_t object)
{
	return mark->states[object] & STATE_LIVE;
}

bool mark_is_finalizable(const struct mark *mark, uint32_t object)
{
	return mark->states[object] & STATE_FINALIZABLE;
}

static const uint8_t *states_from(const struct mark *mark, uint32_t first)
{
	return (const uint8_t *)mark->state_pages.data + first;
}

static uint64_t eight_states(const uint8_t *states)
{
	uint64_t eight;

	memcpy(&eight, states, sizeof(eight));
	return eight;
}

/* How many of eight states have a bit: their bits, moved down, are added up by a product. */
static uint32_t count_eight(uint64_t states, unsigned bit)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);

	return (uint32_t)((states / bit & ones) * ones >> 56);
}

struct mark_counts mark_count(const struct mark *mark, uint32_t first, uint32_t count)
{
	const uint8_t *states = states_from(mark, first);
	struct mark_counts counts = { 0 };

	for (; count >= 8; count -= 8, states += 8) {
		uint64_t eight = eight_states(states);

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

/* ---- what parties reach ---- */

struct party_count {
	const struct mark *mark;
	_Atomic uint32_t next_span;
	struct party_usage *usage; /* by thread and party */
};

/* Which parties reach a live object, as bits; 0 for others. */
static unsigned reachers(uint8_t state)
{
	return state & STATE_LIVE ? state & STATE_PARTIES : 0;
}

/* Neighbours are mostly alike. */
static void count_combinations(const uint8_t *states, uint32_t count, uint32_t *combinations)
{
	const uint64_t ones = UINT64_C(0x0101010101010101), relevant = STATE_LIVE | STATE_PARTIES;

	while (count) {
		if (count >= 8 &&
		    (eight_states(states) & relevant * ones) == (*states & relevant) * ones) {
			combinations[reachers(*states)] += 8;
			states += 8;
			count -= 8;
		} else {
			combinations[reachers(*states++)]++;
			count--;
		}
	}
}

static void add_size(struct size_count *to, uint64_t objects, uint64_t bytes)
{
	to->objects += objects;
	to->bytes += bytes;
}

/* Objects of one size that the same parties reach. Every object is divided by itself. */
static void add_combination(struct party_usage *usage, uint32_t party_count, unsigned parties,
			    uint64_t objects, uint64_t size)
{
	unsigned reached_by = (unsigned)__builtin_popcount(parties);
	unsigned global = 1U << (party_count - 1), system = global >> 1;
	uint64_t rest = size % reached_by;

	for (unsigned left = parties; left; left &= left - 1) {
		unsigned party = (unsigned)__builtin_ctz(left);
		struct party_usage *u = &usage[party];

		add_size(&u->reachable, objects, objects * size);
		u->share_bytes += objects * (size / reached_by + rest);
		rest = 0;
		if (reached_by == 1)
			add_size(&u->exclusive, objects, objects * size);
		if (parties & global && party != party_count - 1)
			add_size(&u->global_overlap, objects, objects * size);
		if (parties & system && party != party_count - 2)
			add_size(&u->system_overlap, objects, objects * size);
	}
}

static void count_span_parties(const struct mark *mark, uint32_t i, struct party_usage *usage)
{
	const struct span *span = span_table_at(mark->graph->spans, i);
	uint32_t combinations[COMBINATIONS] = { 0 };

	count_combinations(states_from(mark, span->first_object), span->elem_count, combinations);
	for (unsigned parties = 1; parties < COMBINATIONS; parties++)
		if (combinations[parties])
			add_combination(usage, mark->party_count, parties, combinations[parties],
					span->elem_size);
}

static struct error *run_count_parties(void *arg, unsigned thread)
{
	struct party_count *count = arg;
	struct party_usage *usage = count->usage + (size_t)thread * count->mark->party_count;
	uint32_t span_count = span_table_count(count->mark->graph->spans), start;

	while ((start = atomic_fetch_add(&count->next_span, SPANS_AT_ONCE)) < span_count)
		for (uint32_t k = 0; k < SPANS_AT_ONCE && k < span_count - start; k++)
			count_span_parties(count->mark, start + k, usage);
	return NULL;
}

static void add_usage(struct party_usage *to, const struct party_usage *from)
{
	add_size(&to->reachable, from->reachable.objects, from->reachable.bytes);
	add_size(&to->exclusive, from->exclusive.objects, from->exclusive.bytes);
	add_size(&to->global_overlap, from->global_overlap.objects, from->global_overlap.bytes);
	add_size(&to->system_overlap, from->system_overlap.objects, from->system_overlap.bytes);
	to->share_bytes += from->share_bytes;
}

struct error *mark_count_parties(const struct mark *mark, unsigned thread_count,
				 struct party_usage *usage)
{
	struct party_count count = { .mark = mark };
	struct error *err;

	thread_count = workers_clamp(thread_count);
	count.usage = calloc((size_t)thread_count * mark->party_count, sizeof(*count.usage));
	if (!count.usage)
		return &error_nomem;
	err = workers_run(thread_count, run_count_parties, &count);
	for (uint32_t i = 0; i < thread_count * mark->party_count; i++)
		add_usage(&usage[i % mark->party_count], &count.usage[i]);
	free(count.usage);
	return err;
}
