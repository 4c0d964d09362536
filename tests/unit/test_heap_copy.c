#include "agent/analysis/heap_copy.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/assertions.h"
#include "tests/support/fake_heap.h"

enum { SMALL = 64, SMALL_COUNT = 128, SPAN_COUNT = 6 };

/* Two neighbours, a span without pointers, two more neighbours, and one behind a gap. */
static struct fake_heap *make_heap(void)
{
	struct fake_heap *heap = fake_heap_new();

	fake_heap_add(heap, SMALL, SMALL_COUNT, false);
	fake_heap_add(heap, SMALL, SMALL_COUNT, false);
	fake_heap_add(heap, SMALL, SMALL_COUNT, true);
	fake_heap_add(heap, SMALL, SMALL_COUNT, false);
	fake_heap_add(heap, 5 * GO_PAGE_SIZE, 1, false);
	fake_heap_gap(heap, 3);
	fake_heap_add(heap, SMALL, SMALL_COUNT, false);
	fake_heap_finish(heap);
	for (uint32_t span = 0; span < SPAN_COUNT; span++) {
		uint32_t object = fake_heap_object(heap, span, 0);

		fake_heap_point(heap, object, 0, fake_heap_addr(heap, object));
	}
	return heap;
}

static struct memory *copy_of(const struct fake_heap *heap, unsigned threads)
{
	struct memory *copy = NULL;

	assert_success(heap_copy_new(fake_heap_memory((struct fake_heap *)heap),
				     fake_heap_spans(heap), threads, 0, &copy));
	return copy;
}

static taddr base_of(const struct fake_heap *heap, uint32_t span)
{
	return span_table_at(fake_heap_spans(heap), span)->base;
}

static void assert_same(struct memory *copy, struct fake_heap *heap, taddr addr, size_t size)
{
	uint8_t *there = malloc(size), *here = malloc(size);

	assert_success(memory_read_bulk(fake_heap_memory(heap), addr, there, size));
	assert_success(memory_read_bulk(copy, addr, here, size));
	assert_memory_equal(there, here, size);
	free(there);
	free(here);
}

static void what_holds_pointers_is_there(void **state)
{
	struct fake_heap *heap = make_heap();

	(void)state;
	for (unsigned threads = 1; threads <= 2; threads++) {
		struct memory *copy = copy_of(heap, threads);

		assert_same(copy, heap, base_of(heap, 0), GO_PAGE_SIZE);
		assert_same(copy, heap, base_of(heap, 1) - 8, 16);
		assert_same(copy, heap, base_of(heap, 3) + 8, 6 * GO_PAGE_SIZE - 8);
		assert_same(copy, heap, base_of(heap, 5), GO_PAGE_SIZE);
		memory_free(copy);
	}
	fake_heap_free(heap);
}

static void all_else_is_not_readable(void **state)
{
	struct fake_heap *heap = make_heap();
	struct memory *copy = copy_of(heap, 1);
	taddr first = base_of(heap, 0), last = base_of(heap, 5);
	uint8_t bytes[16];

	(void)state;
	assert_error(memory_read_bulk(copy, base_of(heap, 2), bytes, 8), ERROR_FAULT);
	assert_error(memory_read_bulk(copy, base_of(heap, 2) - 8, bytes, 16), ERROR_FAULT);
	assert_error(memory_read_bulk(copy, first - 8, bytes, 8), ERROR_FAULT);
	assert_error(memory_read_bulk(copy, last - 8, bytes, 8), ERROR_FAULT);
	assert_error(memory_read_bulk(copy, last + GO_PAGE_SIZE - 8, bytes, 16), ERROR_FAULT);
	assert_error(memory_read_bulk(copy, 0, bytes, 8), ERROR_FAULT);
	assert_error(memory_read_bulk(copy, UINT64_MAX - 8, bytes, 8), ERROR_FAULT);
	memory_free(copy);
	fake_heap_free(heap);
}

static void a_span_that_cannot_be_read_is_left_out_alone(void **state)
{
	struct fake_heap *heap = make_heap();
	struct memory *copy;
	uint8_t bytes[8];

	(void)state;
	fake_heap_break(heap, 3);
	copy = copy_of(heap, 2);
	assert_error(memory_read_bulk(copy, base_of(heap, 3), bytes, 8), ERROR_FAULT);
	assert_same(copy, heap, base_of(heap, 4), 5 * GO_PAGE_SIZE);
	memory_free(copy);
	fake_heap_free(heap);
}

static void a_limit_is_kept_and_foretold(void **state)
{
	struct fake_heap *heap = make_heap();
	uint64_t need = heap_copy_need(fake_heap_spans(heap));
	struct memory *copy = NULL;

	(void)state;
	assert_int_equal(need, 9 * GO_PAGE_SIZE + SPAN_COUNT * 8);
	assert_error(
	    heap_copy_new(fake_heap_memory(heap), fake_heap_spans(heap), 1, need / 2, &copy),
	    ERROR_OUT_OF_MEMORY);
	assert_null(copy);
	fake_heap_free(heap);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_holds_pointers_is_there),
		cmocka_unit_test(all_else_is_not_readable),
		cmocka_unit_test(a_span_that_cannot_be_read_is_left_out_alone),
		cmocka_unit_test(a_limit_is_kept_and_foretold),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("heap_copy", tests, NULL, NULL);
}
