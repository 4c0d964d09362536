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
		cmocka_unit_test(what_is_reserved_cannot_be_had),
		cmocka_unit_test(nothing_takes_no_pages),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
