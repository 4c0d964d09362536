#include "tests/support/pclntab_writer.h"

#include <assert.h>
#include <string.h>

#include "proto/base/bytes.h"

enum { FLAG_TOP_FRAME = 1 };

static const uint32_t magics[] = { 0xfffffffb, 0xfffffffa, 0xfffffff0, 0xfffffff1 };

bool pclntab_writer_is_absolute(int form)
{
	return form <= 1;
}

static bool is_absolute(const struct pclntab_writer *writer)
{
	return pclntab_writer_is_absolute(writer->form);
}

static size_t put(struct pclntab_writer *writer, const void *bytes, size_t size)
{
	size_t at = writer->size;

	assert(at + size <= sizeof(writer->bytes));
	memcpy(writer->bytes + at, bytes, size);
	writer->size += size;
	return at;
}

static size_t put_u32(struct pclntab_writer *writer, uint32_t value)
{
	uint8_t raw[4];

	store_u32le(raw, value);
	return put(writer, raw, sizeof(raw));
}

static size_t put_u64(struct pclntab_writer *writer, uint64_t value)
{
	uint8_t raw[8];

	store_u64le(raw, value);
	return put(writer, raw, sizeof(raw));
}

static void put_align(struct pclntab_writer *writer, size_t align)
{
	while (writer->size % align)
		put(writer, "", 1);
}

struct value {
	int32_t value;
	uint8_t until; /* offset of pc */
};

/* A pc-value table; all changes fit in one byte each. */
static size_t put_values(struct pclntab_writer *writer, const struct value *values, size_t count)
{
	size_t at = writer->size;
	int32_t value = -1;
	uint8_t pc = 0;

	for (size_t i = 0; i < count; i++) {
		int32_t change = values[i].value - value;
		uint8_t pair[2] = { (uint8_t)(change < 0 ? -change * 2 - 1 : change * 2),
				    (uint8_t)(values[i].until - pc) };

		put(writer, pair, 2);
		value = values[i].value;
		pc = values[i].until;
	}
	put(writer, "", 1);
	return at;
}

static const struct value frames[] = { { 0, 4 }, { 24, 0x1c }, { 0, PCLNTAB_WRITER_FIRST_SIZE } };
static const struct value files[] = { { 1, PCLNTAB_WRITER_FIRST_SIZE } };
static const struct value lines[] = {
	{ 10, 8 }, { 41, 0x10 }, { 31, 0x18 }, { 12, PCLNTAB_WRITER_FIRST_SIZE }
};
static const struct value stack_maps[] = { { -1, 4 }, { 3, PCLNTAB_WRITER_FIRST_SIZE } };
static const struct value inlined[] = {
	{ -1, 8 }, { 0, 0x10 }, { 1, 0x18 }, { -1, PCLNTAB_WRITER_FIRST_SIZE }
};

struct offsets {
	size_t names, cutab, files, pctab, funcs; /* where the parts begin */
	uint32_t first, second, inner, outer;     /* names */
	uint32_t file_one, file_two;
	uint32_t pcsp, pcfile, pcln, stack_map, inline_index;
};

static uint32_t put_text(struct pclntab_writer *writer, size_t part, const char *text)
{
	return (uint32_t)(put(writer, text, strlen(text) + 1) - part);
}

/* In the oldest format all offsets count from the beginning. */
static size_t begin_part(struct pclntab_writer *writer)
{
	put_align(writer, 8);
	return writer->form == 0 ? 0 : writer->size;
}

static void put_names(struct pclntab_writer *writer, struct offsets *o)
{
	o->names = begin_part(writer);
	put(writer, "", 1);
	o->first = put_text(writer, o->names, "main.first");
	o->second = put_text(writer, o->names, "main.second");
	o->inner = put_text(writer, o->names, "main.inner");
	o->outer = put_text(writer, o->names, "main.outer");
}

/* In the oldest format file names lie among the others, and their table is placed later. */
static void put_files(struct pclntab_writer *writer, struct offsets *o)
{
	size_t cutab = writer->size;

	o->cutab = begin_part(writer);
	if (writer->form != 0) {
		put_u32(writer, 77); /* of another compile unit */
		put_u32(writer, UINT32_MAX);
		put_u32(writer, 0);
		put_u32(writer, 0);
	}
	o->files = begin_part(writer);
	o->file_one = put_text(writer, o->files, "/src/one.go");
	o->file_two = put_text(writer, o->files, "/src/two.go");
	if (writer->form != 0) {
		cutab = o->cutab;
		store_u32le(writer->bytes + cutab + 8, o->file_one);
		store_u32le(writer->bytes + cutab + 12, o->file_two);
	}
}

#define PUT_VALUES(writer, o, values)                                                              \
	(uint32_t)(put_values(writer, values, sizeof(values) / sizeof((values)[0])) - (o)->pctab)

static void put_pctab(struct pclntab_writer *writer, struct offsets *o)
{
	o->pctab = begin_part(writer);
	put(writer, "", 1);
	o->pcsp = PUT_VALUES(writer, o, frames);
	o->pcfile = PUT_VALUES(writer, o, files);
	o->pcln = PUT_VALUES(writer, o, lines);
	o->stack_map = PUT_VALUES(writer, o, stack_maps);
	o->inline_index = PUT_VALUES(writer, o, inlined);
}

/* Entry, seven numbers, and what follows them in this format. */
static size_t put_record(struct pclntab_writer *writer, uint64_t entry, const uint32_t numbers[7],
			 uint32_t start_line, uint8_t nfuncdata)
{
	const uint8_t tail[4] = { 9, writer->form == 0 ? 0 : FLAG_TOP_FRAME, 0, nfuncdata };
	size_t at;

	put_align(writer, 8);
	at = is_absolute(writer) ? put_u64(writer, PCLNTAB_WRITER_TEXT + entry)
				 : put_u32(writer, (uint32_t)entry);
	for (int i = 0; i < 7; i++)
		put_u32(writer, numbers[i]);
	if (writer->form != 0)
		put_u32(writer, 1); /* cuOffset: file number 1 is the unit's second */
	if (writer->form == 3)
		put_u32(writer, start_line);
	put(writer, tail, sizeof(tail));
	return at;
}

static size_t put_first(struct pclntab_writer *writer, const struct offsets *o)
{
	const uint32_t numbers[] = { o->first, 16, 5, o->pcsp, o->pcfile, o->pcln, 3 };
	const unsigned count = writer->form == 0 ? 5 : 4;
	size_t at = put_record(writer, 0, numbers, 8, (uint8_t)count);

	put_u32(writer, 0); /* no unsafe points */
	put_u32(writer, o->stack_map);
	put_u32(writer, o->inline_index);
	if (is_absolute(writer))
		put_align(writer, 8);
	for (unsigned i = 0; i < count; i++) {
		bool none = i == 1; /* no locals */

		if (is_absolute(writer))
			put_u64(writer, none ? 0 : PCLNTAB_WRITER_GOFUNC + i * 0x100);
		else
			put_u32(writer, none ? UINT32_MAX : i * 0x100);
	}
	return at;
}

static size_t put_second(struct pclntab_writer *writer, const struct offsets *o)
{
	const uint32_t numbers[] = { o->second, 0x80000000, 0, 0, 0, 0, 0 };

	return put_record(writer, PCLNTAB_WRITER_FIRST_SIZE, numbers, 0, 0);
}

static void put_word(struct pclntab_writer *writer, size_t at, uint64_t value)
{
	if (is_absolute(writer))
		store_u64le(writer->bytes + at, value);
	else
		store_u32le(writer->bytes + at, (uint32_t)value);
}

static void fill_functab(struct pclntab_writer *writer, size_t at, size_t first, size_t second)
{
	const uint64_t base = is_absolute(writer) ? PCLNTAB_WRITER_TEXT : 0;
	const size_t word = is_absolute(writer) ? 8 : 4;
	const uint64_t words[] = { base, first, base + PCLNTAB_WRITER_FIRST_SIZE, second,
				   base + PCLNTAB_WRITER_FIRST_SIZE + PCLNTAB_WRITER_SECOND_SIZE };

	for (size_t i = 0; i < 5; i++)
		put_word(writer, at + i * word, words[i]);
}

/* Old records name parent, file and line; new ones a pc of the parent. */
static void make_tree(struct pclntab_writer *writer, const struct offsets *o)
{
	const uint32_t old[2][5] = { { 1, 2, 31, o->inner, 0x14 },
				     { 0xffff, 1, 12, o->outer, 0x1a } };
	const uint32_t new[2][4] = { { 0, o->inner, 0x14, 40 }, { 0, o->outer, 0x1a, 30 } };
	size_t words = writer->form == 3 ? 4 : 5;

	writer->tree_size = 2 * words * 4;
	for (size_t i = 0; i < 2; i++) {
		for (size_t j = 0; j < words; j++)
			store_u32le(writer->tree + (i * words + j) * 4,
				    writer->form == 3 ? new[i][j] : old[i][j]);
	}
}

static void put_header(struct pclntab_writer *writer)
{
	static const uint8_t prefix[4] = { 0, 0, 1, 8 };

	put_u32(writer, magics[writer->form]);
	put(writer, prefix, sizeof(prefix));
	put_u64(writer, 2);
}

static void make_old_table(struct pclntab_writer *writer, struct offsets *o)
{
	size_t functab, file_offset, first, second, filetab;

	put_header(writer);
	functab = writer->size;
	for (int i = 0; i < 5; i++)
		put_u64(writer, 0);
	file_offset = put_u32(writer, 0);
	put_names(writer, o);
	put_files(writer, o);
	put_pctab(writer, o);
	first = put_first(writer, o);
	second = put_second(writer, o);
	fill_functab(writer, functab, first, second);
	filetab = put_u32(writer, 3);
	put_u32(writer, o->file_one);
	put_u32(writer, o->file_two);
	store_u32le(writer->bytes + file_offset, (uint32_t)filetab);
}

static void make_new_table(struct pclntab_writer *writer, struct offsets *o)
{
	size_t header, first, second;

	put_header(writer);
	put_u64(writer, 2);
	if (writer->form >= 2)
		put_u64(writer, 0); /* textStart, as since go1.26 */
	header = writer->size;
	for (int i = 0; i < 5; i++)
		put_u64(writer, 0);
	put_names(writer, o);
	put_files(writer, o);
	put_pctab(writer, o);
	o->funcs = begin_part(writer);
	for (int i = 0; i < 6; i++)
		put_u64(writer, 0);
	first = put_first(writer, o);
	second = put_second(writer, o);
	fill_functab(writer, o->funcs, first - o->funcs, second - o->funcs);
	store_u64le(writer->bytes + header, o->names);
	store_u64le(writer->bytes + header + 8, o->cutab);
	store_u64le(writer->bytes + header + 16, o->files);
	store_u64le(writer->bytes + header + 24, o->pctab);
	store_u64le(writer->bytes + header + 32, o->funcs);
}

void pclntab_writer_make(int form, struct pclntab_writer *writer)
{
	struct offsets o = { 0 };

	memset(writer, 0, sizeof(*writer));
	writer->form = form;
	if (form == 0)
		make_old_table(writer, &o);
	else
		make_new_table(writer, &o);
	make_tree(writer, &o);
}
