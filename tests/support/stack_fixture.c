#include "tests/support/stack_fixture.h"

#include <stdlib.h>

#include "agent/goruntime/module.h"

static const struct fake_object two_objects[] = { { -32, 16, "01" }, { -16, 8, "1" } };
static const struct fake_object arg_object[] = { { 0, 16, "11" } };

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
	[KERNEL] = { .name = "syscall.RawSyscall6", .flag = PCLNTAB_FLAG_ASM },
	[COMPILED_KERNEL] = { .name = "syscall.RawSyscall" },
	[OWN_KERNEL] = { .name = "main.callKernel", .flag = PCLNTAB_FLAG_ASM },
};

int stack_fixture_setup(void **state)
{
	struct stack_fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	fake_program_init(&f->program, functions, FUNCTIONS);
	*state = f;
	return 0;
}

int stack_fixture_teardown(void **state)
{
	struct stack_fixture *f = *state;

	stack_walker_free(f->walker);
	goroutine_table_free(f->goroutines);
	module_table_free(f->modules);
	fake_program_fini(&f->program);
	free(f);
	return 0;
}

struct stack_fixture *stack_fixture_renew(void **state)
{
	stack_fixture_teardown(state);
	stack_fixture_setup(state);
	return *state;
}

uint64_t stack_fixture_pc(enum stack_fixture_function function)
{
	return fake_program_pc(function, 0x20);
}

taddr stack_fixture_g(struct stack_fixture *f, enum stack_fixture_function function,
		      const uint64_t *words, unsigned count)
{
	taddr g = fake_program_g(&f->program, stack_fixture_pc(function), 8 * (uint64_t)count);

	fake_program_push(&f->program, g, words, count);
	return g;
}

void stack_fixture_set(struct stack_fixture *f, taddr g, struct layout_field field, uint64_t value)
{
	fake_program_set(&f->program, g, field, value);
}

void stack_fixture_run(struct stack_fixture *f, taddr g, uint64_t pc, uint64_t sp)
{
	stack_fixture_set(f, g, f->program.layout.g_status, GOROUTINE_RUNNING);
	fake_program_m(&f->program, g, 77);
	f->threads[0] = (struct stopped_thread){
		.tid = 1077, .target_tid = 77, .pc = pc, .sp = sp, .gpr = { REGISTER }
	};
	f->thread_count = 1;
}

void stack_fixture_open(struct stack_fixture *f)
{
	struct memory *memory = fake_memory_memory(f->program.memory);
	const struct layout *layout = &f->program.layout;

	assert_success(module_table_read(memory, layout, &f->modules));
	assert_success(goroutine_table_read(memory, layout, f->modules, f->threads, f->thread_count,
					    &f->goroutines));
	assert_success(stack_walker_new(memory, layout, f->modules, f->goroutines, &f->walker));
	fake_sink_init(&f->sink);
}

struct stack_scan stack_fixture_scan(struct stack_fixture *f)
{
	struct stack_scan scan;

	stack_fixture_open(f);
	assert_success(stack_roots(f->walker, 0, &f->sink.sink, &scan));
	return scan;
}

unsigned stack_fixture_count(const struct stack_fixture *f, enum root_kind kind)
{
	unsigned count = 0;

	for (unsigned i = 0; i < f->sink.count; i++)
		count += f->sink.roots[i].kind == kind;
	return count;
}
