/* The state of slots: allocated, present, targets of conservative words. */
#include "tests/support/assertions.h"

#include <stdlib.h>

#include "agent/goruntime/span.h"
#include "agent/goruntime/span_lookup.h"
#include "proto/base/bytes.h"
#include "tests/support/fake_runtime.h"

enum { FINALIZER = 2, PROFILE = 4 };

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

/* The first 64 slots of a span in one of its bitmaps. */
static uint64_t slots(const struct span_table *table, const uint64_t *bits, uint32_t page)
{
	const struct span *span = span_table_find(table, fake_heap_page(page));

	assert_non_null(span);
	return bits[span->bits / 64];
}

static void assert_slots(const struct span_table *table, uint32_t page, uint64_t allocated,
			 uint64_t present, uint64_t conservative)
{
	const struct span_lookup *lookup = span_table_lookup(table);

	assert_int_equal(slots(table, lookup->allocated, page), allocated);
	assert_int_equal(slots(table, lookup->present, page), present);
	assert_int_equal(slots(table, lookup->conservative, page), conservative);
}

static void slots_below_freeindex_and_those_of_alloc_bits_are_allocated(void **state)
{
	struct fake_runtime *r = *state;
	struct fake_span span = { .page = 3,
				  .elem_size = 256,
				  .elem_count = 31,
				  .span_class = 40,
				  .free_index = 4,
				  .free_index_for_scan = 4,
				  .alloc_bits = { 0x40000101 },
				  .alloc_count = 6 };
	struct span_table *table;

	fake_runtime_span(r, &span);
	span.page = 5;
	span.sweep = 3; /* cached */
	fake_runtime_span(r, &span);
	table = read_table(r);

	assert_slots(table, 3, 0x4000010f, 0x4000010f, 0x4000010f);
	assert_slots(table, 5, 0x4000010f, 0x4000010f, 0x4000010f);
	assert_int_equal(span_table_totals(table)->allocated_objects, 12);
	assert_int_equal(span_table_totals(table)->allocated_bytes, 12 * 256);
	assert_int_equal(span_table_totals(table)->alloc_count_sum, 12);
	assert_int_equal(span_table_totals(table)->in_use_pages, 2);
	assert_int_equal(span_table_totals(table)->skipped_spans, 0);
	span_table_free(table);
}

/* Sums would hide that one span counts too few and another too many. */
static void each_span_is_held_against_its_own_count(void **state)
{
	struct fake_runtime *r = *state;
	struct fake_span span = { .elem_size = 256,
				  .elem_count = 31,
				  .span_class = 40,
				  .free_index = 4,
				  .free_index_for_scan = 4,
				  .alloc_count = 4 };
	const struct span_totals *totals;
	struct span_table *table;

	for (span.page = 0; span.page < 6; span.page++, span.alloc_count++) {
		span.alloc_count = span.page == 5 ? 0 : span.alloc_count;
		fake_runtime_span(r, &span); /* counts 4, 5, 6, 7, 8 and 0 */
	}
	table = read_table(r);
	totals = span_table_totals(table);
	assert_int_equal(totals->uneven_spans, 1);
	assert_int_equal(totals->miscounted_spans, 4);
	assert_int_equal(totals->empty_pages, 1);
	span_table_free(table);
}

static void bits_beyond_the_last_slot_mean_nothing(void **state)
{
	struct fake_runtime *r = *state;
	struct fake_span span = { .elem_size = 1024,
				  .elem_count = 7,
				  .span_class = 60,
				  .alloc_bits = { UINT64_MAX, UINT64_MAX },
				  .alloc_count = 7 };
	struct span_table *table;

	fake_runtime_span(r, &span);
	table = read_table(r);
	assert_slots(table, 0, 0x7f, 0x7f, 0x7f);
	span_table_free(table);
}

static void slots_just_handed_out_are_no_conservative_targets(void **state)
{
	struct fake_runtime *r = *state;
	struct fake_span span = { .elem_size = 256,
				  .elem_count = 31,
				  .span_class = 40,
				  .free_index = 8,
				  .free_index_for_scan = 5,
				  .alloc_bits = { 0x40 },
				  .mark_bits = { 0x80 },
				  .alloc_count = 8 };
	struct span_table *table;
	taddr mspan = fake_runtime_span(r, &span);

	/* while marking, objects are born marked, and gcphase is reset before they count as old */
	table = read_table(r);
	assert_slots(table, 0, 0xff, 0xff, 0xdf);
	span_table_free(table);

	fake_runtime_set(
	    r, mspan, r->layout.mspan_mark_bits,
	    load_u64le(fake_memory_bytes(r->memory, mspan + r->layout.mspan_alloc_bits.offset, 8)));
	fake_memory_forget(r->memory);
	table = read_table(r);
	assert_slots(table, 0, 0xff, 0xff, 0x5f);
	span_table_free(table);
}

static void unmarked_slots_of_unswept_spans_are_condemned(void **state)
{
	struct fake_runtime *r = *state;
	struct fake_span span = { .elem_size = 256,
				  .elem_count = 31,
				  .span_class = 40,
				  .free_index = 4,
				  .free_index_for_scan = 4,
				  .alloc_bits = { 0x300 },
				  .mark_bits = { 0x206 },
				  .alloc_count = 6,
				  .sweep = -2 };
	struct span_table *table;

	fake_runtime_span(r, &span);
	span.page = 1;
	span.sweep = 1; /* cached before the sweep began */
	fake_runtime_span(r, &span);
	table = read_table(r);
	assert_slots(table, 0, 0x30f, 0x206, 0x206);
	assert_slots(table, 1, 0x30f, 0x206, 0x206);
	assert_int_equal(span_table_totals(table)->allocated_objects, 12);
	assert_int_equal(span_table_totals(table)->unswept_spans, 2);
	span_table_free(table);
}

/* Since go1.25 freeIndexForScan stays where it was when marking began until the span is swept. */
static void what_was_born_marked_is_a_conservative_target_until_its_span_is_swept(void **state)
{
	struct fake_runtime *r = *state;
	struct fake_span span = { .elem_size = 256,
				  .elem_count = 31,
				  .span_class = 40,
				  .free_index = 8,
				  .free_index_for_scan = 2,
				  .alloc_bits = { 0x100 },
				  .mark_bits = { 0xfffffffe & ~UINT64_C(0x48) },
				  .alloc_count = 9 };
	struct span_table *table;

	for (span.page = 0; span.page < 3; span.page++) {
		span.sweep = (const int[]){ -2, 1, -1 }[span.page];
		fake_runtime_span(r, &span);
	}
	table = read_table(r);
	assert_slots(table, 0, 0x1ff, 0x1b6, 0x1b6);
	assert_slots(table, 1, 0x1ff, 0x1b6, 0x1b6);
	assert_int_equal(slots(table, span_table_lookup(table)->conservative, 2),
			 slots(table, span_table_lookup(table)->present, 2));
	assert_int_equal(slots(table, span_table_lookup(table)->conservative, 2) & 0x1ff, 0x1b6);
	span_table_free(table);
}

static void marks_inside_of_unswept_spans_count(void **state)
{
	struct fake_runtime *r = *state;
	struct fake_span span = { .page = 9,
				  .elem_size = 64,
				  .elem_count = 124,
				  .span_class = 10,
				  .free_index = 124,
				  .free_index_for_scan = 124,
				  .mark_bits = { 0x1 },
				  .inline_marks = { 0x8000000000000002, 0x5 },
				  .has_inline_marks = true,
				  .sweep = -2 };
	const struct span *read;
	struct span_table *table;

	fake_runtime_use_inline_marks(r);
	fake_runtime_span(r, &span);
	table = read_table(r);
	read = span_table_find(table, fake_heap_page(9));
	assert_true(read->inline_marks);
	assert_slots(table, 9, UINT64_MAX, 0x8000000000000003, 0x8000000000000003);
	assert_true(span_slot_present(table, read, 64));
	assert_false(span_slot_present(table, read, 65));
	assert_true(span_slot_present(table, read, 66));
	span_table_free(table);
}

static void finalizers_revive_what_was_not_marked(void **state)
{
	struct fake_runtime *r = *state;
	taddr last = fake_runtime_special(r, 30 * 256, FINALIZER, 0);
	taddr profiled = fake_runtime_special(r, 5 * 256, PROFILE, last);
	struct fake_span span = { .elem_size = 256,
				  .elem_count = 31,
				  .span_class = 40,
				  .free_index = 31,
				  .free_index_for_scan = 31,
				  .mark_bits = { 0x1 },
				  .sweep = -2 };
	struct span_table *table;

	span.specials = fake_runtime_special(r, 2 * 256 + 16, FINALIZER, profiled);
	fake_runtime_span(r, &span);
	table = read_table(r);
	assert_slots(table, 0, 0x7fffffff, 0x40000005, 0x40000005);
	span_table_free(table);
}

/* In the order in which sweep changes the span; the survivors are slots 1 and 9 throughout. */
static void spans_being_swept_have_the_survivors(void **state)
{
	static const struct {
		uint32_t free_index;
		uint64_t alloc_bits, mark_bits, inline_marks;
		uint64_t allocated;
	} moments[] = {
		{ 4, 0x300, 0, 0x202, 0x30f },     /* begun */
		{ 4, 0x300, 0x202, 0x202, 0x30f }, /* marks merged */
		{ 4, 0x300, 0x202, 0, 0x30f },     /* marks inside cleared */
		{ 0, 0x300, 0x202, 0, 0x302 },     /* freeindex reset */
		{ 0, 0x202, 0x202, 0, 0x202 },     /* gcmarkBits made allocBits */
		{ 0, 0x202, 0, 0, 0x202 },         /* and replaced */
	};
	struct fake_runtime *r = *state;
	struct span_table *table;

	fake_runtime_use_inline_marks(r);
	for (uint32_t i = 0; i < sizeof(moments) / sizeof(moments[0]); i++) {
		struct fake_span span = { .page = i,
					  .elem_size = 256,
					  .elem_count = 30,
					  .span_class = 40,
					  .free_index = moments[i].free_index,
					  .free_index_for_scan = moments[i].free_index,
					  .alloc_bits = { moments[i].alloc_bits },
					  .mark_bits = { moments[i].mark_bits },
					  .inline_marks = { moments[i].inline_marks },
					  .has_inline_marks = true,
					  .sweep = -1 };

		fake_runtime_span(r, &span);
	}
	table = read_table(r);
	for (uint32_t i = 0; i < sizeof(moments) / sizeof(moments[0]); i++)
		assert_slots(table, i, moments[i].allocated, 0x202, 0x202);
	assert_int_equal(span_table_totals(table)->sweeping_spans, 6);
	span_table_free(table);
}

static void freed_user_arenas_count_as_freed(void **state)
{
	struct fake_runtime *r = *state;
	struct fake_span span = { .page = 4,
				  .page_count = 2,
				  .elem_size = 16000,
				  .elem_count = 1,
				  .free_index = 1,
				  .free_index_for_scan = 1,
				  .alloc_count = 1,
				  .user_arena = true };
	struct span_table *table;

	fake_runtime_span(r, &span);
	span.page = 6;
	span.span_class = 1; /* noscan from when it was freed on */
	fake_runtime_span(r, &span);
	table = read_table(r);
	assert_slots(table, 4, 1, 1, 1);
	assert_slots(table, 6, 0, 0, 0);
	assert_int_equal(span_table_totals(table)->allocated_bytes, 16000);
	assert_int_equal(span_table_totals(table)->quarantined_bytes, 2 * GO_PAGE_SIZE);
	assert_int_equal(span_table_object(table, span_table_at(table, 0)->base), 1);
	/* pointers that are left of a freed one lead nowhere, which is no fault */
	assert_int_equal(span_table_object(table, span_table_at(table, 1)->base), OBJECT_NONE);
	span_table_free(table);
}

static void objects_that_wait_to_be_used_again_are_free(void **state)
{
	struct fake_runtime *r = *state;
	struct fake_span span = { .page = 2,
				  .elem_size = 512,
				  .elem_count = 16,
				  .span_class = 51,
				  .free_index = 16,
				  .free_index_for_scan = 16,
				  .alloc_count = 16 };
	struct span_table *table;
	taddr mcache, base = fake_heap_page(2);

	fake_runtime_use_reusable(r);
	fake_runtime_span(r, &span);
	mcache = fake_runtime_processors(r, 2);
	fake_runtime_set(r, mcache, r->layout.p_mcache, 0); /* one that is given up has none */
	mcache += 128;                                      /* the second P */
	memcpy(&mcache, fake_memory_bytes(r->memory, mcache + r->layout.p_mcache.offset, 8), 8);
	/* 3 -> 7 -> 3: a list that bites its tail ends where it was */
	fake_runtime_set(r, mcache + 24, r->layout.mcache_reusable_noscan, base + 3 * 512);
	fake_memory_store(r->memory, base + 3 * 512, 8, base + 7 * 512);
	fake_memory_store(r->memory, base + 7 * 512, 8, base + 3 * 512);
	table = read_table(r);
	assert_slots(table, 2, 0xff77, 0xff77, 0xff77);
	assert_int_equal(span_table_totals(table)->allocated_objects, 14);
	assert_int_equal(span_table_totals(table)->reusable_objects, 2);
	span_table_free(table);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(slots_below_freeindex_and_those_of_alloc_bits_are_allocated),
		TEST(each_span_is_held_against_its_own_count),
		TEST(bits_beyond_the_last_slot_mean_nothing),
		TEST(slots_just_handed_out_are_no_conservative_targets),
		TEST(what_was_born_marked_is_a_conservative_target_until_its_span_is_swept),
		TEST(unmarked_slots_of_unswept_spans_are_condemned),
		TEST(marks_inside_of_unswept_spans_count),
		TEST(finalizers_revive_what_was_not_marked),
		TEST(spans_being_swept_have_the_survivors),
		TEST(freed_user_arenas_count_as_freed),
		TEST(objects_that_wait_to_be_used_again_are_free),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("span_bits", tests, NULL, NULL);
}
