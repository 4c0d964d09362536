#include "agent/floor.h"

#include "tests/support/assertions.h"

static void a_target_that_was_never_stopped_need_not_wait(void **state)
{
	struct floor floor;

	(void)state;
	floor_init(&floor, 1000);
	assert_int_equal(floor_wait_ms(&floor, 7, 99, 5000), 0);
	floor_fini(&floor);
}

static void the_interval_counts_from_the_last_stop(void **state)
{
	struct floor floor;

	(void)state;
	floor_init(&floor, 1000);
	assert_success(floor_note(&floor, 7, 99, 5000));
	assert_int_equal(floor_wait_ms(&floor, 7, 99, 5000), 1000);
	assert_int_equal(floor_wait_ms(&floor, 7, 99, 5999), 1);
	assert_int_equal(floor_wait_ms(&floor, 7, 99, 6000), 0);
	assert_success(floor_note(&floor, 7, 99, 6500));
	assert_int_equal(floor_wait_ms(&floor, 7, 99, 6600), 900);
	floor_fini(&floor);
}

static void another_process_of_that_pid_is_another_target(void **state)
{
	struct floor floor;

	(void)state;
	floor_init(&floor, 1000);
	assert_success(floor_note(&floor, 7, 99, 5000));
	assert_int_equal(floor_wait_ms(&floor, 7, 100, 5001), 0);
	assert_int_equal(floor_wait_ms(&floor, 8, 99, 5001), 0);
	floor_fini(&floor);
}

static void stops_that_bind_nobody_are_forgotten(void **state)
{
	struct floor floor;

	(void)state;
	floor_init(&floor, 1000);
	for (unsigned i = 0; i < 10000; i++)
		assert_success(floor_note(&floor, (pid_t)(i + 1), 1, 10 * i));
	assert_true(floor.count <= 101);
	assert_true(floor.capacity <= 256);
	assert_int_equal(floor_wait_ms(&floor, 10000, 1, 10 * 9999), 1000);
	floor_fini(&floor);
}

static void no_interval_is_no_floor(void **state)
{
	struct floor floor;

	(void)state;
	floor_init(&floor, 0);
	assert_success(floor_note(&floor, 7, 99, 5000));
	assert_int_equal(floor_wait_ms(&floor, 7, 99, 5000), 0);
	floor_fini(&floor);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_target_that_was_never_stopped_need_not_wait),
		cmocka_unit_test(the_interval_counts_from_the_last_stop),
		cmocka_unit_test(another_process_of_that_pid_is_another_target),
		cmocka_unit_test(stops_that_bind_nobody_are_forgotten),
		cmocka_unit_test(no_interval_is_no_floor),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("floor", tests, NULL, NULL);
}
