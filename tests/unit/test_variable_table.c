/* Variables that hold roots, over a made-up program, a made-up index and made-up symbols. */
#include "tests/support/assertions.h"

#include <stdlib.h>
#include <string.h>

#include "agent/binary/elf_symbols.h"
#include "agent/goruntime/go_type.h"
#include "agent/goruntime/module.h"
#include "agent/goruntime/stack.h"
#include "agent/goruntime/variable_table.h"
#include "tests/support/fake_program.h"
#include "tests/support/fake_type_index.h"

enum { GOEXIT, PARK, ADD, OUTER, GENERIC, FINALIZERS, CLEANUPS, SLEEP, PREEMPT, FUNCTIONS };
enum { BIAS = 0x1000, WORD = 8 };

static const struct fake_function functions[FUNCTIONS] = {
	[GOEXIT] = { .name = "runtime.goexit", .flag = PCLNTAB_FLAG_TOP_FRAME },
	[PARK] = { .name = "runtime.gopark", .frame = 16 },
	[ADD] = { .name = "gopkg.in/shop%2ev2/cart.(*Cart).Add", .frame = 32, .args = 16 },
	[OUTER] = { .name = "main.outer", .frame = 24 },
	[GENERIC] = { .name = "main.each[go.shape.int]", .frame = 24 },
	[FINALIZERS] = { .name = "runtime.runFinalizers", .frame = 16 },
	[CLEANUPS] = { .name = "runtime.runCleanups", .frame = 16 },
	[SLEEP] = { .name = "main.sleep", .frame = 16 },
	[PREEMPT] = { .name = "runtime.asyncPreempt", .frame = 128 },
};

enum { INT = 1, POINTER, PAIR, POINTER_TO_PAIR, TYPES };

static const struct indexed_field fields[] = { { "a", 0, POINTER }, { "b", 8, POINTER } };

static const struct indexed_type types[TYPES] = {
	[0] = { .name = "" },
	[INT] = { .name = "int", .size = 8, .kind = GO_KIND_INT },
	[POINTER] = { .name = "*int", .size = 8, .kind = GO_KIND_POINTER, .elem = INT },
	[PAIR] = { .name = "main.pair",
		   .size = 16,
		   .kind = GO_KIND_STRUCT,
		   .first_field = 0,
		   .field_count = 2 },
	[POINTER_TO_PAIR] = { .name = "*main.pair",
			      .size = 8,
			      .kind = GO_KIND_POINTER,
			      .elem = PAIR },
};

struct fixture {
	struct fake_program program;
	struct stopped_thread thread;
	uint32_t thread_count;
	struct module_table *modules;
	struct goroutine_table *goroutines;
	struct stack_walker *walker;
	struct type_index index;
	struct go_types *types;
	struct variable_table *variables;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	fake_program_init(&f->program, functions, FUNCTIONS);
	f->program.layout.defer.size = 56;
	f->program.layout.defer_pc = (struct layout_field){ 48, 8 };
	f->index = (struct type_index){
		.types = types, .type_count = TYPES, .fields = fields, .field_count = 2
	};
	*state = f;
	return 0;
}

static void reset_table(struct fixture *f)
{
	variable_table_free(take(f->variables));
	go_types_free(take(f->types));
	stack_walker_free(take(f->walker));
	goroutine_table_free(take(f->goroutines));
	module_table_free(take(f->modules));
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	reset_table(f);
	fake_program_fini(&f->program);
	free(f);
	return 0;
}

static void open_table(struct fixture *f, const struct type_index *index)
{
	struct memory *memory = fake_memory_memory(f->program.memory);
	const struct layout *layout = &f->program.layout;

	assert_success(module_table_read(memory, layout, &f->modules));
	assert_success(goroutine_table_read(memory, layout, f->modules, &f->thread, f->thread_count,
					    &f->goroutines));
	assert_success(stack_walker_new(memory, layout, f->modules, f->goroutines, &f->walker));
	assert_success(go_types_new(memory, layout, f->modules, index, BIAS, &f->types));
	assert_success(variable_table_read(f->types, f->modules, f->goroutines, f->walker, index,
					   NULL, BIAS, &f->variables));
}

static struct variable find(struct fixture *f, enum root_kind kind, uint32_t goroutine, taddr slot)
{
	struct variable variable;

	variable_table_find(f->variables, kind, goroutine, slot, &variable);
	return variable;
}

static uint64_t pc(unsigned function)
{
	return fake_program_pc(function, 0x20);
}

#define PUSH(f, function, words) push(f, function, words, sizeof(words) / sizeof((words)[0]))

/* A goroutine whose innermost frame begins with the first of the words. */
static taddr push(struct fixture *f, unsigned function, const uint64_t *words, unsigned count)
{
	taddr g = fake_program_g(&f->program, pc(function), WORD * (uint64_t)count);

	fake_program_push(&f->program, g, words, count);
	return g;
}

/* gopark, called by Add, called by outer. */
static taddr push_stack(struct fixture *f)
{
	const uint64_t words[] = {
		0, 0, pc(ADD),                        /* gopark */
		0, 0, 0,       0,          pc(OUTER), /* Add */
		0, 0, 0,       pc(GOEXIT), 0
	}; /* outer: arguments of Add, a local */

	return PUSH(f, PARK, words);
}

enum { STACK_WORDS = 13 };

/* The address of a word of that stack. */
static taddr word(struct fixture *f, taddr g, unsigned i)
{
	return fake_program_stack(&f->program, g) - WORD * (STACK_WORDS - i);
}

static void frames_have_their_variables_where_they_stand(void **state)
{
	struct fixture *f = *state;
	taddr at = pc(ADD) - BIAS, entry = fake_program_pc(ADD, 0) - BIAS;
	const char *name = functions[ADD].name;
	const struct indexed_local locals[] = {
		{ "item", name, at - 1, at, -40, 8, 0, POINTER, false, false, false },
		{ "pair", name, at - 4, at, -32, 8, 8, PAIR, false, false, false },
		{ "sum", "main.inlined", at - 1, at, -24, 8, 0, INT, true, false, false },
		{ "gone", name, entry, at - 1, -16, 8, 0, POINTER, false, false, false },
		{ "late", name, at, at + 8, -16, 8, 0, POINTER, false, false, false },
		{ "cart", name, entry, at, 0, 8, 0, POINTER, false, false, false },
	};
	const struct fake_function_range ranges[] = { { entry, 0, 6 } };
	taddr g = push_stack(f);
	struct variable variable;

	f->index.locals = locals;
	f->index.local_count = 6;
	f->index.local_ranges = ranges;
	f->index.local_range_count = 1;
	open_table(f, &f->index);
	variable = find(f, ROOT_STACK, 0, word(f, g, 3));
	assert_string_equal(variable.name, "gopkg.in/shop.v2/cart.(*Cart).Add.item");
	assert_string_equal(variable.package, "gopkg.in/shop.v2/cart");
	assert_int_equal(variable.kind, VARIABLE_LOCAL);
	assert_int_equal(variable.addr, word(f, g, 3));
	assert_string_equal(go_type_at(f->types, variable.type)->name, "*int");
	/* The second piece of a variable, whose first would be a word before. */
	variable = find(f, ROOT_STACK, 0, word(f, g, 4));
	assert_string_equal(variable.name, "gopkg.in/shop.v2/cart.(*Cart).Add.pair");
	assert_int_equal(variable.addr, word(f, g, 3));
	assert_int_equal(variable.size, 16);
	/* Escaped, and of a function that was inlined. */
	variable = find(f, ROOT_STACK, 0, word(f, g, 5));
	assert_string_equal(variable.name, "main.inlined.sum");
	assert_string_equal(go_type_at(f->types, variable.type)->name, "*int");
	/* Variables that are there before and after the call. */
	variable = find(f, ROOT_STACK, 0, word(f, g, 6));
	assert_string_equal(variable.name, "gopkg.in/shop.v2/cart.(*Cart).Add.(temporary)");
	assert_int_equal(variable.kind, VARIABLE_TEMPORARY);
	/* Arguments lie in the caller's frame. */
	variable = find(f, ROOT_STACK, 0, word(f, g, 8));
	assert_string_equal(variable.name, "gopkg.in/shop.v2/cart.(*Cart).Add.cart");
	variable = find(f, ROOT_STACK, 0, word(f, g, 9));
	assert_string_equal(variable.name, "gopkg.in/shop.v2/cart.(*Cart).Add.(temporary)");
	variable = find(f, ROOT_STACK_CONSERVATIVE, 0, word(f, g, 10));
	assert_string_equal(variable.name, "main.outer.(temporary)");
	assert_string_equal(variable.package, "main");
}

enum { AX = 0, CX = 2, R8 = 8 }; /* as DWARF numbers them */

/* In main.sleep: a pair of which half is in a register, half in the frame, and a pointer. */
static void use_registers(struct fixture *f, taddr at)
{
	static struct indexed_local locals[4];
	static struct fake_function_range range;
	const struct indexed_local made[] = {
		{ "late", "main.sleep", at + 1, at + 8, R8, 8, 0, POINTER, false, false, true },
		{ "pair", "main.sleep", at, at + 8, AX, 8, 8, PAIR, false, false, true },
		{ "pair", "main.sleep", at, at + 8, -24, 8, 0, PAIR, false, false, false },
		{ "item", "main.sleep", at, at + 8, R8, 8, 0, INT, true, false, true },
	};

	memcpy(locals, made, sizeof(made));
	range = (struct fake_function_range){ fake_program_pc(SLEEP, 0) - BIAS, 0, 4 };
	f->index.locals = locals;
	f->index.local_count = 4;
	f->index.local_ranges = &range;
	f->index.local_range_count = 1;
}

/* main.sleep, at no call. */
static taddr push_sleeper(struct fixture *f)
{
	const uint64_t words[] = { 0x111, 0, pc(GOEXIT), 0 };

	return PUSH(f, SLEEP, words);
}

static void what_a_running_thread_has_in_registers_has_variables(void **state)
{
	struct fixture *f = *state;
	taddr g = push_sleeper(f), sp = fake_program_stack(&f->program, g) - 4 * WORD;
	struct variable variable;

	fake_program_set(&f->program, g, f->program.layout.g_status, GOROUTINE_RUNNING);
	fake_program_m(&f->program, g, 77);
	f->thread =
	    (struct stopped_thread){ .tid = 1077, .target_tid = 77, .pc = pc(SLEEP), .sp = sp };
	f->thread.gpr[10] = 0x222; /* ax */
	f->thread_count = 1;
	use_registers(f, pc(SLEEP) - BIAS);
	open_table(f, &f->index);
	variable = find(f, ROOT_REGISTER, 0, AX + 1);
	assert_string_equal(variable.name, "main.sleep.pair");
	assert_int_equal(variable.kind, VARIABLE_LOCAL);
	assert_true(variable.has_offset);
	assert_int_equal(variable.offset, 8);
	assert_string_equal(go_type_at(f->types, variable.type)->name, "main.pair");
	/* From the word before the root's on. */
	assert_int_equal(variable.around[0].addr, sp);
	assert_true(variable.around[1].in_register);
	assert_int_equal(variable.around[1].value, 0x222);
	assert_false(variable.around[2].in_register);
	assert_int_equal(variable.around[2].addr, 0);
	/* The half in the frame knows of the other. */
	variable = find(f, ROOT_STACK_CONSERVATIVE, 0, sp);
	assert_string_equal(variable.name, "main.sleep.pair");
	assert_int_equal(variable.around[1].addr, sp);
	assert_int_equal(variable.around[2].value, 0x222);
	variable = find(f, ROOT_REGISTER, 0, R8 + 1);
	assert_string_equal(variable.name, "main.sleep.item");
	assert_string_equal(go_type_at(f->types, variable.type)->name, "*int");
	/* No variable, and no general register. */
	variable = find(f, ROOT_REGISTER, 0, CX + 1);
	assert_string_equal(variable.name, "main.sleep.(registers)");
	assert_int_equal(variable.addr, 0);
	assert_string_equal(find(f, ROOT_REGISTER, 0, 0).name, "main.sleep.(registers)");
	assert_int_equal(find(f, ROOT_REGISTER, 0, 31).type, TYPE_UNKNOWN);
}

/* runtime/preempt_amd64.s saves ax, cx, dx, bx, si, di, r8 ... from sp on. */
static void what_async_preempt_has_saved_has_variables(void **state)
{
	struct fixture *f = *state;
	uint64_t words[3 + 17 + 4] = { [2] = pc(PREEMPT), [19] = pc(SLEEP), [22] = pc(GOEXIT) };
	taddr g = PUSH(f, PARK, words), sp = fake_program_stack(&f->program, g) - 21 * WORD;
	struct variable variable;

	use_registers(f, pc(SLEEP) - BIAS);
	open_table(f, &f->index);
	variable = find(f, ROOT_STACK_CONSERVATIVE, 0, sp);
	assert_string_equal(variable.name, "main.sleep.pair");
	assert_int_equal(variable.offset, 8);
	assert_int_equal(variable.around[1].addr, sp);
	assert_int_equal(variable.around[0].addr, sp + 17 * WORD);
	assert_string_equal(find(f, ROOT_STACK_CONSERVATIVE, 0, sp + 6 * WORD).name,
			    "main.sleep.item");
	assert_string_equal(find(f, ROOT_STACK_CONSERVATIVE, 0, sp + WORD).name,
			    "main.sleep.(registers)");
	assert_string_equal(find(f, ROOT_STACK_CONSERVATIVE, 0, sp + 14 * WORD).name,
			    "runtime.asyncPreempt.(temporary)");
}

static void equal_variables_have_one_name(void **state)
{
	struct fixture *f = *state;
	taddr first = push_stack(f), second = push_stack(f);

	open_table(f, NULL);
	assert_ptr_equal(find(f, ROOT_STACK, 0, word(f, first, 3)).name,
			 find(f, ROOT_STACK, 1, word(f, second, 6)).name);
	assert_ptr_equal(find(f, ROOT_STACK, 0, word(f, first, 3)).package,
			 find(f, ROOT_STACK, 1, word(f, second, 6)).package);
}

static void words_of_no_stack_are_of_the_stack(void **state)
{
	struct fixture *f = *state;
	taddr g = push_stack(f);

	open_table(f, NULL);
	assert_string_equal(find(f, ROOT_STACK, 0, word(f, g, 0) - FAKE_STACK_SIZE).name,
			    "(stack)");
	assert_string_equal(find(f, ROOT_STACK, 5, word(f, g, 3)).name, "(stack)");
	assert_string_equal(find(f, ROOT_STACK, ROOT_NO_GOROUTINE, word(f, g, 3)).name, "(stack)");
}

static void a_stack_that_breaks_off_has_the_frames_before(void **state)
{
	struct fixture *f = *state;
	const uint64_t words[] = { 0, 0, pc(ADD), 0, 0, 0, 0, 0x1234, 0, 0, 0, 0, 0 };
	taddr g = PUSH(f, PARK, words);

	fake_program_set(&f->program, g, f->program.layout.g_start_pc, fake_program_pc(OUTER, 0));
	open_table(f, NULL);
	assert_string_equal(find(f, ROOT_STACK_CONSERVATIVE, 0, word(f, g, 3)).name,
			    "gopkg.in/shop.v2/cart.(*Cart).Add.(temporary)");
	/* One without any frame is of the function that it began with. */
	fake_program_set(&f->program, g, f->program.layout.g_sched_pc, 0x1234);
	reset_table(f);
	fake_memory_forget(f->program.memory);
	open_table(f, NULL);
	assert_string_equal(find(f, ROOT_STACK_CONSERVATIVE, 0, word(f, g, 3)).name,
			    "main.outer.(stack)");
}

static void shapes_stay_out_of_names(void **state)
{
	struct fixture *f = *state;
	const uint64_t words[] = { 0, 0, pc(GENERIC), 0, 0, 0, pc(GOEXIT), 0 };
	taddr g = PUSH(f, PARK, words);

	open_table(f, NULL);
	assert_string_equal(
	    find(f, ROOT_STACK, 0, fake_program_stack(&f->program, g) - 5 * WORD).name,
	    "main.each[...].(temporary)");
}

static void globals_are_found_by_address(void **state)
{
	struct fixture *f = *state;
	const struct indexed_global globals[] = {
		{ "main.pair", 0x5010, PAIR },
		{ "gopkg.in/shop%2ev2/cart.cache", 0x5000, POINTER },
		{ "main.empty", 0x5008, 0 },
	};
	struct variable variable;

	f->index.globals = globals;
	f->index.global_count = 3;
	open_table(f, &f->index);
	variable = find(f, ROOT_BSS, ROOT_NO_GOROUTINE, 0x6018);
	assert_string_equal(variable.name, "main.pair");
	assert_string_equal(variable.package, "main");
	assert_int_equal(variable.kind, VARIABLE_GLOBAL);
	assert_int_equal(variable.addr, 0x6010);
	assert_int_equal(variable.size, 16);
	assert_string_equal(go_type_at(f->types, variable.type)->name, "main.pair");
	variable = find(f, ROOT_DATA, ROOT_NO_GOROUTINE, 0x6000);
	assert_string_equal(variable.name, "gopkg.in/shop.v2/cart.cache");
	assert_string_equal(variable.package, "gopkg.in/shop.v2/cart");
	for (taddr slot = 0x6008; slot < 0x6030; slot += 0x18) {
		variable = find(f, ROOT_DATA, ROOT_NO_GOROUTINE, slot);
		assert_string_equal(variable.name, "(nameless data)");
		assert_int_equal(variable.kind, VARIABLE_NAMELESS);
		assert_int_equal(variable.type, TYPE_UNKNOWN);
	}
	assert_string_equal(find(f, ROOT_BSS, ROOT_NO_GOROUTINE, 0x7000).name, "(nameless bss)");
}

/* Data of the compiler's own is the variable's that leads to it, or its package's. */
static void what_the_compiler_made_up_has_no_number_in_its_name(void **state)
{
	struct fixture *f = *state;
	const struct module *module;
	struct indexed_global globals[] = {
		{ "main.first", 0, POINTER_TO_PAIR },
		{ "main..stmp_1", 0, PAIR },
		{ "main..stmp_2", 0, PAIR },
	};
	struct variable variable;
	taddr data;

	open_table(f, &f->index);
	module = module_table_at(f->modules, 0);
	data = module->data;
	reset_table(f);
	for (unsigned i = 0; i < 3; i++)
		globals[i].addr = data + i * 16 - BIAS;
	fake_memory_store(f->program.memory, data, 8, data + 16);
	fake_memory_forget(f->program.memory);
	f->index.globals = globals;
	f->index.global_count = 3;
	open_table(f, &f->index);
	variable = find(f, ROOT_DATA, ROOT_NO_GOROUTINE, data + 24);
	assert_string_equal(variable.name, "main.first");
	assert_string_equal(go_type_at(f->types, variable.type)->name, "main.pair");
	variable = find(f, ROOT_DATA, ROOT_NO_GOROUTINE, data + 40);
	assert_string_equal(variable.name, "main.(static)");
	assert_string_equal(go_type_at(f->types, variable.type)->name, "main.pair");
	assert_int_equal(variable.kind, VARIABLE_NAMELESS);
}

/* A record whose function deferred it, and which leads to another. */
static taddr add_defer(struct fixture *f, unsigned function, taddr next)
{
	const struct layout *l = &f->program.layout;
	taddr record = fake_program_room(&f->program, 128);

	fake_program_set(&f->program, record, l->defer_pc, pc(function));
	fake_program_set(&f->program, record, l->defer_link, next);
	return record;
}

static void deferred_calls_are_of_who_deferred_them(void **state)
{
	struct fixture *f = *state;
	const struct layout *l = &f->program.layout;
	taddr g = push_stack(f);
	taddr last = add_defer(f, OUTER, 0), first = add_defer(f, ADD, last);
	const char *of_add = "gopkg.in/shop.v2/cart.(*Cart).Add.(defer)";

	fake_program_set(&f->program, g, l->g_defer, first);
	open_table(f, NULL);
	assert_string_equal(find(f, ROOT_GOROUTINE, 0, first + l->defer_fn.offset).name, of_add);
	assert_string_equal(find(f, ROOT_GOROUTINE, 0, last + l->defer_fn.offset).name,
			    "main.outer.(defer)");
	assert_string_equal(find(f, ROOT_GOROUTINE, 0, first + l->defer_link.offset).name,
			    "main.outer.(defer)");
	assert_string_equal(find(f, ROOT_GOROUTINE, 0, 0).name, of_add);
	assert_int_equal(find(f, ROOT_GOROUTINE, 0, 0).kind, VARIABLE_RUNTIME);
	assert_string_equal(find(f, ROOT_GOROUTINE, 0, g + l->g_sched_ctxt.offset).name,
			    "runtime.gopark.(context)");
	assert_string_equal(find(f, ROOT_REGISTER, 0, 0).name, "runtime.gopark.(registers)");
}

static const char *type_at(struct fixture *f, taddr slot)
{
	return go_type_at(f->types, find(f, ROOT_GOROUTINE, 0, slot).type)->name;
}

/* To go1.16 arguments lie behind the record, as above the frame of the function they are for. */
static void words_of_deferred_calls_have_types(void **state)
{
	struct fixture *f = *state;
	const struct layout *l = &f->program.layout;
	taddr entry = fake_program_pc(ADD, 0) - BIAS;
	const struct indexed_local locals[] = {
		{ "cart", "main.add", entry, entry + 0x80, 0, 8, 0, POINTER, false, false, false },
		{ "pair", "main.add", entry, entry + 0x80, 8, 16, 0, PAIR, false, false, false },
	};
	const struct fake_function_range ranges[] = { { entry, 0, 2 } };
	taddr g = push_stack(f), record = add_defer(f, OUTER, 0);
	taddr closure = fake_program_room(&f->program, 8);

	f->program.layout.defer_size = (struct layout_field){ 4, 4 };
	f->index.locals = locals;
	f->index.local_count = 2;
	f->index.local_ranges = ranges;
	f->index.local_range_count = 1;
	fake_memory_store(f->program.memory, closure, 8, fake_program_pc(ADD, 0));
	fake_program_set(&f->program, record, l->defer_fn, closure);
	fake_program_set(&f->program, g, l->g_defer, record);
	open_table(f, &f->index);
	assert_string_equal(type_at(f, record + l->defer_fn.offset), "func()");
	assert_string_equal(type_at(f, record + l->defer.size), "*int");
	assert_string_equal(type_at(f, record + l->defer.size + 8), "main.pair");
	assert_string_equal(type_at(f, record + l->defer.size + 16), "main.pair");
	assert_int_equal(find(f, ROOT_GOROUTINE, 0, record + l->defer.size + 16).addr,
			 record + l->defer.size + 8);
	assert_string_equal(type_at(f, record + l->defer.size + 24), "?");
	assert_string_equal(find(f, ROOT_GOROUTINE, 0, record + l->defer.size).name,
			    "main.outer.(defer)");
}

static void deferred_calls_in_a_circle_end(void **state)
{
	struct fixture *f = *state;
	const struct layout *l = &f->program.layout;
	taddr g = push_stack(f), record = add_defer(f, ADD, 0);

	fake_program_set(&f->program, record, l->defer_link, record);
	fake_program_set(&f->program, g, l->g_defer, record);
	open_table(f, NULL);
	assert_string_equal(find(f, ROOT_GOROUTINE, 0, record + l->defer_fn.offset).name,
			    "gopkg.in/shop.v2/cart.(*Cart).Add.(defer)");
}

/* A goroutine of the runtime's that has called a function, or waits for work. */
static void push_worker(struct fixture *f, unsigned worker, bool calls)
{
	const uint64_t called[] = { 0, 0, pc(SLEEP), 0, 0, pc(worker), 0, 0, pc(GOEXIT), 0 };
	const uint64_t waiting[] = { 0, 0, pc(worker), 0, 0, pc(GOEXIT), 0 };
	taddr g = calls ? PUSH(f, PARK, called) : PUSH(f, PARK, waiting);

	fake_program_set(&f->program, g, f->program.layout.g_start_pc, fake_program_pc(worker, 0));
}

static void queues_name_who_blocks_them(void **state)
{
	struct fixture *f = *state;
	struct variable variable;

	push_worker(f, FINALIZERS, true);
	push_worker(f, CLEANUPS, true);
	push_worker(f, CLEANUPS, false); /* goes on with the queue */
	open_table(f, NULL);
	variable = find(f, ROOT_FINALIZER_QUEUE, ROOT_NO_GOROUTINE, 0x1234);
	assert_string_equal(variable.name, "finalizer queue, blocked by main.sleep");
	assert_int_equal(variable.kind, VARIABLE_RUNTIME);
	assert_string_equal(find(f, ROOT_CLEANUP_QUEUE, ROOT_NO_GOROUTINE, 0x1234).name,
			    "cleanup queue");
}

enum { QUEUE_ENTRY = 40, QUEUE_ENTRIES = 24, ALLFIN = 0xa00f80 };

/* A block of two finalizers. */
static taddr add_queue_block(struct fixture *f, taddr next)
{
	taddr block = fake_program_room(&f->program, 512);

	fake_memory_store(f->program.memory, block, 8, next);
	fake_memory_store(f->program.memory, block + 16, 4, 2);
	fake_memory_store(f->program.memory, block + QUEUE_ENTRIES + QUEUE_ENTRY + 32, 8, 0x1234);
	fake_memory_store(f->program.memory, ALLFIN, 8, block);
	return block;
}

static void queued_finalizers_are_functions(void **state)
{
	struct fixture *f = *state;
	struct layout *l = &f->program.layout;
	taddr first, second, entry;

	l->finalizer.size = QUEUE_ENTRY;
	l->finalizer_arg = (struct layout_field){ 8, 8 };
	l->finalizer_ot = (struct layout_field){ 32, 8 };
	l->fin_block.size = 512;
	l->fin_block_alllink = (struct layout_field){ 0, 8 };
	l->fin_block_count = (struct layout_field){ 16, 4 };
	l->fin_block_entries = (struct layout_field){ QUEUE_ENTRIES, 480 };
	l->global_allfin = (struct layout_global){ ALLFIN, 8 };
	second = add_queue_block(f, 0);
	first = add_queue_block(f, second);
	fake_memory_store(f->program.memory, second, 8, first); /* in a circle */
	open_table(f, NULL);
	for (int i = 0; i < 2; i++) {
		entry = (i ? first : second) + QUEUE_ENTRIES + QUEUE_ENTRY;
		assert_string_equal(
		    go_type_at(f->types, find(f, ROOT_FINALIZER_QUEUE, 0, entry).type)->name,
		    "func()");
		assert_int_equal(find(f, ROOT_FINALIZER_QUEUE, 0, entry + 8).type, TYPE_UNKNOWN);
		assert_int_equal(find(f, ROOT_FINALIZER_QUEUE, 0, entry + QUEUE_ENTRY).type,
				 TYPE_UNKNOWN);
		/* One that is for nothing is a cleanup, of go1.24. */
		assert_int_equal(find(f, ROOT_FINALIZER_QUEUE, 0, entry - QUEUE_ENTRY).type,
				 TYPE_UNKNOWN);
	}
	assert_int_equal(find(f, ROOT_FINALIZER_QUEUE, 0, 8).type, TYPE_UNKNOWN);
}

static void what_the_runtime_keeps_has_plain_names(void **state)
{
	static const struct {
		enum root_kind kind;
		const char *name;
	} kept[] = {
		{ ROOT_FINALIZER, "finalizer" },
		{ ROOT_WEAK_HANDLE, "weak handle" },
		{ ROOT_CLEANUP, "cleanup" },
		{ ROOT_FINALIZER_QUEUE, "finalizer queue" },
		{ ROOT_CLEANUP_QUEUE, "cleanup queue" },
		{ ROOT_TINY_BLOCK, "(tiny block)" },
		{ ROOT_SYSTEM_STACK, "(system stack)" },
		{ ROOT_REGISTER, "(registers)" },
		{ ROOT_GOROUTINE, "(goroutine)" },
	};
	struct fixture *f = *state;

	open_table(f, NULL);
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		struct variable variable = find(f, kept[i].kind, ROOT_NO_GOROUTINE, 0x1234);

		assert_string_equal(variable.name, kept[i].name);
		assert_string_equal(variable.package, "");
		assert_int_equal(variable.kind, VARIABLE_RUNTIME);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(frames_have_their_variables_where_they_stand),
		TEST(what_a_running_thread_has_in_registers_has_variables),
		TEST(what_async_preempt_has_saved_has_variables),
		TEST(equal_variables_have_one_name),
		TEST(words_of_no_stack_are_of_the_stack),
		TEST(a_stack_that_breaks_off_has_the_frames_before),
		TEST(shapes_stay_out_of_names),
		TEST(globals_are_found_by_address),
		TEST(what_the_compiler_made_up_has_no_number_in_its_name),
		TEST(deferred_calls_are_of_who_deferred_them),
		TEST(words_of_deferred_calls_have_types),
		TEST(deferred_calls_in_a_circle_end),
		TEST(queues_name_who_blocks_them),
		TEST(queued_finalizers_are_functions),
		TEST(what_the_runtime_keeps_has_plain_names),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
