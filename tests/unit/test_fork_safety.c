#include "tests/support/assertions.h"

#include <linux/capability.h>

#include "agent/target/fork_safety.h"
#include "agent/target/process.h"
#include "agent/target/procfs.h"
#include "tests/support/tree.h"

static struct tree tree;
static struct procfs procfs;
static struct process process;
static struct fork_safety_policy policy;
static struct fork_safety_scan scan;

static const uint64_t mib = 1 << 20;

/* A machine with room for everything, and a process of 100 MiB on it. */
static int set_up(void **state)
{
	(void)state;
	tree_init(&tree);
	procfs.proc = tree.root;
	tree_write(&tree, "meminfo", "MemTotal:  1000 kB\nMemAvailable:  1048576 kB\n");
	tree_write(&tree, "loadavg", "0.20 0.18 0.12 1/80 11206\n");
	tree_write(&tree, "sys/vm/overcommit_memory", "0\n");
	tree_write(&tree, "self/status", "CapEff:\t0000000000080000\nSeccomp:\t0\n");
	policy = (struct fork_safety_policy){ 0 };
	scan = (struct fork_safety_scan){ .huge_page_weight = 0.25 };
	process = (struct process){
		.procfs = &procfs,
		.pid = 812,
		.tid = 812,
		.uid = 1000,
		.thread_count = 10,
		.rss_bytes = 120 * mib,
		.rss_anon_bytes = 100 * mib,
		.nproc_limit = UINT64_MAX,
		.cgroup = { .headroom_bytes = CGROUP_NONE,
			    .pids_current = CGROUP_NONE,
			    .pids_max = CGROUP_NONE },
	};
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	tree_fini(&tree);
	return 0;
}

static void assert_unsafe(const char *word)
{
	struct fork_safety verdict;

	assert_success(fork_safety_judge(&process, &policy, &verdict));
	assert_false(verdict.safe);
	assert_false(verdict.preferred);
	if (!strstr(verdict.reason, word))
		fail_msg("\"%s\" does not speak of %s", verdict.reason, word);
}

static void assert_safe(void)
{
	struct fork_safety verdict;

	assert_success(fork_safety_judge(&process, &policy, &verdict));
	if (!verdict.safe)
		fail_msg("%s", verdict.reason);
	assert_string_equal(verdict.reason, "");
}

static void predict(struct fork_safety *verdict)
{
	assert_success(fork_safety_judge(&process, &policy, verdict));
	fork_safety_predict(&process, &scan, verdict);
}

static void an_ordinary_process_is_safe(void **state)
{
	struct fork_safety verdict;

	(void)state;
	predict(&verdict);
	assert_true(verdict.safe && verdict.preferred);
	assert_string_equal(verdict.reason, "");
	assert_int_equal(verdict.copy_bytes, 100 * mib);
	assert_int_equal(verdict.huge_page_bytes, 0);
	assert_true(verdict.fork_pause_us < verdict.stop_pause_us);
}

/* It must not be refused for what a full scan would take. */
static void a_census_stops_for_less(void **state)
{
	struct fork_safety full, census;

	(void)state;
	process.rss_anon_bytes = 4096 * mib;
	tree_write(&tree, "meminfo", "MemAvailable:  104857600 kB\n");
	predict(&full);
	scan.census = true;
	predict(&census);
	assert_true(full.stop_pause_us > 250000);
	assert_true(census.stop_pause_us < 250000);
	assert_int_equal(full.census_pause_us, census.stop_pause_us);
	assert_int_equal(full.fork_pause_us, census.fork_pause_us);
	assert_true(census.preferred);

	/* a heap of large objects has few spans, and one cannot have more than its size says */
	scan.span_count = 1000;
	predict(&full);
	assert_true(full.census_pause_us < census.census_pause_us / 10);
	scan.span_count = UINT64_MAX;
	predict(&full);
	assert_int_equal(full.census_pause_us, census.census_pause_us);
}

static void a_stop_that_is_short_enough_goes_before_a_snapshot_that_is_not(void **state)
{
	struct fork_safety verdict;

	(void)state;
	process.rss_anon_bytes = 14000 * mib;
	tree_write(&tree, "meminfo", "MemAvailable:  104857600 kB\n");
	scan.census = true;
	predict(&verdict);
	assert_true(verdict.safe);
	assert_false(verdict.preferred);
	assert_non_null(strstr(verdict.reason, "max_pause"));
	/* where neither is short enough the snapshot stays */
	scan.census = false;
	predict(&verdict);
	assert_true(verdict.safe && verdict.preferred);
	assert_string_equal(verdict.reason, "");
}

static void filters_need_somebody_to_lift_or_to_vouch_for_them(void **state)
{
	(void)state;
	process.seccomp_filter = true;
	assert_unsafe("clone_allowed_units");
	policy.can_suspend_filters = true;
	assert_safe();
	policy.can_suspend_filters = false;
	process.filters_vouched = true;
	assert_safe();
	/* that of another thread, which none of it helps */
	policy.can_suspend_filters = true;
	process.seccomp_strict = true;
	assert_unsafe("strict mode");
	process.seccomp_filter = false;
	assert_unsafe("strict mode");
}

static void writable_pages_must_fit_into_the_group(void **state)
{
	(void)state;
	process.cgroup.headroom_limit = "memory.max";
	process.cgroup.headroom_bytes = 100 * mib;
	assert_safe();
	process.cgroup.headroom_bytes = 100 * mib - 1;
	assert_unsafe("memory.max of its control group leaves 99 MiB, and copies of its writable "
		      "pages could take 100 MiB");
	process.cgroup.headroom_above = 1;
	assert_unsafe("memory.max of a group above its control group");
	process.cgroup.oom_group = true;
	assert_unsafe("whole group");
}

static void what_a_snapshot_brings_along_must_fit_too(void **state)
{
	(void)state;
	process.cgroup.headroom_limit = "memory.high";
	process.cgroup.headroom_bytes = 100 * mib;
	process.page_table_bytes = 1;
	assert_unsafe("memory.high");
	process.page_table_bytes = 0;
	process.swap_bytes = 1;
	assert_unsafe("memory.high");
}

static void a_group_that_cannot_be_seen_may_be_full(void **state)
{
	(void)state;
	process.cgroup.hidden = true;
	assert_unsafe("cannot be seen");
}

static void nothing_runs_in_a_frozen_group(void **state)
{
	struct fork_safety verdict;

	(void)state;
	assert_success(fork_safety_judge(&process, &policy, &verdict));
	assert_true(verdict.stoppable);
	process.cgroup.frozen_by = 2;
	assert_unsafe("cgroup.freeze");
	assert_success(fork_safety_judge(&process, &policy, &verdict));
	assert_true(verdict.stoppable);
	process.cgroup.frozen_by = 1;
	assert_unsafe("freezer.state");
	assert_success(fork_safety_judge(&process, &policy, &verdict));
	assert_false(verdict.stoppable);
}

static void writable_pages_must_fit_into_the_machine(void **state)
{
	(void)state;
	tree_write(&tree, "meminfo", "MemAvailable:  102400 kB\n");
	assert_safe();
	tree_write(&tree, "meminfo", "MemAvailable:  102399 kB\n");
	assert_unsafe("machine");
}

static void strict_overcommit_is_unsafe(void **state)
{
	(void)state;
	tree_write(&tree, "sys/vm/overcommit_memory", "1\n");
	assert_safe();
	tree_write(&tree, "sys/vm/overcommit_memory", "2\n");
	assert_unsafe("overcommit");
}

static void threads_must_be_left_to_the_group(void **state)
{
	(void)state;
	process.cgroup.pids_max = 1000;
	process.cgroup.pids_current = 900;
	assert_safe();
	process.cgroup.pids_current = 901;
	assert_unsafe("pids.max");
	process.cgroup.pids_max = 40;
	process.cgroup.pids_current = 24;
	assert_safe();
	process.cgroup.pids_current = 25;
	assert_unsafe("pids.max");
	process.cgroup.pids_current = 41;
	assert_unsafe("pids.max");
}

static void threads_must_be_left_to_the_user(void **state)
{
	(void)state;
	tree_write(&tree, "7/status", "Uid:\t1000\t0\t0\t0\nThreads:\t60\n");
	tree_write(&tree, "8/status", "Uid:\t1001\t1000\t0\t0\nThreads:\t60\n");
	tree_write(&tree, "loadavg", "0.20 0.18 0.12 1/120 11206\n");
	process.nproc_limit = 100;
	assert_safe();
	process.nproc_limit = 70;
	assert_unsafe("RLIMIT_NPROC");
	process.uid = 0;
	assert_safe();
	process.uid = 1000;
	process.cap_permitted = process.cap_effective = UINT64_C(1) << CAP_SYS_RESOURCE;
	process.same_user_namespace = true;
	assert_safe();
	/* rights in a user namespace of its own are none here, nor are those that it does not use
	 */
	process.same_user_namespace = false;
	assert_unsafe("RLIMIT_NPROC");
	process.same_user_namespace = true;
	process.cap_effective = 0;
	assert_unsafe("RLIMIT_NPROC");
}

static void a_child_that_would_be_pid_1_is_unsafe(void **state)
{
	(void)state;
	process.foreign_child_namespace = true;
	assert_unsafe("pid namespace");
}

/* They are read while the target stands still, unless there is a snapshot of it. */
static void stacks_make_a_stop_longer(void **state)
{
	struct fork_safety before, after;

	(void)state;
	predict(&before);
	scan.stacks_us = 100000;
	predict(&after);
	assert_int_equal(after.stop_pause_us, before.stop_pause_us + 100000);
	assert_int_equal(after.fork_pause_us, before.fork_pause_us);
}

static void have_huge_pages(unsigned count)
{
	char text[128];

	snprintf(text, sizeof(text),
		 "00400000-7fff r--p 00000000 00:00 0 [rollup]\nAnonHugePages:  %u kB\n",
		 2048 * count);
	tree_write(&tree, "812/task/812/smaps_rollup", text);
	policy.huge_page_bytes = fork_safety_huge_page_bytes(&process);
}

static void assert_prefers_stop(bool expected)
{
	struct fork_safety verdict;

	predict(&verdict);
	assert_true(verdict.safe);
	assert_int_equal(verdict.preferred, !expected);
	if (expected)
		assert_non_null(strstr(verdict.reason, "MiB of huge pages"));
	else
		assert_string_equal(verdict.reason, "");
}

static void huge_pages_are_weighed(void **state)
{
	struct fork_safety verdict;

	(void)state;
	have_huge_pages(45);
	predict(&verdict);
	assert_int_equal(verdict.huge_page_bytes, 90 * mib);
	assert_non_null(strstr(verdict.reason, "90 MiB of huge pages"));
	assert_non_null(strstr(verdict.reason, "huge_page_weight"));
	assert_prefers_stop(true);

	/* few are not worth a longer pause, however short */
	have_huge_pages(31);
	assert_prefers_stop(false);

	/* a gigabyte takes longer than a quarter of what is allowed by default, not of a second */
	process.rss_anon_bytes = 1024 * mib;
	have_huge_pages(512);
	assert_prefers_stop(false);
	scan.max_pause_us = 1000000;
	assert_prefers_stop(true);

	/* in proportion */
	have_huge_pages(256);
	assert_prefers_stop(false);
	scan.max_pause_us = 2000000;
	assert_prefers_stop(true);
	scan.stacks_us = 200000;
	assert_prefers_stop(false);
}

static void the_operator_says_what_huge_pages_are_worth(void **state)
{
	(void)state;
	have_huge_pages(50);
	scan.huge_page_weight = 0;
	assert_prefers_stop(false);
	process.rss_anon_bytes = 1024 * mib;
	have_huge_pages(512);
	scan.huge_page_weight = 0.25;
	assert_prefers_stop(false);
	scan.huge_page_weight = 1;
	assert_prefers_stop(true);
}

static void huge_pages_make_a_snapshot_quick(void **state)
{
	struct fork_safety small, huge;

	(void)state;
	scan.huge_page_weight = 0;
	process.rss_anon_bytes = 1024 * mib;
	predict(&small);
	have_huge_pages(512);
	predict(&huge);
	assert_true(huge.fork_pause_us < small.fork_pause_us / 10);
	assert_int_equal(huge.stop_pause_us, small.stop_pause_us);
}

static void the_first_reason_is_told(void **state)
{
	(void)state;
	process.foreign_child_namespace = true;
	process.seccomp_filter = true;
	assert_unsafe("seccomp");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_ordinary_process_is_safe, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_census_stops_for_less, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
		    a_stop_that_is_short_enough_goes_before_a_snapshot_that_is_not, set_up,
		    tear_down),
		cmocka_unit_test_setup_teardown(filters_need_somebody_to_lift_or_to_vouch_for_them,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(writable_pages_must_fit_into_the_group, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_a_snapshot_brings_along_must_fit_too, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_group_that_cannot_be_seen_may_be_full, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(nothing_runs_in_a_frozen_group, set_up, tear_down),
		cmocka_unit_test_setup_teardown(writable_pages_must_fit_into_the_machine, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(strict_overcommit_is_unsafe, set_up, tear_down),
		cmocka_unit_test_setup_teardown(threads_must_be_left_to_the_group, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(threads_must_be_left_to_the_user, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_child_that_would_be_pid_1_is_unsafe, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(stacks_make_a_stop_longer, set_up, tear_down),
		cmocka_unit_test_setup_teardown(huge_pages_are_weighed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_operator_says_what_huge_pages_are_worth, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(huge_pages_make_a_snapshot_quick, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(the_first_reason_is_told, set_up, tear_down),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
