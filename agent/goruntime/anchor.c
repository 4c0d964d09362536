#include "agent/goruntime/anchor.h"

#include <inttypes.h>
#include <string.h>

#include "agent/goruntime/layout.h"
#include "proto/base/bytes.h"

enum {
	PAGE_SIZE = 4096,
	TABLES_MAX = 16,           /* places that look like a pc-line table */
	MODULEDATA_MAX = 4096,     /* bytes; it has about 600 */
	SEGMENT_SIZE_MAX = 1 << 30 /* bytes of one segment that are looked through */
};

struct finder {
	struct memory *memory;
	const struct anchor_segment *segments;
	size_t segment_count;
	const struct layout *layout;
	taddr tables[TABLES_MAX];
	size_t table_count;
	taddr found;
	unsigned found_count;
};

/* Takes one aligned word; addr is where it lies. */
typedef struct error *take_word(struct finder *finder, taddr addr, uint64_t word);

/* Pages that are not there hold nothing that was ever used. */
static struct error *read_page(struct memory *memory, taddr page, uint8_t *buf, bool *ret_there)
{
	struct error *err = memory_read(memory, page, buf, PAGE_SIZE);

	*ret_there = !err;
	if (err && error_code(err) == ERROR_FAULT) {
		error_free(err);
		return NULL;
	}
	return err;
}

static struct error *walk_page(struct finder *finder, const struct anchor_segment *segment,
			       taddr page, take_word *handle)
{
	uint8_t bytes[PAGE_SIZE];
	bool there;
	struct error *err = read_page(finder->memory, page, bytes, &there);

	for (unsigned i = 0; !err && there && i < PAGE_SIZE; i += 8)
		if (page + i >= segment->start && page + i + 8 <= segment->end)
			err = handle(finder, page + i, load_u64le(bytes + i));
	return err;
}

static struct error *walk(struct finder *finder, bool writable_only, take_word *handle)
{
	for (size_t i = 0; i < finder->segment_count; i++) {
		const struct anchor_segment *segment = &finder->segments[i];
		taddr page = segment->start - segment->start % PAGE_SIZE;

		if (segment->executable || (writable_only && !segment->writable))
			continue;
		if (segment->end - segment->start > SEGMENT_SIZE_MAX)
			return error_new(ERROR_LIMIT, "a segment of %" PRIu64 " bytes",
					 segment->end - segment->start);
		for (; page < segment->end; page += PAGE_SIZE) {
			struct error *err = walk_page(finder, segment, page, handle);

			if (err)
				return err;
		}
	}
	return NULL;
}

/* The header's first eight bytes: magic, two zeros, quantum of x86-64, size of a pointer. */
static struct error *take_table(struct finder *finder, taddr addr, uint64_t word)
{
	static const uint32_t magics[] = { 0xfffffffb, 0xfffffffa, 0xfffffff0, 0xfffffff1 };

	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++) {
		if (word != (magics[i] | (uint64_t)1 << 48 | (uint64_t)8 << 56))
			continue;
		if (finder->table_count == TABLES_MAX)
			return error_new(ERROR_CORRUPT_TARGET,
					 "more than %d places look like a pc-line table",
					 TABLES_MAX);
		finder->tables[finder->table_count++] = addr;
	}
	return NULL;
}

static bool in_segment(const struct finder *finder, taddr start, taddr end, bool executable,
		       bool writable)
{
	for (size_t i = 0; i < finder->segment_count; i++) {
		const struct anchor_segment *segment = &finder->segments[i];

		if ((!executable || segment->executable) && (!writable || segment->writable) &&
		    start >= segment->start && start < segment->end)
			return start < end && (!executable || end <= segment->end);
	}
	return false;
}

static bool is_moduledata(const struct finder *finder, const uint8_t *bytes)
{
	const struct layout *l = finder->layout;
	const struct {
		struct layout_field start, end;
		bool executable, writable;
	} ranges[] = {
		{ l->moduledata_text, l->moduledata_etext, true, false },
		{ l->moduledata_noptrdata, l->moduledata_enoptrdata, false, true },
		{ l->moduledata_data, l->moduledata_edata, false, true },
		{ l->moduledata_types, l->moduledata_etypes, false, false },
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (!in_segment(finder, load_u64le(bytes + ranges[i].start.offset),
				load_u64le(bytes + ranges[i].end.offset), ranges[i].executable,
				ranges[i].writable))
			return false;
	return load_u64le(bytes + l->moduledata_bss.offset) <=
	       load_u64le(bytes + l->moduledata_ebss.offset);
}

static struct error *take_moduledata(struct finder *finder, taddr addr, uint64_t word)
{
	uint8_t bytes[MODULEDATA_MAX];
	bool is_table = false;
	struct error *err;

	for (size_t i = 0; i < finder->table_count; i++)
		is_table |= word == finder->tables[i];
	if (!is_table)
		return NULL;
	err = memory_read(finder->memory, addr, bytes, finder->layout->moduledata.size);
	if (err && error_code(err) == ERROR_FAULT) {
		error_free(err);
		return NULL;
	}
	if (err || !is_moduledata(finder, bytes))
		return err;
	finder->found = addr;
	finder->found_count++;
	return NULL;
}

struct error *anchor_find(struct memory *memory, const struct anchor_segment *segments,
			  size_t segment_count, taddr pclntab, const struct layout *layout,
			  taddr *ret)
{
	struct finder finder = {
		.memory = memory,
		.segments = segments,
		.segment_count = segment_count,
		.layout = layout,
		.tables = { pclntab },
		.table_count = pclntab != 0,
	};
	struct error *err = NULL;

	if (layout->moduledata.size > MODULEDATA_MAX)
		return error_new(ERROR_LIMIT, "moduledata of %" PRIu32 " bytes",
				 layout->moduledata.size);
	if (!pclntab)
		err = walk(&finder, false, take_table);
	if (!err)
		err = walk(&finder, true, take_moduledata);
	if (err)
		return err;
	if (finder.found_count != 1)
		return error_new(ERROR_CORRUPT_TARGET,
				 "%u places look like the runtime's moduledata",
				 finder.found_count);
	*ret = finder.found;
	return NULL;
}
