#include "agent/goruntime/stack.h"

#include "agent/goruntime/machine.h"
#include "agent/goruntime/module.h"
#include "tests/support/assertions.h"
#include "tests/support/fake_program.h"

/* Values that no table has: heap pointers, each to be found in one way only. */
enum { HEAP = 0x7000000, LIVE = HEAP, DEAD, OTHER, ARG, OBJECT, INNER, REGISTER, OUTER };

static const struct fake_object two_objects[] = { { -32, 16, "01" }, { -16, 8, "1" } };
static const struct fake_object arg_object[] = { { 0, 16, "11" } };

enum function {
	GOEXIT,
	PARK,
	HOLD,  /* three locals */
	TAKE,  /* two locals, two words of arguments */
	HOUSE, /* two stack objects, and a local before them */
	GUEST, /* its argument is a stack object */
	SIGPANIC,
	CATCH, /* has a deferreturn */
	PREEMPT,
	BARRIER,
	SWITCH,
	CLOCK,
	RUNTIME,
	UNMAPPED, /* a frame without a map */
	OVERFULL, /* its map is larger than its frame */
	STUB,
	FUNCTIONS
};

static const struct fake_function functions[FUNCTIONS] = {
	[GOEXIT] = { .name = "runtime.goexit", .flag = PCLNTAB_FLAG_TOP_FRAME },
	[PARK] = { .name = "runtime.gopark", .frame = 16, .locals = "0" },
	[HOLD] = { .name = "main.hold", .frame = 32, .locals = "101" },
	[TAKE] = { .name = "main.take", .frame = 24, .args = 16, .locals = "00", .arg_map = "01" },
	[HOUSE] = { .name = "main.house",
		    .frame = 48,
		    .locals = "10000",
		    .objects = two_objects,
		    .object_count = 2 },
	[GUEST] = { .name = "main.guest",
		    .frame = 16,
		    .args = 16,
		    .locals = "1",
		    .arg_map = "00",
		    .objects = arg_object,
		    .object_count = 1 },
	[SIGPANIC] = { .name = "runtime.sigpanic", .frame = 16, .locals = "0" },
	[CATCH] = { .name = "main.catch", .frame = 32, .locals = "101", .deferreturn = 0x40 },
	[PREEMPT] = { .name = "runtime.asyncPreempt", .frame = 24 },
	[BARRIER] = { .name = "runtime.wbMove", .frame = 16, .locals = "0" },
	[SWITCH] = { .name = "runtime.mcall", .flag = PCLNTAB_FLAG_SP_WRITE },
	[CLOCK] = { .name = "runtime.nanotime1", .frame = 16, .flag = PCLNTAB_FLAG_SP_WRITE },
	[RUNTIME] = { .name = "runtime.mallocgc", .frame = 32, .locals = "000" },
	[UNMAPPED] = { .name = "main.assembly", .frame = 32 },
	[OVERFULL] = { .name = "main.overfull", .frame = 16, .locals = "11111111" },
	[STUB] = { .name = "reflect.makeFuncStub",
		   .frame = 48,
		   .args = PCLNTAB_ARGS_UNKNOWN,
		   .locals = "00000" },
};

struct fixture {
	struct fake_program program;
	struct module_table *modules;
	struct goroutine_table *goroutines;
	struct stack_walker *walker;
	struct fake_sink sink;
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

	stack_walker_free(f->walker);
	goroutine_table_free(f->goroutines);
	module_table_free(f->modules);
	fake_program_fini(&f->program);
	free(f);
	return 0;
}

/* For a second case within a test. */
static struct fixture *renew(void **state)
{
	teardown(state);
	setup(state);
	return *state;
}

/* pc of a return address in a function. */
static uint64_t in(enum function function)
{
	return fake_program_pc(function, 0x20);
}

#define WORDS(array) (array), sizeof(array) / sizeof((array)[0])

/* A goroutine whose innermost frame is function's and begins with the first of the words. */
static taddr add_g(struct fixture *f, enum function function, const uint64_t *words, unsigned count)
{
	taddr g = fake_program_g(&f->program, in(function), 8 * (uint64_t)count);

	fake_program_push(&f->program, g, words, count);
	return g;
}

static void set_g(struct fixture *f, taddr g, struct layout_field field, uint64_t value)
{
	fake_program_set(&f->program, g, field, value);
}

static void open_walker(struct fixture *f)
{
	struct memory *memory = fake_memory_memory(f->program.memory);
	const struct layout *layout = &f->program.layout;

	assert_success(module_table_read(memory, layout, &f->modules));
	assert_success(goroutine_table_read(memory, layout, f->modules, f->threads, f->thread_count,
					    &f->goroutines));
	assert_success(stack_walker_new(memory, layout, f->modules, f->goroutines, &f->walker));
	fake_sink_init(&f->sink);
}

static struct stack_scan scan(struct fixture *f)
{
	struct stack_scan scan;

	open_walker(f);
	assert_success(stack_roots(f->walker, 0, &f->sink.sink, &scan));
	return scan;
}

static unsigned count_kind(const struct fixture *f, enum root_kind kind)
{
	unsigned count = 0;

	for (unsigned i = 0; i < f->sink.count; i++)
		count += f->sink.roots[i].kind == kind;
	return count;
}

/* A thread that runs g, at pc in a frame that begins at sp. */
static void run_thread(struct fixture *f, taddr g, uint64_t pc, uint64_t sp)
{
	set_g(f, g, f->program.layout.g_status, GOROUTINE_RUNNING);
	fake_program_m(&f->program, g, 77);
	f->threads[0] = (struct stopped_thread){
		.tid = 1077, .target_tid = 77, .pc = pc, .sp = sp, .gpr = { REGISTER }
	};
	f->thread_count = 1;
}

static void locals_are_taken_by_their_map(void **state)
{
	struct fixture *f = *state;
	const uint64_t words[] = { 0,    0,    in(HOLD), /* park */
				   LIVE, DEAD, OTHER,    0, in(GOEXIT), 0 };
	taddr g = add_g(f, PARK, WORDS(words));
	struct stack_scan result = scan(f);

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
	struct fixture *f = *state;
	const uint64_t words[] = { LIVE, LIVE, 0,    in(HOLD), /* take, and its arguments: */
				   DEAD, ARG,  DEAD, 0,        in(GOEXIT), 0 };

	add_g(f, TAKE, WORDS(words));
	assert_int_equal(scan(f).trust, STACK_EXACT);
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
	struct fixture *f = *state;
	const uint64_t words[] = { 0, 0, in(HOLD), 0, 0, 0, 0, in(GOEXIT), 0 };
	taddr g = add_g(f, PARK, WORDS(words));
	taddr top = fake_program_stack(&f->program, g);
	struct stack_frame frames[4] = { 0 };

	open_walker(f);
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
	struct fixture *f = *state;
	uint64_t words[] = { 0, DEAD, OBJECT, INNER, 0, 0, in(GOEXIT), 0 };
	taddr g = add_g(f, HOUSE, WORDS(words));
	taddr sp = fake_program_stack(&f->program, g) - sizeof(words);

	assert_int_equal(scan(f).trust, STACK_EXACT);
	assert_int_equal(f->sink.count, 0);

	/* The local points into the first object, whose pointer leads to the second. */
	f = renew(state);
	g = add_g(f, HOUSE, WORDS(words));
	sp = fake_program_stack(&f->program, g) - sizeof(words);
	words[0] = sp + 15;
	words[2] = sp + 24;
	fake_program_push(&f->program, g, WORDS(words));
	assert_int_equal(scan(f).trust, STACK_EXACT);
	assert_int_equal(f->sink.count, 1);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK, INNER), 1);
	assert_int_equal(f->sink.roots[0].slot, sp + 24);
}

static void an_argument_can_be_a_stack_object(void **state)
{
	struct fixture *f = *state;
	uint64_t words[] = { 0, 0, in(HOLD), OBJECT, INNER, 0, 0, in(GOEXIT), 0 };
	taddr g = add_g(f, GUEST, WORDS(words));

	words[0] = fake_program_stack(&f->program, g) - sizeof(words) + 32;
	fake_program_push(&f->program, g, WORDS(words));
	assert_int_equal(scan(f).trust, STACK_EXACT);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK, INNER), 1);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK, OBJECT), 2); /* hold has it, too */
}

static void a_panic_and_defer_records_lead_to_what_they_hold(void **state)
{
	struct fixture *f = *state;
	const struct layout *l = &f->program.layout;
	const uint64_t words[] = { 0, DEAD, OBJECT, INNER, 0, 0, in(GOEXIT), 0 };
	taddr g = add_g(f, HOUSE, WORDS(words));
	taddr first = fake_program_room(&f->program, l->defer.size);
	taddr second = fake_program_room(&f->program, l->defer.size);

	set_g(f, g, l->g_panic, fake_program_stack(&f->program, g) - sizeof(words) + 8);
	set_g(f, g, l->g_defer, first);
	set_g(f, first, l->defer_fn, ARG);
	set_g(f, first, l->defer_link, second);
	set_g(f, second, l->defer_heap, 1);
	assert_int_equal(scan(f).trust, STACK_EXACT);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK, OBJECT), 1);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_GOROUTINE, ARG), 1);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_GOROUTINE, first), 0);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_GOROUTINE, second), 2);
	assert_int_equal(f->sink.count, 4);
}

static void the_context_register_and_saved_vectors_are_roots(void **state)
{
	struct fixture *f = *state;
	const struct layout *l = &f->program.layout;
	const uint64_t words[] = { LIVE, DEAD, OTHER, 0, in(GOEXIT), 0 };
	taddr g = add_g(f, HOLD, WORDS(words));
	taddr vectors = fake_program_room(&f->program, 64);

	fake_memory_store(f->program.memory, vectors + 56, 8, REGISTER);
	set_g(f, g, l->g_sched_ctxt, OUTER);
	set_g(f, g, l->g_vector_state, vectors);
	set_g(f, g, l->g_async_safe_point, 1);
	assert_int_equal(scan(f).trust, STACK_EXACT);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_GOROUTINE, OUTER), 1);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_REGISTER, REGISTER), 1);
}

static void a_frame_that_faulted_is_dead_unless_it_can_recover(void **state)
{
	struct fixture *f = *state;
	const uint64_t words[] = { 0,    0,    in(HOLD),                /* sigpanic */
				   DEAD, DEAD, DEAD,      0, in(CATCH), /* hold, which faulted */
				   0,    0,    in(CATCH), /* as if by another sigpanic */
				   LIVE, DEAD, LIVE,      0, in(GOEXIT), 0 };
	uint64_t second[sizeof(words) / sizeof(words[0])];

	/* hold's return address is of sigpanic, called by catch in the same way. */
	memcpy(second, words, sizeof(words));
	second[7] = in(SIGPANIC);
	add_g(f, SIGPANIC, WORDS(second));
	assert_int_equal(scan(f).trust, STACK_EXACT);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK, LIVE), 2);
	assert_int_equal(f->sink.count, 2);
}

static void what_preemption_interrupted_is_taken_word_by_word(void **state)
{
	struct fixture *f = *state;
	const uint64_t words[] = { REGISTER, REGISTER, 0,    in(HOLD), /* asyncPreempt */
				   LIVE,     DEAD,     LIVE, 0,          in(HOLD), OUTER,
				   ARG,      OUTER,    0,    in(GOEXIT), 0 };
	struct stack_scan result;

	add_g(f, PREEMPT, WORDS(words));
	result = scan(f);
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
	struct fixture *f = *state;
	const uint64_t words[] = { 0,     0,    in(HOLD), /* wbMove */
				   LIVE,  DEAD, LIVE,     0,          in(HOLD), LIVE,
				   OTHER, LIVE, 0,        in(GOEXIT), 0 };
	struct stack_scan result;

	add_g(f, BARRIER, WORDS(words));
	result = scan(f);
	assert_int_equal(result.conservative_frames, 2);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK_CONSERVATIVE, DEAD), 1);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK_CONSERVATIVE, OTHER), 0);
}

static void conservative_words_revive_stack_objects_conservatively(void **state)
{
	struct fixture *f = *state;
	uint64_t words[] = { 0, 0,    in(HOLD), 0,     0, 0, 0,          in(HOUSE),
			     0, DEAD, OBJECT,   INNER, 0, 0, in(GOEXIT), 0 };
	taddr g = add_g(f, BARRIER, WORDS(words));
	taddr house = fake_program_stack(&f->program, g) - 64;

	words[4] = house + 8; /* in a slot of hold's that its map leaves out */
	fake_program_push(&f->program, g, WORDS(words));
	assert_int_equal(scan(f).trust, STACK_EXACT);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK_CONSERVATIVE, OBJECT), 1);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK, OBJECT), 0);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK_CONSERVATIVE, INNER), 0);
}

static void a_running_thread_is_taken_from_its_registers(void **state)
{
	struct fixture *f = *state;
	const uint64_t words[] = { LIVE, DEAD,  LIVE, 0,          in(HOLD), OUTER,
				   ARG,  OUTER, 0,    in(GOEXIT), 0 };
	uint8_t vector[64] = { 0 };
	taddr g = add_g(f, PARK, WORDS(words));
	struct stack_scan result;

	run_thread(f, g, in(HOLD) + 1, fake_program_stack(&f->program, g) - sizeof(words));
	memcpy(vector + 16, &(uint64_t){ INNER }, 8);
	f->threads[0].vector = vector;
	f->threads[0].vector_size = sizeof(vector);
	result = scan(f);
	assert_int_equal(result.trust, STACK_EXACT);
	assert_int_equal(result.conservative_frames, 1);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK_CONSERVATIVE, LIVE), 2);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK_CONSERVATIVE, DEAD), 1);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK, OUTER), 2);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK, ARG), 0);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_REGISTER, REGISTER), 1);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_REGISTER, INNER), 1);
}

static void frames_of_the_runtime_above_a_running_thread_are_not_trusted(void **state)
{
	struct fixture *f = *state;
	const uint64_t words[] = { 0,     0, in(RUNTIME), DEAD,  LIVE,
				   DEAD,  0, in(HOLD),    OUTER, ARG,
				   OUTER, 0, in(RUNTIME), OTHER, OTHER,
				   OTHER, 0, in(GOEXIT),  0 };
	taddr g = add_g(f, PARK, WORDS(words));
	struct stack_scan result;

	run_thread(f, g, in(PARK) + 1, fake_program_stack(&f->program, g) - sizeof(words));
	result = scan(f);
	assert_int_equal(result.conservative_frames, 2);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK_CONSERVATIVE, LIVE), 1);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK, OUTER), 2);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK_CONSERVATIVE, OTHER), 0);
}

static void a_stack_that_is_being_switched_is_taken_whole(void **state)
{
	struct fixture *f = *state;
	const uint64_t words[] = { in(HOLD), LIVE, DEAD, LIVE, 0, in(GOEXIT), 0 };
	taddr g = add_g(f, PARK, WORDS(words));
	struct stack_scan result;

	run_thread(f, g, in(SWITCH), fake_program_stack(&f->program, g) - sizeof(words));
	result = scan(f);
	assert_int_equal(result.trust, STACK_CONSERVATIVE);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK_CONSERVATIVE, DEAD), 1);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_REGISTER, REGISTER), 1);
	assert_int_equal(count_kind(f, ROOT_STACK), 0);
}

static void a_running_goroutine_without_a_thread_is_taken_whole(void **state)
{
	struct fixture *f = *state;
	const uint64_t words[] = { LIVE, DEAD, LIVE, 0, in(GOEXIT), 0 };
	taddr g = add_g(f, HOLD, WORDS(words));
	taddr lowest = fake_program_stack(&f->program, g) - FAKE_STACK_SIZE;
	struct stack_scan result;

	run_thread(f, g, in(HOLD), 0);
	f->threads[0].target_tid = 78;
	fake_memory_store(f->program.memory, lowest, 8, OTHER);
	result = scan(f);
	assert_int_equal(result.trust, STACK_CONSERVATIVE);
	assert_int_equal(result.in_use_bytes, FAKE_STACK_SIZE);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK_CONSERVATIVE, DEAD), 1);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK_CONSERVATIVE, OTHER), 1);
	assert_non_null(strstr(goroutine_table_complaint(f->goroutines), "hold a P"));
}

/* Each of them breaks the walk somewhere; all words are found nevertheless. */
static void broken_stacks_are_taken_whole(void **state)
{
	const uint64_t good[] = { 0, 0, in(HOLD), LIVE, DEAD, LIVE, 0, in(GOEXIT), 0 };
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
		struct fixture *f = *state;
		uint64_t words[sizeof(good) / sizeof(good[0])];
		struct stack_scan result;

		memcpy(words, good, sizeof(good));
		words[faults[i].place] = faults[i].word;
		add_g(f, PARK, WORDS(words));
		result = scan(f);
		assert_int_equal(result.trust, STACK_CONSERVATIVE);
		assert_int_equal(result.conservative_frames, 0);
		assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK_CONSERVATIVE, DEAD), 1);
		assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK_CONSERVATIVE, LIVE), 2);
		renew(state);
	}
}

static void a_frame_without_a_map_is_taken_word_by_word(void **state)
{
	struct fixture *f = *state;
	const uint64_t words[] = { 0, 0, in(UNMAPPED), LIVE, DEAD, LIVE, 0, in(GOEXIT), 0 };
	struct stack_scan result;

	add_g(f, PARK, WORDS(words));
	result = scan(f);
	assert_int_equal(result.trust, STACK_EXACT);
	assert_int_equal(result.conservative_frames, 1);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK_CONSERVATIVE, DEAD), 1);
}

static void walks_of_broken_stacks_say_where_they_broke(void **state)
{
	struct fixture *f = *state;
	const uint64_t words[] = { 0, 0, in(HOLD), 0, 0, 0, 0, 0x1234, 0 };
	struct stack_frame frames[4] = { 0 };

	add_g(f, PARK, WORDS(words));
	open_walker(f);
	assert_error(
	    stack_walk(f->walker, goroutine_table_at(f->goroutines, 0), count_frame, frames),
	    ERROR_CORRUPT_TARGET);
	assert_string_equal(frames[1].func.name, "main.hold");
}

static void a_defer_chain_without_end_is_given_up(void **state)
{
	struct fixture *f = *state;
	const struct layout *l = &f->program.layout;
	const uint64_t words[] = { LIVE, DEAD, LIVE, 0, in(GOEXIT), 0 };
	taddr g = add_g(f, HOLD, WORDS(words));
	taddr record = fake_program_room(&f->program, l->defer.size);

	set_g(f, g, l->g_defer, record);
	set_g(f, record, l->defer_link, record);
	open_walker(f);
	f->sink.limit = 64; /* of the record's own address there are more */
	assert_error(stack_roots(f->walker, 0, &f->sink.sink, &(struct stack_scan){ 0 }),
		     ERROR_OUT_OF_MEMORY);

	/* Within the stack's own words the same chain comes to an end by itself. */
	f = renew(state);
	l = &f->program.layout;
	g = add_g(f, HOLD, WORDS(words));
	record = fake_program_stack(&f->program, g) - 512;
	set_g(f, g, l->g_defer, record);
	set_g(f, record, l->defer_link, record);
	assert_int_equal(scan(f).trust, STACK_CONSERVATIVE);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK_CONSERVATIVE, DEAD), 1);
}

static void what_the_sink_refuses_ends_the_scan(void **state)
{
	struct fixture *f = *state;
	const uint64_t words[] = { LIVE, DEAD, LIVE, 0, in(GOEXIT), 0 };

	add_g(f, HOLD, WORDS(words));
	open_walker(f);
	f->sink.limit = 1;
	assert_error(stack_roots(f->walker, 0, &f->sink.sink, &(struct stack_scan){ 0 }),
		     ERROR_OUT_OF_MEMORY);
}

static void a_stack_that_cannot_be_read_is_skipped(void **state)
{
	struct fixture *f = *state;
	const uint64_t words[] = { LIVE, DEAD, LIVE, 0, in(GOEXIT), 0 };
	taddr g = add_g(f, HOLD, WORDS(words));

	set_g(f, g, f->program.layout.g_stack_lo, 0x10000);
	set_g(f, g, f->program.layout.g_stack_hi, 0x20000);
	set_g(f, g, f->program.layout.g_sched_sp, 0x18000);
	assert_int_equal(scan(f).trust, STACK_SKIPPED);
	assert_int_equal(f->sink.count, 0);
}

static void dead_goroutines_hold_nothing(void **state)
{
	struct fixture *f = *state;
	const uint64_t words[] = { LIVE, DEAD, LIVE, 0, in(GOEXIT), 0 };
	taddr g = add_g(f, HOLD, WORDS(words));
	struct stack_scan result;

	set_g(f, g, f->program.layout.g_status, GOROUTINE_DEAD);
	result = scan(f);
	assert_int_equal(result.trust, STACK_EXACT);
	assert_int_equal(result.in_use_bytes, 0);
	assert_int_equal(f->sink.count, 0);
}

/* A stub that runs has its closure at 0(SP); the map in it says what its caller gave it. */
static void the_arguments_of_a_reflected_call_are_mapped_by_its_closure(void **state)
{
	struct fixture *f = *state;
	uint64_t words[] = { 0,    0,   in(STUB),   0, 0,
			     0,    0,   0,          0, in(PARK), /* stub, its arguments: */
			     DEAD, ARG, in(GOEXIT), 0 };
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
	add_g(f, PARK, WORDS(words));
	assert_int_equal(scan(f).trust, STACK_EXACT);
	assert_int_equal(f->sink.count, 1);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_STACK, ARG), 1);
}

static void system_stacks_are_taken_from_sp_up(void **state)
{
	struct fixture *f = *state;
	const uint64_t words[] = { LIVE, DEAD, LIVE, 0, in(GOEXIT), 0 };
	taddr g = add_g(f, HOLD, WORDS(words));
	const struct machine *machine;
	taddr top;

	run_thread(f, g, in(RUNTIME), 0);
	open_walker(f);
	machine = goroutine_table_machines(f->goroutines)->machines;
	top = machine->g0_stack.hi;

	f = renew(state);
	g = add_g(f, HOLD, WORDS(words));
	run_thread(f, g, in(RUNTIME), top - 16);
	fake_memory_store(f->program.memory, top - 24, 8, DEAD);
	fake_memory_store(f->program.memory, top - 8, 8, OTHER);
	open_walker(f);
	assert_success(stack_system_roots(f->walker, &f->sink.sink));
	assert_int_equal(fake_sink_count(&f->sink, ROOT_SYSTEM_STACK, OTHER), 1);
	assert_int_equal(fake_sink_count(&f->sink, ROOT_SYSTEM_STACK, REGISTER), 1);
	assert_int_equal(f->sink.count, 2);
	assert_int_equal(f->sink.roots[0].goroutine, ROOT_NO_GOROUTINE);

	/* An M without a P has nothing that could matter. */
	f = renew(state);
	g = add_g(f, HOLD, WORDS(words));
	run_thread(f, g, in(RUNTIME), top - 16);
	fake_memory_store(f->program.memory, top - 8, 8, OTHER);
	set_g(f, f->program.last_m, f->program.layout.m_p, 0);
	open_walker(f);
	assert_success(stack_system_roots(f->walker, &f->sink.sink));
	assert_int_equal(f->sink.count, 0);
}

static void functions_to_avoid_are_found_by_name(void **state)
{
	struct fixture *f = *state;
	struct pc_range *ranges = NULL;
	uint32_t count;

	add_g(f, HOLD, WORDS(((const uint64_t[]){ 0 })));
	open_walker(f);
	assert_success(
	    stack_unwalkable_ranges(module_table_at(f->modules, 0)->pclntab, &ranges, &count));
	assert_int_equal(count, 2);
	assert_int_equal(ranges[0].start, fake_program_pc(BARRIER, 0));
	assert_int_equal(ranges[0].end, fake_program_pc(SWITCH, 0));
	assert_int_equal(ranges[1].start, fake_program_pc(SWITCH, 0));
	free(ranges);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

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
		TEST(what_preemption_interrupted_is_taken_word_by_word),
		TEST(callers_without_a_map_are_taken_word_by_word),
		TEST(conservative_words_revive_stack_objects_conservatively),
		TEST(a_running_thread_is_taken_from_its_registers),
		TEST(frames_of_the_runtime_above_a_running_thread_are_not_trusted),
		TEST(a_stack_that_is_being_switched_is_taken_whole),
		TEST(a_running_goroutine_without_a_thread_is_taken_whole),
		TEST(broken_stacks_are_taken_whole),
		TEST(a_frame_without_a_map_is_taken_word_by_word),
		TEST(walks_of_broken_stacks_say_where_they_broke),
		TEST(a_defer_chain_without_end_is_given_up),
		TEST(what_the_sink_refuses_ends_the_scan),
		TEST(a_stack_that_cannot_be_read_is_skipped),
		TEST(dead_goroutines_hold_nothing),
		TEST(the_arguments_of_a_reflected_call_are_mapped_by_its_closure),
		TEST(system_stacks_are_taken_from_sp_up),
		TEST(functions_to_avoid_are_found_by_name),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
