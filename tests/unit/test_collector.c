/* The collector's counters, in the shapes that different runtimes keep them in. */
#include "tests/support/assertions.h"

#include "agent/goruntime/collector.h"
#include "agent/goruntime/layout.h"
#include "tests/support/fake_memory.h"

enum {
	MIB = 1 << 20,
	GLOBALS = 0x500000,
	CONTROLLER = 0x500100,
	MEMSTATS = 0x501000,
	GS = 0x600000
};

struct fixture {
	struct fake_memory *memory;
	struct layout layout;
};

static int setup(void **state)
{
	static struct fixture f;

	f = (struct fixture){ .memory = fake_memory_new() };
	fake_memory_map(f.memory, GLOBALS, 0x3000);
	f.layout.global_gcphase = (struct layout_global){ GLOBALS, 4 };
	f.layout.global_gc_controller = (struct layout_global){ CONTROLLER, 0x200 };
	f.layout.global_memstats = (struct layout_global){ MEMSTATS, 0x1000 };
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	fake_memory_free(f->memory);
	return 0;
}

/* Gives the layout a field of a global's struct, with a value. */
static void set(struct fixture *f, taddr global, struct layout_field *field, uint32_t offset,
		uint32_t size, uint64_t value)
{
	*field = (struct layout_field){ offset, size };
	fake_memory_store(f->memory, global + offset, size, value);
}

static struct collector read_collector(struct fixture *f)
{
	struct collector collector;

	fake_memory_forget(f->memory);
	assert_success(collector_read(fake_memory_memory(f->memory), &f->layout, &collector));
	return collector;
}

/* A runtime since go1.19: the goal is reckoned from the settings. */
static void use_controller(struct fixture *f, uint64_t percent_goal, uint64_t limit)
{
	struct layout *l = &f->layout;

	set(f, CONTROLLER, &l->gc_controller_gc_percent, 0, 4, 100);
	set(f, CONTROLLER, &l->gc_controller_memory_limit, 8, 8, limit);
	set(f, CONTROLLER, &l->gc_controller_percent_goal, 16, 8, percent_goal);
	set(f, CONTROLLER, &l->gc_controller_heap_live, 24, 8, 30 * MIB);
	set(f, CONTROLLER, &l->gc_controller_heap_marked, 32, 8, 20 * MIB);
	set(f, CONTROLLER, &l->gc_controller_heap_free, 40, 8, 5 * MIB);
	set(f, CONTROLLER, &l->gc_controller_total_alloc, 48, 8, 130 * MIB);
	set(f, CONTROLLER, &l->gc_controller_total_free, 56, 8, 100 * MIB);
	set(f, CONTROLLER, &l->gc_controller_mapped_ready, 64, 8, 45 * MIB);
	set(f, CONTROLLER, &l->gc_controller_sweep_trigger, 72, 8, 0);
	set(f, CONTROLLER, &l->gc_controller_triggered, 80, 8, UINT64_MAX);
}

static void the_goal_is_that_of_the_percentage(void **state)
{
	struct fixture *f = *state;
	struct collector c;

	use_controller(f, 60 * MIB, INT64_MAX);
	c = read_collector(f);
	assert_int_equal(c.percent, 100);
	assert_false(c.has_memory_limit);
	assert_true(c.has_goal);
	assert_int_equal(c.goal, 60 * MIB);
	assert_int_equal(c.marked, 20 * MIB);
	assert_int_equal(c.live, 30 * MIB);
}

static void sweeping_and_the_trigger_move_the_goal_up(void **state)
{
	struct fixture *f = *state;

	use_controller(f, 60 * MIB, INT64_MAX);
	fake_memory_store(f->memory, CONTROLLER + 72, 8, 61 * MIB);
	assert_int_equal(read_collector(f).goal, 61 * MIB);
	fake_memory_store(f->memory, CONTROLLER + 80, 8, 61 * MIB);
	assert_int_equal(read_collector(f).goal, 61 * MIB + (64 << 10));
}

/* 45 - 5 - 30 = 10 MiB are not heap, so 50 - 10 = 40 are left, less 3 %, at least 1 MiB. */
static void a_memory_limit_bounds_the_goal(void **state)
{
	struct fixture *f = *state;
	struct collector c;

	use_controller(f, 60 * MIB, 50 * MIB);
	c = read_collector(f);
	assert_true(c.has_memory_limit);
	assert_int_equal(c.memory_limit, 50 * MIB);
	assert_int_equal(c.goal, 39 * MIB); /* go1.19: 1 MiB whatever the goal */

	f->layout.const_heap_goal_headroom_percent = (struct layout_constant){ 3, true };
	assert_int_equal(read_collector(f).goal, 40 * MIB - 40 * MIB / 100 * 3);
}

static void beyond_the_memory_limit_the_goal_is_what_was_marked(void **state)
{
	struct fixture *f = *state;

	use_controller(f, 60 * MIB, 9 * MIB); /* less than what is not heap */
	assert_int_equal(read_collector(f).goal, 20 * MIB);
	fake_memory_store(f->memory, CONTROLLER + 8, 8, 25 * MIB); /* overage leaves nothing */
	assert_int_equal(read_collector(f).goal, 20 * MIB);
	fake_memory_store(f->memory, CONTROLLER + 64, 8, 1 * MIB); /* counters in mid-change */
	assert_int_equal(read_collector(f).goal, 20 * MIB);
}

static void a_collector_that_is_off_has_no_goal(void **state)
{
	struct fixture *f = *state;
	struct collector c;

	use_controller(f, UINT64_MAX, INT64_MAX);
	fake_memory_store(f->memory, CONTROLLER, 4, UINT32_MAX);
	c = read_collector(f);
	assert_int_equal(c.percent, -1);
	assert_false(c.has_goal);

	fake_memory_store(f->memory, CONTROLLER + 8, 8, 50 * MIB);
	c = read_collector(f);
	assert_true(c.has_goal);
	assert_int_equal(c.goal, 39 * MIB);
}

/* A runtime up to go1.15 keeps everything in memstats. */
static void early_runtimes_keep_the_goal_as_it_is(void **state)
{
	struct fixture *f = *state;
	struct layout *l = &f->layout;
	const double fraction = 0.25;
	uint64_t fraction_bits;
	struct collector c;

	memcpy(&fraction_bits, &fraction, sizeof(fraction_bits));
	l->global_gc_percent = (struct layout_global){ GLOBALS + 16, 4 };
	fake_memory_store(f->memory, GLOBALS, 4, COLLECTOR_MARK);
	fake_memory_store(f->memory, GLOBALS + 16, 4, 50);
	set(f, MEMSTATS, &l->mstats_next_gc, 0, 8, 4 * MIB);
	set(f, MEMSTATS, &l->mstats_heap_live, 8, 8, 3 * MIB);
	set(f, MEMSTATS, &l->mstats_heap_marked, 16, 8, 2 * MIB);
	set(f, MEMSTATS, &l->mstats_num_gc, 24, 4, 17);
	set(f, MEMSTATS, &l->mstats_num_forced_gc, 28, 4, 2);
	set(f, MEMSTATS, &l->mstats_last_gc_unix, 32, 8, 1600000000000000000);
	set(f, MEMSTATS, &l->mstats_pause_total_ns, 40, 8, 12345);
	set(f, MEMSTATS, &l->mstats_gc_cpu_fraction, 48, 8, fraction_bits);
	c = read_collector(f);
	assert_int_equal(c.phase, COLLECTOR_MARK);
	assert_string_equal(collector_phase_name(c.phase), "mark");
	assert_int_equal(c.percent, 50);
	assert_int_equal(c.goal, 4 * MIB);
	assert_int_equal(c.live, 3 * MIB);
	assert_int_equal(c.marked, 2 * MIB);
	assert_int_equal(c.cycles, 17);
	assert_int_equal(c.forced, 2);
	assert_int_equal(c.last_end_ns, 1600000000000000000);
	assert_int_equal(c.pause_total_ns, 12345);
	assert_true(c.cpu_fraction == fraction);
	assert_false(c.has_limiter);
}

static void counters_that_cannot_be_read_are_an_error(void **state)
{
	struct fixture *f = *state;
	struct collector c;

	use_controller(f, 60 * MIB, INT64_MAX);
	f->layout.global_gc_controller.addr = 0x900000;
	assert_error(collector_read(fake_memory_memory(f->memory), &f->layout, &c), ERROR_FAULT);
}

/* mstats.heapStats is three parts to be added, some of them negative. */
static void memory_counters_are_added_up_as_memstats_does(void **state)
{
	struct fixture *f = *state;
	struct layout *l = &f->layout;
	struct runtime_memory m;

	l->heap_stats.size = 32;
	l->mstats_heap_stats = (struct layout_field){ 0x100, 3 * 32 };
	l->heap_stats_in_stacks = (struct layout_field){ 8, 8 };
	l->heap_stats_in_work_bufs = (struct layout_field){ 16, 8 };
	fake_memory_store(f->memory, MEMSTATS + 0x100 + 8, 8, 5 * MIB);
	fake_memory_store(f->memory, MEMSTATS + 0x120 + 8, 8, (uint64_t)-MIB);
	fake_memory_store(f->memory, MEMSTATS + 0x140 + 8, 8, 100);
	fake_memory_store(f->memory, MEMSTATS + 0x120 + 16, 8, 7);
	set(f, CONTROLLER, &l->gc_controller_heap_in_use, 88, 8, 40 * MIB);
	set(f, CONTROLLER, &l->gc_controller_heap_free, 96, 8, 3 * MIB);
	set(f, CONTROLLER, &l->gc_controller_heap_released, 104, 8, 2 * MIB);
	set(f, MEMSTATS, &l->mstats_stacks_sys, 0, 8, 1);
	set(f, MEMSTATS, &l->mstats_mspan_sys, 8, 8, 20);
	set(f, MEMSTATS, &l->mstats_other_sys, 16, 8, 300);
	assert_success(runtime_memory_read(fake_memory_memory(f->memory), l, &m));
	assert_int_equal(m.heap_in_use, 40 * MIB);
	assert_int_equal(m.heap_idle, 5 * MIB);
	assert_int_equal(m.heap_released, 2 * MIB);
	assert_int_equal(m.stacks, 4 * MIB + 100 + 1);
	assert_int_equal(m.sys, 45 * MIB + 4 * MIB + 100 + 321 + 7);
}

static void dead_goroutines_are_not_counted(void **state)
{
	static const uint32_t statuses[] = { 4, 6, 1, 0x1000 | 4, 0, 11, 2, 10 };
	struct fixture *f = *state;
	struct layout *l = &f->layout;
	uint64_t count;

	l->global_allgs = (struct layout_global){ GLOBALS + 32, 24 };
	l->g_status = (struct layout_field){ 0x90, 4 };
	fake_memory_map(f->memory, GS, 0x10000);
	fake_memory_store(f->memory, GLOBALS + 32, 8, GS);
	fake_memory_store(f->memory, GLOBALS + 40, 8, 9);
	for (unsigned i = 0; i < 8; i++) {
		fake_memory_store(f->memory, GS + 8 * i, 8, GS + 0x1000 + 0x200 * i);
		fake_memory_store(f->memory, GS + 0x1000 + 0x200 * i + 0x90, 4, statuses[i]);
	}
	fake_memory_store(f->memory, GS + 64, 8, 0x900000); /* leads nowhere */
	assert_success(runtime_goroutine_count(fake_memory_memory(f->memory), l, &count));
	assert_int_equal(count, 5);

	fake_memory_store(f->memory, GLOBALS + 40, 8, UINT64_MAX);
	fake_memory_forget(f->memory);
	assert_error(runtime_goroutine_count(fake_memory_memory(f->memory), l, &count),
		     ERROR_LIMIT);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(the_goal_is_that_of_the_percentage),
		TEST(sweeping_and_the_trigger_move_the_goal_up),
		TEST(a_memory_limit_bounds_the_goal),
		TEST(beyond_the_memory_limit_the_goal_is_what_was_marked),
		TEST(a_collector_that_is_off_has_no_goal),
		TEST(early_runtimes_keep_the_goal_as_it_is),
		TEST(counters_that_cannot_be_read_are_an_error),
		TEST(memory_counters_are_added_up_as_memstats_does),
		TEST(dead_goroutines_are_not_counted),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
