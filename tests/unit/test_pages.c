/* The memory of the analysis and its budget. */
#include "tests/support/assertions.h"

#include "agent/analysis/pages.h"

enum { MIB = 1 << 20 };

static void pages_come_zeroed_and_can_be_written(void **state)
{
	struct budget budget = { 0 };
	struct pages pages;
	uint8_t *bytes;

	(void)state;
	assert_success(pages_init(&pages, &budget, 5 * MIB + 1));
	bytes = pages.data;
	for (size_t i = 0; i < 5 * MIB + 1; i++)
		assert_int_equal(bytes[i], 0);
	memset(bytes, 0xff, pages.size);
	assert_int_equal(pages.size, 5 * MIB + 4096);
	assert_int_equal(budget.used, pages.size);
	pages_fini(&pages);
	assert_int_equal(budget.used, 0);
}

static void what_is_trimmed_can_be_used_again(void **state)
{
	struct budget budget = { .limit = 8 * MIB };
	struct pages first, second;

	(void)state;
	assert_success(pages_init(&first, &budget, 6 * MIB));
	memset(first.data, 1, first.size);
	assert_error(pages_init(&second, &budget, 3 * MIB), ERROR_OUT_OF_MEMORY);
	assert_int_equal(budget.used, 6 * MIB);
	pages_trim(&first, 4 * MIB + 100);
	assert_int_equal(first.size, 4 * MIB + 4096);
	assert_success(pages_init(&second, &budget, 3 * MIB));
	assert_int_equal(((uint8_t *)first.data)[4 * MIB + 99], 1);
	pages_trim(&first, 0);
	assert_null(first.data);
	pages_fini(&second);
	pages_fini(&first);
	assert_int_equal(budget.used, 0);
}

static void what_was_given_back_comes_zeroed_again(void **state)
{
	struct budget budget = { 0 };
	struct pages large, small[2];

	(void)state;
	assert_success(pages_init(&large, &budget, 12 * MIB));
	memset(large.data, 0xff, large.size);
	pages_fini(&large);
	for (int i = 0; i < 2; i++) {
		assert_success(pages_init(&small[i], &budget, 4 * MIB + 4096));
		for (size_t k = 0; k < small[i].size; k++)
			assert_int_equal(((uint8_t *)small[i].data)[k], 0);
		memset(small[i].data, i + 1, small[i].size);
	}
	assert_int_equal(((uint8_t *)small[0].data)[small[0].size - 1], 1);
	assert_int_equal(((uint8_t *)small[1].data)[0], 2);
	assert_int_equal(budget.used, 8 * MIB + 8192);
	pages_fini(&small[0]);
	pages_fini(&small[1]);
	assert_success(pages_init(&large, &budget, 64 * MIB)); /* more than there is of it */
	assert_int_equal(((uint8_t *)large.data)[64 * MIB - 1], 0);
	pages_fini(&large);
	pages_drop_spares();
	assert_int_equal(budget.used, 0);
}

static void what_grows_keeps_what_it_has(void **state)
{
	struct budget budget = { .limit = 64 * MIB };
	struct pages pages = { .budget = &budget };

	(void)state;
	for (uint64_t size = 4096; size <= 16 * MIB; size *= 4) {
		uint64_t old = pages.size;

		assert_success(pages_grow(&pages, &budget, size));
		for (size_t i = 0; i < pages.size; i++)
			assert_int_equal(((uint8_t *)pages.data)[i], i < old ? 7 : 0);
		memset(pages.data, 7, pages.size);
		assert_int_equal(budget.used, pages.size);
	}
	assert_error(pages_grow(&pages, &budget, 65 * MIB), ERROR_OUT_OF_MEMORY);
	assert_int_equal(((uint8_t *)pages.data)[pages.size - 1], 7);
	pages_fini(&pages);
	assert_int_equal(budget.used, 0);
}

static void what_is_reserved_cannot_be_had(void **state)
{
	struct budget budget = { .limit = 8 * MIB, .reserved = 3 * MIB };
	struct pages pages;

	(void)state;
	assert_error(pages_init(&pages, &budget, 5 * MIB + 1), ERROR_OUT_OF_MEMORY);
	assert_success(pages_init(&pages, &budget, 5 * MIB));
	pages_fini(&pages);
}

static void nothing_takes_no_pages(void **state)
{
	struct budget budget = { 0 };
	struct pages pages;

	(void)state;
	assert_success(pages_init(&pages, &budget, 0));
	assert_null(pages.data);
	pages_trim(&pages, 0);
	pages_fini(&pages);
	assert_error(pages_init(&pages, &budget, UINT64_MAX), ERROR_LIMIT);
	assert_int_equal(budget.used, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_come_zeroed_and_can_be_written),
		cmocka_unit_test(what_is_trimmed_can_be_used_again),
		cmocka_unit_test(what_was_given_back_comes_zeroed_again),
		cmocka_unit_test(what_grows_keeps_what_it_has),
		cmocka_unit_test(what_is_reserved_cannot_be_had),
		cmocka_unit_test(nothing_takes_no_pages),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
