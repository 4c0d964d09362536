/*
 * Source lines of a pc, with calls that were inlined. A function with such calls has a tree of
 * them, and a pcdata table that gives for a pc the innermost call it belongs to, -1 for none.
 * Up to go1.19 a record of the tree names its parent and the line of the call; since go1.20 it
 * names a pc of the parent, whose line and own call are looked up in turn (runtime/symtabinl.go).
 */
#include <inttypes.h>

#include "agent/binary/pclntab.h"
#include "agent/binary/pclntab_table.h"
#include "proto/base/bytes.h"

enum { NO_FILE = UINT32_MAX };

static struct error *file_name(const struct pclntab *table, const struct pclntab_func *func,
			       uint32_t number, const char **ret)
{
	const struct pclntab_part *numbers =
	    table->format->has_cutab ? &table->cutab : &table->files;
	const struct pclntab_part *names = table->format->has_cutab ? &table->files : &table->names;
	uint64_t index = (uint64_t)func->cu_offset + number;
	uint32_t offset;
	struct cursor c;
	struct error *err = pclntab_seek(numbers, "file numbers", index * sizeof(uint32_t), &c);

	if (!err)
		err = cursor_u32le(&c, &offset);
	if (err)
		return err;
	if (offset == NO_FILE) {
		*ret = NULL;
		return NULL;
	}
	return pclntab_string(names, "file names", offset, ret);
}

/* File and line at a pc; NULL and 0 where the tables have none. */
static struct error *file_line(const struct pclntab *table, const struct pclntab_func *func,
			       taddr pc, struct pclntab_line *line)
{
	int32_t file, number;
	struct error *err = pclntab_value(table, func, func->pcfile, pc, &file);

	if (!err)
		err = pclntab_value(table, func, func->pcln, pc, &number);
	if (err)
		return err;
	line->file = NULL;
	line->line = 0;
	if (file < 0 || number < 0)
		return NULL;
	line->line = (uint32_t)number;
	return file_name(table, func, (uint32_t)file, &line->file);
}

/* The record of an inlined call. */
static struct error *tree_record(const struct pclntab *table, const uint8_t *tree, size_t size,
				 int32_t index, const uint8_t **ret)
{
	uint64_t offset = (uint64_t)index * table->format->inline_record_size;
	struct cursor c;
	struct error *err;

	cursor_init(&c, "inline tree", tree, size);
	err = cursor_seek(&c, offset);
	if (err)
		return err;
	return cursor_take(&c, table->format->inline_record_size, ret);
}

/* Since go1.20: funcID u8, nameOff at 4, parentPc at 8, startLine at 12. */
static struct error *step_by_pc(const struct pclntab *table, const struct pclntab_func *func,
				const uint8_t *record, int32_t *index, struct pclntab_line *parent)
{
	taddr pc = func->entry + load_u32le(record + 8);
	struct error *err = file_line(table, func, pc, parent);

	if (err)
		return err;
	return pclntab_pcdata(table, func, PCDATA_INLINE_TREE, pc, index);
}

/* Up to go1.19: parent i16, funcID u8, file at 4, line at 8, name at 12, parentPc at 16. */
static struct error *step_by_record(const struct pclntab *table, const struct pclntab_func *func,
				    const uint8_t *record, int32_t *index,
				    struct pclntab_line *parent)
{
	*index = (int16_t)load_u16le(record);
	parent->line = load_u32le(record + 8);
	return file_name(table, func, load_u32le(record + 4), &parent->file);
}

/*
 * Names the inlined call of *index in line and goes on to its caller: gives the caller's index,
 * and file and line of the call in parent.
 */
static struct error *step(const struct pclntab *table, const struct pclntab_func *func,
			  const uint8_t *tree, size_t size, int32_t *index,
			  struct pclntab_line *line, struct pclntab_line *parent)
{
	bool by_pc = table->format->inline_record_size == 16;
	const uint8_t *record;
	struct error *err = tree_record(table, tree, size, *index, &record);

	if (!err)
		err = pclntab_string(&table->names, "function names",
				     load_u32le(record + (by_pc ? 4 : 12)), &line->function);
	if (err)
		return err;
	line->inlined = true;
	return by_pc ? step_by_pc(table, func, record, index, parent)
		     : step_by_record(table, func, record, index, parent);
}

struct error *pclntab_lines(const struct pclntab *table, const struct pclntab_func *func, taddr pc,
			    bool is_call, const uint8_t *inline_tree, size_t inline_tree_size,
			    struct pclntab_line *ret_lines, uint32_t *ret_count)
{
	taddr at = is_call && pc > func->entry ? pc - 1 : pc;
	uint32_t count = 0;
	int32_t index = -1;
	struct error *err = file_line(table, func, at, &ret_lines[0]);

	if (!err && inline_tree_size)
		err = pclntab_pcdata(table, func, PCDATA_INLINE_TREE, at, &index);
	while (!err && index >= 0 && count < PCLNTAB_LINES_MAX - 1) {
		err = step(table, func, inline_tree, inline_tree_size, &index, &ret_lines[count],
			   &ret_lines[count + 1]);
		count++;
	}
	if (err)
		return error_context(err, "lines of %.64s", func->name);
	ret_lines[count].function = func->name;
	ret_lines[count].inlined = false;
	*ret_count = count + 1;
	return NULL;
}
