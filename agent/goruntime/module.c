/*
 * The chain of moduledata. The linker writes each module's; the runtime adds those of plugins at
 * its end and fills in the pointer masks when it starts (runtime/symtab.go, moduledata;
 * runtime/runtime1.go and plugin.go).
 *
 * The parts of a pclntab lie in one piece of the file (cmd/link/internal/ld/pcln.go), from its
 * header, which moduledata.pcHeader points to (before go1.16: the one slice pclntable), to the end
 * of its last part.
 */
#include "agent/goruntime/module.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/goruntime/layout.h"
#include "agent/goruntime/root.h"
#include "proto/base/bytes.h"
#include "proto/base/checked.h"

enum {
	MODULES_MAX = 4096,
	MODULE_DATA_MAX = 64 << 10, /* bytes of a moduledata; it has about 600 */
	PCLNTAB_MAX = 1 << 30,
	OS_PAGE_SIZE = 4096,
	SEGMENT_MAX = 1 << 30, /* bytes of one data or bss segment that we look through */
	CHUNK_WORDS = 8192,    /* read at a time from a segment; a multiple of 64 */
};

struct module_table {
	struct module *modules;
	uint32_t count;
	uint32_t capacity;
};

/* A segment and its pointer mask; the collector scans [start, end) of it. */
struct segment {
	taddr start, end;
	taddr mask;
	uint64_t mask_bits;
	enum root_kind kind;
};

static void module_fini(struct module *module)
{
	pclntab_free(module->pclntab);
	free(module->pclntab_bytes);
}

void module_table_free(struct module_table *table)
{
	if (!table)
		return;
	for (uint32_t i = 0; i < table->count; i++)
		module_fini(&table->modules[i]);
	free(table->modules);
	free(table);
}

/* A moduledata that was read whole. */
struct moduledata {
	taddr addr;
	const uint8_t *bytes;
	const struct layout *layout;
};

static uint64_t number(const struct moduledata *data, struct layout_field field)
{
	return load_uint_le(data->bytes + field.offset, field.size);
}

/* 0 where this runtime has no such field. */
static uint64_t number_if_any(const struct moduledata *data, struct layout_field field)
{
	return field.size ? number(data, field) : 0;
}

/* Widens [*start, *end) to the bytes of a slice that the module has. */
static struct error *cover_slice(const struct moduledata *data, struct layout_field field,
				 uint64_t elem_size, taddr start, taddr *end)
{
	uint64_t pointer, size, slice_end;

	if (!field.size)
		return NULL;
	pointer = load_u64le(data->bytes + field.offset);
	size = load_u64le(data->bytes + field.offset + 8);
	if (!size)
		return NULL;
	if (!checked_mul(size, elem_size, &size) || !checked_add(pointer, size, &slice_end) ||
	    pointer < start)
		return error_new(ERROR_CORRUPT_TARGET, "a part of the pclntab lies at 0x%" PRIx64,
				 pointer);
	if (slice_end > *end)
		*end = slice_end;
	return NULL;
}

static struct error *pclntab_bounds(const struct moduledata *data, taddr *ret_start, taddr *ret_end)
{
	const struct layout *layout = data->layout;
	bool has_header = layout_has(layout, moduledata_pclntab_header);
	taddr start = number(
	    data, has_header ? layout->moduledata_pclntab_header
			     : (struct layout_field){ layout->moduledata_pcln_slice.offset, 8 });
	taddr end = start;
	const struct {
		struct layout_field field;
		uint64_t elem_size;
	} parts[] = {
		{ layout->moduledata_funcname_slice, 1 },
		{ layout->moduledata_cu_slice, 4 },
		{ layout->moduledata_file_slice, has_header ? 1 : 4 },
		{ layout->moduledata_pc_slice, 1 },
		{ layout->moduledata_pcln_slice, 1 },
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		struct error *err =
		    cover_slice(data, parts[i].field, parts[i].elem_size, start, &end);

		if (err)
			return err;
	}
	*ret_start = start;
	*ret_end = end;
	return NULL;
}

/* Copies the pclntab and opens it. */
static struct error *read_pclntab(struct memory *memory, const struct moduledata *data,
				  struct module *module)
{
	taddr start, end;
	struct error *err = pclntab_bounds(data, &start, &end);

	if (err)
		return err;
	if (end == start || end - start > PCLNTAB_MAX)
		return error_new(ERROR_LIMIT, "pclntab of %" PRIu64 " bytes", end - start);
	module->pclntab_bytes = malloc(end - start);
	if (!module->pclntab_bytes)
		return &error_nomem;
	err = memory_read_bulk(memory, start, module->pclntab_bytes, end - start);
	if (err)
		return error_context(err, "pclntab");
	return pclntab_open(module->pclntab_bytes, end - start, module->text, 0, &module->pclntab);
}

static void fill_module(const struct moduledata *data, struct module *module)
{
	const struct layout *layout = data->layout;

	*module = (struct module){
		.moduledata = data->addr,
		.text = number(data, layout->moduledata_text),
		.etext = number(data, layout->moduledata_etext),
		.noptrdata = number(data, layout->moduledata_noptrdata),
		.enoptrdata = number(data, layout->moduledata_enoptrdata),
		.data = number(data, layout->moduledata_data),
		.edata = number(data, layout->moduledata_edata),
		.bss = number(data, layout->moduledata_bss),
		.ebss = number(data, layout->moduledata_ebss),
		.noptrbss = number(data, layout->moduledata_noptrbss),
		.enoptrbss = number(data, layout->moduledata_enoptrbss),
		.types = number(data, layout->moduledata_types),
		.etypes = number(data, layout->moduledata_etypes),
		.rodata = number_if_any(data, layout->moduledata_rodata),
		.gofunc = number_if_any(data, layout->moduledata_gofunc),
	};
}

/*
 * Pages of a plugin's pclntab that nobody has touched are not there in a live target. What is on
 * its stack is scanned conservatively then. Consumes err.
 */
static struct error *do_without(struct module *module, struct error *err)
{
	if (error_code(err) != ERROR_FAULT)
		return err;
	error_free(err);
	free(take(module->pclntab_bytes));
	return NULL;
}

static struct error *add_module(struct module_table *table, struct memory *memory,
				const struct moduledata *data)
{
	struct error *err;

	if (table->count == table->capacity) {
		uint32_t capacity = table->capacity ? 2 * table->capacity : 4;
		struct module *modules =
		    reallocarray(table->modules, capacity, sizeof(*table->modules));

		if (!modules)
			return &error_nomem;
		table->modules = modules;
		table->capacity = capacity;
	}
	fill_module(data, &table->modules[table->count]);
	table->count++; /* its parts are freed with the table from here on */
	err = read_pclntab(memory, data, &table->modules[table->count - 1]);
	if (err && table->count > 1)
		err = do_without(&table->modules[table->count - 1], err);
	if (err)
		return error_context(err, "module %" PRIu32, table->count - 1);
	return NULL;
}

static struct error *follow_chain(struct memory *memory, const struct layout *layout,
				  uint8_t *bytes, struct module_table *table)
{
	taddr next = layout->global_firstmoduledata.addr;

	for (unsigned i = 0; next; i++) {
		struct moduledata data = { next, bytes, layout };
		struct error *err;

		if (i == MODULES_MAX)
			return error_new(ERROR_LIMIT, "more than %d modules in the chain",
					 MODULES_MAX);
		err = memory_read(memory, next, bytes, layout->moduledata.size);
		if (err)
			return error_context(err, "moduledata");
		if (!number(&data, layout->moduledata_bad)) {
			err = add_module(table, memory, &data);
			if (err)
				return err;
		}
		next = number(&data, layout->moduledata_next);
	}
	return NULL;
}

struct error *module_table_read(struct memory *memory, const struct layout *layout,
				struct module_table **ret)
{
	uint8_t *bytes scoped(freep) = NULL;
	struct module_table *table scoped(module_table_freep) = NULL;
	struct error *err;

	if (layout->moduledata.size > MODULE_DATA_MAX)
		return error_new(ERROR_LIMIT, "moduledata of %" PRIu32 " bytes",
				 layout->moduledata.size);
	bytes = malloc(layout->moduledata.size);
	table = calloc(1, sizeof(*table));
	if (!bytes || !table)
		return &error_nomem;
	err = follow_chain(memory, layout, bytes, table);
	if (err)
		return err;
	if (!table->count)
		return error_new(ERROR_CORRUPT_TARGET, "no module in the chain of moduledata");
	*ret = take(table);
	return NULL;
}

uint32_t module_table_count(const struct module_table *table)
{
	return table->count;
}

const struct module *module_table_at(const struct module_table *table, uint32_t index)
{
	return &table->modules[index];
}

const struct module *module_table_find_text(const struct module_table *table, taddr pc)
{
	for (uint32_t i = 0; i < table->count; i++) {
		if (table->modules[i].pclntab && pc >= table->modules[i].text &&
		    pc < table->modules[i].etext)
			return &table->modules[i];
	}
	return NULL;
}

const struct module *module_table_find_types(const struct module_table *table, taddr addr)
{
	for (uint32_t i = 0; i < table->count; i++) {
		if (addr >= table->modules[i].types && addr < table->modules[i].etypes)
			return &table->modules[i];
	}
	return NULL;
}

struct chunk {
	uint8_t words[CHUNK_WORDS * 8];
	uint8_t mask[CHUNK_WORDS / 8];
};

static struct error *chunk_roots(const struct segment *segment, uint64_t first_word,
				 uint64_t word_count, const struct chunk *chunk,
				 struct root_sink *sink)
{
	for (uint64_t i = 0; i < word_count; i++) {
		struct root root = { .kind = segment->kind,
				     .goroutine = ROOT_NO_GOROUTINE,
				     .slot = segment->start + 8 * (first_word + i) };
		struct error *err;

		if (!(chunk->mask[i / 8] >> i % 8 & 1))
			continue;
		root.value = load_u64le(chunk->words + 8 * i);
		err = root.value ? sink->add(sink, &root) : NULL;
		if (err)
			return err;
	}
	return NULL;
}

/*
 * Pages that cannot be read are those of a plugin's file that nobody has touched: what is in them
 * the linker wrote, and it knows of no object. They are read as zeros.
 */
static struct error *read_words(struct memory *memory, taddr addr, uint8_t *bytes, uint64_t size)
{
	struct error *err = memory_read_bulk(memory, addr, bytes, size);

	if (!err || error_code(err) != ERROR_FAULT)
		return err;
	error_free(err);
	for (uint64_t at = 0, part; at < size; at += part) {
		uint64_t left = OS_PAGE_SIZE - (addr + at) % OS_PAGE_SIZE;

		part = size - at < left ? size - at : left;
		err = memory_read_bulk(memory, addr + at, bytes + at, part);
		if (err && error_code(err) != ERROR_FAULT)
			return err;
		if (err)
			memset(bytes + at, 0, part);
		error_free(err);
	}
	return NULL;
}

/* The collector takes bits beyond the mask's end for 0 (runtime/mgcmark.go, markrootBlock). */
static struct error *segment_roots(struct memory *memory, const struct segment *segment,
				   struct chunk *chunk, struct root_sink *sink)
{
	uint64_t words;

	if (segment->end < segment->start || segment->end - segment->start > SEGMENT_MAX)
		return error_new(ERROR_LIMIT, "segment from 0x%" PRIx64 " to 0x%" PRIx64,
				 segment->start, segment->end);
	words = (segment->end - segment->start) / 8;
	if (words > segment->mask_bits)
		words = segment->mask_bits;
	for (uint64_t done = 0; done < words; done += CHUNK_WORDS) {
		uint64_t part = words - done < CHUNK_WORDS ? words - done : CHUNK_WORDS;
		struct error *err;

		err = read_words(memory, segment->start + 8 * done, chunk->words, 8 * part);
		if (err)
			return err;
		err =
		    memory_read_bulk(memory, segment->mask + done / 8, chunk->mask, (part + 7) / 8);
		if (err)
			return error_context(err, "pointer mask");
		err = chunk_roots(segment, done, part, chunk, sink);
		if (err)
			return err;
	}
	return NULL;
}

/*
 * The masks as they are now: a module that is just being loaded has none yet, and the collector
 * does not scan it (runtime/symtab.go, modulesinit).
 */
static struct error *read_mask(struct memory *memory, taddr moduledata, struct layout_field mask,
			       struct layout_field count, struct segment *segment)
{
	struct error *err = layout_read_field(memory, moduledata, mask, &segment->mask);

	return err ? err : layout_read_field(memory, moduledata, count, &segment->mask_bits);
}

static struct error *module_roots(const struct module *module, struct memory *memory,
				  const struct layout *layout, struct chunk *chunk,
				  struct root_sink *sink)
{
	struct segment data = { .start = module->data, .end = module->edata, .kind = ROOT_DATA };
	struct segment bss = { .start = module->bss, .end = module->ebss, .kind = ROOT_BSS };
	struct error *err;

	err = read_mask(memory, module->moduledata, layout->moduledata_data_mask,
			layout->moduledata_data_mask_count, &data);
	if (!err)
		err = segment_roots(memory, &data, chunk, sink);
	if (err)
		return error_context(err, "data");
	err = read_mask(memory, module->moduledata, layout->moduledata_bss_mask,
			layout->moduledata_bss_mask_count, &bss);
	if (!err)
		err = segment_roots(memory, &bss, chunk, sink);
	if (err)
		return error_context(err, "bss");
	return NULL;
}

struct error *module_table_roots(const struct module_table *table, struct memory *memory,
				 const struct layout *layout, struct root_sink *sink)
{
	struct chunk *chunk scoped(freep) = malloc(sizeof(*chunk));

	if (!chunk)
		return &error_nomem;
	for (uint32_t i = 0; i < table->count; i++) {
		struct error *err = module_roots(&table->modules[i], memory, layout, chunk, sink);

		if (err)
			return error_context(err, "module %" PRIu32, i);
	}
	return NULL;
}
