/* Spans and finding objects in them, over a made-up runtime. */
#include "tests/support/assertions.h"

#include <stdlib.h>

#include "agent/goruntime/arena.h"
#include "agent/goruntime/span.h"
#include "agent/goruntime/span_table.h"
#include "proto/base/bytes.h"
#include "tests/support/fake_runtime.h"

enum { FINALIZER = 2 };

static int set_up(void **state)
{
	struct fake_runtime *runtime = malloc(sizeof(*runtime));

	fake_runtime_init(runtime);
	*state = runtime;
	return 0;
}

static int tear_down(void **state)
{
	fake_runtime_fini(*state);
	free(*state);
	return 0;
}

static struct span_table *read_table(struct fake_runtime *r)
{
	struct span_table *table = NULL;

	assert_success(span_table_read(fake_memory_memory(r->memory), &r->layout, &table));
	return table;
}

static void objects_are_numbered_in_address_order(void **state)
{
	struct fake_runtime *r = *state;
	const struct fake_span spans[] = {
		{ .page = 40, .page_count = 30, .elem_size = 30 * GO_PAGE_SIZE, .elem_count = 1 },
		{ .page = 2, .elem_size = 48, .elem_count = 170, .span_class = 10 },
		{ .page = 3, .state = SPAN_MANUAL },
		{ .page = 4,
		  .page_count = 2,
		  .elem_size = 5376,
		  .elem_count = 3,
		  .span_class = 90 },
	};
	struct span_table *table;
	uint32_t object = 1;

	for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++)
		fake_runtime_span(r, &spans[i]);
	table = read_table(r);
	assert_int_equal(span_table_count(table), 4);
	assert_int_equal(span_table_object_end(table), 1 + 170 + 3 + 1);
	for (uint32_t i = 0; i < span_table_count(table); i++) {
		const struct span *span = span_table_at(table, i);

		for (uint32_t slot = 0; slot < span->elem_count; slot++, object++) {
			taddr addr = span->base + slot * span->elem_size;

			assert_int_equal(span_object_addr(span, object), addr);
			assert_ptr_equal(span_table_span_of(table, object), span);
			assert_int_equal(span_table_object(table, addr), object);
			assert_int_equal(span_table_object(table, addr + span->elem_size - 1),
					 object);
		}
	}
	assert_int_equal(object, span_table_object_end(table));
	assert_int_equal(span_table_totals(table)->in_use_pages, 33);
	assert_int_equal(span_table_totals(table)->manual_pages, 1);
	span_table_free(table);
}

static void words_that_lead_nowhere_find_no_object(void **state)
{
	struct fake_runtime *r = *state;
	const struct fake_span spans[] = {
		{ .page = 2, .elem_size = 48, .elem_count = 170, .span_class = 10 },
		{ .page = 3, .state = SPAN_MANUAL },
		{ .page = 5,
		  .elem_size = GO_PAGE_SIZE,
		  .elem_count = 1,
		  .limit = fake_heap_page(5) + 5000 },
	};
	const taddr nowhere[] = {
		0,
		1,
		UINT64_MAX,
		FAKE_HEAP - 1,
		fake_heap_page(2) - 1,
		fake_heap_page(2) + 170 * 48, /* behind the last slot */
		fake_heap_page(3) + 8,        /* a stack */
		fake_heap_page(4),
		fake_heap_page(5) + 5000, /* behind what was asked for */
		FAKE_HEAP + FAKE_ARENAS * FAKE_ARENA_BYTES,
	};
	struct span_table *table;

	for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++)
		fake_runtime_span(r, &spans[i]);
	table = read_table(r);
	for (size_t i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++)
		assert_int_equal(span_table_object(table, nowhere[i]), OBJECT_NONE);
	assert_int_equal(span_table_object(table, fake_heap_page(5) + 4999), 171);
	assert_non_null(span_table_find(table, fake_heap_page(3) + 8));
	assert_null(span_table_find(table, fake_heap_page(4)));
	span_table_free(table);
}

static void freed_structures_and_spans_being_made_are_not_there(void **state)
{
	struct fake_runtime *r = *state;
	struct fake_span span = { .elem_size = 256, .elem_count = 32, .span_class = 41 };
	taddr freed = fake_runtime_span(r, &span);
	struct span_table *table;

	fake_runtime_set(r, freed, r->layout.mspan_state, SPAN_DEAD);
	span.page = 1;
	span.unknown_to_arena = true;
	fake_runtime_span(r, &span);
	table = read_table(r);
	assert_int_equal(span_table_count(table), 0);
	assert_int_equal(span_table_object_end(table), 1);
	assert_int_equal(span_table_totals(table)->skipped_spans, 0);
	span_table_free(table);
}

/* Caught after the arena was told of it, with the limit of what the structure was before. */
static void a_new_span_may_be_without_its_limit(void **state)
{
	struct fake_runtime *r = *state;
	struct fake_span small = { .elem_size = 256, .elem_count = 32, .span_class = 41 };
	struct fake_span large = { .page = 1, .elem_size = 8192, .elem_count = 1, .span_class = 1 };
	struct span_table *table;

	small.limit = fake_heap_page(9);
	large.limit = fake_heap_page(0);
	fake_runtime_span(r, &small);
	fake_runtime_span(r, &large);
	table = read_table(r);
	assert_int_equal(span_table_totals(table)->skipped_spans, 0);
	assert_int_equal(span_table_count(table), 2);
	assert_int_equal(span_table_at(table, 0)->limit, fake_heap_page(1));
	assert_int_equal(span_table_at(table, 1)->limit, fake_heap_page(2));
	span_table_free(table);
}

static void contradictory_spans_are_left_out_and_counted(void **state)
{
	struct fake_runtime *r = *state;
	const struct fake_span good = { .page = 20,
					.elem_size = 256,
					.elem_count = 32,
					.span_class = 41,
					.alloc_count = 32,
					.free_index = 32 };
	struct fake_span bad[] = { good, good, good, good, good, good, good, good, good, good };
	const uint32_t count = sizeof(bad) / sizeof(bad[0]);
	struct span_table *table;
	taddr mspan;

	for (uint32_t i = 0; i < count; i++)
		bad[i].page = i;
	bad[0].elem_count = 33;           /* more than fit */
	bad[1].elem_size = 252;           /* not whole words */
	bad[2].elem_size = 0;             /* no slots */
	bad[3].free_index = 33;           /* more than there are */
	bad[4].limit = fake_heap_page(6); /* beyond the end */
	bad[5].limit = fake_heap_page(4); /* before the start */
	bad[6].sweep = 7;                 /* no such generation */
	bad[7].unknown_to_arena = true;   /* yet objects were allocated */
	bad[8].span_class = 1;            /* large, with many slots */
	bad[9].page = 1000000;            /* in no arena */
	bad[9].unknown_to_arena = true;
	for (uint32_t i = 0; i < count; i++)
		fake_runtime_span(r, &bad[i]);
	fake_runtime_span(r, &good);
	mspan = fake_runtime_span(r, &(struct fake_span){ .page = 21, .unknown_to_arena = true });
	fake_runtime_set(r, mspan, r->layout.mspan_start_addr, fake_heap_page(21) + 8);
	table = read_table(r);
	assert_int_equal(span_table_count(table), 1);
	assert_int_equal(span_table_at(table, 0)->base, fake_heap_page(20));
	assert_int_equal(span_table_totals(table)->skipped_spans, count + 1);
	assert_int_equal(span_table_totals(table)->skipped_bytes, count * GO_PAGE_SIZE);
	assert_int_equal(span_table_totals(table)->allocated_objects, 32);
	span_table_free(table);
}

static void of_overlapping_spans_the_arena_chooses(void **state)
{
	struct fake_runtime *r = *state;
	struct fake_span wide = { .page = 10,
				  .page_count = 4,
				  .elem_size = 4 * GO_PAGE_SIZE,
				  .elem_count = 1,
				  .span_class = 1,
				  .free_index = 1,
				  .alloc_count = 1 };
	struct fake_span inner = { .page = 12,
				   .elem_size = 256,
				   .elem_count = 32,
				   .span_class = 41,
				   .free_index = 32,
				   .alloc_count = 32 };
	struct span_table *table;

	fake_runtime_span(r, &wide);
	fake_runtime_span(r, &inner); /* takes one of its pages */
	table = read_table(r);
	assert_int_equal(span_table_count(table), 1);
	assert_int_equal(span_table_at(table, 0)->base, fake_heap_page(12));
	assert_int_equal(span_table_totals(table)->skipped_spans, 1);
	span_table_free(table);
}

static void structures_that_cannot_be_read_are_counted(void **state)
{
	struct fake_runtime *r = *state;
	struct span_table *table;

	fake_runtime_span(
	    r, &(struct fake_span){
		   .elem_size = 512, .elem_count = 16, .span_class = 51, .free_index = 16 });
	fake_runtime_span(r, &(struct fake_span){ .page = 1 });
	fake_memory_store(r->memory, r->allspans + 8, 8, 0x123456789000);
	table = read_table(r);
	assert_int_equal(span_table_count(table), 1);
	assert_int_equal(span_table_totals(table)->skipped_spans, 1);
	span_table_free(table);
}

static void lists_out_of_proportion_are_refused(void **state)
{
	struct fake_runtime *r = *state;
	taddr mheap = r->layout.global_mheap.addr;
	struct span_table *table = NULL;

	fake_memory_store(r->memory, mheap + r->layout.mheap_allspans.offset + 8, 8, UINT64_MAX);
	assert_error(span_table_read(fake_memory_memory(r->memory), &r->layout, &table),
		     ERROR_LIMIT);
	fake_memory_forget(r->memory);
	fake_memory_store(r->memory, mheap + r->layout.mheap_arena_list.offset + 8, 8, UINT64_MAX);
	assert_error(span_table_read(fake_memory_memory(r->memory), &r->layout, &table),
		     ERROR_LIMIT);
	assert_null(table);
}

static void more_slots_than_numbers_are_refused(void **state)
{
	uint64_t next = UINT32_MAX - 8;
	uint32_t first = 0;

	(void)state;
	assert_error(span_take_numbers(&next, 9, &first), ERROR_LIMIT);
	assert_error(span_take_numbers(&next, UINT32_MAX, &first), ERROR_LIMIT);
	assert_int_equal(next, UINT32_MAX - 8);
	assert_success(span_take_numbers(&next, 8, &first));
	assert_int_equal(first, UINT32_MAX - 8);
	assert_int_equal(next, UINT32_MAX);
	assert_success(span_take_numbers(&next, 0, &first)); /* a manual span */
	assert_error(span_take_numbers(&next, 1, &first), ERROR_LIMIT);
}

static void arenas_on_no_list_are_found_through_their_spans(void **state)
{
	struct fake_runtime *r = *state;
	taddr list = r->layout.global_mheap.addr + r->layout.mheap_arena_list.offset;
	struct fake_span span = { .page = 2 * FAKE_ARENA_BYTES / GO_PAGE_SIZE - 1,
				  .page_count = 2,
				  .elem_size = 2 * GO_PAGE_SIZE,
				  .elem_count = 1,
				  .span_class = 1,
				  .alloc_count = 1,
				  .free_index = 1 };
	struct span_table *table;

	/* the list is 3, 2, 1, 0; the span lies in 1 and 2 */
	fake_memory_store(r->memory, list + 8, 8, 2);
	fake_runtime_span(r, &span);
	table = read_table(r);
	assert_int_equal(span_table_count(table), 1);
	assert_int_equal(span_table_object(table, fake_heap_page(span.page + 1) + 100), 1);
	span_table_free(table);
}

static void an_arena_being_added_is_not_there_yet(void **state)
{
	enum { NO_ARENA = FAKE_ARENAS };
	struct fake_runtime *r = *state;
	taddr list = r->layout.global_mheap.addr + r->layout.mheap_arena_list.offset;
	taddr indices = load_u64le(fake_memory_bytes(r->memory, list, 8));
	struct fake_span span = { .elem_size = 256, .elem_count = 32, .span_class = 41 };
	struct span_table *table = NULL;

	fake_runtime_span(r, &span);
	fake_memory_store(r->memory, indices + 8 * (FAKE_ARENAS - 1), 8, NO_ARENA);
	table = read_table(r);
	assert_int_equal(arena_table_count(span_table_arenas(table)), FAKE_ARENAS);
	assert_int_equal(span_table_count(table), 1);
	span_table_free(table);

	fake_memory_store(r->memory, indices, 8, NO_ARENA);
	fake_memory_forget(r->memory);
	table = NULL;
	assert_error(span_table_read(fake_memory_memory(r->memory), &r->layout, &table),
		     ERROR_CORRUPT_TARGET);
}

/* Whatever a target's structures say, reading them ends, inside of memory. */
static void spoilt_structures_do_no_harm(void **state)
{
	struct fake_runtime *r = *state;
	uint64_t random = 1;

	(void)state;
	fake_runtime_use_inline_marks(r);
	for (uint32_t page = 0; page < 40; page++) {
		struct fake_span span = { .page = page,
					  .elem_size = 64,
					  .elem_count = 124,
					  .span_class = 10,
					  .free_index = page,
					  .sweep = (int32_t)(page % 4) - 2,
					  .has_inline_marks = true };

		span.specials = fake_runtime_special(r, 64, FINALIZER, 0);
		fake_runtime_span(r, &span);
	}
	for (unsigned round = 0; round < 3000; round++) {
		taddr from = round % 3 ? r->allspans : r->layout.global_mheap.addr;
		size_t size = round % 3 ? r->next - r->allspans : r->layout.mheap.size;
		struct span_table *table = NULL;
		struct error *err;

		random = random * 6364136223846793005 + 1442695040888963407;
		fake_memory_bytes(r->memory, from, size)[(random >> 20) % size] =
		    (uint8_t)(random >> 56);
		fake_memory_forget(r->memory);
		err = span_table_read(fake_memory_memory(r->memory), &r->layout, &table);
		for (uint32_t object = 1; !err && object < span_table_object_end(table); object++)
			assert_true(span_table_span_of(table, object)->elem_count > 0);
		span_table_free(table);
		error_free(err);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(objects_are_numbered_in_address_order),
		TEST(words_that_lead_nowhere_find_no_object),
		TEST(freed_structures_and_spans_being_made_are_not_there),
		TEST(a_new_span_may_be_without_its_limit),
		TEST(contradictory_spans_are_left_out_and_counted),
		TEST(of_overlapping_spans_the_arena_chooses),
		TEST(structures_that_cannot_be_read_are_counted),
		TEST(lists_out_of_proportion_are_refused),
		cmocka_unit_test(more_slots_than_numbers_are_refused),
		TEST(arenas_on_no_list_are_found_through_their_spans),
		TEST(an_arena_being_added_is_not_there_yet),
		TEST(spoilt_structures_do_no_harm),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("span", tests, NULL, NULL);
}
