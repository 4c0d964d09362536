/* Sums that must add up. */
#include "tests/support/assertions.h"

#include "agent/goruntime/goroutine.h"
#include "agent/goruntime/page_alloc.h"
#include "agent/goruntime/span.h"
#include "agent/report/self_check.h"

/* Stands in for agent/goruntime's. */
const char *goroutine_table_complaint(const struct goroutine_table *table)
{
	return (const char *)table;
}

static void assert_verdict(const struct self_check_input *input, const char *expected)
{
	char verdict[SELF_CHECK_SIZE];

	self_check(input, verdict);
	assert_string_equal(verdict, expected);
}

static const struct span_totals good_spans = {
	.in_use_pages = 5000,
	.manual_pages = 300,
	.runtime_in_use_pages = 5000,
	.allocated_objects = 1000,
	.alloc_count_sum = 1000,
};
static const struct page_totals good_pages = { .managed_pages = 8192, .span_pages = 5300 };

static void what_adds_up_is_ok(void **state)
{
	const struct self_check_input input = { .spans = &good_spans, .pages = &good_pages };

	(void)state;
	assert_verdict(&input, "ok");
}

/* Each thread may have been stopped between taking a slot and counting it. */
static void threads_may_be_between_two_counters(void **state)
{
	struct span_totals spans = good_spans;
	struct self_check_input input = { .spans = &spans,
					  .pages = &good_pages,
					  .thread_count = 3 };

	(void)state;
	spans.alloc_count_sum = 997;
	assert_verdict(&input, "ok");
	spans.alloc_count_sum = 996;
	assert_verdict(&input, "spans count 996 allocated objects, their bits 1000");
	spans.alloc_count_sum = 1004;
	assert_verdict(&input, "spans count 1004 allocated objects, their bits 1000");
	spans.sweeping_spans = 1;
	assert_verdict(&input, "ok");
}

/* allocCount goes on counting what was freed for use again. */
static void freed_objects_that_are_still_counted_are_known(void **state)
{
	struct span_totals spans = good_spans;
	const struct self_check_input input = { .spans = &spans, .pages = &good_pages };

	(void)state;
	spans.alloc_count_sum = 1100;
	spans.reusable_objects = 100;
	assert_verdict(&input, "ok");
}

/* A span is counted after it has been made, and no more before it goes; it is empty then. */
static void empty_spans_may_be_counted_or_not(void **state)
{
	struct span_totals spans = good_spans;
	const struct self_check_input input = { .spans = &spans,
						.pages = &good_pages,
						.thread_count = 9 };

	(void)state;
	spans.empty_pages = 2000;
	spans.runtime_in_use_pages = 3000;
	assert_verdict(&input, "ok");
	spans.runtime_in_use_pages = 2999;
	assert_verdict(&input, "the heap counts 2999 pages in use, its spans have 5000");
	spans.runtime_in_use_pages = 5001;
	assert_verdict(&input, "the heap counts 5001 pages in use, its spans have 5000");
}

static void spans_lie_within_the_ranges_of_the_page_allocator(void **state)
{
	struct span_totals spans = good_spans;
	struct page_totals pages = good_pages;
	const struct self_check_input input = { .spans = &spans, .pages = &pages };

	(void)state;
	pages.span_pages = 5298;
	assert_verdict(&input, "2 pages of spans are outside of the page allocator's ranges");
	spans.user_arena_pages = 2;
	assert_verdict(&input, "ok");
	pages.span_pages = 5290; /* another user arena is being made */
	spans.empty_pages = 8;
	assert_verdict(&input, "ok");
	spans.empty_pages = 7;
	assert_verdict(&input, "8 pages of spans are outside of the page allocator's ranges");
}

/* Differences that cancel in the sum are seen span by span. */
static void each_span_counts_for_itself(void **state)
{
	struct span_totals spans = good_spans;
	struct self_check_input input = { .spans = &spans,
					  .pages = &good_pages,
					  .thread_count = 2 };

	(void)state;
	spans.uneven_spans = 2;
	assert_verdict(&input, "ok");
	spans.uneven_spans = 3;
	assert_verdict(&input, "3 spans count other objects than their bits do");
	spans.uneven_spans = 0;
	spans.miscounted_spans = 1;
	assert_verdict(&input, "1 spans count other objects than their bits do");
}

static void each_contradiction_has_its_sentence(void **state)
{
	struct span_totals spans = good_spans;
	struct page_totals pages = good_pages;
	struct self_check_input input = { .spans = &spans, .pages = &pages };

	(void)state;
	input.goroutines = (const struct goroutine_table *)"an m has no g0";
	assert_verdict(&input, "an m has no g0");
	input.skipped_specials = 2;
	assert_verdict(&input, "2 lists of specials do not hold together");
	pages.foreign_pages = 512;
	pages.broken_ranges = 1;
	assert_verdict(&input, "512 pages of the page allocator's ranges are in no arena, 1 ranges "
			       "make no sense");
	pages.contradictions = 1;
	assert_verdict(&input, "1 pages are free and in a span at once");
	spans.runtime_in_use_pages = 4999;
	assert_verdict(&input, "the heap counts 4999 pages in use, its spans have 5000");
	spans.skipped_spans = 1;
	assert_verdict(&input, "1 spans contradict the runtime's other tables");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_adds_up_is_ok),
		cmocka_unit_test(threads_may_be_between_two_counters),
		cmocka_unit_test(empty_spans_may_be_counted_or_not),
		cmocka_unit_test(spans_lie_within_the_ranges_of_the_page_allocator),
		cmocka_unit_test(each_span_counts_for_itself),
		cmocka_unit_test(freed_objects_that_are_still_counted_are_known),
		cmocka_unit_test(each_contradiction_has_its_sentence),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
