#include "agent/binary/type_index.h"

#include <stdlib.h>
#include <string.h>

#include "agent/binary/dwarf_object.h"
#include "agent/binary/elf_file.h"
#include "agent/binary/type_index_builder.h"
#include "agent/binary/type_index_format.h"
#include "proto/base/cursor.h"

static const uint32_t record_sizes[TABLE_COUNT] = {
	[TABLE_TYPES] = sizeof(struct type_record),
	[TABLE_FIELDS] = sizeof(struct field_record),
	[TABLE_BY_NAME] = sizeof(uint32_t),
	[TABLE_BY_DESCRIPTOR] = sizeof(uint32_t),
	[TABLE_GLOBALS] = sizeof(struct global_record),
	[TABLE_FUNCTIONS] = sizeof(struct function_record),
	[TABLE_LOCALS] = sizeof(struct local_record),
	[TABLE_CAPTURES] = sizeof(struct field_record),
	[TABLE_STRINGS] = 1,
};

struct type_index {
	const uint8_t *tables[TABLE_COUNT];
	uint32_t counts[TABLE_COUNT];
	uint64_t text_base;
};

struct error *type_index_build(const struct elf_file *executable, const struct elf_file *file,
			       struct bytes *out)
{
	struct dwarf_object *object scoped(dwarf_object_freep) = NULL;
	struct type_index_builder builder = { .executable = executable };
	struct error *err = dwarf_object_open(file, &object);

	if (err)
		return err;
	builder.object = object;
	err = type_index_builder_init(&builder, out->limit);
	if (!err)
		err = dwarf_lists_read(file, &builder.lists);
	if (!err)
		err = type_index_collect(&builder);
	if (!err)
		err = type_index_finish(&builder, out);
	type_index_builder_fini(&builder);
	return err;
}

static struct error *damaged(const char *what)
{
	return error_new(ERROR_FORMAT, "type index: %s", what);
}

static struct error *take_header(struct cursor *c, struct type_index *index)
{
	struct type_index_header header;
	const uint8_t *bytes;
	struct error *err = cursor_take(c, sizeof(header), &bytes);

	if (err)
		return err;
	memcpy(&header, bytes, sizeof(header));
	if (memcmp(header.magic, TYPE_INDEX_MAGIC, sizeof(header.magic)) != 0 ||
	    header.version != TYPE_INDEX_VERSION)
		return damaged("of another program or version");
	memcpy(index->counts, header.counts, sizeof(index->counts));
	index->text_base = header.text_base;
	return NULL;
}

struct error *type_index_open(const void *bytes, size_t size, struct type_index **ret)
{
	struct type_index *index scoped(type_index_freep) = calloc(1, sizeof(*index));
	struct cursor c;
	struct error *err;

	if (!index)
		return &error_nomem;
	cursor_init(&c, "type index", bytes, size);
	err = take_header(&c, index);
	for (unsigned i = 0; !err && i < TABLE_COUNT; i++)
		err = cursor_take(&c, (uint64_t)index->counts[i] * record_sizes[i],
				  &index->tables[i]);
	if (err)
		return err;
	if (cursor_left(&c))
		return damaged("too long");
	if (!index->counts[TABLE_TYPES] || !index->counts[TABLE_STRINGS] ||
	    index->tables[TABLE_STRINGS][index->counts[TABLE_STRINGS] - 1])
		return damaged("without an end");
	*ret = take(index);
	return NULL;
}

void type_index_free(struct type_index *index)
{
	free(index);
}

/* ---- records ---- */

/* False if there is none with this number. */
static bool read_record(const struct type_index *index, enum type_index_table table,
			uint32_t number, void *ret)
{
	if (number >= index->counts[table])
		return false;
	memcpy(ret, index->tables[table] + (size_t)number * record_sizes[table],
	       record_sizes[table]);
	return true;
}

static bool has_range(const struct type_index *index, enum type_index_table table, uint32_t first,
		      uint32_t count)
{
	return first <= index->counts[table] && count <= index->counts[table] - first;
}

static bool has_type(const struct type_index *index, uint32_t number)
{
	return number < index->counts[TABLE_TYPES];
}

/* NULL if it lies outside; the text ends in a NUL. */
static const char *name_at(const struct type_index *index, uint32_t offset)
{
	return offset < index->counts[TABLE_STRINGS]
		   ? (const char *)index->tables[TABLE_STRINGS] + offset
		   : NULL;
}

uint32_t type_index_type_count(const struct type_index *index)
{
	return index->counts[TABLE_TYPES];
}

struct error *type_index_type(const struct type_index *index, uint32_t number,
			      struct indexed_type *ret)
{
	struct type_record record;
	const char *name;

	if (!number || !read_record(index, TABLE_TYPES, number, &record))
		return damaged("no such type");
	name = name_at(index, record.name);
	if (!name || !has_type(index, record.elem) || !has_type(index, record.key) ||
	    !has_type(index, record.representation) ||
	    !has_range(index, TABLE_FIELDS, record.first_field, record.field_count))
		return damaged("a type leads outside");
	*ret = (struct indexed_type){
		.name = name,
		.size = record.size,
		.length = record.length,
		.descriptor = record.descriptor,
		.elem = record.elem,
		.key = record.key,
		.representation = record.representation,
		.first_field = record.first_field,
		.field_count = record.field_count,
		.kind = record.kind,
		.has_methods = record.flags & TYPE_HAS_METHODS,
	};
	return NULL;
}

static struct error *read_field(const struct type_index *index, enum type_index_table table,
				uint32_t number, struct indexed_field *ret)
{
	struct field_record record;
	const char *name;

	if (!read_record(index, table, number, &record))
		return damaged("no such field");
	name = name_at(index, record.name);
	if (!name || !has_type(index, record.type))
		return damaged("a field leads outside");
	*ret = (struct indexed_field){ name, record.offset, record.type };
	return NULL;
}

struct error *type_index_field(const struct type_index *index, uint32_t number,
			       struct indexed_field *ret)
{
	return read_field(index, TABLE_FIELDS, number, ret);
}

uint32_t type_index_capture_count(const struct type_index *index)
{
	return index->counts[TABLE_CAPTURES];
}

struct error *type_index_capture(const struct type_index *index, uint32_t i,
				 struct indexed_field *ret)
{
	return read_field(index, TABLE_CAPTURES, i, ret);
}

uint32_t type_index_global_count(const struct type_index *index)
{
	return index->counts[TABLE_GLOBALS];
}

struct error *type_index_global(const struct type_index *index, uint32_t i,
				struct indexed_global *ret)
{
	struct global_record record;
	const char *name;

	if (!read_record(index, TABLE_GLOBALS, i, &record))
		return damaged("no such variable");
	name = name_at(index, record.name);
	if (!name || !has_type(index, record.type))
		return damaged("a variable leads outside");
	*ret = (struct indexed_global){ name, record.addr, record.type };
	return NULL;
}

struct error *type_index_local(const struct type_index *index, uint32_t i,
			       struct indexed_local *ret)
{
	struct local_record record;
	const char *name, *function;

	if (!read_record(index, TABLE_LOCALS, i, &record))
		return damaged("no such variable");
	name = name_at(index, record.name);
	function = name_at(index, record.function);
	if (!name || !function || !has_type(index, record.type))
		return damaged("a variable leads outside");
	*ret = (struct indexed_local){
		.name = name,
		.function = function,
		.start = index->text_base + record.start,
		.end = index->text_base + record.end,
		.offset = record.offset,
		.size = record.size,
		.piece_offset = record.piece_offset,
		.type = record.type,
		.is_heap_address = record.flags & LOCAL_IS_HEAP_ADDRESS,
		.is_spilled = record.flags & LOCAL_IS_SPILLED,
		.is_register = record.flags & LOCAL_IS_REGISTER,
	};
	return NULL;
}

/* ---- searches: in a damaged index they find nothing, or another thing ---- */

/* The type that a sorted table has at a place; a zero one if the number is bad. */
static uint32_t sorted_type(const struct type_index *index, enum type_index_table table,
			    uint32_t place, struct type_record *ret)
{
	uint32_t number = 0;

	*ret = (struct type_record){ 0 };
	if (!read_record(index, table, place, &number) ||
	    !read_record(index, TABLE_TYPES, number, ret))
		return 0;
	return number;
}

uint32_t type_index_find_name(const struct type_index *index, const char *name)
{
	uint32_t low = 0, high = index->counts[TABLE_BY_NAME], number;
	struct type_record record;
	const char *found;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		sorted_type(index, TABLE_BY_NAME, middle, &record);
		found = name_at(index, record.name);
		if (found && strcmp(found, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	number = sorted_type(index, TABLE_BY_NAME, low, &record);
	found = name_at(index, record.name);
	return number && found && !strcmp(found, name) ? number : 0;
}

uint32_t type_index_find_descriptor(const struct type_index *index, taddr descriptor)
{
	uint32_t low = 0, high = index->counts[TABLE_BY_DESCRIPTOR], number;
	struct type_record record;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		sorted_type(index, TABLE_BY_DESCRIPTOR, middle, &record);
		if (record.descriptor < descriptor)
			low = middle + 1;
		else
			high = middle;
	}
	number = sorted_type(index, TABLE_BY_DESCRIPTOR, low, &record);
	return number && descriptor && record.descriptor == descriptor ? number : 0;
}

/* All zeros if there is none. */
static void find_function(const struct type_index *index, taddr entry, struct function_record *ret)
{
	uint32_t low = 0, high = index->counts[TABLE_FUNCTIONS];

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		struct function_record record = { 0 };

		(void)read_record(index, TABLE_FUNCTIONS, middle, &record);
		if (record.entry < entry)
			low = middle + 1;
		else
			high = middle;
	}
	if (!read_record(index, TABLE_FUNCTIONS, low, ret) || ret->entry != entry)
		*ret = (struct function_record){ 0 };
}

struct error *type_index_locals(const struct type_index *index, taddr entry, uint32_t *ret_first,
				uint32_t *ret_count)
{
	struct function_record function;

	find_function(index, entry, &function);
	if (!has_range(index, TABLE_LOCALS, function.first_local, function.local_count))
		return damaged("a function leads outside");
	*ret_first = function.first_local;
	*ret_count = function.local_count;
	return NULL;
}

uint32_t type_index_first_param(const struct type_index *index, taddr entry)
{
	struct function_record function;

	find_function(index, entry, &function);
	return has_type(index, function.first_param) ? function.first_param : 0;
}

struct error *type_index_captures(const struct type_index *index, taddr entry, uint32_t *ret_first,
				  uint32_t *ret_count)
{
	struct function_record function;

	find_function(index, entry, &function);
	if (!has_range(index, TABLE_CAPTURES, function.first_capture, function.capture_count))
		return damaged("a function leads outside");
	*ret_first = function.first_capture;
	*ret_count = function.capture_count;
	return NULL;
}
