/* Sequences of numbers, each kept once. */
#include "tests/support/assertions.h"

#include "agent/report/sequence_set.h"

static void what_is_there_keeps_its_place(void **state)
{
	static const uint32_t a[] = { 1, 2, 3 }, b[] = { 1, 2 }, c[] = { 3, 2, 1 };
	struct sequence_set set = { 0 };
	const uint32_t *items;
	uint32_t place, count;

	(void)state;
	assert_success(sequence_set_add(&set, a, 3, &place));
	assert_int_equal(place, 0);
	assert_success(sequence_set_add(&set, b, 2, &place));
	assert_int_equal(place, 1);
	assert_success(sequence_set_add(&set, c, 3, &place));
	assert_int_equal(place, 2);
	assert_success(sequence_set_add(&set, a, 3, &place));
	assert_int_equal(place, 0);
	assert_int_equal(set.count, 3);
	items = sequence_set_at(&set, 2, &count);
	assert_int_equal(count, 3);
	assert_memory_equal(items, c, sizeof(c));
	sequence_set_fini(&set);
}

static void the_empty_sequence_is_one_of_them(void **state)
{
	static const uint32_t zero[] = { 0 };
	struct sequence_set set = { 0 };
	uint32_t place, count;

	(void)state;
	assert_success(sequence_set_add(&set, NULL, 0, &place));
	assert_int_equal(place, 0);
	assert_success(sequence_set_add(&set, zero, 1, &place));
	assert_int_equal(place, 1);
	assert_success(sequence_set_add(&set, NULL, 0, &place));
	assert_int_equal(place, 0);
	sequence_set_at(&set, 0, &count);
	assert_int_equal(count, 0);
	sequence_set_fini(&set);
}

static void many_are_found_again(void **state)
{
	enum { MANY = 5000 };
	struct sequence_set set = { 0 };
	uint32_t place, count;

	(void)state;
	for (unsigned round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < MANY; i++) {
			const uint32_t items[] = { i, i / 2, 7 };

			assert_success(sequence_set_add(&set, items, 1 + i % 3, &place));
			assert_int_equal(place, i);
			assert_int_equal(sequence_set_at(&set, place, &count)[0], i);
			assert_int_equal(count, 1 + i % 3);
		}
	}
	assert_int_equal(set.count, MANY);
	sequence_set_fini(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_there_keeps_its_place),
		cmocka_unit_test(the_empty_sequence_is_one_of_them),
		cmocka_unit_test(many_are_found_again),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
