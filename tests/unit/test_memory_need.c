#include "tests/support/assertions.h"

#include <string.h>

#include "agent/goruntime/heap_extent.h"
#include "agent/report/memory_need.h"

enum { MIB = 1 << 20, THREADS = 2 };

/* A heap of half a GiB: a million nodes of 64 bytes, and buffers without pointers. */
static const struct heap_extent nodes = {
	.spans = 60000,
	.slots = 1100000,
	.pointer_slots = 1000000,
	.pointer_words = 8000000,
	.largest_words = 8,
};

static struct memory_need find(const struct heap_extent *extent, bool labels, bool many)
{
	const struct memory_need_input input = { .extent = extent,
						 .base = 20 * MIB,
						 .spans_read = true,
						 .labels = labels,
						 .many_parties = many,
						 .goroutines = 100,
						 .threads = THREADS };
	struct memory_need need;

	memory_need_find(&input, &need);
	return need;
}

/* What graph.h and mark.h say of themselves: 4 bytes a slot, 1 for its mark, 4 an edge. */
static void the_least_has_no_edges_and_enough_has_all_there_can_be(void **state)
{
	struct memory_need need = find(&nodes, false, false);
	uint64_t graph = 60000 * 20 + 1000000 * 4 + 1100000 / 8 + 1100000, edges = 8000000 * 4;

	(void)state;
	assert_int_equal(need.least, need.base + graph);
	assert_true(need.base >= 20 * MIB && need.base <= 30 * MIB);
	assert_true(need.enough >= need.least + edges);
	assert_true(need.enough <= need.least + edges + THREADS * 8 * MIB + need.base / 4);
}

static void an_object_larger_than_a_chunk_is_copied_as_it_grows(void **state)
{
	struct heap_extent extent = nodes;
	uint64_t before = find(&extent, false, false).enough;

	(void)state;
	extent.largest_words = 3000000;
	assert_int_equal(find(&extent, false, false).enough - before,
			 2 * 4 * (THREADS * 3000000 - THREADS * 8));
	extent.largest_words = 8000000; /* there is but one */
	assert_int_equal(find(&extent, false, false).enough - before,
			 2 * 4 * (8000000 - THREADS * 8));
}

static void attribution_takes_more_the_more_parties_there_are(void **state)
{
	uint64_t none = find(&nodes, false, false).enough, few = find(&nodes, true, false).enough;
	uint64_t many = find(&nodes, true, true).enough;

	(void)state;
	assert_int_equal(few - none, 1100000 / 8 + 1100000);
	/* Colours, groups, and masks of 64 MiB for each thread. */
	assert_int_equal(many - none, 1100000 / 8 + UINT64_C(1100000) * (4 + 56) +
					  THREADS * 64 * MIB + 8000000 * 32);
	assert_int_equal(find(&nodes, true, true).least, find(&nodes, false, false).least);
}

static struct memory_need find_with(struct memory_need_questions questions)
{
	const struct memory_need_input input = { .extent = &nodes,
						 .base = 20 * MIB,
						 .spans_read = true,
						 .questions = questions,
						 .threads = THREADS };
	struct memory_need need;

	memory_need_find(&input, &need);
	return need;
}

/* What dominators.h says of itself. */
static void retained_sizes_take_more(void **state)
{
	struct memory_need without = find_with((struct memory_need_questions){ 0 });
	struct memory_need with = find_with((struct memory_need_questions){ .retained = true });

	(void)state;
	assert_int_equal(with.base, without.base);
	assert_int_equal(with.plain, without.least);
	assert_int_equal(with.least - without.least, 4 * 1100000);
	assert_int_equal(with.enough - without.enough,
			 4 * 1100000 + 1100000 / 8 + 1100000 / 4 + 32 * 1000000 + 4 * 8000000);
}

/* What reference_private.h has by span and slot whatever the heap holds: 48 bytes and 4. */
static void a_walk_takes_more_and_chains_as_many_bytes_as_a_place_has(void **state)
{
	struct memory_need without = find_with((struct memory_need_questions){ 0 });
	struct memory_need types =
	    find_with((struct memory_need_questions){ .walks = true, .roots = true });
	struct memory_need chains = find_with(
	    (struct memory_need_questions){ .walks = true, .roots = true, .chains = true });

	(void)state;
	assert_int_equal(types.plain, without.least);
	assert_int_equal(types.least - without.least, 60000 * 48 + 1100000 * 4);
	/* and a note of three bytes of each pointer */
	assert_true(types.enough - without.enough > types.least - without.least + 3 * 8000000);
	assert_int_equal(chains.least, types.least); /* nothing might be live */
	assert_int_equal(chains.enough - types.enough, 14 * 1100000);
	assert_int_equal(memory_need_walked(1000, 10, true), 4 * 1000 + 14 * 10);
	assert_int_equal(memory_need_walked(1000, 10, false), 4 * 1000);
}

static void a_copy_takes_what_holds_pointers(void **state)
{
	struct memory_need without = find_with((struct memory_need_questions){ 0 });
	struct memory_need with = find_with((struct memory_need_questions){ .copies = true });

	(void)state;
	assert_int_equal(with.least - without.least, 8 * 8000000 + 8 * 60000);
	assert_true(with.enough > without.enough + 8 * 8000000);
}

static void holders_take_a_colour_a_slot_and_profiles_their_samples(void **state)
{
	struct memory_need without = find_with((struct memory_need_questions){ 0 });
	struct memory_need holders = find_with((struct memory_need_questions){ .holders = true });
	struct memory_need few = find_with((struct memory_need_questions){ .samples = 1 });
	struct memory_need many = find_with((struct memory_need_questions){ .samples = 1000000 });

	(void)state;
	assert_int_equal(holders.least - without.least, 4 * 1100000);
	assert_int_equal(few.least, without.least);
	assert_true(few.enough > without.enough);
	assert_true(many.enough > few.enough);
}

static void questions_follow_from_what_is_asked(void **state)
{
	Goheapd__Analysis analysis = GOHEAPD__ANALYSIS__INIT;
	Goheapd__ProfileQuery profile = GOHEAPD__PROFILE_QUERY__INIT;
	struct memory_need_questions questions = memory_need_questions(NULL, false, true);

	(void)state;
	assert_false(questions.walks || questions.roots || questions.copies || questions.retained);
	questions = memory_need_questions(NULL, true, false);
	assert_true(questions.roots && questions.copies && !questions.walks);

	profile.max_samples = 7;
	analysis.profile = &profile;
	questions = memory_need_questions(&analysis, false, false);
	assert_true(questions.walks && questions.roots && questions.chains);
	assert_false(questions.copies || questions.retained || questions.holders);
	assert_int_equal(questions.samples, 7);
	assert_true(memory_need_questions(&analysis, false, true).copies);

	analysis = (Goheapd__Analysis)GOHEAPD__ANALYSIS__INIT;
	analysis.goroutine_retained = true;
	questions = memory_need_questions(&analysis, false, true);
	assert_true(questions.retained && !questions.walks && !questions.copies);

	analysis = (Goheapd__Analysis)GOHEAPD__ANALYSIS__INIT;
	analysis.label_types = true;
	questions = memory_need_questions(&analysis, false, false);
	assert_true(questions.walks && questions.holders && !questions.chains);
}

/* Before the stop neither spans nor roots have been read: they come on top. */
static void what_is_yet_to_be_read_is_reckoned_in(void **state)
{
	struct memory_need_input input = { .extent = &nodes, .base = 20 * MIB, .threads = THREADS };
	struct memory_need before, after;

	(void)state;
	memory_need_find(&input, &before);
	input.spans_read = true;
	memory_need_find(&input, &after);
	assert_true(before.least > after.least);
	assert_true(before.enough > after.enough);
}

static void the_graph_gets_what_the_rest_leaves(void **state)
{
	struct memory_need need = find(&nodes, false, false);

	(void)state;
	assert_int_equal(memory_need_left(&need, 0), 0); /* no limit */
	assert_int_equal(memory_need_left(&need, need.base + 5), 5);
	assert_int_equal(memory_need_left(&need, need.base), 1);
	assert_int_equal(memory_need_left(&need, 1), 1);
}

static void a_refusal_says_what_it_would_need(void **state)
{
	const struct memory_need need = { .base = 1, .least = 2000, .plain = 2000, .enough = 3000 };
	struct error *err = memory_need_refuse(&need, 1999, error_new(ERROR_NOMEM, "no"));

	(void)state;
	assert_int_equal(error_code(err), ERROR_OUT_OF_MEMORY);
	assert_string_equal(
	    error_message(err),
	    "the scan needs at least 2000 bytes of memory, and 3000 are enough in any "
	    "case; max_scan_memory is 1999. depth=census needs no object graph");
	error_free(err);
}

static void a_refusal_of_questions_says_what_it_needs_without_them(void **state)
{
	const struct memory_need need = { .least = 2000, .plain = 1500, .enough = 3000 };
	struct error *err = memory_need_refuse(&need, 1999, NULL);

	(void)state;
	assert_string_equal(error_message(err),
			    "the scan needs at least 2000 bytes of memory, and 3000 are enough in "
			    "any case; max_scan_memory is 1999. Without its questions about "
			    "objects it needs at least 1500");
	error_free(err);
}

static void what_is_taken_is_known(void **state)
{
	uint64_t before = memory_need_taken();
	char *bytes = malloc(8 * MIB);

	(void)state;
	assert_non_null(bytes);
	memset(bytes, 1, 8 * MIB);
	assert_true(before > 0);
	assert_true(memory_need_taken() >= before + 7 * MIB);
	free(bytes);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_least_has_no_edges_and_enough_has_all_there_can_be),
		cmocka_unit_test(an_object_larger_than_a_chunk_is_copied_as_it_grows),
		cmocka_unit_test(attribution_takes_more_the_more_parties_there_are),
		cmocka_unit_test(retained_sizes_take_more),
		cmocka_unit_test(a_walk_takes_more_and_chains_as_many_bytes_as_a_place_has),
		cmocka_unit_test(a_copy_takes_what_holds_pointers),
		cmocka_unit_test(holders_take_a_colour_a_slot_and_profiles_their_samples),
		cmocka_unit_test(questions_follow_from_what_is_asked),
		cmocka_unit_test(what_is_yet_to_be_read_is_reckoned_in),
		cmocka_unit_test(the_graph_gets_what_the_rest_leaves),
		cmocka_unit_test(a_refusal_says_what_it_would_need),
		cmocka_unit_test(a_refusal_of_questions_says_what_it_needs_without_them),
		cmocka_unit_test(what_is_taken_is_known),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("memory need", tests, NULL, NULL);
}
