#include "agent/goruntime/goroutine.h"

#include "agent/goruntime/machine.h"
#include "agent/goruntime/module.h"
#include "tests/support/assertions.h"
#include "tests/support/fake_program.h"

enum function {
	GOEXIT,
	MAIN,
	WORK, /* the user's */
	SYSTEM,
	FINALIZERS,
	CLEANUPS,
	COPY,
	CLOCK,
	SWITCH,
	FUNCTIONS
};

static const struct fake_function functions[FUNCTIONS] = {
	[GOEXIT] = { .name = "runtime.goexit", .flag = PCLNTAB_FLAG_TOP_FRAME },
	[MAIN] = { .name = "runtime.main" },
	[WORK] = { .name = "main.work" },
	[SYSTEM] = { .name = "runtime.bgsweep" },
	[FINALIZERS] = { .name = "runtime.runFinalizers" },
	[CLEANUPS] = { .name = "runtime.runCleanups" },
	[COPY] = { .name = "runtime.copystack", .frame = 16 },
	[CLOCK] = { .name = "runtime.nanotime1", .flag = PCLNTAB_FLAG_SP_WRITE },
	[SWITCH] = { .name = "gogo", .flag = PCLNTAB_FLAG_SP_WRITE },
};

struct fixture {
	struct fake_program program;
	struct module_table *modules;
	struct goroutine_table *table;
	struct stopped_thread threads[2];
	uint32_t thread_count;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	fake_program_init(&f->program, functions, FUNCTIONS);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	goroutine_table_free(f->table);
	module_table_free(f->modules);
	fake_program_fini(&f->program);
	free(f);
	return 0;
}

static uint64_t in(enum function function)
{
	return fake_program_pc(function, 0x20);
}

static struct error *try_read(struct fixture *f)
{
	struct memory *memory = fake_memory_memory(f->program.memory);
	const struct layout *layout = &f->program.layout;

	fake_memory_forget(f->program.memory);
	goroutine_table_free(f->table);
	module_table_free(f->modules);
	f->table = NULL;
	f->modules = NULL;
	assert_success(module_table_read(memory, layout, &f->modules));
	return goroutine_table_read(memory, layout, f->modules, f->threads, f->thread_count,
				    &f->table);
}

/* The table's first goroutine. */
static const struct goroutine *read_first(struct fixture *f)
{
	assert_success(try_read(f));
	return goroutine_table_at(f->table, 0);
}

static void set(struct fixture *f, taddr addr, struct layout_field field, uint64_t value)
{
	fake_program_set(&f->program, addr, field, value);
}

static void store_global(struct fixture *f, struct layout_global global, uint64_t offset,
			 uint64_t value)
{
	fake_memory_store(f->program.memory, global.addr + offset, 8, value);
}

/* g runs on a thread that was stopped there. */
static taddr run(struct fixture *f, taddr g, uint64_t pc, uint64_t sp)
{
	taddr m = fake_program_m(&f->program, g, 5);

	set(f, g, f->program.layout.g_status, GOROUTINE_RUNNING);
	f->threads[0] = (struct stopped_thread){ .tid = 1005, .target_tid = 5, .pc = pc, .sp = sp };
	f->thread_count = 1;
	return m;
}

static void fields_are_those_of_the_g(void **state)
{
	struct fixture *f = *state;
	const struct layout *l = &f->program.layout;
	taddr g = fake_program_g(&f->program, in(WORK), 64);
	const struct goroutine *read;

	set(f, g, l->g_id, 42);
	set(f, g, l->g_parent_id, 1);
	set(f, g, l->g_wait_since, 123456789);
	set(f, g, l->g_created_pc, in(MAIN));
	set(f, g, l->g_start_pc, fake_program_pc(WORK, 0));
	set(f, g, l->g_status, GOROUTINE_WAITING | 0x1000);
	read = read_first(f);
	assert_int_equal(goroutine_table_count(f->table), 1);
	assert_int_equal(read->g, g);
	assert_int_equal(read->id, 42);
	assert_int_equal(read->parent_id, 1);
	assert_int_equal(read->status, GOROUTINE_WAITING);
	assert_true(read->scan_bit);
	assert_int_equal(read->wait_since, 123456789);
	assert_int_equal(read->created_pc, in(MAIN));
	assert_int_equal(read->stack_hi, fake_program_stack(&f->program, g));
	assert_int_equal(read->stack_hi - read->stack_lo, FAKE_STACK_SIZE);
	assert_int_equal(read->pc, in(WORK));
	assert_int_equal(read->sp, read->stack_hi - 64);
	assert_false(read->unsettled);
	assert_false(read->system);
	assert_null(read->thread);
	assert_null(goroutine_table_complaint(f->table));
}

static bool is_system(struct fixture *f, taddr g, enum function start)
{
	set(f, g, f->program.layout.g_start_pc, fake_program_pc(start, 0));
	return read_first(f)->system;
}

static void system_goroutines_are_known_by_where_they_began(void **state)
{
	struct fixture *f = *state;
	const struct layout *l = &f->program.layout;
	taddr g = fake_program_g(&f->program, in(WORK), 64);

	assert_false(is_system(f, g, WORK));
	assert_false(is_system(f, g, MAIN));
	assert_true(is_system(f, g, SYSTEM));
	assert_true(is_system(f, g, CLEANUPS));
	set(f, g, l->g_running_cleanups, 1);
	assert_false(is_system(f, g, CLEANUPS));
	assert_true(is_system(f, g, FINALIZERS));
	fake_memory_store(f->program.memory, l->global_fing_status.addr, 4, 1 | 4 | 8);
	assert_true(is_system(f, g, FINALIZERS));
	fake_memory_store(f->program.memory, l->global_fing_status.addr, 4, 1 | 2);
	assert_false(is_system(f, g, FINALIZERS));
}

static void wait_reasons_are_the_runtimes_own_words(void **state)
{
	struct fixture *f = *state;
	const struct layout_global strings = f->program.layout.global_wait_reason_strings;
	taddr text = fake_program_room(&f->program, 64);

	fake_program_g(&f->program, in(WORK), 64);
	memcpy(fake_memory_bytes(f->program.memory, text, 64), "GC assist markingIO wait", 24);
	store_global(f, strings, 16, text);
	store_global(f, strings, 24, 17);
	store_global(f, strings, 32, text);
	store_global(f, strings, 40, 1 << 30); /* absurd: unknown */
	read_first(f);
	assert_string_equal(goroutine_wait_reason(f->table, 1), "GC assist marking");
	assert_null(goroutine_wait_reason(f->table, 2));
	assert_null(goroutine_wait_reason(f->table, 255));
}

static void statuses_have_the_runtimes_names(void **state)
{
	(void)state;
	assert_string_equal(goroutine_status_name(GOROUTINE_RUNNABLE), "runnable");
	assert_string_equal(goroutine_status_name(GOROUTINE_LEAKED), "leaked");
	assert_string_equal(goroutine_status_name(7), "status 7");
	assert_string_equal(goroutine_status_name(4096), "unknown status");
}

static void what_is_wrong_with_the_list_is_said(void **state)
{
	struct fixture *f = *state;
	const struct layout *l = &f->program.layout;
	taddr first = fake_program_g(&f->program, in(WORK), 64);
	taddr array = fake_program_room(&f->program, 64);
	const uint64_t entries[] = { first, 0, first, 0x123456789000, 0xffffffffffffff00 };

	for (unsigned i = 0; i < 5; i++)
		fake_memory_store(f->program.memory, array + 8 * (taddr)i, 8, entries[i]);
	store_global(f, l->global_allgptr, 0, array);
	store_global(f, l->global_allglen, 0, 5);
	store_global(f, l->global_allgs, 8, 5);
	read_first(f);
	assert_int_equal(goroutine_table_count(f->table), 1);
	assert_string_equal(goroutine_table_complaint(f->table),
			    "of 5 gs in allgs 1 are nil, 1 listed twice and 2 not readable");
}

/* An append is seen in allgs before it is in allglen, and never the other way round. */
static void the_counts_of_gs_may_differ_by_the_one_being_added(void **state)
{
	struct fixture *f = *state;
	const struct layout *l = &f->program.layout;

	fake_program_g(&f->program, in(WORK), 64);
	fake_program_g(&f->program, in(WORK), 64);
	store_global(f, l->global_allglen, 0, 1);
	read_first(f);
	assert_int_equal(goroutine_table_count(f->table), 1);
	assert_null(goroutine_table_complaint(f->table));
	store_global(f, l->global_allglen, 0, 0);
	assert_success(try_read(f));
	assert_string_equal(goroutine_table_complaint(f->table),
			    "allglen is 0, but allgs has 2 elements");
	store_global(f, l->global_allglen, 0, UINT64_MAX / 8);
	read_first(f);
	assert_int_equal(goroutine_table_count(f->table), 2);
	assert_string_equal(goroutine_table_complaint(f->table),
			    "allglen is 2305843009213693951, but allgs has 2 elements");
}

static const char *said(const struct fixture *f)
{
	const char *complaint = goroutine_table_complaint(f->table);

	return complaint ? complaint : "";
}

/* Each thread may be making or ending one M; the first is listed even when it has ended. */
static void the_ms_are_as_many_as_the_scheduler_counts(void **state)
{
	struct fixture *f = *state;
	const struct layout *l = &f->program.layout;

	fake_program_m(&f->program, 0, 1);
	fake_program_m(&f->program, 0, 2);
	store_global(f, l->global_sched, 0, 5);
	store_global(f, l->global_sched, 8, 3);
	assert_success(try_read(f));
	assert_null(strstr(said(f), "scheduler"));
	store_global(f, l->global_sched, 8, 4);
	assert_success(try_read(f));
	assert_null(strstr(said(f), "scheduler"));
	store_global(f, l->global_sched, 8, 5);
	assert_success(try_read(f));
	assert_string_equal(said(f), "the scheduler counts 0 Ms, 2 are listed");
	store_global(f, l->global_sched, 0, 5000);
	assert_success(try_read(f));
	assert_string_equal(said(f), "the scheduler counts 4995 Ms, 2 are listed");
}

/* Each M of the fake program has a P. */
static void an_m_with_a_p_has_a_thread_even_when_it_ends(void **state)
{
	struct fixture *f = *state;
	const struct layout *l = &f->program.layout;
	taddr m = run(f, fake_program_g(&f->program, in(WORK), 64), in(WORK), 0);
	const char *lost = "1 of 1 Ms hold a P, but none of the 1 threads is theirs";

	store_global(f, l->global_sched, 0, 1);
	assert_success(try_read(f));
	assert_null(strstr(said(f), "hold a P"));
	set(f, m, l->m_procid, 6);
	assert_success(try_read(f));
	assert_string_equal(said(f), lost);
	/* it has given its number up, and the thread is nobody else's */
	set(f, m, l->m_procid, 0);
	assert_success(try_read(f));
	assert_null(strstr(said(f), "hold a P"));
	f->thread_count = 0;
	assert_success(try_read(f));
	assert_non_null(strstr(said(f), "hold a P"));
}

static void absurd_lists_are_refused(void **state)
{
	struct fixture *f = *state;
	const struct layout *l = &f->program.layout;
	taddr m;

	fake_program_g(&f->program, in(WORK), 64);
	store_global(f, l->global_allglen, 0, UINT64_MAX / 8);
	store_global(f, l->global_allgs, 8, UINT64_MAX / 8);
	assert_error(try_read(f), ERROR_LIMIT);
	store_global(f, l->global_allglen, 0, 1 << 20);
	assert_error(try_read(f), ERROR_FAULT);
	store_global(f, l->global_allglen, 0, 1);
	store_global(f, l->global_allgs, 8, 1);
	m = fake_program_m(&f->program, 0, 1);
	set(f, m, l->m_all_link, m);
	assert_error(try_read(f), ERROR_CORRUPT_TARGET);
	set(f, m, l->m_all_link, 0x999000000000);
	assert_error(try_read(f), ERROR_FAULT);
}

static void a_goroutine_in_a_system_call_begins_where_it_entered(void **state)
{
	struct fixture *f = *state;
	const struct layout *l = &f->program.layout;
	taddr g = fake_program_g(&f->program, in(SYSTEM), 16);
	const struct goroutine *read;

	set(f, g, l->g_status, GOROUTINE_SYSCALL);
	set(f, g, l->g_syscall_pc, in(WORK));
	set(f, g, l->g_syscall_sp, fake_program_stack(&f->program, g) - 128);
	read = read_first(f);
	assert_int_equal(read->pc, in(WORK));
	assert_int_equal(read->sp, read->stack_hi - 128);
	assert_false(read->on_registers);
	assert_false(read->unsettled);
}

static void a_running_goroutine_begins_at_its_threads_registers(void **state)
{
	struct fixture *f = *state;
	taddr g = fake_program_g(&f->program, in(SYSTEM), 16);
	const struct goroutine *read;

	run(f, g, in(WORK), fake_program_stack(&f->program, g) - 256);
	read = read_first(f);
	assert_ptr_equal(read->thread, &f->threads[0]);
	assert_int_equal(read->pc, in(WORK));
	assert_int_equal(read->sp, read->stack_hi - 256);
	assert_true(read->on_registers);
	assert_false(read->on_system_stack);
	assert_false(read->unsettled);
}

static const struct machine *first_machine(const struct fixture *f)
{
	return goroutine_table_machines(f->table)->machines;
}

static void on_the_system_stack_it_begins_where_it_left_its_own(void **state)
{
	struct fixture *f = *state;
	taddr g = fake_program_g(&f->program, in(WORK), 16);
	const struct goroutine *read;

	run(f, g, in(SYSTEM), 0);
	read_first(f);
	f->threads[0].sp = first_machine(f)->g0_stack.hi - 8;
	read = read_first(f);
	assert_int_equal(read->pc, in(WORK));
	assert_int_equal(read->sp, read->stack_hi - 16);
	assert_true(read->on_system_stack);
	assert_false(read->on_registers);
	assert_false(read->unsettled);
	f->threads[0].sp = 0x7fff00000000; /* nobody's */
	read = read_first(f);
	assert_true(read->unsettled);
}

static void in_the_vdso_it_begins_where_the_m_says(void **state)
{
	struct fixture *f = *state;
	taddr g = fake_program_g(&f->program, in(SYSTEM), 16);
	taddr m = run(f, g, 0x7ffff7fc1000, 0);
	const struct goroutine *read;

	read_first(f);
	f->threads[0].sp = first_machine(f)->g0_stack.hi - 64;
	read = read_first(f);
	assert_true(read->unsettled); /* outside Go, and the m does not know */
	set(f, m, f->program.layout.m_vdso_pc, in(WORK));
	set(f, m, f->program.layout.m_vdso_sp, fake_program_stack(&f->program, g) - 200);
	read = read_first(f);
	assert_int_equal(read->pc, in(WORK));
	assert_int_equal(read->sp, read->stack_hi - 200);
	assert_false(read->unsettled);
	f->threads[0].pc = in(CLOCK);
	assert_false(read_first(f)->unsettled);
}

/* A ucontext as the kernel lays it on the signal stack. */
static void lay_signal_frame(struct fixture *f, taddr context, struct stack_bounds stack,
			     uint64_t pc, uint64_t sp)
{
	fake_memory_store(f->program.memory, context + 16, 8, stack.lo);
	fake_memory_store(f->program.memory, context + 32, 8, stack.hi - stack.lo);
	fake_memory_store(f->program.memory, context + 40 + 8 * 15, 8, sp);
	fake_memory_store(f->program.memory, context + 40 + 8 * 16, 8, pc);
}

static void in_a_signal_handler_it_begins_where_it_was_interrupted(void **state)
{
	struct fixture *f = *state;
	taddr g = fake_program_g(&f->program, in(SYSTEM), 16);
	struct stack_bounds signal_stack, g0_stack;
	const struct goroutine *read;
	taddr context;

	run(f, g, in(SYSTEM), 0);
	read_first(f);
	signal_stack = first_machine(f)->signal_stack;
	g0_stack = first_machine(f)->g0_stack;
	context = signal_stack.hi - 1024;
	f->threads[0].sp = context - 512;
	assert_true(read_first(f)->unsettled); /* no frame to be found */
	lay_signal_frame(f, context, signal_stack, in(WORK),
			 fake_program_stack(&f->program, g) - 96);
	read = read_first(f);
	assert_int_equal(read->pc, in(WORK));
	assert_int_equal(read->sp, read->stack_hi - 96);
	assert_int_equal(read->signal_frame, context);
	assert_int_equal(read->signal_frame_end, signal_stack.hi);
	assert_true(read->on_registers);
	assert_false(read->unsettled);

	lay_signal_frame(f, context, signal_stack, in(SYSTEM), g0_stack.hi - 8);
	read = read_first(f);
	assert_int_equal(read->pc, in(SYSTEM)); /* of sched */
	assert_int_equal(read->signal_frame, 0);
	assert_true(read->on_system_stack);
	assert_false(read->unsettled);
}

static void a_switch_under_way_unsettles_it(void **state)
{
	struct fixture *f = *state;
	taddr g = fake_program_g(&f->program, in(WORK), 16);

	run(f, g, in(SWITCH), fake_program_stack(&f->program, g) - 32);
	assert_true(read_first(f)->unsettled);
	f->threads[0].sp = first_machine(f)->g0_stack.hi - 8;
	assert_true(read_first(f)->unsettled);
}

/* copystack on the g0 of one thread: that of its own goroutine, or of one held by its scan bit. */
static void a_stack_that_is_being_moved_unsettles_it(void **state)
{
	struct fixture *f = *state;
	taddr running = fake_program_g(&f->program, in(WORK), 16);
	taddr waiting = fake_program_g(&f->program, in(WORK), 16);
	taddr sp;

	run(f, running, in(SYSTEM), 0);
	read_first(f);
	sp = first_machine(f)->g0_stack.hi - 64;
	f->threads[0].sp = sp;
	assert_false(read_first(f)->unsettled);
	assert_false(goroutine_table_at(f->table, 1)->unsettled);
	fake_memory_store(f->program.memory, sp, 8, in(COPY)); /* bgsweep returns into it */
	assert_true(read_first(f)->unsettled);
	assert_false(goroutine_table_at(f->table, 1)->unsettled);
	set(f, waiting, f->program.layout.g_status, GOROUTINE_WAITING | 0x1000);
	read_first(f);
	assert_true(goroutine_table_at(f->table, 1)->unsettled);
	set(f, waiting, f->program.layout.g_status, GOROUTINE_COPYSTACK);
	fake_memory_store(f->program.memory, sp, 8, 0);
	assert_false(read_first(f)->unsettled);
	assert_true(goroutine_table_at(f->table, 1)->unsettled);
}

static void registers_outside_the_stack_are_not_believed(void **state)
{
	struct fixture *f = *state;
	taddr g = fake_program_g(&f->program, in(WORK), 16);
	const struct goroutine *read;

	set(f, g, f->program.layout.g_sched_sp, 0xdead0000);
	read = read_first(f);
	assert_true(read->unsettled);
	assert_int_equal(read->pc, 0);
	assert_int_equal(read->sp, 0);
}

static void bounds_that_are_being_changed_are_mended(void **state)
{
	struct fixture *f = *state;
	const struct layout *l = &f->program.layout;
	taddr g = fake_program_g(&f->program, in(WORK), 64);
	taddr hi = fake_program_stack(&f->program, g);
	const struct goroutine *read;

	set(f, g, l->g_stack_lo, hi + 0x100000); /* of the new stack */
	set(f, g, l->g_status, GOROUTINE_COPYSTACK);
	read = read_first(f);
	assert_true(read->unsettled);
	assert_int_equal(read->sp, hi - 64);
	assert_int_equal(read->stack_lo, hi - 72);
	assert_int_equal(read->stack_hi, hi);
	set(f, g, l->g_stack_top, 0);
	read = read_first(f);
	assert_true(read->has_stack);
	assert_int_equal(read->sp, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(fields_are_those_of_the_g),
		TEST(system_goroutines_are_known_by_where_they_began),
		TEST(wait_reasons_are_the_runtimes_own_words),
		TEST(statuses_have_the_runtimes_names),
		TEST(what_is_wrong_with_the_list_is_said),
		TEST(the_counts_of_gs_may_differ_by_the_one_being_added),
		TEST(the_ms_are_as_many_as_the_scheduler_counts),
		TEST(an_m_with_a_p_has_a_thread_even_when_it_ends),
		TEST(absurd_lists_are_refused),
		TEST(a_goroutine_in_a_system_call_begins_where_it_entered),
		TEST(a_running_goroutine_begins_at_its_threads_registers),
		TEST(on_the_system_stack_it_begins_where_it_left_its_own),
		TEST(in_the_vdso_it_begins_where_the_m_says),
		TEST(in_a_signal_handler_it_begins_where_it_was_interrupted),
		TEST(a_switch_under_way_unsettles_it),
		TEST(a_stack_that_is_being_moved_unsettles_it),
		TEST(registers_outside_the_stack_are_not_believed),
		TEST(bounds_that_are_being_changed_are_mended),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
