#include "agent/binary/pclntab.h"

#include "proto/base/bytes.h"
#include "tests/support/assertions.h"
#include "tests/support/pclntab_writer.h"

enum {
	TEXT = PCLNTAB_WRITER_TEXT,
	GOFUNC = PCLNTAB_WRITER_GOFUNC,
	FIRST_SIZE = PCLNTAB_WRITER_FIRST_SIZE,
	SECOND_SIZE = PCLNTAB_WRITER_SECOND_SIZE,
	BIAS = 0x10000,
};

/* Opens it as read from a file: only absolute addresses need the bias. */
static struct pclntab *open_table(const struct pclntab_writer *t)
{
	struct pclntab *table = NULL;

	assert_success(pclntab_open(t->bytes, t->size, TEXT + BIAS, BIAS, &table));
	return table;
}

static struct pclntab_func find(const struct pclntab *table, taddr pc)
{
	struct pclntab_func func = { 0 };
	bool found = false;

	assert_success(pclntab_find(table, pc, &found, &func));
	assert_true(found);
	return func;
}

static void functions_are_found_by_pc(void **state)
{
	(void)state;
	for (int form = 0; form < PCLNTAB_WRITER_FORMS; form++) {
		struct pclntab_writer t;
		struct pclntab *table;
		struct pclntab_func func;
		bool found;

		pclntab_writer_make(form, &t);
		table = open_table(&t);
		assert_int_equal(pclntab_func_count(table), 2);
		func = find(table, TEXT + BIAS + FIRST_SIZE - 1);
		assert_string_equal(func.name, "main.first");
		assert_int_equal(func.entry, TEXT + BIAS);
		assert_int_equal(func.end, TEXT + BIAS + FIRST_SIZE);
		assert_int_equal(func.args, 16);
		assert_int_equal(func.deferreturn, 5);
		assert_int_equal(func.func_id, 9);
		assert_int_equal(func.flag, form == 0 ? 0 : PCLNTAB_FLAG_TOP_FRAME);
		assert_int_equal(func.start_line, form == 3 ? 8 : 0);
		func = find(table, TEXT + BIAS + FIRST_SIZE);
		assert_string_equal(func.name, "main.second");
		assert_int_equal(func.args, PCLNTAB_ARGS_UNKNOWN);
		assert_success(pclntab_find(table, TEXT + BIAS - 1, &found, &func));
		assert_false(found);
		assert_success(
		    pclntab_find(table, TEXT + BIAS + FIRST_SIZE + SECOND_SIZE, &found, &func));
		assert_false(found);
		pclntab_free(table);
	}
}

static void functions_are_found_by_name(void **state)
{
	(void)state;
	for (int form = 0; form < PCLNTAB_WRITER_FORMS; form++) {
		struct pclntab_writer t;
		struct pclntab *table;
		struct pclntab_func func;
		bool found;

		pclntab_writer_make(form, &t);
		table = open_table(&t);
		assert_success(pclntab_find_name(table, "main.second", &found, &func));
		assert_true(found);
		assert_int_equal(func.entry, TEXT + BIAS + FIRST_SIZE);
		assert_success(pclntab_find_name(table, "main.secon", &found, &func));
		assert_false(found);
		pclntab_free(table);
	}
}

static void frame_sizes_follow_the_pc(void **state)
{
	static const struct {
		int32_t size;
		uint8_t at;
	} expected[] = { { 0, 0 }, { 0, 3 }, { 24, 4 }, { 24, 0x1b }, { 0, 0x1c }, { 0, 0x1f } };

	(void)state;
	for (int form = 0; form < PCLNTAB_WRITER_FORMS; form++) {
		struct pclntab_writer t;
		struct pclntab *table;
		struct pclntab_func func;
		int32_t size = -1;

		pclntab_writer_make(form, &t);
		table = open_table(&t);
		func = find(table, TEXT + BIAS);
		for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
			assert_success(
			    pclntab_frame_size(table, &func, func.entry + expected[i].at, &size));
			assert_int_equal(size, expected[i].size);
		}
		assert_error(pclntab_frame_size(table, &func, func.end, &size), ERROR_FORMAT);
		func = find(table, func.end);
		assert_error(pclntab_frame_size(table, &func, func.entry, &size), ERROR_FORMAT);
		pclntab_free(table);
	}
}

static void pcdata_and_funcdata_go_by_meaning(void **state)
{
	(void)state;
	for (int form = 0; form < PCLNTAB_WRITER_FORMS; form++) {
		/* index 2 was the register maps' in the oldest format */
		const taddr shift = form == 0 ? 0x100 : 0;
		const taddr base = pclntab_writer_is_absolute(form) ? GOFUNC + BIAS : GOFUNC;
		struct pclntab_writer t;
		struct pclntab *table;
		struct pclntab_func func;
		int32_t value = 0;
		taddr addr = 1;

		pclntab_writer_make(form, &t);
		table = open_table(&t);
		func = find(table, TEXT + BIAS);
		assert_success(
		    pclntab_pcdata(table, &func, PCDATA_STACK_MAP, func.entry + 4, &value));
		assert_int_equal(value, 3);
		assert_success(
		    pclntab_pcdata(table, &func, PCDATA_UNSAFE_POINT, func.entry + 4, &value));
		assert_int_equal(value, -1);
		assert_success(pclntab_funcdata(table, &func, FUNCDATA_ARGS_MAPS, GOFUNC, &addr));
		assert_int_equal(addr, base);
		assert_success(pclntab_funcdata(table, &func, FUNCDATA_LOCALS_MAPS, GOFUNC, &addr));
		assert_int_equal(addr, 0);
		assert_success(
		    pclntab_funcdata(table, &func, FUNCDATA_STACK_OBJECTS, GOFUNC, &addr));
		assert_int_equal(addr, base + 0x200 + shift);
		assert_success(pclntab_funcdata(table, &func, FUNCDATA_INLINE_TREE, GOFUNC, &addr));
		assert_int_equal(addr, base + 0x300 + shift);
		func = find(table, func.end);
		assert_success(pclntab_pcdata(table, &func, PCDATA_STACK_MAP, func.entry, &value));
		assert_int_equal(value, -1);
		assert_success(pclntab_funcdata(table, &func, FUNCDATA_ARGS_MAPS, GOFUNC, &addr));
		assert_int_equal(addr, 0);
		pclntab_free(table);
	}
}

static void lines_name_inlined_calls_first(void **state)
{
	(void)state;
	for (int form = 0; form < PCLNTAB_WRITER_FORMS; form++) {
		/* the unit's files are numbered from its own offset on */
		struct pclntab_line line[PCLNTAB_LINES_MAX];
		struct pclntab_writer t;
		struct pclntab *table;
		struct pclntab_func func;
		uint32_t count = 0;

		pclntab_writer_make(form, &t);
		table = open_table(&t);
		func = find(table, TEXT + BIAS);
		/* a return address: the call before it is meant */
		assert_success(pclntab_lines(table, &func, func.entry + 0x10, true, t.tree,
					     t.tree_size, line, &count));
		assert_int_equal(count, 3);
		assert_string_equal(line[0].function, "main.inner");
		assert_int_equal(line[0].line, 41);
		assert_string_equal(line[0].file, "/src/one.go");
		assert_true(line[0].inlined);
		assert_string_equal(line[1].function, "main.outer");
		assert_int_equal(line[1].line, 31);
		assert_string_equal(line[1].file, form == 3 ? "/src/one.go" : "/src/two.go");
		assert_true(line[1].inlined);
		assert_string_equal(line[2].function, "main.first");
		assert_int_equal(line[2].line, 12);
		assert_string_equal(line[2].file, "/src/one.go");
		assert_false(line[2].inlined);
		assert_success(pclntab_lines(table, &func, func.entry + 0x10, false, t.tree,
					     t.tree_size, line, &count));
		assert_int_equal(count, 2);
		assert_string_equal(line[0].function, "main.outer");
		assert_int_equal(line[0].line, 31);
		assert_success(
		    pclntab_lines(table, &func, func.entry, true, NULL, 0, line, &count));
		assert_int_equal(count, 1);
		assert_int_equal(line[0].line, 10);
		pclntab_free(table);
	}
}

static void functions_without_tables_have_no_lines(void **state)
{
	struct pclntab_line line[PCLNTAB_LINES_MAX];
	struct pclntab_writer t;
	struct pclntab *table;
	struct pclntab_func func;
	uint32_t count = 0;

	(void)state;
	pclntab_writer_make(3, &t);
	table = open_table(&t);
	func = find(table, TEXT + BIAS + FIRST_SIZE);
	assert_success(pclntab_lines(table, &func, func.entry, false, NULL, 0, line, &count));
	assert_int_equal(count, 1);
	assert_string_equal(line[0].function, "main.second");
	assert_null(line[0].file);
	assert_int_equal(line[0].line, 0);
	pclntab_free(table);
}

static void trees_that_go_round_end(void **state)
{
	(void)state;
	for (int form = 0; form < PCLNTAB_WRITER_FORMS; form++) {
		struct pclntab_line line[PCLNTAB_LINES_MAX];
		struct pclntab_writer t;
		struct pclntab *table;
		struct pclntab_func func;
		uint32_t count = 0;

		pclntab_writer_make(form, &t);
		/* the first call is its own caller */
		if (form == 3)
			store_u32le(t.tree + 8, 8);
		else
			store_u32le(t.tree, 0);
		table = open_table(&t);
		func = find(table, TEXT + BIAS);
		assert_success(pclntab_lines(table, &func, func.entry + 8, false, t.tree,
					     t.tree_size, line, &count));
		assert_int_equal(count, PCLNTAB_LINES_MAX);
		assert_string_equal(line[PCLNTAB_LINES_MAX - 1].function, "main.first");
		pclntab_free(table);
	}
}

static void tree_records_outside_of_the_tree_are_refused(void **state)
{
	(void)state;
	for (int form = 0; form < PCLNTAB_WRITER_FORMS; form++) {
		struct pclntab_line line[PCLNTAB_LINES_MAX];
		struct pclntab_writer t;
		struct pclntab *table;
		struct pclntab_func func;
		uint32_t count = 0;

		pclntab_writer_make(form, &t);
		table = open_table(&t);
		func = find(table, TEXT + BIAS);
		for (size_t size = 1; size < t.tree_size; size++) {
			struct tail_copy copy = tail_copy(t.tree, size);

			assert_error(pclntab_lines(table, &func, func.entry + 8, false, copy.bytes,
						   size, line, &count),
				     ERROR_FORMAT);
			tail_copy_fini(&copy);
		}
		pclntab_free(table);
	}
}

/* All that can be asked of a table; an error of any of it. */
static struct error *use_table(const struct pclntab *table, const struct pclntab_writer *t)
{
	struct error *err = NULL;

	for (uint32_t i = 0; !err && i < pclntab_func_count(table); i++) {
		struct pclntab_line line[PCLNTAB_LINES_MAX];
		struct pclntab_func func;
		uint32_t count;
		int32_t value;
		taddr addr;

		err = pclntab_at(table, i, &func);
		if (!err && func.pcsp)
			err = pclntab_frame_size(table, &func, func.end - 1, &value);
		if (!err)
			err = pclntab_pcdata(table, &func, PCDATA_STACK_MAP, func.entry, &value);
		if (!err)
			err = pclntab_funcdata(table, &func, FUNCDATA_INLINE_TREE, GOFUNC, &addr);
		for (taddr pc = func.entry; !err && pc - func.entry < FIRST_SIZE && pc < func.end;
		     pc++)
			err = pclntab_lines(table, &func, pc, false, t->tree, t->tree_size, line,
					    &count);
	}
	return err;
}

/* The bytes that end the old form are a file name that nobody asks for. */
static void every_truncation_is_refused(void **state)
{
	(void)state;
	for (int form = 0; form < PCLNTAB_WRITER_FORMS; form++) {
		struct pclntab_writer t;
		struct pclntab *table = NULL;

		pclntab_writer_make(form, &t);
		table = open_table(&t);
		assert_success(use_table(table, &t));
		pclntab_free(table);
		for (size_t size = 0; size < t.size; size++) {
			struct tail_copy copy = tail_copy(t.bytes, size);
			struct error *err;

			table = NULL;
			err = pclntab_open(copy.bytes, size, TEXT, 0, &table);
			if (!err)
				err = use_table(table, &t);
			assert_non_null(err);
			assert_int_equal(error_code(err), ERROR_FORMAT);
			error_free(err);
			pclntab_free(table);
			tail_copy_fini(&copy);
		}
	}
}

static void every_byte_may_be_anything(void **state)
{
	static const uint8_t values[] = { 0x00, 0x01, 0x7f, 0x80, 0xff };

	(void)state;
	for (int form = 0; form < PCLNTAB_WRITER_FORMS; form++) {
		struct pclntab_writer t;

		pclntab_writer_make(form, &t);
		for (size_t at = 0; at < t.size; at++) {
			for (size_t i = 0; i < sizeof(values); i++) {
				struct tail_copy copy = tail_copy(t.bytes, t.size);
				struct pclntab *table = NULL;
				struct error *err;

				copy.bytes[at] = values[i];
				err = pclntab_open(copy.bytes, t.size, TEXT, 0, &table);
				if (!err)
					err = use_table(table, &t);
				error_free(err);
				pclntab_free(table);
				tail_copy_fini(&copy);
			}
		}
	}
}

static void functions_out_of_order_are_refused(void **state)
{
	struct pclntab_writer t;
	struct pclntab *table = NULL;

	(void)state;
	pclntab_writer_make(0, &t);
	store_u64le(t.bytes + 16, TEXT + FIRST_SIZE + 1);
	assert_error(pclntab_open(t.bytes, t.size, TEXT, 0, &table), ERROR_FORMAT);
	assert_null(table);
}

static void holes_hold_no_function(void **state)
{
	struct pclntab_writer t;
	struct pclntab *table;
	struct pclntab_func func;
	bool found;

	(void)state;
	pclntab_writer_make(0, &t);
	store_u64le(t.bytes + 24, UINT64_MAX);
	table = open_table(&t);
	assert_success(pclntab_find(table, TEXT + BIAS, &found, &func));
	assert_false(found);
	assert_success(pclntab_find_name(table, "main.second", &found, &func));
	assert_true(found);
	pclntab_free(table);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_are_found_by_pc),
		cmocka_unit_test(functions_are_found_by_name),
		cmocka_unit_test(frame_sizes_follow_the_pc),
		cmocka_unit_test(pcdata_and_funcdata_go_by_meaning),
		cmocka_unit_test(lines_name_inlined_calls_first),
		cmocka_unit_test(functions_without_tables_have_no_lines),
		cmocka_unit_test(trees_that_go_round_end),
		cmocka_unit_test(tree_records_outside_of_the_tree_are_refused),
		cmocka_unit_test(every_truncation_is_refused),
		cmocka_unit_test(every_byte_may_be_anything),
		cmocka_unit_test(functions_out_of_order_are_refused),
		cmocka_unit_test(holes_hold_no_function),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("pclntab", tests, NULL, NULL);
}
