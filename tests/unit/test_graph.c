/* The object graph, over a heap made up edge by edge. */
#include "tests/support/assertions.h"

#include <stdlib.h>

#include "agent/analysis/graph.h"
#include "tests/support/fake_heap.h"

static struct graph *read_graph(struct fake_heap *heap, unsigned threads)
{
	struct graph *graph = NULL;

	assert_success(
	    graph_read(fake_heap_memory(heap), NULL, fake_heap_spans(heap), threads, 0, &graph));
	return graph;
}

static void assert_edges(const struct graph *graph, uint32_t object, const uint32_t *expected,
			 uint32_t expected_count)
{
	uint32_t count;
	const uint32_t *edges = graph_edges(graph, object, &count);

	assert_int_equal(count, expected_count);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(edges[i], expected[i]);
}

static void edges_come_in_the_order_of_the_words(void **state)
{
	struct fake_heap *heap = fake_heap_new();
	uint32_t scan = fake_heap_add(heap, 48, 170, false);
	uint32_t leaf = fake_heap_add(heap, 16, 512, true);
	uint32_t a, b, c;
	struct graph *graph;

	(void)state;
	fake_heap_finish(heap);
	a = fake_heap_object(heap, scan, 0);
	b = fake_heap_object(heap, scan, 169);
	c = fake_heap_object(heap, leaf, 511);
	fake_heap_point(heap, a, 0, fake_heap_addr(heap, b));
	fake_heap_point(heap, a, 5, fake_heap_addr(heap, c));
	fake_heap_point(heap, b, 5, fake_heap_addr(heap, a));
	graph = read_graph(heap, 1);

	assert_edges(graph, a, (uint32_t[]){ b, c }, 2);
	assert_edges(graph, b, (uint32_t[]){ a }, 1);
	assert_edges(graph, fake_heap_object(heap, scan, 1), NULL, 0);
	assert_edges(graph, c, NULL, 0);
	assert_int_equal(graph_totals(graph)->edges, 3);
	assert_int_equal(graph_totals(graph)->free_slot_edges, 0);
	assert_int_equal(graph_totals(graph)->skipped_bytes, 0);
	graph_free(graph);
	fake_heap_free(heap);
}

static void interior_pointers_lead_to_their_object(void **state)
{
	struct fake_heap *heap = fake_heap_new();
	uint32_t scan = fake_heap_add(heap, 96, 85, false);
	uint32_t large = fake_heap_add(heap, 100000, 1, true);
	uint32_t a, b, big;
	struct graph *graph;

	(void)state;
	fake_heap_finish(heap);
	a = fake_heap_object(heap, scan, 3);
	b = fake_heap_object(heap, scan, 84);
	big = fake_heap_object(heap, large, 0);
	fake_heap_point(heap, a, 1, fake_heap_addr(heap, b) + 95);
	fake_heap_point(heap, a, 2, fake_heap_addr(heap, big) + 99999);
	fake_heap_point(heap, a, 3, fake_heap_addr(heap, big) + 100000); /* beyond limit */
	fake_heap_point(heap, a, 4, fake_heap_addr(heap, b) + 96);       /* beyond the last slot */
	fake_heap_point(heap, a, 5, 0xb000000000);
	graph = read_graph(heap, 1);

	assert_edges(graph, a, (uint32_t[]){ b, big }, 2);
	assert_int_equal(graph_totals(graph)->free_slot_edges, 0);
	graph_free(graph);
	fake_heap_free(heap);
}

static void pointers_to_free_slots_are_counted_and_kept_as_none(void **state)
{
	struct fake_heap *heap = fake_heap_new();
	uint32_t scan = fake_heap_add(heap, 48, 170, false);
	uint32_t a, b, dead, gone;
	struct graph *graph;

	(void)state;
	fake_heap_finish(heap);
	a = fake_heap_object(heap, scan, 0);
	b = fake_heap_object(heap, scan, 1);
	dead = fake_heap_object(heap, scan, 2);
	gone = fake_heap_object(heap, scan, 3);
	fake_heap_set_slot(heap, dead, FAKE_FREE);
	fake_heap_set_slot(heap, gone, FAKE_FREE);
	fake_heap_point(heap, a, 0, fake_heap_addr(heap, dead));
	fake_heap_point(heap, a, 1, fake_heap_addr(heap, b));
	fake_heap_point(heap, dead, 0, fake_heap_addr(heap, a));
	fake_heap_point(heap, gone, 0, fake_heap_addr(heap, dead));
	graph = read_graph(heap, 1);

	assert_edges(graph, a, (uint32_t[]){ OBJECT_NONE, b }, 2);
	assert_edges(graph, dead, NULL, 0);
	assert_edges(graph, gone, NULL, 0);
	assert_int_equal(graph_totals(graph)->free_slot_edges, 1);
	graph_free(graph);
	fake_heap_free(heap);
}

static void condemned_objects_have_edges_but_none_lead_to_them(void **state)
{
	struct fake_heap *heap = fake_heap_new();
	uint32_t scan = fake_heap_add(heap, 48, 170, false);
	uint32_t a, condemned, also;
	struct graph *graph;

	(void)state;
	fake_heap_finish(heap);
	a = fake_heap_object(heap, scan, 0);
	condemned = fake_heap_object(heap, scan, 1);
	also = fake_heap_object(heap, scan, 2);
	fake_heap_set_slot(heap, condemned, FAKE_CONDEMNED);
	fake_heap_set_slot(heap, also, FAKE_CONDEMNED);
	fake_heap_point(heap, condemned, 0, fake_heap_addr(heap, also));
	fake_heap_point(heap, condemned, 1, fake_heap_addr(heap, a));
	graph = read_graph(heap, 1);

	assert_edges(graph, condemned, (uint32_t[]){ a }, 1);
	assert_int_equal(graph_totals(graph)->free_slot_edges, 0);
	graph_free(graph);
	fake_heap_free(heap);
}

static void slots_just_handed_out_have_no_edges(void **state)
{
	struct fake_heap *heap = fake_heap_new();
	uint32_t scan = fake_heap_add(heap, 48, 170, false);
	uint32_t a, fresh;
	struct graph *graph;

	(void)state;
	fake_heap_finish(heap);
	a = fake_heap_object(heap, scan, 0);
	fresh = fake_heap_object(heap, scan, 1);
	fake_heap_set_slot(heap, fresh, FAKE_IN_FLIGHT);
	fake_heap_point(heap, fresh, 0, fake_heap_addr(heap, a));
	fake_heap_point(heap, a, 0, fake_heap_addr(heap, fresh));
	graph = read_graph(heap, 1);

	assert_edges(graph, a, (uint32_t[]){ fresh }, 1);
	assert_edges(graph, fresh, NULL, 0);
	graph_free(graph);
	fake_heap_free(heap);
}

static void leftovers_in_the_newest_slot_are_no_fault(void **state)
{
	struct fake_heap *heap = fake_heap_new();
	uint32_t scan = fake_heap_add(heap, 48, 170, false);
	uint32_t a, newest, dead;
	struct graph *graph;

	(void)state;
	fake_heap_finish(heap);
	a = fake_heap_object(heap, scan, 0);
	newest = fake_heap_object(heap, scan, 1);
	dead = fake_heap_object(heap, scan, 2);
	fake_heap_set_slot(heap, dead, FAKE_FREE);
	fake_heap_point(heap, newest, 0, fake_heap_addr(heap, dead));
	fake_heap_point(heap, newest, 1, fake_heap_addr(heap, a));
	fake_heap_span(heap, scan)->newest = 2;
	graph = read_graph(heap, 1);

	assert_edges(graph, newest, (uint32_t[]){ a }, 1);
	assert_int_equal(graph_totals(graph)->free_slot_edges, 0);
	graph_free(graph);
	fake_heap_free(heap);
}

/* Large objects are read in runs of half a mebibyte; edges outgrow their first chunk. */
static void large_objects_keep_all_their_edges_in_order(void **state)
{
	const uint64_t words = (20 << 20) / 8;
	struct fake_heap *heap = fake_heap_new();
	uint32_t before = fake_heap_add(heap, 48, 170, false);
	uint32_t large = fake_heap_add(heap, words * 8, 1, false);
	uint32_t leaf = fake_heap_add(heap, 16, 512, true);
	uint32_t first, big, count;
	const uint32_t *edges;
	struct graph *graph;

	(void)state;
	fake_heap_finish(heap);
	first = fake_heap_object(heap, before, 169);
	big = fake_heap_object(heap, large, 0);
	fake_heap_point(heap, first, 0, fake_heap_addr(heap, big));
	for (uint64_t i = 0; i < words; i++)
		fake_heap_point(heap, big, i,
				fake_heap_addr(heap, fake_heap_object(heap, leaf, i % 512)));
	graph = read_graph(heap, 1);

	assert_edges(graph, first, (uint32_t[]){ big }, 1);
	edges = graph_edges(graph, big, &count);
	assert_int_equal(count, words);
	for (uint64_t i = 0; i < words; i++)
		assert_int_equal(edges[i], fake_heap_object(heap, leaf, i % 512));
	graph_free(graph);
	fake_heap_free(heap);
}

static void unreadable_spans_are_skipped_and_counted(void **state)
{
	struct fake_heap *heap = fake_heap_new();
	uint32_t one = fake_heap_add(heap, 48, 170, false);
	uint32_t two = fake_heap_add(heap, 48, 170, false);
	uint32_t three = fake_heap_add(heap, 48, 170, false);
	uint32_t large = fake_heap_add(heap, 1 << 20, 1, false);
	uint32_t a, c;
	struct graph *graph;

	(void)state;
	fake_heap_finish(heap);
	a = fake_heap_object(heap, one, 0);
	c = fake_heap_object(heap, three, 0);
	fake_heap_point(heap, a, 0, fake_heap_addr(heap, c));
	fake_heap_point(heap, c, 0, fake_heap_addr(heap, fake_heap_object(heap, two, 0)));
	fake_heap_break(heap, two);
	fake_heap_break(heap, large);
	graph = read_graph(heap, 1);

	assert_edges(graph, a, (uint32_t[]){ c }, 1);
	assert_edges(graph, c, (uint32_t[]){ fake_heap_object(heap, two, 0) }, 1);
	assert_edges(graph, fake_heap_object(heap, two, 5), NULL, 0);
	assert_int_equal(graph_totals(graph)->skipped_bytes, 8192 + (1 << 20));
	graph_free(graph);
	fake_heap_free(heap);
}

/* Spans without pointers are broken on purpose: touching one would be counted. */
static void spans_without_pointers_are_never_read(void **state)
{
	struct fake_heap *heap = fake_heap_new();
	uint32_t scan = fake_heap_add(heap, 48, 170, false);
	uint32_t leaf = fake_heap_add(heap, 16, 512, true);
	uint32_t last = fake_heap_add(heap, 48, 170, false);
	struct graph *graph;

	(void)state;
	fake_heap_finish(heap);
	fake_heap_break(heap, leaf);
	fake_heap_point(heap, fake_heap_object(heap, scan, 0), 0,
			fake_heap_addr(heap, fake_heap_object(heap, last, 0)));
	graph = read_graph(heap, 1);
	assert_int_equal(graph_totals(graph)->edges, 1);
	assert_int_equal(graph_totals(graph)->skipped_bytes, 0);
	graph_free(graph);
	fake_heap_free(heap);
}

static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* Spans of several sizes, some without pointers, some slots free, pointers everywhere. */
static struct fake_heap *random_heap(uint64_t seed)
{
	static const uint32_t sizes[][2] = { { 16, 512 }, { 48, 170 }, { 512, 16 }, { 6144, 4 } };
	struct fake_heap *heap = fake_heap_new();
	uint32_t end;

	for (int i = 0; i < 2000; i++) {
		const uint32_t *size = sizes[next_random(&seed) % 4];

		fake_heap_add(heap, size[0], size[1], next_random(&seed) % 3 == 0);
		if (next_random(&seed) % 16 == 0)
			fake_heap_gap(heap, next_random(&seed) % 64);
	}
	fake_heap_finish(heap);
	end = span_table_object_end(fake_heap_spans(heap));
	for (int i = 0; i < 300000; i++) {
		uint32_t from = 1 + (uint32_t)(next_random(&seed) % (end - 1));
		uint32_t to = 1 + (uint32_t)(next_random(&seed) % (end - 1));
		const struct span *span = span_table_span_of(fake_heap_spans(heap), from);

		if (!span->noscan)
			fake_heap_point(heap, from, next_random(&seed) % (span->elem_size / 8),
					fake_heap_addr(heap, to));
	}
	for (int i = 0; i < 5000; i++)
		fake_heap_set_slot(heap, 1 + (uint32_t)(next_random(&seed) % (end - 1)), FAKE_FREE);
	return heap;
}

static void several_threads_find_what_one_finds(void **state)
{
	struct fake_heap *heap = random_heap(42);
	uint32_t end = span_table_object_end(fake_heap_spans(heap));
	struct graph *one = read_graph(heap, 1), *many = read_graph(heap, 7);

	(void)state;
	assert_true(graph_totals(one)->edges > 100000);
	assert_int_equal(graph_totals(one)->edges, graph_totals(many)->edges);
	assert_int_equal(graph_totals(one)->free_slot_edges, graph_totals(many)->free_slot_edges);
	for (uint32_t object = 1; object < end; object++) {
		uint32_t count;
		const uint32_t *edges = graph_edges(one, object, &count);

		assert_edges(many, object, edges, count);
	}
	graph_free(many);
	graph_free(one);
	fake_heap_free(heap);
}

static void a_heap_beyond_the_memory_limit_is_refused(void **state)
{
	struct fake_heap *heap = random_heap(7);
	struct graph *graph = NULL;

	(void)state;
	assert_error(
	    graph_read(fake_heap_memory(heap), NULL, fake_heap_spans(heap), 2, 1 << 20, &graph),
	    ERROR_OUT_OF_MEMORY);
	assert_null(graph);
	fake_heap_free(heap);
}

/*
 * Where an object's edges end is counted in 32 bits from the first of its span, so that a graph may
 * have more edges than that, but not a span. None of its memory is read.
 */
static void an_object_of_more_words_than_numbers_is_refused(void **state)
{
	const uint64_t most = UINT64_C(1) << 35;
	struct fake_heap *heap = fake_heap_new();
	uint32_t span = fake_heap_add(heap, 64 << 10, 1, false);
	struct graph *graph = NULL;

	(void)state;
	fake_heap_finish(heap);
	fake_heap_break(heap, span);
	fake_heap_span(heap, span)->page_count = most / GO_PAGE_SIZE;
	assert_error(graph_read(fake_heap_memory(heap), NULL, fake_heap_spans(heap), 1, 0, &graph),
		     ERROR_LIMIT);
	assert_null(graph);
	fake_heap_span(heap, span)->page_count = most / GO_PAGE_SIZE - 1;
	assert_success(
	    graph_read(fake_heap_memory(heap), NULL, fake_heap_spans(heap), 1, 0, &graph));
	graph_free(graph);
	fake_heap_free(heap);
}

static void an_empty_heap_has_an_empty_graph(void **state)
{
	struct fake_heap *heap = fake_heap_new();
	struct graph *graph;

	(void)state;
	fake_heap_finish(heap);
	graph = read_graph(heap, 2);
	assert_int_equal(graph_totals(graph)->edges, 0);
	graph_free(graph);
	fake_heap_free(heap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(edges_come_in_the_order_of_the_words),
		cmocka_unit_test(interior_pointers_lead_to_their_object),
		cmocka_unit_test(pointers_to_free_slots_are_counted_and_kept_as_none),
		cmocka_unit_test(condemned_objects_have_edges_but_none_lead_to_them),
		cmocka_unit_test(slots_just_handed_out_have_no_edges),
		cmocka_unit_test(leftovers_in_the_newest_slot_are_no_fault),
		cmocka_unit_test(large_objects_keep_all_their_edges_in_order),
		cmocka_unit_test(unreadable_spans_are_skipped_and_counted),
		cmocka_unit_test(spans_without_pointers_are_never_read),
		cmocka_unit_test(several_threads_find_what_one_finds),
		cmocka_unit_test(a_heap_beyond_the_memory_limit_is_refused),
		cmocka_unit_test(an_object_of_more_words_than_numbers_is_refused),
		cmocka_unit_test(an_empty_heap_has_an_empty_graph),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
