/*
 * The table is one run of bytes. Since go1.16 its header gives the offsets of its parts: names,
 * a table of file numbers for each compile unit, file names, pc-value tables, functions. Up to
 * go1.15 all offsets count from its beginning and the function table follows the header:
 *
 *	header | functab: entry, offset of record ... end | records: _func, pcdata[], funcdata[]
 *
 * Text in several sections, which would need moduledata.textsectmap, is made for ppc64, arm and
 * arm64 only (cmd/link/internal/ld/data.go, splitTextSections, 1.15 to 1.27).
 */
#include "agent/binary/pclntab.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/binary/pclntab_table.h"
#include "proto/base/bytes.h"

enum {
	HEADER_PREFIX_SIZE = 8, /* magic, two zeros, quantum, size of a pointer */
	POINTER_SIZE = 8,
};

/* runtime/funcdata.h of each version: register maps held index 0 and 2 up to go1.15. */
static const struct pclntab_format formats[] = {
	{
	    .magic = 0xfffffffb,
	    .absolute = true,
	    .inline_record_size = 20,
	    .pcdata = { 0, 1, 2 },
	    .funcdata = { 0, 1, 3, 4 },
	},
	{
	    .magic = 0xfffffffa,
	    .absolute = true,
	    .has_cutab = true,
	    .inline_record_size = 20,
	    .pcdata = { 0, 1, 2 },
	    .funcdata = { 0, 1, 2, 3 },
	},
	{
	    .magic = 0xfffffff0,
	    .has_cutab = true,
	    .has_text_start = true,
	    .inline_record_size = 20,
	    .pcdata = { 0, 1, 2 },
	    .funcdata = { 0, 1, 2, 3 },
	},
	{
	    .magic = 0xfffffff1,
	    .has_cutab = true,
	    .has_text_start = true,
	    .has_start_line = true,
	    .inline_record_size = 16,
	    .pcdata = { 0, 1, 2 },
	    .funcdata = { 0, 1, 2, 3 },
	},
};

/* Size of an address or offset in the function table. */
static size_t entry_size(const struct pclntab *table)
{
	return table->format->absolute ? POINTER_SIZE : sizeof(uint32_t);
}

struct error *pclntab_seek(const struct pclntab_part *part, const char *name, uint64_t offset,
			   struct cursor *ret)
{
	cursor_init(ret, name, part->bytes, part->size);
	return cursor_seek(ret, offset);
}

struct error *pclntab_string(const struct pclntab_part *part, const char *name, uint64_t offset,
			     const char **ret)
{
	struct cursor c;
	struct error *err = pclntab_seek(part, name, offset, &c);

	if (err)
		return err;
	return cursor_string(&c, ret);
}

/* Magic, quantum and size of a pointer. */
static struct error *read_prefix(struct pclntab *table, struct cursor *c)
{
	const uint8_t *prefix;
	uint32_t magic;
	struct error *err = cursor_take(c, HEADER_PREFIX_SIZE, &prefix);

	if (err)
		return err;
	magic = load_u32le(prefix);
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		if (formats[i].magic == magic)
			table->format = &formats[i];
	}
	table->quantum = prefix[6];
	if (!table->format)
		return error_new(ERROR_FORMAT, "pclntab: magic 0x%" PRIx32, magic);
	if (prefix[4] || prefix[5] || prefix[7] != POINTER_SIZE ||
	    (table->quantum != 1 && table->quantum != 2 && table->quantum != 4))
		return error_new(ERROR_FORMAT, "pclntab: header %02x %02x %02x %02x", prefix[4],
				 prefix[5], prefix[6], prefix[7]);
	return NULL;
}

static struct error *read_part(struct cursor *c, const char *name, struct pclntab_part *ret)
{
	size_t size = (size_t)(c->end - c->start);
	uint64_t offset;
	struct error *err = cursor_u64le(c, &offset);

	if (err)
		return err;
	if (offset > size)
		return error_new(ERROR_FORMAT, "pclntab: %s at 0x%" PRIx64 " of 0x%zx bytes", name,
				 offset, size);
	*ret = (struct pclntab_part){ c->start + offset, size - offset };
	return NULL;
}

/* The header of go1.16 and later: runtime/symtab.go, pcHeader. */
static struct error *read_offsets(struct pclntab *table, struct cursor *c)
{
	struct error *err = cursor_skip(c, POINTER_SIZE); /* number of files */

	if (!err && table->format->has_text_start)
		err = cursor_skip(c, POINTER_SIZE); /* 0 since go1.26: the caller knows */
	if (!err)
		err = read_part(c, "names", &table->names);
	if (!err)
		err = read_part(c, "compile units", &table->cutab);
	if (!err)
		err = read_part(c, "files", &table->files);
	if (!err)
		err = read_part(c, "pc-value tables", &table->pctab);
	if (!err)
		err = read_part(c, "functions", &table->funcs);
	if (!err)
		table->functab = table->funcs.bytes;
	return err;
}

/* Up to go1.15 the offset of the file table follows the function table. */
static struct error *read_old_files(struct pclntab *table, struct cursor *c)
{
	uint32_t offset;
	struct error *err = cursor_u32le(c, &offset);

	if (err)
		return err;
	if (offset > table->funcs.size)
		return error_new(ERROR_FORMAT, "pclntab: files at 0x%" PRIx32 " of 0x%zx bytes",
				 offset, table->funcs.size);
	table->files =
	    (struct pclntab_part){ table->funcs.bytes + offset, table->funcs.size - offset };
	return NULL;
}

/* Offset from text, or address, of entry index; the one behind the last is the end. */
static uint64_t raw_entry(const struct pclntab *table, uint32_t index)
{
	size_t size = entry_size(table);

	return load_uint_le(table->functab + (uint64_t)index * 2 * size, size);
}

static uint64_t record_offset(const struct pclntab *table, uint32_t index)
{
	size_t size = entry_size(table);

	return load_uint_le(table->functab + ((uint64_t)index * 2 + 1) * size, size);
}

/* Searches rely on the order of entries, so it is checked once. */
static struct error *check_functab(struct pclntab *table, struct cursor *c, uint64_t count)
{
	const uint8_t *functab;
	struct error *err;

	if (count > UINT32_MAX || count > cursor_left(c) / (2 * entry_size(table)))
		return error_new(ERROR_FORMAT, "pclntab: %" PRIu64 " functions do not fit", count);
	err = cursor_take(c, (count * 2 + 1) * entry_size(table), &functab);
	if (err)
		return err;
	table->functab = functab;
	table->func_count = (uint32_t)count;
	for (uint32_t i = 0; i < table->func_count; i++) {
		if (raw_entry(table, i) > raw_entry(table, i + 1))
			return error_new(ERROR_FORMAT, "pclntab: function %" PRIu32 " out of order",
					 i);
	}
	return NULL;
}

static struct error *read_table(struct pclntab *table, const void *bytes, size_t size)
{
	struct cursor c;
	uint64_t count;
	struct error *err;

	cursor_init(&c, "pclntab", bytes, size);
	err = read_prefix(table, &c);
	if (!err)
		err = cursor_u64le(&c, &count);
	if (err)
		return err;
	if (!table->format->has_cutab) {
		table->names = table->pctab = table->funcs = (struct pclntab_part){ bytes, size };
		err = check_functab(table, &c, count);
		return err ? err : read_old_files(table, &c);
	}
	err = read_offsets(table, &c);
	if (err)
		return err;
	cursor_init(&c, "functab", table->funcs.bytes, table->funcs.size);
	return check_functab(table, &c, count);
}

struct error *pclntab_open(const void *bytes, size_t size, taddr text, uint64_t load_bias,
			   struct pclntab **ret)
{
	struct pclntab *table scoped(pclntab_freep) = calloc(1, sizeof(*table));
	struct error *err;

	if (!table)
		return &error_nomem;
	err = read_table(table, bytes, size);
	if (err)
		return err;
	table->text = table->format->absolute ? 0 : text;
	table->load_bias = load_bias;
	*ret = take(table);
	return NULL;
}

void pclntab_free(struct pclntab *table)
{
	free(table);
}

uint32_t pclntab_func_count(const struct pclntab *table)
{
	return table->func_count;
}

/* Added to a raw entry this gives the address at run time. */
static uint64_t entry_base(const struct pclntab *table)
{
	return table->format->absolute ? table->load_bias : table->text;
}

/* A place between functions that Go's linker did not fill: marked since it once happened. */
static bool is_hole(const struct pclntab *table, uint32_t index)
{
	return table->format->absolute && record_offset(table, index) == UINT64_MAX;
}

/* The fixed part behind entry: runtime/runtime2.go, _func. */
static struct error *read_record(const struct pclntab *table, struct cursor *c,
				 struct pclntab_func *func, uint32_t *ret_name)
{
	const uint8_t *numbers, *bytes;
	uint32_t start_line = 0, cu_offset = 0;
	struct error *err = cursor_skip(c, entry_size(table)); /* the entry again */

	if (!err)
		err = cursor_take(c, 7 * sizeof(uint32_t), &numbers);
	if (!err && table->format->has_cutab)
		err = cursor_u32le(c, &cu_offset);
	if (!err && table->format->has_start_line)
		err = cursor_u32le(c, &start_line);
	if (!err)
		err = cursor_take(c, 4, &bytes);
	if (err)
		return err;
	*ret_name = load_u32le(numbers);
	func->args = (int32_t)load_u32le(numbers + 4);
	func->deferreturn = load_u32le(numbers + 8);
	func->pcsp = load_u32le(numbers + 12);
	func->pcfile = load_u32le(numbers + 16);
	func->pcln = load_u32le(numbers + 20);
	func->npcdata = load_u32le(numbers + 24);
	func->cu_offset = cu_offset;
	func->start_line = start_line;
	func->func_id = bytes[0];
	func->flag = bytes[1];
	func->nfuncdata = bytes[3];
	func->record = (uint64_t)(c->pos - c->start);
	return NULL;
}

struct error *pclntab_at(const struct pclntab *table, uint32_t index, struct pclntab_func *ret)
{
	struct pclntab_func func = { 0 };
	struct cursor c;
	uint32_t name;
	struct error *err;

	if (index >= table->func_count)
		return error_new(ERROR_FORMAT, "pclntab: function %" PRIu32 " of %" PRIu32, index,
				 table->func_count);
	err = pclntab_seek(&table->funcs, "function record", record_offset(table, index), &c);
	if (!err)
		err = read_record(table, &c, &func, &name);
	if (!err)
		err = pclntab_string(&table->names, "function names", name, &func.name);
	if (err)
		return error_context(err, "function %" PRIu32, index);
	func.entry = entry_base(table) + raw_entry(table, index);
	func.end = entry_base(table) + raw_entry(table, index + 1);
	*ret = func;
	return NULL;
}

/* The last function whose entry is not above raw; func_count is not 0. */
static uint32_t search(const struct pclntab *table, uint64_t raw)
{
	uint32_t low = 0, high = table->func_count;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (raw_entry(table, middle) <= raw)
			low = middle;
		else
			high = middle;
	}
	return low;
}

struct error *pclntab_find(const struct pclntab *table, taddr pc, bool *ret_found,
			   struct pclntab_func *ret)
{
	uint64_t raw = pc - entry_base(table);
	uint32_t index;

	*ret_found = false;
	if (!table->func_count || raw < raw_entry(table, 0) ||
	    raw >= raw_entry(table, table->func_count))
		return NULL;
	index = search(table, raw);
	if (is_hole(table, index))
		return NULL;
	*ret_found = true;
	return pclntab_at(table, index, ret);
}

struct error *pclntab_find_name(const struct pclntab *table, const char *name, bool *ret_found,
				struct pclntab_func *ret)
{
	*ret_found = false;
	for (uint32_t i = 0; i < table->func_count; i++) {
		struct pclntab_func func;
		struct error *err;

		if (is_hole(table, i))
			continue;
		err = pclntab_at(table, i, &func);
		if (err)
			return err;
		if (!strcmp(func.name, name)) {
			*ret = func;
			*ret_found = true;
			return NULL;
		}
	}
	return NULL;
}
