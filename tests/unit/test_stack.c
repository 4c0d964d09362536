#include "agent/goruntime/stack.h"

#include "agent/goruntime/module.h"
#include "tests/support/stack_fixture.h"

static void locals_are_taken_by_their_map(void **state)
{
	struct stack_fixture *f = *state;
	const uint64_t words[] = { 0,
				   0,
				   stack_fixture_pc(HOLD), /* park */
				   LIVE,
				   DEAD,
				   OTHER,
				   0,
				   stack_fixture_pc(GOEXIT),
				   0 };
	taddr g = stack_fixture_g(f, PARK, WORDS(words));
	struct stack_scan result = stack_fixture_scan(f);

	assert_int_equal(result.trust, STACK_EXACT);
	assert_int_equal(result.in_use_bytes, sizeof(words));
	assert_int_equal(result.conservative_frames, 0);
	assert_int_equal(f->sink.count, 2);
	assert_int_equal(f->sink.roots[0].kind, ROOT_STACK);
	assert_int_equal(f->sink.roots[0].goroutine, 0);
	assert_int_equal(f->sink.roots[0].value, LIVE);
	assert_int_equal(f->sink.roots[0].slot, fake_program_stack(&f->program, g) - 48);
	assert_int_equal(f->sink.roots[1].value, OTHER);
}

static void arguments_are_taken_by_their_map(void **state)
{
	struct stack_fixture *f = *state;
	const uint64_t words[] = { LIVE,
				   LIVE,
				   0,
				   stack_fixture_pc(HOLD), /* take, and its arguments: */
				   DEAD,
				   ARG,
				   DEAD,
				   0,
				   stack_fixture_pc(GOEXIT),
				   0 };

	stack_fixture_g(f, TAKE, WORDS(words));
	assert_int_equal(stack_fixture_scan(f).trust, STACK_EXACT);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK, ARG), 1);
	/* hold's map takes its first and third local, which hold the arguments. */
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK, DEAD), 2);
	assert_int_equal(f->sink.count, 3);
}

static bool count_frame(void *arg, const struct stack_frame *frame)
{
	struct stack_frame *frames = arg;
	unsigned i = 0;

	while (frames[i].pc)
		i++;
	frames[i] = *frame;
	return i < 2;
}

static void frames_are_visited_from_the_innermost(void **state)
{
	struct stack_fixture *f = *state;
	const uint64_t words[] = { 0, 0, stack_fixture_pc(HOLD),   0, 0,
				   0, 0, stack_fixture_pc(GOEXIT), 0 };
	taddr g = stack_fixture_g(f, PARK, WORDS(words));
	taddr top = fake_program_stack(&f->program, g);
	struct stack_frame frames[4] = { 0 };

	stack_fixture_open(f);
	assert_success(
	    stack_walk(f->walker, goroutine_table_at(f->goroutines, 0), count_frame, frames));
	assert_string_equal(frames[0].func.name, "runtime.gopark");
	assert_int_equal(frames[0].sp, top - sizeof(words));
	assert_int_equal(frames[0].fp, top - 48);
	assert_true(frames[0].is_call);
	assert_string_equal(frames[1].func.name, "main.hold");
	assert_int_equal(frames[1].sp, top - 48);
	assert_string_equal(frames[2].func.name, "runtime.goexit");
	assert_int_equal(frames[3].pc, 0);
}

/* house: a local, two objects of 16 and 8 bytes, a word and the saved frame pointer. */
static void stack_objects_live_while_something_points_to_them(void **state)
{
	struct stack_fixture *f = *state;
	uint64_t words[] = { 0, DEAD, OBJECT, INNER, 0, 0, stack_fixture_pc(GOEXIT), 0 };
	taddr g = stack_fixture_g(f, HOUSE, WORDS(words));
	taddr sp = fake_program_stack(&f->program, g) - sizeof(words);

	assert_int_equal(stack_fixture_scan(f).trust, STACK_EXACT);
	assert_int_equal(f->sink.count, 0);

	/* The local points into the first object, whose pointer leads to the second. */
	f = stack_fixture_renew(state);
	g = stack_fixture_g(f, HOUSE, WORDS(words));
	sp = fake_program_stack(&f->program, g) - sizeof(words);
	words[0] = sp + 15;
	words[2] = sp + 24;
	fake_program_push(&f->program, g, WORDS(words));
	assert_int_equal(stack_fixture_scan(f).trust, STACK_EXACT);
	assert_int_equal(f->sink.count, 1);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK, INNER), 1);
	assert_int_equal(f->sink.roots[0].slot, sp + 24);
}

static void an_argument_can_be_a_stack_object(void **state)
{
	struct stack_fixture *f = *state;
	uint64_t words[] = { 0, 0, stack_fixture_pc(HOLD),   OBJECT, INNER,
			     0, 0, stack_fixture_pc(GOEXIT), 0 };
	taddr g = stack_fixture_g(f, GUEST, WORDS(words));

	words[0] = fake_program_stack(&f->program, g) - sizeof(words) + 32;
	fake_program_push(&f->program, g, WORDS(words));
	assert_int_equal(stack_fixture_scan(f).trust, STACK_EXACT);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK, INNER), 1);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK, OBJECT), 2); /* hold has it, too */
}

static void a_panic_and_defer_records_lead_to_what_they_hold(void **state)
{
	struct stack_fixture *f = *state;
	const struct layout *l = &f->program.layout;
	const uint64_t words[] = { 0, DEAD, OBJECT, INNER, 0, 0, stack_fixture_pc(GOEXIT), 0 };
	taddr g = stack_fixture_g(f, HOUSE, WORDS(words));
	taddr first = fake_program_room(&f->program, l->defer.size);
	taddr second = fake_program_room(&f->program, l->defer.size);

	stack_fixture_set(f, g, l->g_panic, fake_program_stack(&f->program, g) - sizeof(words) + 8);
	stack_fixture_set(f, g, l->g_defer, first);
	stack_fixture_set(f, first, l->defer_fn, ARG);
	stack_fixture_set(f, first, l->defer_link, second);
	stack_fixture_set(f, second, l->defer_heap, 1);
	assert_int_equal(stack_fixture_scan(f).trust, STACK_EXACT);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK, OBJECT), 1);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_GOROUTINE, ARG), 1);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_GOROUTINE, first), 0);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_GOROUTINE, second), 2);
	assert_int_equal(f->sink.count, 4);
}

static void the_context_register_and_saved_vectors_are_roots(void **state)
{
	struct stack_fixture *f = *state;
	const struct layout *l = &f->program.layout;
	const uint64_t words[] = { LIVE, DEAD, OTHER, 0, stack_fixture_pc(GOEXIT), 0 };
	taddr g = stack_fixture_g(f, HOLD, WORDS(words));
	taddr vectors = fake_program_room(&f->program, 64);

	fake_memory_store(f->program.memory, vectors + 56, 8, REGISTER);
	stack_fixture_set(f, g, l->g_sched_ctxt, OUTER);
	stack_fixture_set(f, g, l->g_vector_state, vectors);
	stack_fixture_set(f, g, l->g_async_safe_point, 1);
	assert_int_equal(stack_fixture_scan(f).trust, STACK_EXACT);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_GOROUTINE, OUTER), 1);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_REGISTER, REGISTER), 1);
}

static void a_frame_that_faulted_is_dead_unless_it_can_recover(void **state)
{
	struct stack_fixture *f = *state;
	const uint64_t words[] = { 0,
				   0,
				   stack_fixture_pc(HOLD), /* sigpanic */
				   DEAD,
				   DEAD,
				   DEAD,
				   0,
				   stack_fixture_pc(CATCH), /* hold, which faulted */
				   0,
				   0,
				   stack_fixture_pc(CATCH), /* as if by another sigpanic */
				   LIVE,
				   DEAD,
				   LIVE,
				   0,
				   stack_fixture_pc(GOEXIT),
				   0 };
	uint64_t second[sizeof(words) / sizeof(words[0])];

	/* hold's return address is of sigpanic, called by catch in the same way. */
	memcpy(second, words, sizeof(words));
	second[7] = stack_fixture_pc(SIGPANIC);
	stack_fixture_g(f, SIGPANIC, WORDS(second));
	assert_int_equal(stack_fixture_scan(f).trust, STACK_EXACT);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK, LIVE), 2);
	assert_int_equal(f->sink.count, 2);
}

static void walks_of_broken_stacks_say_where_they_broke(void **state)
{
	struct stack_fixture *f = *state;
	const uint64_t words[] = { 0, 0, stack_fixture_pc(HOLD), 0, 0, 0, 0, 0x1234, 0 };
	struct stack_frame frames[4] = { 0 };

	stack_fixture_g(f, PARK, WORDS(words));
	stack_fixture_open(f);
	assert_error(
	    stack_walk(f->walker, goroutine_table_at(f->goroutines, 0), count_frame, frames),
	    ERROR_CORRUPT_TARGET);
	assert_string_equal(frames[1].func.name, "main.hold");
}

static void dead_goroutines_hold_nothing(void **state)
{
	struct stack_fixture *f = *state;
	const uint64_t words[] = { LIVE, DEAD, LIVE, 0, stack_fixture_pc(GOEXIT), 0 };
	taddr g = stack_fixture_g(f, HOLD, WORDS(words));
	struct stack_scan result;

	stack_fixture_set(f, g, f->program.layout.g_status, GOROUTINE_DEAD);
	result = stack_fixture_scan(f);
	assert_int_equal(result.trust, STACK_EXACT);
	assert_int_equal(result.in_use_bytes, 0);
	assert_int_equal(f->sink.count, 0);
}

/* A stub that runs has its closure at 0(SP); the map in it says what its caller gave it. */
static void the_arguments_of_a_reflected_call_are_mapped_by_its_closure(void **state)
{
	struct stack_fixture *f = *state;
	uint64_t words[] = { 0,    0,   stack_fixture_pc(STUB),   0, 0, 0, 0,
			     0,    0,   stack_fixture_pc(PARK), /* stub, its arguments: */
			     DEAD, ARG, stack_fixture_pc(GOEXIT), 0 };
	taddr closure = fake_program_room(&f->program, 24);
	taddr vector = fake_program_room(&f->program, 16);
	taddr bits = fake_program_room(&f->program, 8);

	fake_memory_store(f->program.memory, closure, 8, fake_program_pc(STUB, 0));
	fake_memory_store(f->program.memory, closure + 8, 8, vector);
	fake_memory_store(f->program.memory, closure + 16, 8, 16);
	fake_memory_store(f->program.memory, vector, 4, 2);
	fake_memory_store(f->program.memory, vector + 8, 8, bits);
	fake_memory_store(f->program.memory, bits, 1, 2); /* the second word */
	words[3] = closure;
	stack_fixture_g(f, PARK, WORDS(words));
	assert_int_equal(stack_fixture_scan(f).trust, STACK_EXACT);
	assert_int_equal(f->sink.count, 1);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK, ARG), 1);
}

static void functions_to_avoid_are_found_by_name(void **state)
{
	struct stack_fixture *f = *state;
	struct pc_range *ranges = NULL;
	uint32_t count;

	stack_fixture_g(f, HOLD, WORDS(((const uint64_t[]){ 0 })));
	stack_fixture_open(f);
	assert_success(
	    stack_unwalkable_ranges(module_table_at(f->modules, 0)->pclntab, &ranges, &count));
	assert_int_equal(count, 2);
	assert_int_equal(ranges[0].start, fake_program_pc(BARRIER, 0));
	assert_int_equal(ranges[0].end, fake_program_pc(SWITCH, 0));
	assert_int_equal(ranges[1].start, fake_program_pc(SWITCH, 0));
	free(ranges);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(locals_are_taken_by_their_map),
		TEST(arguments_are_taken_by_their_map),
		TEST(frames_are_visited_from_the_innermost),
		TEST(stack_objects_live_while_something_points_to_them),
		TEST(an_argument_can_be_a_stack_object),
		TEST(a_panic_and_defer_records_lead_to_what_they_hold),
		TEST(the_context_register_and_saved_vectors_are_roots),
		TEST(a_frame_that_faulted_is_dead_unless_it_can_recover),
		TEST(walks_of_broken_stacks_say_where_they_broke),
		TEST(dead_goroutines_hold_nothing),
		TEST(the_arguments_of_a_reflected_call_are_mapped_by_its_closure),
		TEST(functions_to_avoid_are_found_by_name),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
