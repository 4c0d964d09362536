/* Goroutines as messages, over a made-up program. */
#include "tests/support/assertions.h"

#include <stdlib.h>
#include <time.h>

#include "agent/goruntime/label.h"
#include "agent/goruntime/module.h"
#include "agent/goruntime/stack.h"
#include "agent/report/frame_list.h"
#include "agent/report/goroutine_list.h"
#include "agent/report/message.h"
#include "tests/support/fake_program.h"

enum function { GOEXIT, MAIN, WORK, DEEP, GENERIC, FUNCTIONS };

static const struct fake_function functions[FUNCTIONS] = {
	[GOEXIT] = { .name = "runtime.goexit", .flag = PCLNTAB_FLAG_TOP_FRAME },
	[MAIN] = { .name = "main.main", .frame = 8 },
	[WORK] = { .name = "main.work", .frame = 16 },
	[DEEP] = { .name = "main.deep", .frame = 0 },
	[GENERIC] = { .name = "main.(*Pair[go.shape.int,go.shape.[]uint8]).run", .frame = 16 },
};

struct fixture {
	struct fake_program program;
	struct module_table *modules;
	struct goroutine_table *table;
	struct stack_walker *walker;
	struct goroutine_list *list;
	struct stack_scan scans[8];
	struct label_table *labels;
	struct stopped_thread thread;
	Goheapd__ScanResult result;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	fake_program_init(&f->program, functions, FUNCTIONS);
	goheapd__scan_result__init(&f->result);
	for (int i = 0; i < 8; i++)
		f->scans[i].in_use_bytes = 100 + (uint64_t)i;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < f->result.n_goroutines; i++)
		goheapd__goroutine__free_unpacked(f->result.goroutines[i], NULL);
	for (size_t i = 0; i < f->result.n_frames; i++)
		goheapd__frame__free_unpacked(f->result.frames[i], NULL);
	for (size_t i = 0; i < f->result.n_traces; i++)
		goheapd__stack_trace__free_unpacked(f->result.traces[i], NULL);
	free(f->result.goroutines);
	free(f->result.frames);
	free(f->result.traces);
	goroutine_list_free(f->list);
	label_table_free(f->labels);
	stack_walker_free(f->walker);
	goroutine_table_free(f->table);
	module_table_free(f->modules);
	fake_program_fini(&f->program);
	free(f);
	return 0;
}

/* A goroutine in main.work, which main.main called, started by a go statement in main.main. */
static taddr add_worker(struct fixture *f)
{
	const struct layout *l = &f->program.layout;
	const uint64_t words[] = { 1, 2, fake_program_pc(MAIN, 0x20), 3, fake_program_pc(GOEXIT, 1),
				   0 };
	taddr g = fake_program_g(&f->program, fake_program_pc(WORK, 0x10), sizeof(words));

	fake_program_push(&f->program, g, words, 6);
	fake_program_set(&f->program, g, l->g_created_pc, fake_program_pc(MAIN, 0x30));
	return g;
}

static void list(struct fixture *f, bool want_dead)
{
	struct memory *memory = fake_memory_memory(f->program.memory);
	const struct layout *l = &f->program.layout;
	struct goroutine_list_input input = { .scans = f->scans, .want_dead = want_dead };

	fake_memory_forget(f->program.memory);
	assert_success(module_table_read(memory, l, &f->modules));
	assert_success(goroutine_table_read(memory, l, f->modules, &f->thread, 1, &f->table));
	assert_success(stack_walker_new(memory, l, f->modules, f->table, &f->walker));
	input.goroutines = f->table;
	input.modules = f->modules;
	assert_success(label_table_read(memory, l, f->table, &f->labels));
	input.walker = f->walker;
	input.labels = f->labels;
	assert_success(goroutine_list_read(&input, &f->list));
	assert_success(goroutine_list_fill(f->list, &f->result));
}

static void assert_bytes(ProtobufCBinaryData bytes, const char *expected)
{
	assert_int_equal(bytes.len, strlen(expected));
	assert_memory_equal(bytes.data, expected, bytes.len);
}

static const Goheapd__StackTrace *trace_of(const struct fixture *f, size_t goroutine)
{
	const Goheapd__Goroutine *g = f->result.goroutines[goroutine];

	assert_true(g->has_trace);
	assert_in_range(g->trace, 0, f->result.n_traces - 1);
	return f->result.traces[g->trace];
}

static void assert_frame(const struct fixture *f, size_t goroutine, size_t index,
			 const char *function)
{
	const Goheapd__StackTrace *trace = trace_of(f, goroutine);

	assert_in_range(trace->frames[index], 0, f->result.n_frames - 1);
	assert_bytes(f->result.frames[trace->frames[index]]->function, function);
}

static void a_goroutine_comes_with_its_frames(void **state)
{
	struct fixture *f = *state;
	const Goheapd__Goroutine *g;

	fake_program_set(&f->program, add_worker(f), f->program.layout.g_id, 17);
	list(f, false);
	assert_int_equal(f->result.n_goroutines, 1);
	g = f->result.goroutines[0];
	assert_string_equal(g->status, "waiting");
	assert_int_equal(g->stack_bytes, FAKE_STACK_SIZE);
	assert_true(g->has_stack_in_use_bytes);
	assert_int_equal(g->stack_in_use_bytes, 100);
	assert_false(g->has_error);
	assert_false(g->has_thread);
	assert_true(g->has_created_by);
	assert_bytes(f->result.frames[g->created_by]->function, "main.main");
	assert_int_equal(trace_of(f, 0)->n_frames, 3);
	assert_frame(f, 0, 0, "main.work");
	assert_frame(f, 0, 1, "main.main");
	assert_frame(f, 0, 2, "runtime.goexit");
}

/* A hundred thousand goroutines cost a hundred thousand numbers, not as many stacks. */
static void goroutines_that_wait_alike_share_their_frames(void **state)
{
	struct fixture *f = *state;
	const uint64_t words[] = { 1, 2, fake_program_pc(GOEXIT, 1), 0 };
	taddr other;

	fake_program_set(&f->program, add_worker(f), f->program.layout.g_id, 17);
	fake_program_set(&f->program, add_worker(f), f->program.layout.g_id, 18);
	other = fake_program_g(&f->program, fake_program_pc(WORK, 0x10), sizeof(words));
	fake_program_push(&f->program, other, words, 4);
	list(f, false);
	assert_int_equal(f->result.n_goroutines, 3);
	assert_true(f->result.goroutines[0]->has_created_by);
	assert_int_equal(f->result.goroutines[0]->trace, f->result.goroutines[1]->trace);
	assert_int_equal(f->result.goroutines[0]->created_by, f->result.goroutines[1]->created_by);
	assert_int_not_equal(f->result.goroutines[0]->trace, f->result.goroutines[2]->trace);
	assert_int_equal(trace_of(f, 2)->n_frames, 2);
	assert_frame(f, 2, 0, "main.work");
	assert_frame(f, 2, 1, "runtime.goexit");
	assert_int_equal(f->result.n_traces, 2);
	assert_int_equal(f->result.n_frames, 4); /* work, main, goexit, and the go statement */
}

/* Its function, start of a go statement and all, is the runtime's own doing. */
static void the_main_goroutine_has_no_creator(void **state)
{
	struct fixture *f = *state;

	fake_program_set(&f->program, add_worker(f), f->program.layout.g_id, 1);
	list(f, false);
	assert_false(f->result.goroutines[0]->has_created_by);
}

static void generic_functions_are_named_as_tracebacks_name_them(void **state)
{
	struct fixture *f = *state;
	const uint64_t words[] = { 1, 2, fake_program_pc(GOEXIT, 1), 0 };
	taddr g = fake_program_g(&f->program, fake_program_pc(GENERIC, 0x10), sizeof(words));

	fake_program_push(&f->program, g, words, 4);
	fake_program_set(&f->program, g, f->program.layout.g_id, 17);
	fake_program_set(&f->program, g, f->program.layout.g_created_pc,
			 fake_program_pc(GENERIC, 0x30));
	list(f, false);
	assert_frame(f, 0, 0, "main.(*Pair[...]).run");
	assert_bytes(f->result.frames[f->result.goroutines[0]->created_by]->function,
		     "main.(*Pair[...]).run");
}

static void names_with_half_a_bracket_are_left_alone(void **state)
{
	const char *const names[] = { "main.f[", "main.f]", "main.]f[", "main.f" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		ProtobufCBinaryData name;

		assert_success(message_function(names[i], &name));
		assert_bytes(name, names[i]);
		free(name.data);
	}
}

/* Caught while they are changed, and not to be repaired. */
static void bounds_that_do_not_fit_together_are_no_stack(void **state)
{
	struct fixture *f = *state;
	const struct layout *l = &f->program.layout;
	taddr g = add_worker(f);

	fake_program_set(&f->program, g, l->g_stack_hi, 0x1000);
	fake_program_set(&f->program, g, l->g_stack_top, 0);
	list(f, false);
	assert_int_equal(f->result.goroutines[0]->stack_bytes, 0);
}

static void dead_goroutines_are_left_out_unless_wanted(void **state)
{
	struct fixture *f = *state;
	taddr dead = add_worker(f);

	add_worker(f);
	fake_program_set(&f->program, dead, f->program.layout.g_status, GOROUTINE_DEAD);
	fake_program_set(&f->program, dead, f->program.layout.g_id, 4711);
	list(f, true);
	assert_int_equal(f->result.n_goroutines, 2);
	assert_string_equal(f->result.goroutines[0]->status, "dead");
	assert_int_equal(f->result.goroutines[0]->id, 4711);
	assert_false(f->result.goroutines[0]->has_trace);
	assert_false(f->result.goroutines[0]->has_stack_in_use_bytes);
	assert_int_equal(f->result.goroutines[1]->stack_in_use_bytes, 101);
}

static void a_stack_that_breaks_off_keeps_its_frames_and_says_so(void **state)
{
	struct fixture *f = *state;
	const uint64_t words[] = { 1, 2, 0x12345678 };
	taddr g = fake_program_g(&f->program, fake_program_pc(WORK, 0x10), sizeof(words));
	const Goheapd__Goroutine *message;

	fake_program_push(&f->program, g, words, 3);
	list(f, false);
	message = f->result.goroutines[0];
	assert_true(message->has_error);
	assert_true(message->error.len > 0);
	assert_int_equal(trace_of(f, 0)->n_frames, 1);
	assert_frame(f, 0, 0, "main.work");
}

static void deep_stacks_are_cut(void **state)
{
	enum { WORDS = 2 * FRAME_LIST_LINES_MAX };
	struct fixture *f = *state;
	const struct layout *l = &f->program.layout;
	taddr g = fake_program_g(&f->program, fake_program_pc(DEEP, 4), 0);
	taddr lo = fake_program_room(&f->program, WORDS * 8), hi = lo + WORDS * 8;
	const Goheapd__Goroutine *message;

	fake_program_set(&f->program, g, l->g_stack_lo, lo);
	fake_program_set(&f->program, g, l->g_stack_hi, hi);
	fake_program_set(&f->program, g, l->g_sched_sp, lo + 8);
	fake_program_set(&f->program, g, l->g_stack_top, hi - 8);
	for (taddr at = lo; at < hi - 16; at += 8)
		fake_memory_store(f->program.memory, at, 8, fake_program_pc(DEEP, 4));
	fake_memory_store(f->program.memory, hi - 16, 8, fake_program_pc(GOEXIT, 1));
	list(f, false);
	message = f->result.goroutines[0];
	assert_int_equal(trace_of(f, 0)->n_frames, FRAME_LIST_LINES_MAX);
	assert_frame(f, 0, FRAME_LIST_LINES_MAX - 1, "main.deep");
	assert_bytes(message->error, "the outer frames of this deep stack are left out");
}

/* Waits are noted on the monotonic clock and told since the epoch. */
static void a_wait_is_told_since_the_epoch(void **state)
{
	struct fixture *f = *state;
	taddr g = add_worker(f);
	struct timespec monotonic, real;
	uint64_t now;

	clock_gettime(CLOCK_MONOTONIC, &monotonic);
	clock_gettime(CLOCK_REALTIME, &real);
	now = (uint64_t)real.tv_sec * 1000000000 + (uint64_t)real.tv_nsec;
	fake_program_set(&f->program, g, f->program.layout.g_wait_since,
			 (uint64_t)monotonic.tv_sec * 1000000000 + (uint64_t)monotonic.tv_nsec);
	fake_program_set(&f->program, add_worker(f), f->program.layout.g_wait_since, 0);
	list(f, false);
	assert_true(f->result.goroutines[0]->has_waiting_since_ns);
	/* The clocks are read one after the other, here and there. */
	assert_true(f->result.goroutines[0]->waiting_since_ns / 1000000000 - now / 1000000000 +
			3600 <=
		    7200);
	assert_false(f->result.goroutines[1]->has_waiting_since_ns);
}

static void messages_grow_by_powers_of_two(void **state)
{
	void **array = NULL;

	(void)state;
	for (size_t count = 0; count < 1000; count++) {
		assert_success(message_reserve(&array, count));
		array[count] = (void *)count;
	}
	for (size_t i = 0; i < 1000; i++)
		assert_ptr_equal(array[i], (void *)i);
	free(array);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_goroutine_comes_with_its_frames),
		TEST(goroutines_that_wait_alike_share_their_frames),
		TEST(the_main_goroutine_has_no_creator),
		TEST(generic_functions_are_named_as_tracebacks_name_them),
		cmocka_unit_test(names_with_half_a_bracket_are_left_alone),
		TEST(bounds_that_do_not_fit_together_are_no_stack),
		TEST(dead_goroutines_are_left_out_unless_wanted),
		TEST(a_stack_that_breaks_off_keeps_its_frames_and_says_so),
		TEST(deep_stacks_are_cut),
		TEST(a_wait_is_told_since_the_epoch),
		cmocka_unit_test(messages_grow_by_powers_of_two),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
