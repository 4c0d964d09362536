#include "agent/goruntime/module.h"

#include "tests/support/assertions.h"
#include "tests/support/fake_program.h"

static const struct fake_function functions[] = {
	{ .name = "main.first" },
	{ .name = "main.second" },
};

static int setup(void **state)
{
	struct fake_program *program = calloc(1, sizeof(*program));

	fake_program_init(program, functions, 2);
	*state = program;
	return 0;
}

static int teardown(void **state)
{
	fake_program_fini(*state);
	free(*state);
	return 0;
}

static struct error *try_read(struct fake_program *program, struct module_table **ret)
{
	fake_memory_forget(program->memory);
	return module_table_read(fake_memory_memory(program->memory), &program->layout, ret);
}

static struct module_table *read_table(struct fake_program *program)
{
	struct module_table *table = NULL;

	assert_success(try_read(program, &table));
	return table;
}

static void set(struct fake_program *program, struct layout_field field, uint64_t value)
{
	fake_program_set(program, program->moduledata, field, value);
}

/* Another module with the same functions, as if loaded after the last. */
static taddr add_module(struct fake_program *program)
{
	const uint32_t size = program->layout.moduledata.size;
	taddr copy = fake_program_room(program, size);

	memcpy(fake_memory_bytes(program->memory, copy, size),
	       fake_memory_bytes(program->memory, program->moduledata, size), size);
	set(program, program->layout.moduledata_next, copy);
	return copy;
}

static void functions_are_found_through_their_module(void **state)
{
	struct fake_program *program = *state;
	struct module_table *table = read_table(program);
	const struct module *module;
	struct pclntab_func func;
	bool found;

	assert_int_equal(module_table_count(table), 1);
	module = module_table_find_text(table, fake_program_pc(1, 4));
	assert_ptr_equal(module, module_table_at(table, 0));
	assert_success(pclntab_find(module->pclntab, fake_program_pc(1, 4), &found, &func));
	assert_true(found);
	assert_string_equal(func.name, "main.second");
	assert_null(module_table_find_text(table, FAKE_TEXT - 1));
	assert_null(module_table_find_text(table, fake_program_pc(2, 0)));
	module_table_free(table);
}

static void types_are_found_through_their_module(void **state)
{
	struct fake_program *program = *state;
	struct module_table *table;

	set(program, program->layout.moduledata_types, 0x5000);
	set(program, program->layout.moduledata_etypes, 0x6000);
	table = read_table(program);
	assert_ptr_equal(module_table_find_types(table, 0x5000), module_table_at(table, 0));
	assert_null(module_table_find_types(table, 0x6000));
	module_table_free(table);
}

static void plugins_count_unless_they_are_bad(void **state)
{
	struct fake_program *program = *state;
	taddr plugin = add_module(program);
	struct module_table *table = read_table(program);

	assert_int_equal(module_table_count(table), 2);
	assert_int_equal(module_table_at(table, 1)->moduledata, plugin);
	module_table_free(table);
	fake_program_set(program, plugin, program->layout.moduledata_bad, 1);
	table = read_table(program);
	assert_int_equal(module_table_count(table), 1);
	module_table_free(table);
	set(program, program->layout.moduledata_bad, 1);
	assert_error(try_read(program, &table), ERROR_CORRUPT_TARGET);
}

/* In a live target pages of its file that nobody has touched are not there. */
static void a_plugin_may_be_without_functions(void **state)
{
	struct fake_program *program = *state;
	const struct layout *l = &program->layout;
	taddr plugin = add_module(program);
	struct module_table *table;

	fake_program_set(program, plugin, l->moduledata_text, 0x10000);
	fake_program_set(program, plugin, l->moduledata_etext, 0x20000);
	fake_program_set(program, plugin,
			 (struct layout_field){ l->moduledata_pcln_slice.offset + 8, 8 }, 1 << 20);
	table = read_table(program);
	assert_int_equal(module_table_count(table), 2);
	assert_null(module_table_at(table, 1)->pclntab);
	assert_null(module_table_find_text(table, 0x10000));
	assert_ptr_equal(module_table_find_text(table, fake_program_pc(1, 4)),
			 module_table_at(table, 0));
	module_table_free(table);
}

static void chains_without_end_are_refused(void **state)
{
	struct fake_program *program = *state;
	taddr plugin = add_module(program);
	struct module_table *table;

	fake_program_set(program, plugin, program->layout.moduledata_next, plugin);
	fake_program_set(program, plugin, program->layout.moduledata_bad, 1);
	assert_error(try_read(program, &table), ERROR_LIMIT);
	fake_program_set(program, plugin, program->layout.moduledata_next, 0x1000);
	assert_error(try_read(program, &table), ERROR_FAULT);
}

static void absurd_tables_are_refused(void **state)
{
	struct fake_program *program = *state;
	const struct layout_field slice = program->layout.moduledata_pcln_slice;
	const struct layout_field count = { slice.offset + 8, 8 };
	struct module_table *table;

	set(program, count, UINT64_MAX);
	assert_error(try_read(program, &table), ERROR_CORRUPT_TARGET);
	set(program, count, UINT32_MAX);
	assert_error(try_read(program, &table), ERROR_LIMIT);
	set(program, count, 1 << 20);
	assert_error(try_read(program, &table), ERROR_FAULT);
	set(program, count, 16);
	assert_error(try_read(program, &table), ERROR_FORMAT);
	set(program, (struct layout_field){ slice.offset, 8 }, 0x1000); /* before the header */
	assert_error(try_read(program, &table), ERROR_CORRUPT_TARGET);
}

/* Sets words of the data segment to their number + 1, and the bits of three of them. */
static taddr fill_data(struct fake_program *program)
{
	struct module_table *table = read_table(program);
	const taddr data = module_table_at(table, 0)->data;
	const taddr mask = fake_program_room(program, FAKE_DATA_WORDS / 8);

	module_table_free(table);
	for (unsigned i = 0; i < 2 * FAKE_DATA_WORDS; i++)
		fake_memory_store(program->memory, data + 8 * (taddr)i, 8, i + 1);
	fake_memory_store(program->memory, mask, 1, 0x81);
	fake_memory_store(program->memory, mask + FAKE_DATA_WORDS / 8 - 1, 1, 0x80);
	set(program, program->layout.moduledata_data_mask, mask);
	return data;
}

static unsigned roots(struct fake_program *program, struct fake_sink *sink)
{
	struct module_table *table = read_table(program);

	fake_sink_init(sink);
	assert_success(module_table_roots(table, fake_memory_memory(program->memory),
					  &program->layout, &sink->sink));
	module_table_free(table);
	return sink->count;
}

static void data_is_taken_by_its_mask(void **state)
{
	struct fake_program *program = *state;
	taddr data = fill_data(program);
	struct fake_sink sink;

	assert_int_equal(roots(program, &sink), 3);
	assert_int_equal(sink.roots[1].kind, ROOT_DATA);
	assert_int_equal(sink.roots[1].goroutine, ROOT_NO_GOROUTINE);
	assert_int_equal(sink.roots[1].slot, data + 7 * 8);
	assert_int_equal(sink.roots[1].value, 8);
	assert_int_equal(fake_sink_count(&sink, ROOT_DATA, 1), 1);
	assert_int_equal(fake_sink_count(&sink, ROOT_DATA, FAKE_DATA_WORDS), 1);
}

static void a_mask_may_end_before_its_segment(void **state)
{
	struct fake_program *program = *state;
	struct fake_sink sink;

	fill_data(program);
	set(program, program->layout.moduledata_data_mask_count, 7);
	assert_int_equal(roots(program, &sink), 1);
	set(program, program->layout.moduledata_data_mask_count, UINT32_MAX); /* and not after */
	assert_int_equal(roots(program, &sink), 3);
}

static void bss_is_taken_by_its_own_mask(void **state)
{
	struct fake_program *program = *state;
	struct fake_sink sink;
	taddr mask = fake_program_room(program, FAKE_DATA_WORDS / 8);

	fill_data(program);
	fake_memory_store(program->memory, mask, 1, 2);
	set(program, program->layout.moduledata_bss_mask, mask);
	set(program, program->layout.moduledata_bss_mask_count, FAKE_DATA_WORDS);
	assert_int_equal(roots(program, &sink), 4);
	assert_int_equal(fake_sink_count(&sink, ROOT_BSS, FAKE_DATA_WORDS + 2), 1);
}

static void pages_that_nobody_has_touched_hold_no_roots(void **state)
{
	enum { PAGE = 4096, DATA = 0x700000 };
	struct fake_program *program = *state;
	const taddr mask = fake_program_room(program, PAGE / 16);
	struct fake_sink sink;

	fake_memory_map(program->memory, DATA, PAGE);
	fake_memory_map(program->memory, DATA + 2 * PAGE, PAGE);
	fake_memory_store(program->memory, DATA + 8, 8, 77);
	fake_memory_store(program->memory, DATA + 3 * PAGE - 8, 8, 88);
	memset(fake_memory_bytes(program->memory, mask, 3 * PAGE / 64), 0xff, 3 * PAGE / 64);
	set(program, program->layout.moduledata_data, DATA);
	set(program, program->layout.moduledata_edata, DATA + 3 * PAGE);
	set(program, program->layout.moduledata_data_mask, mask);
	set(program, program->layout.moduledata_data_mask_count, 3 * PAGE / 8);
	assert_int_equal(roots(program, &sink), 2);
	assert_int_equal(fake_sink_count(&sink, ROOT_DATA, 77), 1);
	assert_int_equal(fake_sink_count(&sink, ROOT_DATA, 88), 1);
}

static void roots_that_cannot_be_read_are_an_error(void **state)
{
	struct fake_program *program = *state;
	struct memory *memory = fake_memory_memory(program->memory);
	struct module_table *table;
	struct fake_sink sink;

	fill_data(program);
	fake_sink_init(&sink);
	table = read_table(program);
	sink.limit = 2;
	assert_error(module_table_roots(table, memory, &program->layout, &sink.sink),
		     ERROR_OUT_OF_MEMORY);
	set(program, program->layout.moduledata_data_mask, 0x1000);
	fake_memory_forget(program->memory);
	assert_error(module_table_roots(table, memory, &program->layout, &sink.sink), ERROR_FAULT);
	module_table_free(table);
	set(program, program->layout.moduledata_edata, UINT64_MAX);
	table = read_table(program);
	assert_error(module_table_roots(table, memory, &program->layout, &sink.sink), ERROR_LIMIT);
	module_table_free(table);
	set(program, program->layout.moduledata_edata, 8);
	table = read_table(program);
	assert_error(module_table_roots(table, memory, &program->layout, &sink.sink), ERROR_LIMIT);
	module_table_free(table);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(functions_are_found_through_their_module),
		TEST(types_are_found_through_their_module),
		TEST(plugins_count_unless_they_are_bad),
		TEST(a_plugin_may_be_without_functions),
		TEST(pages_that_nobody_has_touched_hold_no_roots),
		TEST(chains_without_end_are_refused),
		TEST(absurd_tables_are_refused),
		TEST(data_is_taken_by_its_mask),
		TEST(a_mask_may_end_before_its_segment),
		TEST(bss_is_taken_by_its_own_mask),
		TEST(roots_that_cannot_be_read_are_an_error),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
