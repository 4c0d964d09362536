/* Roots and marking, over a heap made up edge by edge. */
#include "tests/support/assertions.h"

#include <stdlib.h>

#include "agent/analysis/graph.h"
#include "agent/analysis/mark.h"
#include "agent/analysis/root_set.h"
#include "tests/support/fake_heap.h"

struct scan {
	struct graph *graph;
	struct root_set *roots;
	struct mark *mark;
};

static void add_root(struct root_set *roots, enum root_kind kind, taddr value)
{
	const struct root root = {
		.kind = kind, .goroutine = ROOT_NO_GOROUTINE, .slot = 0x500000, .value = value
	};

	assert_success(root_set_sink(roots)->add(root_set_sink(roots), &root));
}

static struct scan scan_init(struct fake_heap *heap)
{
	struct scan scan = { .mark = NULL };

	assert_success(
	    graph_read(fake_heap_memory(heap), NULL, fake_heap_spans(heap), 2, 0, &scan.graph));
	assert_success(root_set_new(fake_heap_spans(heap), &scan.roots));
	return scan;
}

static void scan_mark(struct scan *scan, struct fake_heap *heap, unsigned threads)
{
	mark_free(scan->mark);
	scan->mark = NULL;
	assert_success(
	    mark_run(scan->graph, scan->roots, fake_heap_specials(heap), threads, &scan->mark));
}

static void scan_fini(struct scan *scan, struct fake_heap *heap)
{
	mark_free(scan->mark);
	root_set_free(scan->roots);
	graph_free(scan->graph);
	fake_heap_free(heap);
}

/* A span of objects with 48 bytes, slot i at objects[i]. */
static struct fake_heap *small_heap(uint32_t *objects, uint32_t count)
{
	struct fake_heap *heap = fake_heap_new();
	uint32_t span = fake_heap_add(heap, 48, 170, false);

	fake_heap_finish(heap);
	for (uint32_t i = 0; i < 170; i++) {
		if (i < count)
			objects[i] = fake_heap_object(heap, span, i);
		else
			fake_heap_set_slot(heap, fake_heap_object(heap, span, i), FAKE_FREE);
	}
	return heap;
}

static void point(struct fake_heap *heap, uint32_t from, uint64_t word, uint32_t to)
{
	fake_heap_point(heap, from, word, fake_heap_addr(heap, to));
}

static void what_roots_reach_is_live_and_the_rest_is_garbage(void **state)
{
	uint32_t o[6];
	struct fake_heap *heap = small_heap(o, 6);
	struct scan scan;
	const struct mark_totals *totals;

	(void)state;
	point(heap, o[0], 0, o[1]);
	point(heap, o[1], 3, o[2]);
	point(heap, o[2], 1, o[0]); /* a cycle that a root leads into */
	point(heap, o[3], 0, o[4]);
	point(heap, o[4], 0, o[3]); /* and one that none does */
	point(heap, o[4], 1, o[2]);
	scan = scan_init(heap);
	add_root(scan.roots, ROOT_DATA, fake_heap_addr(heap, o[1]) + 17);
	scan_mark(&scan, heap, 1);

	for (int i = 0; i < 6; i++)
		assert_int_equal(mark_is_live(scan.mark, o[i]), i < 3);
	totals = mark_totals(scan.mark);
	assert_int_equal(totals->live_objects, 3);
	assert_int_equal(totals->live_bytes, 3 * 48);
	assert_int_equal(totals->garbage_objects, 3);
	assert_int_equal(totals->garbage_bytes, 3 * 48);
	assert_int_equal(totals->finalizable_objects, 0);
	assert_int_equal(totals->conservative_only_bytes, 0);
	assert_int_equal(totals->free_slot_hits, 0);
	assert_int_equal(mark_count(scan.mark, o[0], 6).live, 3);
	assert_int_equal(mark_count(scan.mark, o[2], 2).live, 1);
	scan_fini(&scan, heap);
}

/* o[0] -> o[1] -> o[2], all with finalizers, none reachable; o[3] hangs off the last. */
static void chains_of_finalizers_revive_from_their_head_only(void **state)
{
	uint32_t o[5];
	struct fake_heap *heap = small_heap(o, 5);
	struct scan scan;

	(void)state;
	for (int i = 0; i < 3; i++) {
		point(heap, o[i], 2, o[i + 1]);
		fake_heap_add_special(heap, o[i], SPECIAL_FINALIZER);
	}
	fake_heap_add_special(heap, o[4], SPECIAL_PROFILE);
	scan = scan_init(heap);
	scan_mark(&scan, heap, 2);

	assert_true(mark_is_finalizable(scan.mark, o[0]));
	assert_false(mark_is_live(scan.mark, o[0]));
	for (int i = 1; i < 4; i++) {
		assert_true(mark_is_live(scan.mark, o[i]));
		assert_false(mark_is_finalizable(scan.mark, o[i]));
	}
	assert_int_equal(mark_totals(scan.mark)->finalizable_objects, 1);
	assert_int_equal(mark_totals(scan.mark)->finalizable_bytes, 48);
	assert_int_equal(mark_totals(scan.mark)->live_objects, 3);
	assert_int_equal(mark_totals(scan.mark)->garbage_objects, 1);
	scan_fini(&scan, heap);
}

static void an_object_with_two_finalizer_records_counts_once(void **state)
{
	uint32_t o[2];
	struct fake_heap *heap = small_heap(o, 2);
	struct scan scan;

	(void)state;
	fake_heap_add_special(heap, o[0], SPECIAL_FINALIZER);
	fake_heap_add_special(heap, o[0], SPECIAL_FINALIZER);
	scan = scan_init(heap);
	scan_mark(&scan, heap, 1);
	assert_int_equal(mark_totals(scan.mark)->finalizable_objects, 1);
	assert_int_equal(mark_totals(scan.mark)->garbage_objects, 1);
	scan_fini(&scan, heap);
}

/* The sweeper will find its finalizer and revive it: what it points to was marked. */
static void a_condemned_object_with_a_finalizer_is_finalizable(void **state)
{
	uint32_t o[3];
	struct fake_heap *heap = small_heap(o, 3);
	struct scan scan;

	(void)state;
	fake_heap_set_slot(heap, o[0], FAKE_CONDEMNED);
	fake_heap_set_slot(heap, o[2], FAKE_CONDEMNED);
	point(heap, o[0], 0, o[1]);
	fake_heap_add_special(heap, o[0], SPECIAL_FINALIZER);
	scan = scan_init(heap);
	scan_mark(&scan, heap, 1);
	assert_true(mark_is_finalizable(scan.mark, o[0]));
	assert_true(mark_is_live(scan.mark, o[1]));
	assert_int_equal(mark_totals(scan.mark)->garbage_objects, 1);
	scan_fini(&scan, heap);
}

static void conservative_roots_are_told_from_exact_ones(void **state)
{
	uint32_t o[7];
	struct fake_heap *heap = small_heap(o, 7);
	struct scan scan;
	const struct mark_totals *totals;

	(void)state;
	point(heap, o[1], 0, o[2]); /* conservative */
	point(heap, o[3], 0, o[2]); /* system stack */
	point(heap, o[3], 1, o[4]);
	point(heap, o[1], 1, o[0]); /* exact already */
	scan = scan_init(heap);
	add_root(scan.roots, ROOT_SYSTEM_STACK, fake_heap_addr(heap, o[3]));
	add_root(scan.roots, ROOT_REGISTER, fake_heap_addr(heap, o[1]));
	add_root(scan.roots, ROOT_STACK_CONSERVATIVE, fake_heap_addr(heap, o[5]));
	add_root(scan.roots, ROOT_STACK, fake_heap_addr(heap, o[0]));
	scan_mark(&scan, heap, 2);

	totals = mark_totals(scan.mark);
	assert_int_equal(totals->live_objects, 6);
	assert_int_equal(totals->conservative_only_bytes, 5 * 48);
	assert_int_equal(totals->system_stack_only_bytes, 2 * 48);
	assert_int_equal(totals->garbage_objects, 1);
	scan_fini(&scan, heap);
}

static void words_that_lead_nowhere_are_no_roots(void **state)
{
	uint32_t o[4];
	struct fake_heap *heap = small_heap(o, 4);
	struct scan scan;

	(void)state;
	fake_heap_set_slot(heap, o[0], FAKE_FREE);
	fake_heap_set_slot(heap, o[1], FAKE_IN_FLIGHT);
	fake_heap_set_slot(heap, o[2], FAKE_CONDEMNED);
	scan = scan_init(heap);
	add_root(scan.roots, ROOT_STACK, 0);
	add_root(scan.roots, ROOT_STACK, 0x400000);
	for (int i = 0; i < 3; i++)
		add_root(scan.roots, ROOT_REGISTER, fake_heap_addr(heap, o[i]));
	assert_int_equal(root_set_count(scan.roots), 0);
	assert_int_equal(root_set_free_slot_hits(scan.roots), 0);

	add_root(scan.roots, ROOT_BSS, fake_heap_addr(heap, o[0]));
	add_root(scan.roots, ROOT_BSS, fake_heap_addr(heap, o[1]));
	add_root(scan.roots, ROOT_BSS, fake_heap_addr(heap, o[3]) + 47);
	assert_int_equal(root_set_count(scan.roots), 2);
	assert_int_equal(root_set_at(scan.roots, 1)->object, o[3]);
	assert_int_equal(root_set_at(scan.roots, 1)->kind, ROOT_BSS);
	assert_int_equal(root_set_at(scan.roots, 1)->slot, 0x500000);
	assert_int_equal(root_set_free_slot_hits(scan.roots), 1);
	scan_fini(&scan, heap);
}

/* An edge to a free slot is a hit only if something live has it. */
static void only_live_objects_count_as_hits_on_free_slots(void **state)
{
	uint32_t o[4];
	struct fake_heap *heap = small_heap(o, 4);
	struct scan scan;

	(void)state;
	fake_heap_set_slot(heap, o[3], FAKE_FREE);
	point(heap, o[0], 0, o[3]);
	point(heap, o[1], 0, o[3]);
	point(heap, o[1], 1, o[3]);
	scan = scan_init(heap);
	assert_int_equal(graph_totals(scan.graph)->free_slot_edges, 3);
	scan_mark(&scan, heap, 1);
	assert_int_equal(mark_totals(scan.mark)->free_slot_hits, 0);
	add_root(scan.roots, ROOT_DATA, fake_heap_addr(heap, o[0]));
	scan_mark(&scan, heap, 1);
	assert_int_equal(mark_totals(scan.mark)->free_slot_hits, 1);
	add_root(scan.roots, ROOT_DATA, fake_heap_addr(heap, o[3]));
	scan_mark(&scan, heap, 1);
	assert_int_equal(mark_totals(scan.mark)->free_slot_hits, 2);
	scan_fini(&scan, heap);
}

static void a_list_of_a_million_is_followed_to_its_end(void **state)
{
	const uint32_t spans = 6000, length = spans * 170;
	struct fake_heap *heap = fake_heap_new();
	struct scan scan;

	(void)state;
	for (uint32_t i = 0; i < spans; i++)
		fake_heap_add(heap, 48, 170, false);
	fake_heap_finish(heap);
	for (uint32_t object = 1; object < length; object++)
		point(heap, object, 0, object + 1);
	scan = scan_init(heap);
	add_root(scan.roots, ROOT_DATA, fake_heap_addr(heap, 1));
	scan_mark(&scan, heap, 4);
	assert_true(length > 1000000);
	assert_int_equal(mark_totals(scan.mark)->live_objects, length);
	scan_fini(&scan, heap);
}

static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* About half of it is reachable; one object holds pointers to 100,000 others. */
static struct fake_heap *random_heap(uint64_t seed)
{
	struct fake_heap *heap = fake_heap_new();
	uint32_t large, end;

	for (int i = 0; i < 2000; i++)
		fake_heap_add(heap, 48, 170, i % 4 == 0);
	large = fake_heap_add(heap, 100000 * 8, 1, false);
	fake_heap_finish(heap);
	end = span_table_object_end(fake_heap_spans(heap));
	for (uint32_t from = 1; from < end; from++) {
		const struct span *span = span_table_span_of(fake_heap_spans(heap), from);

		for (int word = 0; word < 2 && !span->noscan; word++)
			if (next_random(&seed) % 4 < 3)
				point(heap, from, word,
				      1 + (uint32_t)(next_random(&seed) % (end - 1)));
	}
	for (uint32_t word = 0; word < 100000; word++)
		point(heap, fake_heap_object(heap, large, 0), word,
		      1 + (uint32_t)(next_random(&seed) % (end - 1)));
	return heap;
}

/* The definition, one object at a time. */
static uint8_t *reachable(const struct graph *graph, const uint32_t *roots, uint32_t root_count,
			  uint32_t end)
{
	uint8_t *seen = calloc(1, end);
	uint32_t *stack = calloc(end, sizeof(*stack)), depth = 0, count;

	assert_non_null(seen);
	assert_non_null(stack);
	for (uint32_t i = 0; i < root_count; i++) {
		if (!seen[roots[i]])
			stack[depth++] = roots[i];
		seen[roots[i]] = 1;
	}
	while (depth) {
		const uint32_t *edges = graph_edges(graph, stack[--depth], &count);

		for (uint32_t i = 0; i < count; i++) {
			if (!seen[edges[i]])
				stack[depth++] = edges[i];
			seen[edges[i]] = 1;
		}
	}
	free(stack);
	return seen;
}

static void any_number_of_threads_marks_the_same_objects(void **state)
{
	struct fake_heap *heap = random_heap(99);
	uint32_t end = span_table_object_end(fake_heap_spans(heap));
	uint32_t roots[50];
	uint64_t seed = 5, live = 0;
	struct scan scan = scan_init(heap);
	uint8_t *expected;

	(void)state;
	for (int i = 0; i < 50; i++) {
		roots[i] = 1 + (uint32_t)(next_random(&seed) % (end - 1));
		add_root(scan.roots, ROOT_BSS, fake_heap_addr(heap, roots[i]));
	}
	expected = reachable(scan.graph, roots, 50, end);
	for (uint32_t object = 1; object < end; object++)
		live += expected[object];
	assert_true(live > 50000 && live < end - 50000);

	for (unsigned threads = 1; threads <= 8; threads++) {
		scan_mark(&scan, heap, threads);
		assert_int_equal(mark_totals(scan.mark)->live_objects, live);
		for (uint32_t object = 1; object < end; object++)
			assert_int_equal(mark_is_live(scan.mark, object), expected[object]);
	}
	free(expected);
	scan_fini(&scan, heap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_roots_reach_is_live_and_the_rest_is_garbage),
		cmocka_unit_test(chains_of_finalizers_revive_from_their_head_only),
		cmocka_unit_test(an_object_with_two_finalizer_records_counts_once),
		cmocka_unit_test(a_condemned_object_with_a_finalizer_is_finalizable),
		cmocka_unit_test(conservative_roots_are_told_from_exact_ones),
		cmocka_unit_test(words_that_lead_nowhere_are_no_roots),
		cmocka_unit_test(only_live_objects_count_as_hits_on_free_slots),
		cmocka_unit_test(a_list_of_a_million_is_followed_to_its_end),
		cmocka_unit_test(any_number_of_threads_marks_the_same_objects),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
