/* The overview's messages, made of counters in made-up memory. */
#include "tests/support/assertions.h"

#include "agent/goruntime/layout.h"
#include "agent/report/overview.h"
#include "tests/support/fake_memory.h"

enum { MIB = 1 << 20, GLOBALS = 0x500000 };

struct fixture {
	struct fake_memory *memory;
	struct layout layout;
};

static void set(struct fixture *f, struct layout_field *field, uint32_t offset, uint64_t value)
{
	*field = (struct layout_field){ offset, 8 };
	fake_memory_store(f->memory, GLOBALS + 0x100 + offset, 8, value);
}

static int setup(void **state)
{
	static struct fixture f;
	struct layout *l = &f.layout;

	f = (struct fixture){ .memory = fake_memory_new() };
	fake_memory_map(f.memory, GLOBALS, 0x1000);
	l->global_gcphase = (struct layout_global){ GLOBALS, 4 };
	l->global_gc_controller = (struct layout_global){ GLOBALS + 0x100, 0x100 };
	l->global_mheap = (struct layout_global){ GLOBALS + 0x200, 0x100 };
	l->mheap_allspans = (struct layout_field){ 0x10, 24 };
	l->mspan.size = 160;
	l->gc_controller_gc_percent = (struct layout_field){ 0, 4 };
	fake_memory_store(f.memory, GLOBALS + 0x100, 4, 100);
	set(&f, &l->gc_controller_percent_goal, 8, 7 * MIB);
	set(&f, &l->gc_controller_heap_marked, 16, 3 * MIB);
	set(&f, &l->gc_controller_heap_in_use, 24, 20 * MIB);
	set(&f, &l->gc_controller_heap_live, 32, 4 * MIB);
	fake_memory_store(f.memory, GLOBALS, 4, 2);
	/* mheap_.allspans: none; allgs: none */
	l->mheap_sweepgen = (struct layout_field){ 0, 4 };
	l->global_allgs = (struct layout_global){ GLOBALS + 0x400, 24 };
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	fake_memory_free(f->memory);
	return 0;
}

static void what_a_runtime_lacks_is_absent(void **state)
{
	struct fixture *f = *state;
	Goheapd__GcState *gc;

	assert_success(overview_gc(fake_memory_memory(f->memory), &f->layout, &gc));
	assert_true(gc->has_gogc);
	assert_int_equal(gc->gogc, 100);
	assert_string_equal(gc->phase, "mark termination");
	assert_true(gc->has_goal_bytes);
	assert_int_equal(gc->goal_bytes, 7 * MIB);
	assert_int_equal(gc->live_last_gc_bytes, 3 * MIB);
	assert_false(gc->has_memory_limit_bytes);
	assert_false(gc->has_last_end_ns); /* it never collected */
	assert_false(gc->has_limiter_active);
	goheapd__gc_state__free_unpacked(gc, NULL);
}

static void memory_comes_as_the_runtime_counts_it(void **state)
{
	struct fixture *f = *state;
	Goheapd__RuntimeMemory *memory;

	assert_success(overview_memory(fake_memory_memory(f->memory), &f->layout, &memory));
	assert_int_equal(memory->heap_in_use_bytes, 20 * MIB);
	assert_int_equal(memory->heap_live_bytes, 4 * MIB);
	assert_int_equal(memory->sys_bytes, 20 * MIB);
	assert_false(memory->has_rss_bytes);
	goheapd__runtime_memory__free_unpacked(memory, NULL);
}

static void a_scan_reads_the_heap_and_needs_memory_for_its_graph(void **state)
{
	struct fixture *f = *state;
	struct overview_cost cost, wider;

	assert_success(overview_cost(fake_memory_memory(f->memory), &f->layout, 1, &cost));
	assert_int_equal(cost.read_bytes, 20 * MIB + 16 * MIB);
	assert_true(cost.memory_bytes > 8 * MIB);
	/* each thread begins with a piece of its own */
	assert_success(overview_cost(fake_memory_memory(f->memory), &f->layout, 3, &wider));
	assert_true(wider.memory_bytes - cost.memory_bytes > 15 * MIB);
}

static void memory_that_is_gone_is_an_error(void **state)
{
	struct fixture *f = *state;
	Goheapd__GcState *gc = NULL;
	Goheapd__RuntimeMemory *memory = NULL;

	fake_memory_unmap(f->memory, GLOBALS);
	assert_error(overview_gc(fake_memory_memory(f->memory), &f->layout, &gc), ERROR_FAULT);
	assert_error(overview_memory(fake_memory_memory(f->memory), &f->layout, &memory),
		     ERROR_FAULT);
	assert_null(gc);
	assert_null(memory);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(what_a_runtime_lacks_is_absent),
		TEST(memory_comes_as_the_runtime_counts_it),
		TEST(a_scan_reads_the_heap_and_needs_memory_for_its_graph),
		TEST(memory_that_is_gone_is_an_error),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
