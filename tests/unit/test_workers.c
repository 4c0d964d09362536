/* Jobs on several threads. */
#include "tests/support/assertions.h"

#include <stdatomic.h>

#include "agent/analysis/workers.h"

struct job {
	atomic_uint calls;
	atomic_uint seen[WORKERS_MAX];
	unsigned failing; /* this one and those after it fail */
};

static struct error *work(void *arg, unsigned i)
{
	struct job *job = arg;

	atomic_fetch_add(&job->calls, 1);
	atomic_fetch_add(&job->seen[i], 1);
	return i >= job->failing ? error_new(ERROR_FAULT, "worker %u", i) : NULL;
}

static void every_number_works_once(void **state)
{
	(void)state;
	for (unsigned count = 1; count <= WORKERS_MAX; count *= 4) {
		struct job job = { .failing = WORKERS_MAX };

		assert_success(workers_run(count, work, &job));
		assert_int_equal(job.calls, count);
		for (unsigned i = 0; i < count; i++)
			assert_int_equal(job.seen[i], 1);
	}
}

static void the_first_error_is_the_jobs(void **state)
{
	struct job job = { .failing = 2 };
	struct error *err = workers_run(5, work, &job);

	(void)state;
	assert_non_null(err);
	assert_int_equal(error_code(err), ERROR_FAULT);
	assert_string_equal(error_message(err), "worker 2");
	assert_int_equal(job.calls, 5);
	error_free(err);
}

static void counts_are_kept_within_bounds(void **state)
{
	(void)state;
	assert_int_equal(workers_clamp(0), 1);
	assert_int_equal(workers_clamp(3), 3);
	assert_int_equal(workers_clamp(100000), WORKERS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_number_works_once),
		cmocka_unit_test(the_first_error_is_the_jobs),
		cmocka_unit_test(counts_are_kept_within_bounds),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
