/*
 * One small table, written in every format: main.first with frames, lines and two inlined calls,
 * main.second with nothing.
 */
#include "agent/binary/pclntab.h"

#include "proto/base/bytes.h"
#include "tests/support/assertions.h"

enum { TEXT = 0x401000, BIAS = 0x10000, GOFUNC = 0x900000, FIRST_SIZE = 0x20, SECOND_SIZE = 0x10 };

static const uint32_t magics[] = { 0xfffffffb, 0xfffffffa, 0xfffffff0, 0xfffffff1 };

enum { MAGIC_COUNT = sizeof(magics) / sizeof(magics[0]) };

struct table {
	uint8_t bytes[2048];
	size_t size;
	int form; /* index in magics */
	uint8_t tree[64];
	size_t tree_size;
};

static bool is_absolute(const struct table *t)
{
	return t->form <= 1;
}

static size_t put(struct table *t, const void *bytes, size_t size)
{
	size_t at = t->size;

	assert_true(at + size <= sizeof(t->bytes));
	memcpy(t->bytes + at, bytes, size);
	t->size += size;
	return at;
}

static size_t put_u32(struct table *t, uint32_t value)
{
	uint8_t raw[4];

	store_u32le(raw, value);
	return put(t, raw, sizeof(raw));
}

static size_t put_u64(struct table *t, uint64_t value)
{
	uint8_t raw[8];

	store_u64le(raw, value);
	return put(t, raw, sizeof(raw));
}

static void put_align(struct table *t, size_t align)
{
	while (t->size % align)
		put(t, "", 1);
}

struct value {
	int32_t value;
	uint8_t until; /* offset of pc */
};

/* A pc-value table; all changes fit in one byte each. */
static size_t put_values(struct table *t, const struct value *values, size_t count)
{
	size_t at = t->size;
	int32_t value = -1;
	uint8_t pc = 0;

	for (size_t i = 0; i < count; i++) {
		int32_t change = values[i].value - value;
		uint8_t pair[2] = { (uint8_t)(change < 0 ? -change * 2 - 1 : change * 2),
				    (uint8_t)(values[i].until - pc) };

		put(t, pair, 2);
		value = values[i].value;
		pc = values[i].until;
	}
	put(t, "", 1);
	return at;
}

static const struct value frames[] = { { 0, 4 }, { 24, 0x1c }, { 0, FIRST_SIZE } };
static const struct value files[] = { { 1, FIRST_SIZE } };
static const struct value lines[] = { { 10, 8 }, { 41, 0x10 }, { 31, 0x18 }, { 12, FIRST_SIZE } };
static const struct value stack_maps[] = { { -1, 4 }, { 3, FIRST_SIZE } };
static const struct value inlined[] = { { -1, 8 }, { 0, 0x10 }, { 1, 0x18 }, { -1, FIRST_SIZE } };

struct offsets {
	size_t names, cutab, files, pctab, funcs; /* where the parts begin */
	uint32_t first, second, inner, outer;     /* names */
	uint32_t file_one, file_two;
	uint32_t pcsp, pcfile, pcln, stack_map, inline_index;
};

static uint32_t put_text(struct table *t, size_t part, const char *text)
{
	return (uint32_t)(put(t, text, strlen(text) + 1) - part);
}

/* In the oldest format all offsets count from the beginning. */
static size_t begin_part(struct table *t)
{
	put_align(t, 8);
	return t->form == 0 ? 0 : t->size;
}

static void put_names(struct table *t, struct offsets *o)
{
	o->names = begin_part(t);
	put(t, "", 1);
	o->first = put_text(t, o->names, "main.first");
	o->second = put_text(t, o->names, "main.second");
	o->inner = put_text(t, o->names, "main.inner");
	o->outer = put_text(t, o->names, "main.outer");
}

/* In the oldest format file names lie among the others, and their table is placed later. */
static void put_files(struct table *t, struct offsets *o)
{
	size_t cutab = t->size;

	o->cutab = begin_part(t);
	if (t->form != 0) {
		put_u32(t, 77); /* of another compile unit */
		put_u32(t, UINT32_MAX);
		put_u32(t, 0);
		put_u32(t, 0);
	}
	o->files = begin_part(t);
	o->file_one = put_text(t, o->files, "/src/one.go");
	o->file_two = put_text(t, o->files, "/src/two.go");
	if (t->form != 0) {
		cutab = o->cutab;
		store_u32le(t->bytes + cutab + 8, o->file_one);
		store_u32le(t->bytes + cutab + 12, o->file_two);
	}
}

#define PUT_VALUES(t, o, values)                                                                   \
	(uint32_t)(put_values(t, values, sizeof(values) / sizeof((values)[0])) - (o)->pctab)

static void put_pctab(struct table *t, struct offsets *o)
{
	o->pctab = begin_part(t);
	put(t, "", 1);
	o->pcsp = PUT_VALUES(t, o, frames);
	o->pcfile = PUT_VALUES(t, o, files);
	o->pcln = PUT_VALUES(t, o, lines);
	o->stack_map = PUT_VALUES(t, o, stack_maps);
	o->inline_index = PUT_VALUES(t, o, inlined);
}

/* Entry, seven numbers, and what follows them in this format. */
static size_t put_record(struct table *t, uint64_t entry, const uint32_t numbers[7],
			 uint32_t start_line, uint8_t nfuncdata)
{
	const uint8_t tail[4] = { 9, t->form == 0 ? 0 : PCLNTAB_FLAG_TOP_FRAME, 0, nfuncdata };
	size_t at;

	put_align(t, 8);
	at = is_absolute(t) ? put_u64(t, TEXT + entry) : put_u32(t, (uint32_t)entry);
	for (int i = 0; i < 7; i++)
		put_u32(t, numbers[i]);
	if (t->form != 0)
		put_u32(t, 1); /* cuOffset: file number 1 is the unit's second */
	if (t->form == 3)
		put_u32(t, start_line);
	put(t, tail, sizeof(tail));
	return at;
}

static size_t put_first(struct table *t, const struct offsets *o)
{
	const uint32_t numbers[] = { o->first, 16, 5, o->pcsp, o->pcfile, o->pcln, 3 };
	const unsigned count = t->form == 0 ? 5 : 4;
	size_t at = put_record(t, 0, numbers, 8, (uint8_t)count);

	put_u32(t, 0); /* no unsafe points */
	put_u32(t, o->stack_map);
	put_u32(t, o->inline_index);
	if (is_absolute(t))
		put_align(t, 8);
	for (unsigned i = 0; i < count; i++) {
		bool none = i == 1; /* no locals */

		if (is_absolute(t))
			put_u64(t, none ? 0 : GOFUNC + i * 0x100);
		else
			put_u32(t, none ? UINT32_MAX : i * 0x100);
	}
	return at;
}

static size_t put_second(struct table *t, const struct offsets *o)
{
	const uint32_t numbers[] = { o->second, 0x80000000, 0, 0, 0, 0, 0 };

	return put_record(t, FIRST_SIZE, numbers, 0, 0);
}

static void put_word(struct table *t, size_t at, uint64_t value)
{
	if (is_absolute(t))
		store_u64le(t->bytes + at, value);
	else
		store_u32le(t->bytes + at, (uint32_t)value);
}

static void fill_functab(struct table *t, size_t at, size_t first, size_t second)
{
	const uint64_t base = is_absolute(t) ? TEXT : 0;
	const size_t word = is_absolute(t) ? 8 : 4;
	const uint64_t words[] = { base, first, base + FIRST_SIZE, second,
				   base + FIRST_SIZE + SECOND_SIZE };

	for (size_t i = 0; i < 5; i++)
		put_word(t, at + i * word, words[i]);
}

/* Old records name parent, file and line; new ones a pc of the parent. */
static void make_tree(struct table *t, const struct offsets *o)
{
	const uint32_t old[2][5] = { { 1, t->form == 0 ? 2 : 2, 31, o->inner, 0x14 },
				     { 0xffff, 1, 12, o->outer, 0x1a } };
	const uint32_t new[2][4] = { { 0, o->inner, 0x14, 40 }, { 0, o->outer, 0x1a, 30 } };
	size_t words = t->form == 3 ? 4 : 5;

	t->tree_size = 2 * words * 4;
	for (size_t i = 0; i < 2; i++) {
		for (size_t j = 0; j < words; j++)
			store_u32le(t->tree + (i * words + j) * 4,
				    t->form == 3 ? new[i][j] : old[i][j]);
	}
}

static void put_header(struct table *t)
{
	static const uint8_t prefix[4] = { 0, 0, 1, 8 };

	put_u32(t, magics[t->form]);
	put(t, prefix, sizeof(prefix));
	put_u64(t, 2);
}

static void make_old_table(struct table *t, struct offsets *o)
{
	size_t functab, file_offset, first, second, filetab;

	put_header(t);
	functab = t->size;
	for (int i = 0; i < 5; i++)
		put_u64(t, 0);
	file_offset = put_u32(t, 0);
	put_names(t, o);
	put_files(t, o);
	put_pctab(t, o);
	first = put_first(t, o);
	second = put_second(t, o);
	fill_functab(t, functab, first, second);
	filetab = put_u32(t, 3);
	put_u32(t, o->file_one);
	put_u32(t, o->file_two);
	store_u32le(t->bytes + file_offset, (uint32_t)filetab);
}

static void make_new_table(struct table *t, struct offsets *o)
{
	size_t header, first, second;

	put_header(t);
	put_u64(t, 2);
	if (t->form >= 2)
		put_u64(t, 0); /* textStart, as since go1.26 */
	header = t->size;
	for (int i = 0; i < 5; i++)
		put_u64(t, 0);
	put_names(t, o);
	put_files(t, o);
	put_pctab(t, o);
	o->funcs = begin_part(t);
	for (int i = 0; i < 6; i++)
		put_u64(t, 0);
	first = put_first(t, o);
	second = put_second(t, o);
	fill_functab(t, o->funcs, first - o->funcs, second - o->funcs);
	store_u64le(t->bytes + header, o->names);
	store_u64le(t->bytes + header + 8, o->cutab);
	store_u64le(t->bytes + header + 16, o->files);
	store_u64le(t->bytes + header + 24, o->pctab);
	store_u64le(t->bytes + header + 32, o->funcs);
}

static void make_table(int form, struct table *t)
{
	struct offsets o = { 0 };

	memset(t, 0, sizeof(*t));
	t->form = form;
	if (form == 0)
		make_old_table(t, &o);
	else
		make_new_table(t, &o);
	make_tree(t, &o);
}

/* Opens it as read from a file: only absolute addresses need the bias. */
static struct pclntab *open_table(const struct table *t)
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
	for (int form = 0; form < MAGIC_COUNT; form++) {
		struct table t;
		struct pclntab *table;
		struct pclntab_func func;
		bool found;

		make_table(form, &t);
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
	for (int form = 0; form < MAGIC_COUNT; form++) {
		struct table t;
		struct pclntab *table;
		struct pclntab_func func;
		bool found;

		make_table(form, &t);
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
	static const struct value expected[] = { { 0, 0 },     { 0, 3 },    { 24, 4 },
						 { 24, 0x1b }, { 0, 0x1c }, { 0, 0x1f } };

	(void)state;
	for (int form = 0; form < MAGIC_COUNT; form++) {
		struct table t;
		struct pclntab *table;
		struct pclntab_func func;
		int32_t size = -1;

		make_table(form, &t);
		table = open_table(&t);
		func = find(table, TEXT + BIAS);
		for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
			assert_success(pclntab_frame_size(table, &func,
							  func.entry + expected[i].until, &size));
			assert_int_equal(size, expected[i].value);
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
	for (int form = 0; form < MAGIC_COUNT; form++) {
		/* index 2 was the register maps' in the oldest format */
		const taddr shift = form == 0 ? 0x100 : 0;
		const taddr base =
		    is_absolute(&(struct table){ .form = form }) ? GOFUNC + BIAS : GOFUNC;
		struct table t;
		struct pclntab *table;
		struct pclntab_func func;
		int32_t value = 0;
		taddr addr = 1;

		make_table(form, &t);
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
	for (int form = 0; form < MAGIC_COUNT; form++) {
		/* the unit's files are numbered from its own offset on */
		struct pclntab_line line[PCLNTAB_LINES_MAX];
		struct table t;
		struct pclntab *table;
		struct pclntab_func func;
		uint32_t count = 0;

		make_table(form, &t);
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
	struct table t;
	struct pclntab *table;
	struct pclntab_func func;
	uint32_t count = 0;

	(void)state;
	make_table(3, &t);
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
	for (int form = 0; form < MAGIC_COUNT; form++) {
		struct pclntab_line line[PCLNTAB_LINES_MAX];
		struct table t;
		struct pclntab *table;
		struct pclntab_func func;
		uint32_t count = 0;

		make_table(form, &t);
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
	for (int form = 0; form < MAGIC_COUNT; form++) {
		struct pclntab_line line[PCLNTAB_LINES_MAX];
		struct table t;
		struct pclntab *table;
		struct pclntab_func func;
		uint32_t count = 0;

		make_table(form, &t);
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
static struct error *use_table(const struct pclntab *table, const struct table *t)
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
	for (int form = 0; form < MAGIC_COUNT; form++) {
		struct table t;
		struct pclntab *table = NULL;

		make_table(form, &t);
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
	for (int form = 0; form < MAGIC_COUNT; form++) {
		struct table t;

		make_table(form, &t);
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
	struct table t;
	struct pclntab *table = NULL;

	(void)state;
	make_table(0, &t);
	store_u64le(t.bytes + 16, TEXT + FIRST_SIZE + 1);
	assert_error(pclntab_open(t.bytes, t.size, TEXT, 0, &table), ERROR_FORMAT);
	assert_null(table);
}

static void holes_hold_no_function(void **state)
{
	struct table t;
	struct pclntab *table;
	struct pclntab_func func;
	bool found;

	(void)state;
	make_table(0, &t);
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
