#include "tests/support/assertions.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "agent/target/process.h"
#include "agent/target/procfs.h"
#include "tests/support/tree.h"

static const char stat_format[] = "%d (%s) %c 1 812 812 0 -1 4194304 100 0 0 0 5 6 0 0 20 0 3 0 %d "
				  "1000000 2000 18446744073709551615 "
				  "1 1 0 0 0 0 0 0 2143420159 0 0 0 17 1 0 0 0 0 0\n";

static const char status_text[] = "Name:\tshop\n"
				  "State:\tS (sleeping)\n"
				  "Tgid:\t812\n"
				  "TracerPid:\t0\n"
				  "Uid:\t1000\t1000\t1000\t1000\n"
				  "Gid:\t100\t101\t100\t100\n"
				  "NSpid:\t812\t7\n"
				  "VmRSS:\t  2048 kB\n"
				  "RssAnon:\t  1024 kB\n"
				  "VmPTE:\t  8 kB\n"
				  "VmSwap:\t  16 kB\n"
				  "Threads:\t3\n"
				  "CapPrm:\t0000000000000400\n"
				  "CapEff:\t0000000000000400\n"
				  "Seccomp:\t0\n"
				  "x86_Thread_features:\t\n";

static struct tree tree;
static struct procfs procfs;

static void write_stat(const char *name, int pid, const char *comm, char state, int start)
{
	char line[512];

	snprintf(line, sizeof(line), stat_format, pid, comm, state, start);
	tree_write(&tree, name, line);
}

/* The files of one thread of process 812. */
static void write_task(int tid, char state, const char *status)
{
	char name[64];

	snprintf(name, sizeof(name), "proc/812/task/%d/stat", tid);
	write_stat(name, tid, "sh) (op", state, 4242);
	snprintf(name, sizeof(name), "proc/812/task/%d/status", tid);
	tree_write(&tree, name, status);
	snprintf(name, sizeof(name), "proc/812/task/%d/comm", tid);
	tree_write(&tree, name, "sh) (op\n");
	snprintf(name, sizeof(name), "proc/812/task/%d/cgroup", tid);
	tree_write(&tree, name, "0::/\n");
	snprintf(name, sizeof(name), "proc/812/task/%d/limits", tid);
	tree_write(
	    &tree, name,
	    "Limit                     Soft Limit           Hard Limit           Units     \n"
	    "Max processes             127                  unlimited            processes \n");
	snprintf(name, sizeof(name), "proc/812/task/%d/exe", tid);
	tree_link(&tree, name, "/srv/shop (deleted)");
	snprintf(name, sizeof(name), "proc/812/task/%d/ns/user", tid);
	tree_link(&tree, name, "user:[4026531837]");
	snprintf(name, sizeof(name), "proc/812/task/%d/ns/pid", tid);
	tree_link(&tree, name, "pid:[4026531999]");
	snprintf(name, sizeof(name), "proc/812/task/%d/ns/pid_for_children", tid);
	tree_link(&tree, name, "pid:[4026531999]");
}

static int set_up(void **state)
{
	char proc[PATH_MAX], cgroup[PATH_MAX];

	(void)state;
	tree_init(&tree);
	tree_write(&tree, "proc/stat", "cpu  1 2 3\nintr 9 9\nbtime 1700000000\nprocesses 7\n");
	tree_write(&tree, "cgroup/cgroup.controllers", "");
	tree_link(&tree, "proc/self/ns/user", "user:[4026531837]");
	tree_link(&tree, "proc/self/ns/pid", "pid:[4026531836]");
	write_task(812, 'S', status_text);
	tree_write(&tree, "proc/812/status", status_text);
	strcpy(proc, tree_path(&tree, "proc"));
	strcpy(cgroup, tree_path(&tree, "cgroup"));
	return !!procfs_init(&procfs, strdup(proc), strdup(cgroup));
}

static int tear_down(void **state)
{
	(void)state;
	free((char *)procfs.proc);
	free((char *)procfs.cgroup);
	tree_fini(&tree);
	return 0;
}

static struct process *read_process(void)
{
	struct process *process = NULL;

	assert_success(process_read(&procfs, 812, &process));
	return process;
}

static void facts_are_read(void **state)
{
	struct process *process = read_process();

	(void)state;
	assert_int_equal(process->pid, 812);
	assert_int_equal(process->tid, 812);
	assert_false(process->zombie_leader);
	assert_int_equal(process->state, 'S');
	assert_false(process->kernel_thread);
	assert_int_equal(process->start_ticks, 4242);
	assert_true(process->start_time_ns == UINT64_C(1700000042420000000));
	assert_string_equal(process->comm, "sh) (op");
	assert_string_equal(process->exe, "/srv/shop (deleted)");
	assert_int_equal(process->uid, 1000);
	assert_int_equal(process->uid_count, 1);
	assert_int_equal(process->gid_count, 2);
	assert_int_equal(process->gids[1], 101);
	assert_int_equal(process->cap_permitted, 0x400);
	assert_true(process->same_user_namespace);
	assert_false(process->same_pid_namespace);
	assert_int_equal(process->pid_namespace, 4026531999);
	assert_false(process->foreign_child_namespace);
	assert_int_equal(process->namespace_pid, 7);
	assert_int_equal(process->tracer_pid, 0);
	assert_int_equal(process->cap_effective, 0x400);
	assert_false(process->seccomp_strict || process->seccomp_filter);
	assert_false(process->shadow_stack);
	assert_int_equal(process->thread_count, 1);
	assert_int_equal(process->rss_bytes, 2048 << 10);
	assert_int_equal(process->rss_anon_bytes, 1024 << 10);
	assert_int_equal(process->swap_bytes, 16 << 10);
	assert_int_equal(process->page_table_bytes, 8 << 10);
	assert_int_equal(process->nproc_limit, 127);
	process_free(process);
}

static void credentials_of_all_threads_count(void **state)
{
	struct process *process;

	(void)state;
	write_task(813, 'S',
		   "TracerPid:\t99\nUid:\t1000\t0\t1000\t1000\nGid:\t100\t100\t7\t100\n"
		   "CapPrm:\t0000000000200000\nCapEff:\t0000000000200000\nSeccomp:\t2\n");
	write_task(814, 'S',
		   "Uid:\t1000\t1000\t1000\t1000\nGid:\t100\t100\t100\t100\n"
		   "CapPrm:\t0\nCapEff:\t0000000000000400\nSeccomp:\t1\n");
	process = read_process();
	assert_int_equal(process->thread_count, 3);
	assert_int_equal(process->uid_count, 2);
	assert_int_equal(process->gid_count, 3);
	assert_int_equal(process->cap_permitted, 0x200400);
	assert_int_equal(process->cap_effective, 0);
	assert_int_equal(process->tracer_pid, 99);
	assert_true(process->seccomp_filter);
	assert_true(process->seccomp_strict);
	process_free(process);
}

static void what_it_uses_and_may_use_is_read_again(void **state)
{
	struct process *process;

	(void)state;
	tree_write(&tree, "proc/812/task/812/cgroup", "0::/a\n");
	tree_write(&tree, "cgroup/a/memory.current", "100\n");
	tree_write(&tree, "cgroup/a/memory.max", "400\n");
	process = read_process();
	assert_int_equal(process->cgroup.headroom_bytes, 300);
	tree_write(&tree, "proc/812/task/812/status",
		   "Uid:\t1000\t1000\t1000\t1000\nRssAnon:\t  4096 kB\n");
	tree_write(&tree, "cgroup/a/memory.current", "300\n");
	assert_success(process_refresh(process));
	assert_int_equal(process->rss_anon_bytes, 4096 << 10);
	assert_int_equal(process->cgroup.headroom_bytes, 100);
	tree_remove(&tree, "proc/812/task/812/status");
	assert_error(process_refresh(process), ERROR_GONE);
	process_free(process);
}

static void a_dead_leader_is_looked_past(void **state)
{
	struct process *process;

	(void)state;
	write_task(812, 'Z', status_text);
	write_task(813, 'R', status_text);
	process = read_process();
	assert_true(process->zombie_leader);
	assert_int_equal(process->tid, 813);
	assert_int_equal(process->state, 'R');
	process_free(process);
}

/* As exec does: the thread that runs the program again is the leader from then on. */
static void a_thread_that_takes_the_leaders_place_is_found_there(void **state)
{
	struct process *process;
	int fd = -1;

	(void)state;
	write_task(812, 'Z', status_text);
	write_task(813, 'R', status_text);
	process = read_process();
	assert_int_equal(process->tid, 813);
	tree_write(&tree, "proc/812/task/812/auxv", "leader");
	tree_remove(&tree, "proc/812/task/813/status");
	assert_success(process_open(process, "auxv", O_RDONLY, &fd));
	close(fd);
	tree_remove(&tree, "proc/812/task/812/auxv");
	assert_error(process_open(process, "auxv", O_RDONLY, &fd), ERROR_GONE);
	process_free(process);
}

static void a_zombie_is_no_process(void **state)
{
	struct process *process = NULL;

	(void)state;
	write_task(812, 'Z', status_text);
	assert_error(process_read(&procfs, 812, &process), ERROR_NO_PROCESS);
	assert_error(process_read(&procfs, 999, &process), ERROR_NO_PROCESS);
	assert_null(process);
}

static void shadow_stacks_and_kernel_threads_are_seen(void **state)
{
	struct process *process;

	(void)state;
	tree_write(&tree, "proc/812/task/812/status",
		   "Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nx86_Thread_features:\tshstk wrss\n");
	tree_write(&tree, "proc/812/task/812/stat",
		   "812 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 2 0 0 "
		   "18446744073709551615 0 0 0 0 0 0 0 2147483647 0 0 0 0 0 1 0 0 0 0 0 0 0\n");
	process = read_process();
	assert_true(process->shadow_stack);
	assert_true(process->kernel_thread);
	process_free(process);
}

static void children_in_another_namespace_are_seen(void **state)
{
	static const char ended[] = "State:\tZ (zombie)\nUid:\t1000\t1000\t1000\t1000\n"
				    "Gid:\t100\t101\t100\t100\n";
	struct process *process;

	(void)state;
	tree_link(&tree, "proc/812/task/812/ns/pid_for_children", "pid:[4026532000]");
	process = read_process();
	assert_true(process->foreign_child_namespace);
	process_free(process);

	/* of any thread, and one whose first process is still to come */
	write_task(812, 'S', status_text);
	write_task(813, 'S', status_text);
	process = read_process();
	assert_false(process->foreign_child_namespace);
	process_free(process);
	tree_remove(&tree, "proc/812/task/813/ns/pid_for_children");
	process = read_process();
	assert_true(process->foreign_child_namespace);
	process_free(process);

	/* but not of one that has ended */
	write_task(813, 'Z', ended);
	tree_remove(&tree, "proc/812/task/813/ns/pid_for_children");
	process = read_process();
	assert_false(process->foreign_child_namespace);
	process_free(process);
}

static void malformed_files_are_refused(void **state)
{
	static const char *const stats[] = {
		"",          "812 (x",          "812 (x)",
		"812 (x) S", "812 (x) S 1 2 x", "812 (x) S 1 2 3 4 99999999999999999999 6"
	};
	static const char *const statuses[] = {
		"",
		"Uid:\t1000\nGid:\t1\t1\t1\t1\n",
		"Uid:\t1\t1\t4294967296\t1\nGid:\t1\t1\t1\t1\n",
		"Uid:\tx\tx\tx\tx\nGid:\t1\t1\t1\t1\n",
	};
	struct process *process = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(stats) / sizeof(*stats); i++) {
		tree_write(&tree, "proc/812/task/812/stat", stats[i]);
		assert_error(process_read(&procfs, 812, &process), ERROR_FORMAT);
	}
	write_stat("proc/812/task/812/stat", 812, "x", 'S', 1);
	for (size_t i = 0; i < sizeof(statuses) / sizeof(*statuses); i++) {
		tree_write(&tree, "proc/812/task/812/status", statuses[i]);
		assert_error(process_read(&procfs, 812, &process), ERROR_FORMAT);
	}
	assert_null(process);
}

static void what_changed_is_named(void **state)
{
	struct process *before = read_process(), *now;

	(void)state;
	now = read_process();
	assert_success(process_same(before, now));
	process_free(now);

	write_stat("proc/812/task/812/stat", 812, "x", 'S', 4243);
	now = read_process();
	assert_error(process_same(before, now), ERROR_PROCESS_CHANGED);
	process_free(now);

	write_stat("proc/812/task/812/stat", 812, "x", 'S', 4242);
	tree_link(&tree, "proc/812/task/812/ns/user", "user:[4026530000]");
	now = read_process();
	assert_error(process_same(before, now), ERROR_PROCESS_CHANGED);
	process_free(now);
	process_free(before);
}

/* A check under a stop must not take longer where there are more threads. */
static void a_check_reads_one_live_thread(void **state)
{
	struct process *before;

	(void)state;
	write_task(813, 'S', status_text);
	before = read_process();
	tree_write(&tree, "proc/812/task/813/status", "not to be read");
	assert_success(process_check(before));

	write_task(812, 'Z', status_text);
	assert_error(process_check(before), ERROR_FORMAT);
	write_task(813, 'S', status_text);
	assert_success(process_check(before));

	write_task(812, 'S', status_text);
	tree_link(&tree, "proc/812/task/812/ns/user", "user:[4026530000]");
	assert_error(process_check(before), ERROR_PROCESS_CHANGED);
	process_free(before);
}

static void a_denial_says_what_to_do(void **state)
{
	struct process *process = read_process();
	struct error *err;

	(void)state;
	tree_write(&tree, "proc/self/status", "CapEff:\t0000000000000000\n");
	tree_write(&tree, "proc/sys/kernel/yama/ptrace_scope", "1\n");
	err = process_denied(process);
	assert_int_equal(error_code(err), ERROR_DENIED);
	assert_non_null(strstr(error_message(err), "Yama"));
	error_free(err);

	tree_write(&tree, "proc/sys/kernel/yama/ptrace_scope", "0\n");
	err = process_denied(process);
	assert_null(strstr(error_message(err), "Yama"));
	assert_non_null(strstr(error_message(err), "CAP_SYS_PTRACE: run as root"));
	error_free(err);

	tree_write(&tree, "proc/self/status", "CapEff:\t0000000000080000\n");
	err = process_denied(process);
	assert_non_null(strstr(error_message(err), "security module"));
	error_free(err);
	process_free(process);
}

static void ids_of_a_folder_are_its_numeric_names(void **state)
{
	pid_t *ids = NULL;
	size_t count = 0;

	(void)state;
	tree_write(&tree, "ids/17", "");
	tree_write(&tree, "ids/17x", "");
	tree_write(&tree, "ids/99999999999", "");
	tree_write(&tree, "ids/self", "");
	assert_success(procfs_ids(tree_path(&tree, "ids"), &ids, &count));
	assert_int_equal(count, 1);
	assert_int_equal(ids[0], 17);
	free(ids);
	assert_error(procfs_ids(tree_path(&tree, "none"), &ids, &count), ERROR_GONE);
}

static void a_file_is_read_up_to_its_limit(void **state)
{
	struct procfs_text text = { 0 };
	char long_text[5001];

	(void)state;
	memset(long_text, 'x', 5000);
	long_text[5000] = '\0';
	tree_write(&tree, "long", long_text);
	assert_success(procfs_read(&text, 5000, "%s/long", tree.root));
	assert_int_equal(text.size, 5000);
	assert_int_equal(text.data[5000], '\0');
	procfs_text_fini(&text);
	assert_error(procfs_read(&text, 4999, "%s/long", tree.root), ERROR_LIMIT);
	assert_error(procfs_read(&text, 100, "%s/none", tree.root), ERROR_GONE);
}

static void fields_are_found_at_the_beginning_of_lines_only(void **state)
{
	struct procfs_text text = { .data = (char *)"Name:\tVmRSS:\t1\nXVmRSS:\t2\nVmRSS:\t 3\n" };
	const char *value = procfs_field(&text, "VmRSS:");

	(void)state;
	assert_string_equal(value, "3\n");
	assert_null(procfs_field(&text, "VmRS"));
	assert_null(procfs_field(&text, "Seccomp:"));
}

static void numbers_do_not_overflow(void **state)
{
	const char *most = "18446744073709551615", *more = "18446744073709551616", *hex = "fF-";
	uint64_t value = 5;

	(void)state;
	assert_true(procfs_number(&most, 10, &value));
	assert_true(value == UINT64_MAX);
	assert_false(procfs_number(&more, 10, &value));
	assert_true(value == UINT64_MAX);
	assert_true(procfs_number(&hex, 16, &value));
	assert_int_equal(value, 255);
	assert_int_equal(*hex, '-');
}

static void we_are_found_as_we_are(void **state)
{
	struct procfs real;
	struct process *self = NULL;

	(void)state;
	assert_success(procfs_init(&real, "/proc", "/sys/fs/cgroup"));
	assert_success(process_read(&real, getpid(), &self));
	assert_int_equal(self->uid, getuid());
	assert_int_equal(self->effective_uid, geteuid());
	assert_true(self->same_user_namespace);
	assert_true(self->same_pid_namespace);
	assert_false(self->foreign_child_namespace);
	assert_true(self->dumpable);
	assert_int_equal(self->namespace_pid, getpid());
	assert_success(process_same(self, self));
	process_free(self);
}

static void the_entry_is_found_in_the_auxiliary_vector(void **state)
{
	const uint64_t whole[] = { AT_PAGESZ, 4096, AT_ENTRY, 0x55d0c0de, AT_NULL, 0 };
	uint64_t entry = 0;
	int fd;

	(void)state;
	tree_write_bytes(&tree, "auxv", whole, sizeof(whole));
	fd = tree_open(&tree, "auxv");
	assert_success(process_entry(fd, &entry));
	assert_int_equal(entry, 0x55d0c0de);
	close(fd);
	/* what is cut off in its midst is not there, nor is anything in a program that has ended */
	for (size_t size = 0; size < 4 * sizeof(*whole); size += 4) {
		tree_write_bytes(&tree, "auxv", whole, size);
		fd = tree_open(&tree, "auxv");
		assert_error(process_entry(fd, &entry), ERROR_GONE);
		close(fd);
	}
	assert_error(process_entry(-1, &entry), ERROR_GONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(facts_are_read, set_up, tear_down),
		cmocka_unit_test_setup_teardown(credentials_of_all_threads_count, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_it_uses_and_may_use_is_read_again, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_dead_leader_is_looked_past, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
		    a_thread_that_takes_the_leaders_place_is_found_there, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_zombie_is_no_process, set_up, tear_down),
		cmocka_unit_test_setup_teardown(shadow_stacks_and_kernel_threads_are_seen, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(children_in_another_namespace_are_seen, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(malformed_files_are_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_changed_is_named, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_check_reads_one_live_thread, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_denial_says_what_to_do, set_up, tear_down),
		cmocka_unit_test_setup_teardown(ids_of_a_folder_are_its_numeric_names, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_file_is_read_up_to_its_limit, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_entry_is_found_in_the_auxiliary_vector, set_up,
						tear_down),
		cmocka_unit_test(fields_are_found_at_the_beginning_of_lines_only),
		cmocka_unit_test(numbers_do_not_overflow),
		cmocka_unit_test(we_are_found_as_we_are),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
