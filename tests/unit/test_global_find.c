/*
 * Globals found by references from made-up code: each function loads or takes the address of some
 * places in the data segment.
 */
#include "agent/goruntime/global_find.h"

#include <stdlib.h>

#include "agent/goruntime/module.h"
#include "proto/base/bytes.h"
#include "tests/support/assertions.h"
#include "tests/support/fake_program.h"

enum { CODE_SIZE = FAKE_FUNCTION_SIZE, FUNCTIONS = 4, LOAD_SIZE = 7 };

static const struct fake_function functions[FUNCTIONS] = {
	{ .name = "runtime.first" },
	{ .name = "runtime.second" },
	{ .name = "runtime.third" },
	{ .name = "runtime.fourth" },
};

struct fixture {
	struct fake_program program;
	struct module_table *modules;
	struct layout *layout;    /* of the program looked for: two globals */
	unsigned used[FUNCTIONS]; /* bytes of code written so far */
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct layout layout = { .global_allm.size = 8, .global_allgs.size = 24 };

	fake_program_init(&f->program, functions, FUNCTIONS);
	fake_memory_map(f->program.memory, FAKE_TEXT, FUNCTIONS * CODE_SIZE);
	for (unsigned i = 0; i < FUNCTIONS; i++)
		memset(fake_memory_bytes(f->program.memory, fake_program_pc(i, 0), CODE_SIZE), 0x90,
		       CODE_SIZE);
	assert_success(module_table_read(fake_memory_memory(f->program.memory), &f->program.layout,
					 &f->modules));
	assert_success(layout_copy(&layout, &f->layout));
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	layout_free(f->layout);
	module_table_free(f->modules);
	fake_program_fini(&f->program);
	free(f);
	return 0;
}

static taddr data_at(const struct fixture *f, unsigned offset)
{
	return module_table_at(f->modules, 0)->data + offset;
}

/* Appends an instruction that loads a word (or takes its address, with width 0). */
static void refer(struct fixture *f, unsigned function, unsigned offset, unsigned width)
{
	uint8_t code[LOAD_SIZE] = { 0x48, width ? 0x8b : 0x8d, 0x05 };
	taddr pc = fake_program_pc(function, f->used[function]);

	store_u32le(code + 3, (uint32_t)(data_at(f, offset) - (pc + LOAD_SIZE)));
	memcpy(fake_memory_bytes(f->program.memory, pc, LOAD_SIZE), code, LOAD_SIZE);
	f->used[function] += LOAD_SIZE;
}

static void find(struct fixture *f, const struct global_ref *refs, size_t count)
{
	fake_memory_forget(f->program.memory);
	assert_success(global_find(fake_memory_memory(f->program.memory),
				   module_table_at(f->modules, 0), refs, count, f->layout));
}

#define FIND(f, refs) find(f, refs, sizeof(refs) / sizeof((refs)[0]))

static void what_most_witnesses_agree_on_is_the_global(void **state)
{
	static const struct global_ref refs[] = {
		{ "runtime.first", LAYOUT_GLOBAL_allgs, 0, 8 },
		{ "runtime.first", LAYOUT_GLOBAL_allgs, 8, 8 },
		{ "runtime.second", LAYOUT_GLOBAL_allgs, 0, 0 },
	};
	struct fixture *f = *state;

	refer(f, 0, 0x40, 8);
	refer(f, 0, 0x48, 8);
	refer(f, 0, 0x90, 8);
	refer(f, 1, 0x40, 0);
	refer(f, 1, 0x90, 8);
	FIND(f, refs);
	assert_int_equal(f->layout->global_allgs.addr, data_at(f, 0x40));
	assert_int_equal(f->layout->global_allm.addr, 0);
}

static void a_tie_is_no_find(void **state)
{
	static const struct global_ref refs[] = { { "runtime.first", LAYOUT_GLOBAL_allm, 0, 8 } };
	struct fixture *f = *state;

	refer(f, 0, 0x40, 8);
	refer(f, 0, 0x80, 8);
	FIND(f, refs);
	assert_int_equal(f->layout->global_allm.addr, 0);
}

static void a_place_that_is_taken_settles_a_tie(void **state)
{
	static const struct global_ref refs[] = {
		{ "runtime.first", LAYOUT_GLOBAL_allm, 0, 8 },
		{ "runtime.second", LAYOUT_GLOBAL_allgs, 0, 8 },
		{ "runtime.second", LAYOUT_GLOBAL_allgs, 16, 8 },
	};
	struct fixture *f = *state;

	refer(f, 0, 0x48, 8); /* inside of what the second says */
	refer(f, 0, 0x80, 8);
	refer(f, 1, 0x40, 8);
	refer(f, 1, 0x50, 8);
	FIND(f, refs);
	assert_int_equal(f->layout->global_allgs.addr, data_at(f, 0x40));
	assert_int_equal(f->layout->global_allm.addr, data_at(f, 0x80));
}

static void a_few_that_agree_among_many_that_do_not_are_not_enough(void **state)
{
	static const struct global_ref refs[] = {
		{ "runtime.first", LAYOUT_GLOBAL_allm, 0, 8 },
		{ "runtime.second", LAYOUT_GLOBAL_allm, 0, 8 },
		{ "runtime.third", LAYOUT_GLOBAL_allm, 0, 8 },
		{ "runtime.fourth", LAYOUT_GLOBAL_allm, 0, 8 },
	};
	struct fixture *f = *state;

	refer(f, 0, 0x40, 8);
	refer(f, 1, 0x40, 8);
	refer(f, 2, 0x80, 8);
	FIND(f, refs);
	assert_int_equal(f->layout->global_allm.addr, 0);
	refer(f, 3, 0x40, 8);
	FIND(f, refs);
	assert_int_equal(f->layout->global_allm.addr, data_at(f, 0x40));
}

static void functions_that_the_program_lacks_are_not_heard(void **state)
{
	static const struct global_ref refs[] = {
		{ "runtime.first", LAYOUT_GLOBAL_allm, 0, 8 },
		{ "runtime.gone", LAYOUT_GLOBAL_allm, 0, 8 },
		{ "runtime.lost", LAYOUT_GLOBAL_allm, 0, 8 },
	};
	struct fixture *f = *state;

	refer(f, 0, 0x40, 8);
	FIND(f, refs);
	assert_int_equal(f->layout->global_allm.addr, data_at(f, 0x40));
}

static void places_outside_of_data_or_unaligned_are_no_globals(void **state)
{
	static const struct global_ref refs[] = {
		{ "runtime.first", LAYOUT_GLOBAL_allm, 0, 8 },
		{ "runtime.second", LAYOUT_GLOBAL_allgs, 0, 8 },
	};
	struct fixture *f = *state;

	refer(f, 0, 0x44, 8);
	refer(f, 0, (unsigned)-0x100000, 8);
	/* begins in the segment, and ends outside */
	refer(f, 1, 8 * FAKE_DATA_WORDS - 8, 8);
	FIND(f, refs);
	assert_int_equal(f->layout->global_allm.addr, 0);
	assert_int_equal(f->layout->global_allgs.addr, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_most_witnesses_agree_on_is_the_global, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_tie_is_no_find, setup, teardown),
		cmocka_unit_test_setup_teardown(a_place_that_is_taken_settles_a_tie, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
		    a_few_that_agree_among_many_that_do_not_are_not_enough, setup, teardown),
		cmocka_unit_test_setup_teardown(functions_that_the_program_lacks_are_not_heard,
						setup, teardown),
		cmocka_unit_test_setup_teardown(places_outside_of_data_or_unaligned_are_no_globals,
						setup, teardown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
