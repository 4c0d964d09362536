/*
 * When memory is short, by recorded files of the kernel's: of the machine and of the agent's own
 * control group, by what is left and by what stands still.
 */
#include "agent/pressure.h"

#include "tests/support/assertions.h"
#include "tests/support/tree.h"

enum { SECOND_US = 1000000 };

struct machine {
	struct tree proc, cgroup;
	struct procfs procfs;
	struct pressure pressure;
	char reason[PRESSURE_REASON_SIZE];
};

static int setup(void **state)
{
	struct machine *machine = calloc(1, sizeof(*machine));

	assert_non_null(machine);
	tree_init(&machine->proc);
	tree_init(&machine->cgroup);
	tree_write(&machine->proc, "stat", "btime 1700000000\n");
	assert_success(procfs_init(&machine->procfs, machine->proc.root, machine->cgroup.root));
	pressure_init(&machine->pressure, &machine->procfs);
	*state = machine;
	return 0;
}

static int teardown(void **state)
{
	struct machine *machine = *state;

	tree_fini(&machine->proc);
	tree_fini(&machine->cgroup);
	free(machine);
	return 0;
}

static bool look(struct machine *machine, uint64_t at_us)
{
	strcpy(machine->reason, "");
	return pressure_look(&machine->pressure, at_us, machine->reason);
}

static void write_file(const struct tree *tree, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void write_file(const struct tree *tree, const char *name, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	tree_write(tree, name, text);
}

#define STALL "some avg10=99.00 avg60=1.00 avg300=0.00 total=%u\nfull avg10=0.00 total=7\n"

static void where_nothing_can_be_read_nothing_is_short(void **state)
{
	struct machine *machine = *state;

	assert_false(look(machine, SECOND_US));
	assert_false(look(machine, 2 * SECOND_US));
	assert_int_equal(pressure_machine_bytes(&machine->procfs), 0);
}

static void a_twentieth_of_the_machine_is_the_least(void **state)
{
	struct machine *machine = *state;

	write_file(&machine->proc, "meminfo", "MemTotal: 2000000 kB\nMemAvailable: %u kB\n",
		   100000);
	assert_false(look(machine, SECOND_US));
	write_file(&machine->proc, "meminfo", "MemTotal: 2000000 kB\nMemAvailable: %u kB\n", 99999);
	assert_true(look(machine, 2 * SECOND_US));
	assert_string_equal(machine->reason, "the machine has 97 of 1953 MiB of memory available");
	assert_int_equal(pressure_machine_bytes(&machine->procfs), 2000000ull * 1024);
}

static void the_first_look_knows_no_stalls(void **state)
{
	struct machine *machine = *state;

	write_file(&machine->proc, "pressure/memory", STALL, 4000000000u);
	assert_false(look(machine, SECOND_US));
	assert_false(look(machine, 2 * SECOND_US));
}

static void a_fifth_of_the_time_is_too_much(void **state)
{
	struct machine *machine = *state;

	write_file(&machine->proc, "pressure/memory", STALL, 1000);
	assert_false(look(machine, SECOND_US));
	write_file(&machine->proc, "pressure/memory", STALL, 1000 + 199000);
	assert_false(look(machine, 2 * SECOND_US));
	write_file(&machine->proc, "pressure/memory", STALL, 200000 + 400000);
	assert_true(look(machine, 4 * SECOND_US)); /* of two seconds */
	assert_string_equal(machine->reason, "tasks of the machine stood still for memory for 400 "
					     "of 2000 ms");
	/* counted anew, or by another kernel */
	write_file(&machine->proc, "pressure/memory", STALL, 5);
	assert_false(look(machine, 5 * SECOND_US));
	tree_write(&machine->proc, "pressure/memory", "some avg10=99.00\n");
	assert_false(look(machine, 6 * SECOND_US));
	write_file(&machine->proc, "pressure/memory", STALL, 9000000);
	assert_false(look(machine, 7 * SECOND_US));
}

static void write_group(struct machine *machine, unsigned current)
{
	tree_write(&machine->proc, "self/cgroup", "0::/system.slice/agent.service\n");
	tree_write(&machine->cgroup, "cgroup.controllers", "memory pids\n");
	tree_write(&machine->cgroup, "system.slice/agent.service/memory.max", "104857600\n");
	write_file(&machine->cgroup, "system.slice/agent.service/memory.current", "%u\n", current);
}

static void the_agents_own_group_counts(void **state)
{
	struct machine *machine = *state;

	write_group(machine, 99614720);
	assert_false(look(machine, SECOND_US));
	write_group(machine, 99614721);
	assert_true(look(machine, 2 * SECOND_US));
	assert_string_equal(machine->reason,
			    "memory.max leaves the agent's control group 4 MiB of memory");
	/* files that nobody uses are as good as free */
	tree_write(&machine->cgroup, "system.slice/agent.service/memory.stat",
		   "inactive_file 5000000\n");
	assert_false(look(machine, 3 * SECOND_US));
}

static void stalls_of_the_group_count(void **state)
{
	struct machine *machine = *state;
	const char *name = "system.slice/agent.service/memory.pressure";

	write_group(machine, 1000);
	write_file(&machine->cgroup, name, STALL, 0);
	assert_false(look(machine, SECOND_US));
	write_file(&machine->cgroup, name, STALL, 250000);
	assert_true(look(machine, 2 * SECOND_US));
	assert_non_null(strstr(machine->reason, "tasks of the agent's control group"));
}

#define LOOK_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LOOK_TEST(where_nothing_can_be_read_nothing_is_short),
		LOOK_TEST(a_twentieth_of_the_machine_is_the_least),
		LOOK_TEST(the_first_look_knows_no_stalls),
		LOOK_TEST(a_fifth_of_the_time_is_too_much),
		LOOK_TEST(the_agents_own_group_counts),
		LOOK_TEST(stalls_of_the_group_count),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("pressure", tests, NULL, NULL);
}
