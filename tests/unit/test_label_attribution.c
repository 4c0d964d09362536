/* Attribution: small graphs with a known answer, and random ones against a plain computation. */
#include "tests/support/assertions.h"

#include <stdlib.h>
#include <string.h>

#include "agent/analysis/graph.h"
#include "agent/analysis/label_attribution.h"
#include "agent/analysis/label_holder.h"
#include "agent/analysis/label_owner.h"
#include "agent/analysis/mark.h"
#include "agent/analysis/root_set.h"
#include "tests/support/fake_heap.h"

enum { PARTIES_MAX_HERE = 1200, OBJECTS_MAX = 32, WORDS = 6 };

/* A heap under way, and who is who: goroutine i is of party i, unless it is one of the last two. */
struct fixture {
	struct fake_heap *heap;
	struct graph *graph;
	struct root_set *roots;
	struct label_owner owned[OBJECTS_MAX];
	struct label_owners owners;
	uint32_t party_of[PARTIES_MAX_HERE];
	uint32_t party_count;
	uint32_t objects[OBJECTS_MAX];
	uint32_t object_count;
	struct party_usage usage[PARTIES_MAX_HERE];
};

static struct fixture *fixture_new(uint32_t named)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->heap = fake_heap_new();
	f->party_count = named + 2;
	f->owners.items = f->owned;
	for (uint32_t i = 0; i < named + 1; i++)
		f->party_of[i] = i; /* goroutine named is the system's */
	return f;
}

static void fixture_free(struct fixture *f)
{
	root_set_free(f->roots);
	graph_free(f->graph);
	fake_heap_free(f->heap);
	free(f);
}

/* Objects of these sizes in turn, some slots of each. */
static void make_objects(struct fixture *f, uint32_t count)
{
	static const uint32_t sizes[] = { 48, 64, 112, 1024 };
	uint32_t spans[4];

	for (unsigned i = 0; i < 4; i++)
		spans[i] = fake_heap_add(f->heap, sizes[i], 8192 / sizes[i], false);
	fake_heap_finish(f->heap);
	assert_true(count <= 4 * 8192 / 1024);
	for (uint32_t i = 0; i < count; i++)
		f->objects[i] = fake_heap_object(f->heap, spans[i % 4], i / 4);
	f->object_count = count;
	assert_success(root_set_new(fake_heap_spans(f->heap), &f->roots));
}

static void add_root(struct fixture *f, enum root_kind kind, uint32_t goroutine, uint32_t i)
{
	const struct root root = { .kind = kind,
				   .goroutine = goroutine,
				   .slot = 0x500000,
				   .value = fake_heap_addr(f->heap, f->objects[i]) };

	assert_success(root_set_sink(f->roots)->add(root_set_sink(f->roots), &root));
}

static void hold(struct fixture *f, uint32_t party, uint32_t i)
{
	if (party == f->party_count - 1)
		add_root(f, ROOT_DATA, ROOT_NO_GOROUTINE, i);
	else
		add_root(f, ROOT_STACK, party, i);
}

static void point(struct fixture *f, uint32_t from, uint64_t word, uint32_t to)
{
	fake_heap_point(f->heap, f->objects[from], word, fake_heap_addr(f->heap, f->objects[to]));
}

static void finalize(struct fixture *f, uint32_t i)
{
	fake_heap_add_special(f->heap, f->objects[i], SPECIAL_FINALIZER);
}

static void own(struct fixture *f, uint32_t goroutine, uint32_t i)
{
	f->owned[f->owners.count++] = (struct label_owner){ f->objects[i], goroutine };
}

/* What a mark that tells parties apart says of liveness is what any mark says. */
static void assert_marks_agree(const struct fixture *f, const struct mark *mark,
			       const struct mark *parties)
{
	assert_memory_equal(mark_totals(mark), mark_totals(parties), sizeof(struct mark_totals));
	for (uint32_t i = 0; i < f->object_count; i++)
		assert_int_equal(mark_is_live(mark, f->objects[i]),
				 mark_is_live(parties, f->objects[i]));
}

/* As a scan does it first of all. */
static void attribute_by_marking(const struct fixture *f, const struct label_attribution *input,
				 struct party_usage *usage)
{
	struct mark *mark = NULL, *plain = NULL;

	assert_success(mark_run(f->graph, f->roots, input->specials, input->thread_count, &plain));
	assert_success(label_mark(input, usage, &mark));
	assert_marks_agree(f, plain, mark);
	mark_free(mark);
	mark_free(plain);
}

/* Object by object, who holds what alone is what the sums say. */
static void assert_holders_agree(const struct fixture *f, const struct label_attribution *input)
{
	struct size_count *alone = calloc(f->party_count, sizeof(*alone));
	const struct span_table *spans = fake_heap_spans(f->heap);
	struct label_holders *holders;

	assert_non_null(alone);
	assert_success(label_holders_find(input, &holders));
	for (uint32_t i = 1; i < span_table_object_end(spans); i++) {
		uint32_t party = label_holder(holders, i);

		if (party == LABEL_NO_HOLDER)
			continue;
		assert_true(party < f->party_count);
		alone[party].objects++;
		alone[party].bytes += span_table_span_of(spans, i)->elem_size;
	}
	for (uint32_t i = 0; i < f->party_count; i++)
		assert_memory_equal(&alone[i], &f->usage[i].exclusive, sizeof(*alone));
	label_holders_free(holders);
	free(alone);
}

static void attribute(struct fixture *f, unsigned threads)
{
	struct party_usage *by_marking = calloc(f->party_count, sizeof(*by_marking));
	struct label_attribution input = {
		.roots = f->roots,
		.specials = fake_heap_specials(f->heap),
		.owners = &f->owners,
		.party_of = f->party_of,
		.party_count = f->party_count,
		.thread_count = threads,
	};

	graph_free(f->graph);
	f->graph = NULL;
	assert_success(
	    graph_read(fake_heap_memory(f->heap), NULL, fake_heap_spans(f->heap), 1, 0, &f->graph));
	input.graph = f->graph;
	memset(f->usage, 0, sizeof(f->usage));
	assert_success(label_attribute(&input, f->usage));
	attribute_by_marking(f, &input, by_marking);
	assert_memory_equal(by_marking, f->usage, f->party_count * sizeof(*f->usage));
	assert_holders_agree(f, &input);
	free(by_marking);
}

static void assert_size(struct size_count size, uint64_t bytes, uint64_t objects)
{
	assert_int_equal(size.bytes, bytes);
	assert_int_equal(size.objects, objects);
}

/* Object i has 48, 64, 112 or 1,024 bytes by i % 4. */
static void what_one_holds_alone_and_what_is_shared(void **state)
{
	struct fixture *f = fixture_new(2);

	(void)state;
	make_objects(f, 8);
	hold(f, 0, 0);
	point(f, 0, 0, 1); /* 48 + 64 bytes of party 0 alone */
	hold(f, 1, 2);     /* 112 of party 1 */
	point(f, 1, 0, 3);
	point(f, 2, 0, 3); /* 1,024 of both */
	hold(f, 3, 4);     /* 48 of globals */
	attribute(f, 1);
	assert_size(f->usage[0].exclusive, 112, 2);
	assert_size(f->usage[0].reachable, 112 + 1024, 3);
	assert_int_equal(f->usage[0].share_bytes, 112 + 512);
	assert_size(f->usage[1].exclusive, 112, 1);
	assert_size(f->usage[1].reachable, 112 + 1024, 2);
	assert_size(f->usage[3].exclusive, 48, 1);
	assert_size(f->usage[0].global_overlap, 0, 0);
	fixture_free(f);
}

static void remainders_go_to_the_first(void **state)
{
	struct fixture *f = fixture_new(5);

	(void)state;
	make_objects(f, 8);
	for (uint32_t party = 1; party < 4; party++)
		hold(f, party, 1); /* 64 bytes for three */
	hold(f, 6, 3);
	for (uint32_t party = 2; party < 6; party++)
		hold(f, party, 3); /* 1,024 bytes for five, one of which is the system's */
	attribute(f, 1);
	assert_int_equal(f->usage[0].share_bytes, 0);
	assert_int_equal(f->usage[1].share_bytes, 22);
	assert_int_equal(f->usage[2].share_bytes, 21 + 208);
	assert_int_equal(f->usage[3].share_bytes, 21 + 204);
	assert_int_equal(f->usage[4].share_bytes, 204);
	assert_int_equal(f->usage[6].share_bytes, 204);
	assert_size(f->usage[2].global_overlap, 1024, 1);
	assert_size(f->usage[2].system_overlap, 1024, 1);
	assert_size(f->usage[1].global_overlap, 0, 0);
	assert_size(f->usage[5].system_overlap, 0, 0); /* the system's own */
	assert_size(f->usage[5].global_overlap, 1024, 1);
	fixture_free(f);
}

/* A table of the runtime leads to both, as allgs does; each leads to what is its own. */
static void pointers_to_what_is_owned_do_not_count(void **state)
{
	struct fixture *f = fixture_new(2);

	(void)state;
	make_objects(f, 8);
	hold(f, 3, 0);
	point(f, 0, 0, 1);
	point(f, 0, 1, 2);
	own(f, 0, 1);
	own(f, 1, 2);
	point(f, 1, 0, 4);
	point(f, 2, 0, 5);
	point(f, 2, 1, 1);
	hold(f, 1, 1); /* not even on a stack */
	attribute(f, 1);
	assert_size(f->usage[0].exclusive, 64 + 48, 2);
	assert_size(f->usage[0].reachable, 64 + 48, 2);
	assert_size(f->usage[1].exclusive, 112 + 64, 2);
	assert_size(f->usage[3].exclusive, 48, 1);
	fixture_free(f);
}

static void what_a_finalizer_keeps_is_global(void **state)
{
	struct fixture *f = fixture_new(1);

	(void)state;
	make_objects(f, 4);
	point(f, 0, 0, 1);
	finalize(f, 0);
	hold(f, 0, 1);
	attribute(f, 1);
	assert_size(f->usage[0].global_overlap, 64, 1);
	assert_size(f->usage[2].reachable, 64, 1);
	assert_size(f->usage[2].exclusive, 0, 0);
	fixture_free(f);
}

static void system_stacks_are_the_systems(void **state)
{
	struct fixture *f = fixture_new(1);

	(void)state;
	make_objects(f, 4);
	add_root(f, ROOT_SYSTEM_STACK, ROOT_NO_GOROUTINE, 2);
	add_root(f, ROOT_REGISTER, 0, 3);
	attribute(f, 1);
	assert_size(f->usage[1].exclusive, 112, 1);
	assert_size(f->usage[0].exclusive, 1024, 1);
	fixture_free(f);
}

/* ---- against a plain computation ---- */

struct model {
	struct fixture *f;
	bool edges[OBJECTS_MAX][OBJECTS_MAX];
	bool held[PARTIES_MAX_HERE][OBJECTS_MAX];
	uint32_t words[OBJECTS_MAX]; /* that hold pointers */
	uint32_t owner[OBJECTS_MAX]; /* party plus 1 */
	bool finalizer[OBJECTS_MAX]; /* what it leads to is global */
	bool reached[PARTIES_MAX_HERE][OBJECTS_MAX];
};

static uint64_t size_of(const struct fixture *f, uint32_t i)
{
	return span_table_span_of(fake_heap_spans(f->heap), f->objects[i])->elem_size;
}

/* What an object with a finalizer leads to is held as roots are. */
static void hold_by_finalizers(struct model *m)
{
	for (uint32_t from = 0; from < m->f->object_count; from++)
		for (uint32_t to = 0; m->finalizer[from] && to < m->f->object_count; to++)
			m->held[m->f->party_count - 1][to] |= m->edges[from][to];
}

/* From the objects that are set on to what they lead to, but not into what is owned. */
static void spread(const struct model *m, const uint32_t *owner, bool *reached)
{
	uint32_t stack[OBJECTS_MAX], depth = 0;

	for (uint32_t i = 0; i < m->f->object_count; i++)
		if (reached[i])
			stack[depth++] = i;
	while (depth) {
		uint32_t from = stack[--depth];

		for (uint32_t to = 0; to < m->f->object_count; to++) {
			if (!m->edges[from][to] || owner[to] || reached[to])
				continue;
			reached[to] = true;
			stack[depth++] = to;
		}
	}
}

/* What is owned and not live is nobody's. */
static void disown_garbage(struct model *m)
{
	static const uint32_t nobody[OBJECTS_MAX];
	bool live[OBJECTS_MAX] = { false };

	for (uint32_t party = 0; party < m->f->party_count; party++)
		for (uint32_t i = 0; i < m->f->object_count; i++)
			live[i] |= m->held[party][i];
	spread(m, nobody, live);
	for (uint32_t i = 0; i < m->f->object_count; i++)
		if (!live[i])
			m->owner[i] = 0;
}

static void reach(struct model *m, uint32_t party)
{
	for (uint32_t i = 0; i < m->f->object_count; i++)
		m->reached[party][i] = m->owner[i] ? m->owner[i] == party + 1 : m->held[party][i];
	spread(m, m->owner, m->reached[party]);
}

static void add(struct size_count *count, uint64_t bytes)
{
	count->bytes += bytes;
	count->objects++;
}

static void divide(struct model *m, uint32_t i, struct party_usage *usage)
{
	uint32_t count = 0, system = m->f->party_count - 2, global = m->f->party_count - 1;
	uint64_t size = size_of(m->f, i), rest;

	for (uint32_t party = 0; party < m->f->party_count; party++)
		count += m->reached[party][i];
	rest = count ? size % count : 0;
	for (uint32_t party = 0; party < m->f->party_count; party++) {
		struct party_usage *u = &usage[party];

		if (!m->reached[party][i])
			continue;
		add(&u->reachable, size);
		u->share_bytes += size / count + rest;
		rest = 0;
		if (count == 1)
			add(&u->exclusive, size);
		if (party != global && m->reached[global][i])
			add(&u->global_overlap, size);
		if (party != system && m->reached[system][i])
			add(&u->system_overlap, size);
	}
}

static void compute(struct model *m, struct party_usage *usage)
{
	memset(usage, 0, m->f->party_count * sizeof(*usage));
	hold_by_finalizers(m);
	disown_garbage(m);
	for (uint32_t party = 0; party < m->f->party_count; party++)
		reach(m, party);
	for (uint32_t i = 0; i < m->f->object_count; i++)
		divide(m, i, usage);
}

static uint32_t random_below(uint32_t limit)
{
	static uint64_t state = UINT64_C(88172645463325252);

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state % limit);
}

/* By an exact root, or by a conservative one of a later phase of marking. */
static void hold_somehow(struct fixture *f, uint32_t party, uint32_t i)
{
	if (party == f->party_count - 1 || random_below(3))
		hold(f, party, i);
	else if (party == f->party_count - 2 && random_below(2))
		add_root(f, ROOT_SYSTEM_STACK, ROOT_NO_GOROUTINE, i);
	else
		add_root(f, random_below(2) ? ROOT_REGISTER : ROOT_STACK_CONSERVATIVE, party, i);
}

/* Few edges leave forests, many make everything one component. */
static void fill_randomly(struct model *m, uint32_t edges, uint32_t roots, uint32_t owned)
{
	struct fixture *f = m->f;

	for (uint32_t k = 0; k < edges; k++) {
		uint32_t from = random_below(f->object_count), to = random_below(f->object_count);
		uint32_t *word = &m->words[from];

		if (m->edges[from][to] || *word == WORDS)
			continue;
		m->edges[from][to] = true;
		point(f, from, (*word)++, to);
	}
	for (uint32_t k = 0; k < roots; k++) {
		uint32_t party = random_below(f->party_count), i = random_below(f->object_count);

		m->held[party][i] = true;
		hold_somehow(f, party, i);
	}
	for (uint32_t k = 0; k < owned; k++) {
		uint32_t i = random_below(f->object_count);
		uint32_t party = random_below(f->party_count - 1);

		if (m->owner[i])
			continue;
		m->owner[i] = party + 1;
		own(f, party, i);
	}
	if (!random_below(3)) {
		uint32_t i = random_below(f->object_count);

		m->finalizer[i] = true;
		finalize(f, i);
	}
}

static void try_once(uint32_t named, uint32_t objects, uint32_t edges, uint32_t roots,
		     uint32_t owned)
{
	struct model *m = calloc(1, sizeof(*m));
	struct party_usage *expected = calloc(named + 2, sizeof(*expected));

	m->f = fixture_new(named);
	make_objects(m->f, objects);
	fill_randomly(m, edges, roots, owned);
	compute(m, expected);
	for (unsigned threads = 1; threads <= 2; threads++) {
		attribute(m->f, threads);
		assert_memory_equal(m->f->usage, expected, (named + 2) * sizeof(*expected));
	}
	fixture_free(m->f);
	free(expected);
	free(m);
}

static void random_graphs_agree_with_a_plain_computation(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 400; round++)
		try_once(random_below(7), 8 + random_below(24), random_below(80),
			 1 + random_below(20), random_below(4));
}

/* More classes than go with one word, and than go with one pass. */
static void many_parties_agree_with_a_plain_computation(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 6; round++) {
		try_once(70, 32, 40, 200, 3);
		try_once(200, 32, 20, 1000, 0);
		try_once(1100, 32, 24, 6000, 2);
	}
}

/* Objects that threads meet at: many edges, and few places that all begin from. */
static struct fixture *large_fixture(uint32_t named, uint32_t spans, uint32_t edges)
{
	enum { SLOTS = 170, SIZE = 48 };
	struct fixture *f = fixture_new(named);
	uint32_t count = spans * SLOTS, first;

	for (uint32_t i = 0; i < spans; i++)
		fake_heap_add(f->heap, SIZE, SLOTS, false);
	fake_heap_finish(f->heap);
	assert_success(root_set_new(fake_heap_spans(f->heap), &f->roots));
	first = fake_heap_object(f->heap, 0, 0);
	for (uint32_t i = 0; i < edges; i++)
		fake_heap_point(f->heap, first + random_below(count), random_below(WORDS),
				fake_heap_addr(f->heap, first + random_below(count)));
	for (uint32_t i = 0; i < OBJECTS_MAX; i++)
		f->objects[i] = first + random_below(count);
	for (uint32_t i = 0; i < 4 * f->party_count; i++)
		hold_somehow(f, random_below(f->party_count), random_below(OBJECTS_MAX));
	own(f, 0, 0);
	if (f->objects[1] != f->objects[0])
		own(f, named, 1);
	return f;
}

static void assert_threads_agree(uint32_t named)
{
	struct fixture *f = large_fixture(named, 120, 30000);
	size_t size = f->party_count * sizeof(struct party_usage);
	struct party_usage *alone = malloc(size);
	uint64_t shares = 0;

	attribute(f, 1);
	memcpy(alone, f->usage, size);
	for (uint32_t party = 0; party < f->party_count; party++)
		shares += alone[party].share_bytes;
	assert_true(shares > 1000 * 48);
	for (unsigned threads = 2; threads <= 4; threads++) {
		attribute(f, threads);
		assert_memory_equal(f->usage, alone, size);
	}
	free(alone);
	fixture_free(f);
}

static void several_threads_find_what_one_finds(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 4; round++) {
		assert_threads_agree(2);
		assert_threads_agree(40);
		assert_threads_agree(1100);
	}
}

static void too_little_memory_is_said(void **state)
{
	struct fixture *f = fixture_new(1);
	struct label_attribution input = { .party_of = f->party_of, .party_count = 3 };
	uint64_t limit = 0;

	(void)state;
	make_objects(f, 8);
	hold(f, 0, 0);
	/* The least that the graph fits in. */
	while (!f->graph) {
		limit += 4096;
		error_free(graph_read(fake_heap_memory(f->heap), NULL, fake_heap_spans(f->heap), 1,
				      limit, &f->graph));
	}
	input.graph = f->graph;
	input.roots = f->roots;
	input.specials = fake_heap_specials(f->heap);
	input.owners = &f->owners;
	assert_error(label_attribute(&input, f->usage), ERROR_OUT_OF_MEMORY);
	fixture_free(f);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_one_holds_alone_and_what_is_shared),
		cmocka_unit_test(remainders_go_to_the_first),
		cmocka_unit_test(pointers_to_what_is_owned_do_not_count),
		cmocka_unit_test(what_a_finalizer_keeps_is_global),
		cmocka_unit_test(system_stacks_are_the_systems),
		cmocka_unit_test(random_graphs_agree_with_a_plain_computation),
		cmocka_unit_test(many_parties_agree_with_a_plain_computation),
		cmocka_unit_test(several_threads_find_what_one_finds),
		cmocka_unit_test(too_little_memory_is_said),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
