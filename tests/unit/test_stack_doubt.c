/* Stacks that cannot be taken by their maps: threads caught running, moves, switches, nonsense. */
#include "agent/goruntime/machine.h"
#include "proto/base/bytes.h"
#include "tests/support/stack_fixture.h"

static void what_preemption_interrupted_is_taken_word_by_word(void **state)
{
	struct stack_fixture *f = *state;
	const uint64_t words[] = { REGISTER,
				   REGISTER,
				   0,
				   stack_fixture_pc(HOLD), /* asyncPreempt */
				   LIVE,
				   DEAD,
				   LIVE,
				   0,
				   stack_fixture_pc(HOLD),
				   OUTER,
				   ARG,
				   OUTER,
				   0,
				   stack_fixture_pc(GOEXIT),
				   0 };
	struct stack_scan result;

	stack_fixture_g(f, PREEMPT, WORDS(words));
	result = stack_fixture_scan(f);
	assert_int_equal(result.trust, STACK_EXACT);
	assert_int_equal(result.conservative_frames, 2);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK_CONSERVATIVE, REGISTER), 2);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK_CONSERVATIVE, LIVE), 2);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK_CONSERVATIVE, DEAD), 1);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK, OUTER), 2);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK, ARG), 0);
}

static void callers_without_a_map_are_taken_word_by_word(void **state)
{
	struct stack_fixture *f = *state;
	const uint64_t words[] = { 0,
				   0,
				   stack_fixture_pc(HOLD), /* wbMove */
				   LIVE,
				   DEAD,
				   LIVE,
				   0,
				   stack_fixture_pc(HOLD),
				   LIVE,
				   OTHER,
				   LIVE,
				   0,
				   stack_fixture_pc(GOEXIT),
				   0 };
	struct stack_scan result;

	stack_fixture_g(f, BARRIER, WORDS(words));
	result = stack_fixture_scan(f);
	assert_int_equal(result.conservative_frames, 2);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK_CONSERVATIVE, DEAD), 1);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK_CONSERVATIVE, OTHER), 0);
}

static void conservative_words_revive_stack_objects_conservatively(void **state)
{
	struct stack_fixture *f = *state;
	uint64_t words[] = { 0,
			     0,
			     stack_fixture_pc(HOLD),
			     0,
			     0,
			     0,
			     0,
			     stack_fixture_pc(HOUSE),
			     0,
			     DEAD,
			     OBJECT,
			     INNER,
			     0,
			     0,
			     stack_fixture_pc(GOEXIT),
			     0 };
	taddr g = stack_fixture_g(f, BARRIER, WORDS(words));
	taddr house = fake_program_stack(&f->program, g) - 64;

	words[4] = house + 8; /* in a slot of hold's that its map leaves out */
	fake_program_push(&f->program, g, WORDS(words));
	assert_int_equal(stack_fixture_scan(f).trust, STACK_EXACT);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK_CONSERVATIVE, OBJECT), 1);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK, OBJECT), 0);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK_CONSERVATIVE, INNER), 0);
}

static taddr slot_of(const struct stack_fixture *f, uint64_t value)
{
	for (unsigned i = 0; i < f->sink.count; i++)
		if (f->sink.roots[i].value == value)
			return f->sink.roots[i].slot;
	return UINT64_MAX;
}

static void a_running_thread_is_taken_from_its_registers(void **state)
{
	struct stack_fixture *f = *state;
	const uint64_t words[] = { LIVE,  DEAD, LIVE,  0, stack_fixture_pc(HOLD),
				   OUTER, ARG,  OUTER, 0, stack_fixture_pc(GOEXIT),
				   0 };
	uint8_t vector[64] = { 0 };
	taddr g = stack_fixture_g(f, PARK, WORDS(words));
	struct stack_scan result;

	stack_fixture_run(f, g, stack_fixture_pc(HOLD) + 1,
			  fake_program_stack(&f->program, g) - sizeof(words));
	memcpy(vector + 16, &(uint64_t){ INNER }, 8);
	f->threads[0].vector = vector;
	f->threads[0].vector_size = sizeof(vector);
	result = stack_fixture_scan(f);
	assert_int_equal(result.trust, STACK_EXACT);
	assert_int_equal(result.conservative_frames, 1);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK_CONSERVATIVE, LIVE), 2);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK_CONSERVATIVE, DEAD), 1);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK, OUTER), 2);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK, ARG), 0);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_REGISTER, REGISTER), 1);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_REGISTER, INNER), 1);
	/* The first of a thread's is r15; there is no telling of the others. */
	assert_int_equal(slot_of(f, REGISTER), 15 + 1);
	assert_int_equal(slot_of(f, INNER), 0);
}

static void frames_of_the_runtime_above_a_running_thread_are_not_trusted(void **state)
{
	struct stack_fixture *f = *state;
	const uint64_t words[] = { 0,     0, stack_fixture_pc(RUNTIME), DEAD,  LIVE,
				   DEAD,  0, stack_fixture_pc(HOLD),    OUTER, ARG,
				   OUTER, 0, stack_fixture_pc(RUNTIME), OTHER, OTHER,
				   OTHER, 0, stack_fixture_pc(GOEXIT),  0 };
	taddr g = stack_fixture_g(f, PARK, WORDS(words));
	struct stack_scan result;

	stack_fixture_run(f, g, stack_fixture_pc(PARK) + 1,
			  fake_program_stack(&f->program, g) - sizeof(words));
	result = stack_fixture_scan(f);
	assert_int_equal(result.conservative_frames, 2);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK_CONSERVATIVE, LIVE), 1);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK, OUTER), 2);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK_CONSERVATIVE, OTHER), 0);
}

static void a_stack_that_is_being_switched_is_taken_whole(void **state)
{
	struct stack_fixture *f = *state;
	const uint64_t words[] = { stack_fixture_pc(HOLD),   LIVE, DEAD, LIVE, 0,
				   stack_fixture_pc(GOEXIT), 0 };
	taddr g = stack_fixture_g(f, PARK, WORDS(words));
	struct stack_scan result;

	stack_fixture_run(f, g, stack_fixture_pc(SWITCH),
			  fake_program_stack(&f->program, g) - sizeof(words));
	result = stack_fixture_scan(f);
	assert_int_equal(result.trust, STACK_CONSERVATIVE);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK_CONSERVATIVE, DEAD), 1);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_REGISTER, REGISTER), 1);
	assert_int_equal(stack_fixture_count(f, ROOT_STACK), 0);
}

static void a_running_goroutine_without_a_thread_is_taken_whole(void **state)
{
	struct stack_fixture *f = *state;
	const uint64_t words[] = { LIVE, DEAD, LIVE, 0, stack_fixture_pc(GOEXIT), 0 };
	taddr g = stack_fixture_g(f, HOLD, WORDS(words));
	taddr lowest = fake_program_stack(&f->program, g) - FAKE_STACK_SIZE;
	struct stack_scan result;

	stack_fixture_run(f, g, stack_fixture_pc(HOLD), 0);
	f->threads[0].target_tid = 78;
	fake_memory_store(f->program.memory, lowest, 8, OTHER);
	result = stack_fixture_scan(f);
	assert_int_equal(result.trust, STACK_CONSERVATIVE);
	assert_int_equal(result.in_use_bytes, FAKE_STACK_SIZE);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK_CONSERVATIVE, DEAD), 1);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK_CONSERVATIVE, OTHER), 1);
	assert_non_null(strstr(goroutine_table_complaint(f->goroutines), "hold a P"));
}

/* Each of them breaks the walk somewhere; all words are found nevertheless. */
static void broken_stacks_are_taken_whole(void **state)
{
	const uint64_t good[] = { 0,    0, stack_fixture_pc(HOLD),   LIVE, DEAD,
				  LIVE, 0, stack_fixture_pc(GOEXIT), 0 };
	static const struct {
		unsigned place;
		uint64_t word;
	} faults[] = {
		{ 2, 0x1234 },                                         /* no function */
		{ 7, FAKE_TEXT + 0x20 + SWITCH * FAKE_FUNCTION_SIZE }, /* writes SP */
		{ 7, FAKE_TEXT + 0x20 + HOLD * FAKE_FUNCTION_SIZE },   /* has no end */
		{ 2, FAKE_TEXT + 0x20 },                               /* ends too early */
		{ 2, FAKE_TEXT + 0x20 + OVERFULL * FAKE_FUNCTION_SIZE },
		{ 2, 0 },
	};

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct stack_fixture *f = *state;
		uint64_t words[sizeof(good) / sizeof(good[0])];
		struct stack_scan result;

		memcpy(words, good, sizeof(good));
		words[faults[i].place] = faults[i].word;
		stack_fixture_g(f, PARK, WORDS(words));
		result = stack_fixture_scan(f);
		assert_int_equal(result.trust, STACK_CONSERVATIVE);
		assert_int_equal(result.conservative_frames, 0);
		assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK_CONSERVATIVE, DEAD), 1);
		assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK_CONSERVATIVE, LIVE), 2);
		stack_fixture_renew(state);
	}
}

static void a_frame_without_a_map_is_taken_word_by_word(void **state)
{
	struct stack_fixture *f = *state;
	const uint64_t words[] = { 0,    0, stack_fixture_pc(UNMAPPED), LIVE, DEAD,
				   LIVE, 0, stack_fixture_pc(GOEXIT),   0 };
	struct stack_scan result;

	stack_fixture_g(f, PARK, WORDS(words));
	result = stack_fixture_scan(f);
	assert_int_equal(result.trust, STACK_EXACT);
	assert_int_equal(result.conservative_frames, 1);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK_CONSERVATIVE, DEAD), 1);
}

static void a_defer_chain_without_end_is_given_up(void **state)
{
	struct stack_fixture *f = *state;
	const struct layout *l = &f->program.layout;
	const uint64_t words[] = { LIVE, DEAD, LIVE, 0, stack_fixture_pc(GOEXIT), 0 };
	taddr g = stack_fixture_g(f, HOLD, WORDS(words));
	taddr record = fake_program_room(&f->program, l->defer.size);

	stack_fixture_set(f, g, l->g_defer, record);
	stack_fixture_set(f, record, l->defer_link, record);
	stack_fixture_open(f);
	f->sink.limit = 64; /* of the record's own address there are more */
	assert_error(stack_roots(f->walker, 0, &f->sink.sink, &(struct stack_scan){ 0 }),
		     ERROR_OUT_OF_MEMORY);

	/* Within the stack's own words the same chain comes to an end by itself. */
	f = stack_fixture_renew(state);
	l = &f->program.layout;
	g = stack_fixture_g(f, HOLD, WORDS(words));
	record = fake_program_stack(&f->program, g) - 512;
	stack_fixture_set(f, g, l->g_defer, record);
	stack_fixture_set(f, record, l->defer_link, record);
	assert_int_equal(stack_fixture_scan(f).trust, STACK_CONSERVATIVE);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK_CONSERVATIVE, DEAD), 1);
}

static void what_the_sink_refuses_ends_the_scan(void **state)
{
	struct stack_fixture *f = *state;
	const uint64_t words[] = { LIVE, DEAD, LIVE, 0, stack_fixture_pc(GOEXIT), 0 };

	stack_fixture_g(f, HOLD, WORDS(words));
	stack_fixture_open(f);
	f->sink.limit = 1;
	assert_error(stack_roots(f->walker, 0, &f->sink.sink, &(struct stack_scan){ 0 }),
		     ERROR_OUT_OF_MEMORY);
}

static void a_stack_that_cannot_be_read_is_skipped(void **state)
{
	struct stack_fixture *f = *state;
	const uint64_t words[] = { LIVE, DEAD, LIVE, 0, stack_fixture_pc(GOEXIT), 0 };
	taddr g = stack_fixture_g(f, HOLD, WORDS(words));

	stack_fixture_set(f, g, f->program.layout.g_stack_lo, 0x10000);
	stack_fixture_set(f, g, f->program.layout.g_stack_hi, 0x20000);
	stack_fixture_set(f, g, f->program.layout.g_sched_sp, 0x18000);
	assert_int_equal(stack_fixture_scan(f).trust, STACK_SKIPPED);
	assert_int_equal(f->sink.count, 0);
}

static void system_stacks_are_taken_from_sp_up(void **state)
{
	struct stack_fixture *f = *state;
	const uint64_t words[] = { LIVE, DEAD, LIVE, 0, stack_fixture_pc(GOEXIT), 0 };
	taddr g = stack_fixture_g(f, HOLD, WORDS(words));
	const struct machine *machine;
	taddr top;

	stack_fixture_run(f, g, stack_fixture_pc(RUNTIME), 0);
	stack_fixture_open(f);
	machine = goroutine_table_machines(f->goroutines)->machines;
	top = machine->g0_stack.hi;

	f = stack_fixture_renew(state);
	g = stack_fixture_g(f, HOLD, WORDS(words));
	stack_fixture_run(f, g, stack_fixture_pc(RUNTIME), top - 16);
	fake_memory_store(f->program.memory, top - 24, 8, DEAD);
	fake_memory_store(f->program.memory, top - 8, 8, OTHER);
	stack_fixture_open(f);
	assert_success(stack_system_roots(f->walker, &f->sink.sink));
	assert_int_equal(fake_sink_count(&f->sink, ROOT_SYSTEM_STACK, OTHER), 1);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_SYSTEM_STACK, REGISTER), 1);
	assert_int_equal(f->sink.count, 2);
	assert_int_equal(f->sink.roots[0].goroutine, ROOT_NO_GOROUTINE);

	/* An M without a P has nothing that could matter. */
	f = stack_fixture_renew(state);
	g = stack_fixture_g(f, HOLD, WORDS(words));
	stack_fixture_run(f, g, stack_fixture_pc(RUNTIME), top - 16);
	fake_memory_store(f->program.memory, top - 8, 8, OTHER);
	stack_fixture_set(f, f->program.last_m, f->program.layout.m_p, 0);
	stack_fixture_open(f);
	assert_success(stack_system_roots(f->walker, &f->sink.sink));
	assert_int_equal(f->sink.count, 0);
}

/* Whatever g0 is at, the goroutine waits for systemstack to return. */
static void registers_on_a_system_stack_are_not_the_goroutines(void **state)
{
	struct stack_fixture *f = *state;
	const uint64_t words[] = { LIVE, DEAD, LIVE, 0, stack_fixture_pc(GOEXIT), 0 };
	taddr g = stack_fixture_g(f, HOLD, WORDS(words));
	taddr g0;

	stack_fixture_run(f, g, stack_fixture_pc(RUNTIME), 0);
	g0 = load_u64le(fake_memory_bytes(f->program.memory, f->program.last_m, 8));
	f->threads[0].sp = fake_program_stack(&f->program, g0) - 16;
	assert_int_equal(stack_fixture_scan(f).trust, STACK_EXACT);
	assert_true(goroutine_table_at(f->goroutines, 0)->on_system_stack);
	assert_int_equal(f->sink.count, 2);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK, LIVE), 2);
}

/* A thread at so many bytes from a system call's instruction in a function. */
static unsigned registers_near_a_system_call(void **state, enum stack_fixture_function function,
					     int offset)
{
	struct stack_fixture *f = stack_fixture_renew(state);
	const uint64_t words[] = { stack_fixture_pc(HOLD),   LIVE, DEAD, LIVE, 0,
				   stack_fixture_pc(GOEXIT), 0 };
	taddr instruction = stack_fixture_pc(function);
	taddr g = stack_fixture_g(f, PARK, WORDS(words));

	fake_memory_map(f->program.memory, instruction & ~(taddr)0xfff, 0x1000);
	fake_memory_store(f->program.memory, instruction, 2, 0x050f);
	stack_fixture_run(f, g, instruction + (uint64_t)(int64_t)offset,
			  fake_program_stack(&f->program, g) - sizeof(words));
	assert_int_equal(stack_fixture_scan(f).trust, STACK_EXACT);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK, LIVE), 2);
	return fake_sink_count(&f->sink, ROOT_REGISTER, REGISTER);
}

static void registers_in_a_system_call_are_left_over(void **state)
{
	assert_int_equal(registers_near_a_system_call(state, KERNEL, 2), 0);
	assert_int_equal(registers_near_a_system_call(state, KERNEL, 0), 0); /* to be restarted */
	assert_int_equal(registers_near_a_system_call(state, KERNEL, -4), 1);
	assert_int_equal(registers_near_a_system_call(state, KERNEL, 4), 1);
	assert_int_equal(registers_near_a_system_call(state, COMPILED_KERNEL, 2), 1);
	assert_int_equal(registers_near_a_system_call(state, OWN_KERNEL, 2), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_preemption_interrupted_is_taken_word_by_word),
		TEST(callers_without_a_map_are_taken_word_by_word),
		TEST(conservative_words_revive_stack_objects_conservatively),
		TEST(a_running_thread_is_taken_from_its_registers),
		TEST(frames_of_the_runtime_above_a_running_thread_are_not_trusted),
		TEST(a_stack_that_is_being_switched_is_taken_whole),
		TEST(a_running_goroutine_without_a_thread_is_taken_whole),
		TEST(broken_stacks_are_taken_whole),
		TEST(a_frame_without_a_map_is_taken_word_by_word),
		TEST(a_defer_chain_without_end_is_given_up),
		TEST(what_the_sink_refuses_ends_the_scan),
		TEST(a_stack_that_cannot_be_read_is_skipped),
		TEST(system_stacks_are_taken_from_sp_up),
		TEST(registers_on_a_system_stack_are_not_the_goroutines),
		TEST(registers_in_a_system_call_are_left_over),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
