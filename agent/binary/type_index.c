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

/* Of one file. Numbers in its records are its own: the first of each table is number first of all.
 */
struct part {
	const uint8_t *tables[TABLE_COUNT];
	uint32_t counts[TABLE_COUNT], first[TABLE_COUNT];
	uint64_t text_base;
	uint64_t shift; /* what is to be added to its addresses */
};

struct type_index {
	struct part parts[TYPE_INDEX_PARTS_MAX];
	uint32_t part_count;
};

struct error *type_index_build(const struct type_index_files *files, struct bytes *out)
{
	const struct elf_file *file = files->debug ? files->debug : files->executable;
	struct dwarf_object *object scoped(dwarf_object_freep) = NULL;
	struct type_index_builder builder = { .executable = files->executable,
					      .descriptors = files->descriptors,
					      .descriptors_end = files->descriptors_end };
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

static struct error *take_header(struct cursor *c, struct part *part)
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
	memcpy(part->counts, header.counts, sizeof(part->counts));
	part->text_base = header.text_base;
	return NULL;
}

static struct error *open_part(const void *bytes, size_t size, struct part *part)
{
	struct cursor c;
	struct error *err;

	cursor_init(&c, "type index", bytes, size);
	err = take_header(&c, part);
	for (unsigned i = 0; !err && i < TABLE_COUNT; i++)
		err =
		    cursor_take(&c, (uint64_t)part->counts[i] * record_sizes[i], &part->tables[i]);
	if (err)
		return err;
	if (cursor_left(&c))
		return damaged("too long");
	if (!part->counts[TABLE_TYPES] || !part->counts[TABLE_STRINGS] ||
	    part->tables[TABLE_STRINGS][part->counts[TABLE_STRINGS] - 1])
		return damaged("without an end");
	return NULL;
}

/* Gives the records of the next part the numbers that follow. */
static struct error *number_part(const struct type_index *index, struct part *part)
{
	const struct part *last = index->part_count ? &index->parts[index->part_count - 1] : NULL;

	for (unsigned i = 0; last && i < TABLE_COUNT; i++)
		if (__builtin_add_overflow(last->first[i], last->counts[i], &part->first[i]) ||
		    part->counts[i] > UINT32_MAX - part->first[i])
			return error_new(ERROR_LIMIT, "type index: too many records");
	return NULL;
}

struct error *type_index_add(struct type_index *index, const void *bytes, size_t size,
			     uint64_t shift)
{
	struct part part = { .shift = shift };
	struct error *err;

	if (index->part_count == TYPE_INDEX_PARTS_MAX)
		return error_new(ERROR_LIMIT, "type index: more than %d parts",
				 TYPE_INDEX_PARTS_MAX);
	err = open_part(bytes, size, &part);
	if (!err)
		err = number_part(index, &part);
	if (!err)
		index->parts[index->part_count++] = part;
	return err;
}

struct error *type_index_open(const void *bytes, size_t size, struct type_index **ret)
{
	struct type_index *index scoped(type_index_freep) = calloc(1, sizeof(*index));
	struct error *err;

	if (!index)
		return &error_nomem;
	err = type_index_add(index, bytes, size, 0);
	if (err)
		return err;
	*ret = take(index);
	return NULL;
}

void type_index_free(struct type_index *index)
{
	free(index);
}

/* The part that has a record, whose number in it is *ret; NULL if there is none with this number.
 */
static const struct part *part_of(const struct type_index *index, enum type_index_table table,
				  uint32_t number, uint32_t *ret)
{
	for (uint32_t i = 0; i < index->part_count; i++) {
		const struct part *part = &index->parts[i];

		*ret = number - part->first[table];
		if (*ret < part->counts[table])
			return part;
	}
	return NULL;
}

static uint32_t count_of(const struct type_index *index, enum type_index_table table)
{
	const struct part *last = &index->parts[index->part_count - 1];

	return last->first[table] + last->counts[table];
}

/* ---- records ---- */

/* False if there is none with this number of the part's. */
static bool read_record(const struct part *part, enum type_index_table table, uint32_t number,
			void *ret)
{
	if (number >= part->counts[table])
		return false;
	memcpy(ret, part->tables[table] + (size_t)number * record_sizes[table],
	       record_sizes[table]);
	return true;
}

static bool has_range(const struct part *part, enum type_index_table table, uint32_t first,
		      uint32_t count)
{
	return first <= part->counts[table] && count <= part->counts[table] - first;
}

static bool has_type(const struct part *part, uint32_t number)
{
	return number < part->counts[TABLE_TYPES];
}

/* The number of all of a type of the part; 0 is none in both. */
static uint32_t type_number(const struct part *part, uint32_t number)
{
	return number ? part->first[TABLE_TYPES] + number : 0;
}

/* NULL if it lies outside; the text ends in a NUL. */
static const char *name_at(const struct part *part, uint32_t offset)
{
	return offset < part->counts[TABLE_STRINGS]
		   ? (const char *)part->tables[TABLE_STRINGS] + offset
		   : NULL;
}

uint32_t type_index_type_count(const struct type_index *index)
{
	return count_of(index, TABLE_TYPES);
}

struct error *type_index_type(const struct type_index *index, uint32_t number,
			      struct indexed_type *ret)
{
	const struct part *part = part_of(index, TABLE_TYPES, number, &number);
	struct type_record record;
	const char *name;

	if (!part || !number || !read_record(part, TABLE_TYPES, number, &record))
		return damaged("no such type");
	name = name_at(part, record.name);
	if (!name || !has_type(part, record.elem) || !has_type(part, record.key) ||
	    !has_type(part, record.representation) ||
	    !has_range(part, TABLE_FIELDS, record.first_field, record.field_count))
		return damaged("a type leads outside");
	*ret = (struct indexed_type){
		.name = name,
		.size = record.size,
		.length = record.length,
		.descriptor = record.descriptor ? record.descriptor + part->shift : 0,
		.elem = type_number(part, record.elem),
		.key = type_number(part, record.key),
		.representation = type_number(part, record.representation),
		.first_field = part->first[TABLE_FIELDS] + record.first_field,
		.field_count = record.field_count,
		.kind = record.kind,
		.has_methods = record.flags & TYPE_HAS_METHODS,
	};
	return NULL;
}

static struct error *read_field(const struct type_index *index, enum type_index_table table,
				uint32_t number, struct indexed_field *ret)
{
	const struct part *part = part_of(index, table, number, &number);
	struct field_record record;
	const char *name;

	if (!part || !read_record(part, table, number, &record))
		return damaged("no such field");
	name = name_at(part, record.name);
	if (!name || !has_type(part, record.type))
		return damaged("a field leads outside");
	*ret = (struct indexed_field){ name, record.offset, type_number(part, record.type) };
	return NULL;
}

struct error *type_index_field(const struct type_index *index, uint32_t number,
			       struct indexed_field *ret)
{
	return read_field(index, TABLE_FIELDS, number, ret);
}

uint32_t type_index_capture_count(const struct type_index *index)
{
	return count_of(index, TABLE_CAPTURES);
}

struct error *type_index_capture(const struct type_index *index, uint32_t i,
				 struct indexed_field *ret)
{
	return read_field(index, TABLE_CAPTURES, i, ret);
}

uint32_t type_index_global_count(const struct type_index *index)
{
	return count_of(index, TABLE_GLOBALS);
}

struct error *type_index_global(const struct type_index *index, uint32_t i,
				struct indexed_global *ret)
{
	const struct part *part = part_of(index, TABLE_GLOBALS, i, &i);
	struct global_record record;
	const char *name;

	if (!part || !read_record(part, TABLE_GLOBALS, i, &record))
		return damaged("no such variable");
	name = name_at(part, record.name);
	if (!name || !has_type(part, record.type))
		return damaged("a variable leads outside");
	*ret = (struct indexed_global){ name, record.addr + part->shift,
					type_number(part, record.type) };
	return NULL;
}

struct error *type_index_local(const struct type_index *index, uint32_t i,
			       struct indexed_local *ret)
{
	const struct part *part = part_of(index, TABLE_LOCALS, i, &i);
	struct local_record record;
	const char *name, *function;

	if (!part || !read_record(part, TABLE_LOCALS, i, &record))
		return damaged("no such variable");
	name = name_at(part, record.name);
	function = name_at(part, record.function);
	if (!name || !function || !has_type(part, record.type))
		return damaged("a variable leads outside");
	*ret = (struct indexed_local){
		.name = name,
		.function = function,
		.start = part->text_base + record.start + part->shift,
		.end = part->text_base + record.end + part->shift,
		.offset = record.offset,
		.size = record.size,
		.piece_offset = record.piece_offset,
		.type = type_number(part, record.type),
		.is_heap_address = record.flags & LOCAL_IS_HEAP_ADDRESS,
		.is_spilled = record.flags & LOCAL_IS_SPILLED,
		.is_register = record.flags & LOCAL_IS_REGISTER,
	};
	return NULL;
}

/* ---- searches: in a damaged index they find nothing, or another thing ---- */

/* The type that a sorted table has at a place; a zero one if the number is bad. */
static uint32_t sorted_type(const struct part *part, enum type_index_table table, uint32_t place,
			    struct type_record *ret)
{
	uint32_t number = 0;

	*ret = (struct type_record){ 0 };
	if (!read_record(part, table, place, &number) ||
	    !read_record(part, TABLE_TYPES, number, ret))
		return 0;
	return number;
}

static uint32_t find_name(const struct part *part, const char *name)
{
	uint32_t low = 0, high = part->counts[TABLE_BY_NAME], number;
	struct type_record record;
	const char *found;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		sorted_type(part, TABLE_BY_NAME, middle, &record);
		found = name_at(part, record.name);
		if (found && strcmp(found, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	number = sorted_type(part, TABLE_BY_NAME, low, &record);
	found = name_at(part, record.name);
	return number && found && !strcmp(found, name) ? number : 0;
}

uint32_t type_index_find_name(const struct type_index *index, const char *name)
{
	uint32_t number = 0;

	for (uint32_t i = 0; i < index->part_count && !number; i++)
		number = type_number(&index->parts[i], find_name(&index->parts[i], name));
	return number;
}

static uint32_t find_descriptor(const struct part *part, taddr descriptor)
{
	uint32_t low = 0, high = part->counts[TABLE_BY_DESCRIPTOR], number;
	struct type_record record;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		sorted_type(part, TABLE_BY_DESCRIPTOR, middle, &record);
		if (record.descriptor < descriptor)
			low = middle + 1;
		else
			high = middle;
	}
	number = sorted_type(part, TABLE_BY_DESCRIPTOR, low, &record);
	return number && descriptor && record.descriptor == descriptor ? number : 0;
}

uint32_t type_index_find_descriptor(const struct type_index *index, taddr descriptor)
{
	uint32_t number = 0;

	for (uint32_t i = 0; i < index->part_count && !number && descriptor; i++)
		number = type_number(
		    &index->parts[i],
		    find_descriptor(&index->parts[i], descriptor - index->parts[i].shift));
	return number;
}

static bool find_in_part(const struct part *part, taddr entry, struct function_record *ret)
{
	uint32_t low = 0, high = part->counts[TABLE_FUNCTIONS];

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		struct function_record record = { 0 };

		(void)read_record(part, TABLE_FUNCTIONS, middle, &record);
		if (record.entry < entry)
			low = middle + 1;
		else
			high = middle;
	}
	return read_record(part, TABLE_FUNCTIONS, low, ret) && ret->entry == entry;
}

/* NULL if there is none. */
static const struct part *find_function(const struct type_index *index, taddr entry,
					struct function_record *ret)
{
	for (uint32_t i = 0; i < index->part_count; i++)
		if (find_in_part(&index->parts[i], entry - index->parts[i].shift, ret))
			return &index->parts[i];
	return NULL;
}

struct error *type_index_locals(const struct type_index *index, taddr entry, uint32_t *ret_first,
				uint32_t *ret_count)
{
	struct function_record function;
	const struct part *part = find_function(index, entry, &function);

	*ret_first = *ret_count = 0;
	if (!part)
		return NULL;
	if (!has_range(part, TABLE_LOCALS, function.first_local, function.local_count))
		return damaged("a function leads outside");
	*ret_first = part->first[TABLE_LOCALS] + function.first_local;
	*ret_count = function.local_count;
	return NULL;
}

uint32_t type_index_first_param(const struct type_index *index, taddr entry)
{
	struct function_record function;
	const struct part *part = find_function(index, entry, &function);

	return part && has_type(part, function.first_param)
		   ? type_number(part, function.first_param)
		   : 0;
}

struct error *type_index_captures(const struct type_index *index, taddr entry, uint32_t *ret_first,
				  uint32_t *ret_count)
{
	struct function_record function;
	const struct part *part = find_function(index, entry, &function);

	*ret_first = *ret_count = 0;
	if (!part)
		return NULL;
	if (!has_range(part, TABLE_CAPTURES, function.first_capture, function.capture_count))
		return damaged("a function leads outside");
	*ret_first = part->first[TABLE_CAPTURES] + function.first_capture;
	*ret_count = function.capture_count;
	return NULL;
}
