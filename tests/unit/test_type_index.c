#include "agent/binary/type_index.h"

#include <string.h>

#include "agent/binary/elf_file.h"
#include "proto/base/bytes.h"
#include "tests/support/ask_types.h"
#include "tests/support/assertions.h"
#include "tests/support/dwarf_writer.h"

enum {
	LIMIT = 1 << 20,
	/* internal/abi/type.go */
	KIND_ARRAY = 17,
	KIND_FUNC = 19,
	KIND_STRUCT = 25,
	KIND_UNSAFE = 26,
};

static struct error *build(const struct dwarf_writer *writer, struct bytes *ret)
{
	static struct elf_writer elf;
	struct elf_file *file scoped(elf_file_freep) = NULL;
	int fd scoped(closep) = -1;
	struct error *err;

	dwarf_writer_elf(writer, &elf);
	fd = elf_writer_open(&elf, elf.size);
	bytes_init(ret, LIMIT);
	err = elf_file_open(fd, &file);
	return err ? err : type_index_build(&(struct type_index_files){ file, NULL, 0, 0 }, ret);
}

static struct type_index *build_and_open(unsigned version, struct bytes *bytes)
{
	struct dwarf_writer writer;
	struct type_index *index = NULL;

	dwarf_writer_make(&writer, version);
	assert_success(build(&writer, bytes));
	assert_success(type_index_open(bytes->data, bytes->size, &index));
	return index;
}

static struct indexed_type type_of(const struct type_index *index, uint32_t number)
{
	struct indexed_type type = { 0 };

	assert_success(type_index_type(index, number, &type));
	return type;
}

static void assert_field(const struct type_index *index, const struct indexed_type *type,
			 uint32_t i, const char *name, uint64_t offset, uint8_t kind)
{
	struct indexed_field field = { 0 };

	assert_success(type_index_field(index, type->first_field + i, &field));
	assert_string_equal(field.name, name);
	assert_int_equal(field.offset, offset);
	assert_int_equal(type_of(index, field.type).kind, kind);
}

static void structs_have_their_fields_and_typedefs_are_what_they_stand_for(void **state)
{
	(void)state;
	for (unsigned version = 4; version <= 5; version++) {
		struct bytes bytes;
		struct type_index *index = build_and_open(version, &bytes);
		uint32_t number = type_index_find_name(index, "runtime.outer");
		struct indexed_type outer = type_of(index, number);
		struct indexed_field field;

		assert_int_equal(outer.size, 112);
		assert_int_equal(outer.kind, KIND_STRUCT);
		assert_int_equal(outer.field_count, 4);
		assert_field(index, &outer, 0, "in", 16, KIND_STRUCT);
		assert_field(index, &outer, 1, "arr", 32, KIND_ARRAY);
		assert_field(index, &outer, 2, "ptr", 96, KIND_UNSAFE);
		assert_field(index, &outer, 3, "f", 104, KIND_FUNC);
		assert_success(type_index_field(index, outer.first_field, &field));
		assert_string_equal(type_of(index, field.type).name, "runtime.inner");
		assert_int_equal(type_index_find_name(index, "runtime.alias"), 0);
		assert_int_equal(type_index_find_name(index, "runtime.oute"), 0);
		assert_int_equal(type_of(index, type_index_find_name(index, "main.T")).size, 8);
		type_index_free(index);
		bytes_fini(&bytes);
	}
}

static void variables_have_their_addresses(void **state)
{
	struct bytes bytes;
	struct type_index *index = build_and_open(4, &bytes);
	struct indexed_global global;

	(void)state;
	assert_int_equal(type_index_global_count(index), 1);
	assert_success(type_index_global(index, 0, &global));
	assert_string_equal(global.name, "runtime.v");
	assert_int_equal(global.addr, DWARF_WRITER_VARIABLE);
	assert_string_equal(type_of(index, global.type).name, "runtime.outer");
	assert_error(type_index_global(index, 1, &global), ERROR_FORMAT);
	type_index_free(index);
	bytes_fini(&bytes);
}

static void assert_local(const struct type_index *index, uint32_t i, const char *name,
			 int64_t offset, const char *type, bool is_heap_address)
{
	struct indexed_local local = { 0 };

	assert_success(type_index_local(index, i, &local));
	assert_string_equal(local.name, name);
	assert_string_equal(local.function, "main.f.func1");
	assert_int_equal(local.start, DWARF_WRITER_FUNCTION);
	assert_int_equal(local.end, DWARF_WRITER_FUNCTION + 0x100);
	assert_int_equal(local.offset, offset);
	assert_int_equal(local.size, 8);
	assert_int_equal(local.piece_offset, 0);
	assert_string_equal(type_of(index, local.type).name, type);
	assert_int_equal(local.is_heap_address, is_heap_address);
}

/* In a register first; the compiler may spill it to where a caller would have put it. */
static void assert_parameter(const struct type_index *index, uint32_t i, uint32_t spilled)
{
	struct indexed_local local = { 0 };

	assert_local(index, i, "r", 0, "*main.T", false);
	assert_success(type_index_local(index, i, &local));
	assert_true(local.is_register);
	assert_false(local.is_spilled);
	assert_local(index, spilled, "r", 0, "*main.T", false);
	assert_success(type_index_local(index, spilled, &local));
	assert_false(local.is_register);
	assert_true(local.is_spilled);
	assert_string_equal(
	    type_of(index, type_index_first_param(index, DWARF_WRITER_FUNCTION)).name, "*main.T");
	assert_int_equal(type_index_first_param(index, DWARF_WRITER_FUNCTION + 1), 0);
}

/* Called like the whole; nobody knows what an interface holds. */
static void assert_split(const struct type_index *index, uint32_t i)
{
	struct indexed_local local = { 0 };

	assert_success(type_index_local(index, i, &local));
	assert_string_equal(local.name, "e");
	assert_int_equal(local.offset, -40);
	assert_int_equal(local.size, 8);
	assert_int_equal(local.type, 0);
	assert_local(index, i + 1, "p", -16, "*main.T", false);
}

/*
 * By their offsets, then by registers; then what was split off, and where parameters are spilled. n
 * holds no pointer and is not told.
 */
static void variables_of_functions_are_in_their_frames_and_registers(void **state)
{
	(void)state;
	for (unsigned version = 4; version <= 5; version++) {
		struct bytes bytes;
		struct type_index *index = build_and_open(version, &bytes);
		uint32_t first = 0, count = 0;

		assert_success(type_index_locals(index, DWARF_WRITER_FUNCTION, &first, &count));
		assert_int_equal(count, 6);
		assert_local(index, first, "x", -24, "main.T", true);
		assert_local(index, first + 1, "p", -16, "*main.T", false);
		assert_parameter(index, first + 2, first + 5);
		assert_split(index, first + 3);
		assert_success(type_index_locals(index, DWARF_WRITER_FUNCTION + 1, &first, &count));
		assert_int_equal(count, 0);
		type_index_free(index);
		bytes_fini(&bytes);
	}
}

/* The same once more, as if it were a plugin, half a megabyte higher up. */
static void parts_go_on_with_numbers_and_addresses(void **state)
{
	enum { SHIFT = 0x80000 };
	struct bytes bytes;
	struct type_index *index = build_and_open(5, &bytes);
	uint32_t types = type_index_type_count(index), first = 0, count = 0, again = 0;
	struct indexed_global global = { 0 };
	struct indexed_local local = { 0 };
	struct indexed_field field = { 0 };
	struct indexed_type type;

	(void)state;
	assert_success(type_index_add(index, bytes.data, bytes.size, SHIFT));
	assert_int_equal(type_index_type_count(index), 2 * types);
	assert_int_equal(type_index_global_count(index), 2);
	assert_success(type_index_global(index, 1, &global));
	assert_string_equal(global.name, "runtime.v");
	assert_int_equal(global.addr, DWARF_WRITER_VARIABLE + SHIFT);
	assert_true(global.type > types);
	type = type_of(index, global.type);
	assert_string_equal(type.name, "runtime.outer");
	assert_success(type_index_field(index, type.first_field, &field));
	assert_string_equal(field.name, "in");
	assert_string_equal(type_of(index, field.type).name, "runtime.inner");
	assert_true(field.type > types);
	/* A name is found in the first. */
	assert_true(type_index_find_name(index, "runtime.outer") < types);
	assert_success(type_index_locals(index, DWARF_WRITER_FUNCTION, &again, &count));
	assert_success(type_index_locals(index, DWARF_WRITER_FUNCTION + SHIFT, &first, &count));
	assert_int_equal(first, again + count);
	assert_success(type_index_local(index, first + 1, &local));
	assert_string_equal(local.name, "p");
	assert_int_equal(local.start, DWARF_WRITER_FUNCTION + SHIFT);
	assert_string_equal(type_of(index, local.type).name, "*main.T");
	assert_success(type_index_captures(index, DWARF_WRITER_FUNCTION + SHIFT, &first, &count));
	assert_success(type_index_capture(index, first, &field));
	assert_string_equal(field.name, "x");
	assert_error(type_index_type(index, types, &type), ERROR_FORMAT);
	assert_error(type_index_local(index, UINT32_MAX, &local), ERROR_FORMAT);
	for (unsigned i = 2; i < TYPE_INDEX_PARTS_MAX; i++)
		assert_success(type_index_add(index, bytes.data, bytes.size, i * SHIFT));
	assert_error(type_index_add(index, bytes.data, bytes.size, 0), ERROR_LIMIT);
	type_index_free(index);
	bytes_fini(&bytes);
}

static void what_a_closure_captures_is_told_by_offset(void **state)
{
	struct bytes bytes;
	struct type_index *index = build_and_open(5, &bytes);
	struct indexed_field field = { 0 };
	uint32_t first = 0, count = 0;

	(void)state;
	assert_success(type_index_captures(index, DWARF_WRITER_FUNCTION, &first, &count));
	assert_int_equal(count, 2);
	assert_success(type_index_capture(index, first, &field));
	assert_string_equal(field.name, "x");
	assert_int_equal(field.offset, 8);
	assert_string_equal(type_of(index, field.type).name, "*main.T");
	assert_success(type_index_capture(index, first + 1, &field));
	assert_string_equal(field.name, "n");
	assert_int_equal(field.offset, 16);
	assert_string_equal(type_of(index, field.type).name, "uintptr");
	type_index_free(index);
	bytes_fini(&bytes);
}

/* Opens a copy that ends at an unmapped page, and asks it for everything. */
static void ask_copy(const uint8_t *bytes, size_t size)
{
	struct tail_copy copy = tail_copy(bytes, size);
	struct type_index *index = NULL;
	struct error *err = type_index_open(copy.bytes, size, &index);

	if (!err)
		ask_types(index, DWARF_WRITER_FUNCTION);
	error_free(err);
	type_index_free(index);
	tail_copy_fini(&copy);
}

static void damaged_indexes_never_lead_outside(void **state)
{
	static const uint8_t flips[] = { 0x01, 0x80, 0xff };
	struct bytes bytes;
	struct type_index *index = build_and_open(5, &bytes);

	(void)state;
	type_index_free(index);
	for (size_t at = 0; at < bytes.size; at++)
		for (size_t i = 0; i < sizeof(flips); i++) {
			bytes.data[at] ^= flips[i];
			ask_copy(bytes.data, bytes.size);
			bytes.data[at] ^= flips[i];
		}
	bytes_fini(&bytes);
}

static void every_truncation_and_anything_more_is_refused(void **state)
{
	struct bytes bytes;
	struct type_index *index = build_and_open(4, &bytes), *other = NULL;

	(void)state;
	type_index_free(index);
	for (size_t size = 0; size < bytes.size; size++) {
		struct tail_copy copy = tail_copy(bytes.data, size);

		assert_error(type_index_open(copy.bytes, size, &other), ERROR_FORMAT);
		tail_copy_fini(&copy);
	}
	assert_success(bytes_append(&bytes, "", 1));
	assert_error(type_index_open(bytes.data, bytes.size, &other), ERROR_FORMAT);
	bytes_fini(&bytes);
}

/* What comes of it does not matter, but that it is an index or an error. */
static void damaged_dwarf_is_indexed_or_refused(void **state)
{
	static const uint8_t flips[] = { 0x01, 0x08, 0x80, 0xff };

	(void)state;
	for (unsigned version = 4; version <= 5; version++) {
		struct dwarf_writer good;

		dwarf_writer_make(&good, version);
		for (size_t at = 0; at < good.info_size + good.abbrev_size; at++)
			for (size_t i = 0; i < sizeof(flips); i++) {
				struct dwarf_writer bad = good;
				struct bytes bytes;
				struct error *err;

				if (at < good.info_size)
					bad.info[at] ^= flips[i];
				else
					bad.abbrev[at - good.info_size] ^= flips[i];
				err = build(&bad, &bytes);
				if (!err)
					ask_copy(bytes.data, bytes.size);
				error_free(err);
				bytes_fini(&bytes);
			}
	}
}

static void an_index_beyond_the_limit_is_refused(void **state)
{
	static struct elf_writer elf;
	struct dwarf_writer writer;
	struct elf_file *file scoped(elf_file_freep) = NULL;
	int fd scoped(closep) = -1;
	struct bytes bytes;

	(void)state;
	dwarf_writer_make(&writer, 4);
	dwarf_writer_elf(&writer, &elf);
	fd = elf_writer_open(&elf, elf.size);
	assert_success(elf_file_open(fd, &file));
	bytes_init(&bytes, 600);
	assert_error(type_index_build(&(struct type_index_files){ file, NULL, 0, 0 }, &bytes),
		     ERROR_LIMIT);
	bytes_fini(&bytes);
}

static void numbers_that_are_none_are_refused(void **state)
{
	struct bytes bytes;
	struct type_index *index = build_and_open(5, &bytes);
	struct indexed_type type;
	struct indexed_field field;
	struct indexed_local local;
	uint32_t first, count;

	(void)state;
	assert_error(type_index_type(index, 0, &type), ERROR_FORMAT);
	assert_error(type_index_type(index, type_index_type_count(index), &type), ERROR_FORMAT);
	assert_error(type_index_field(index, UINT32_MAX, &field), ERROR_FORMAT);
	assert_error(type_index_local(index, UINT32_MAX, &local), ERROR_FORMAT);
	assert_success(type_index_locals(index, 0x400000, &first, &count));
	assert_int_equal(count, 0);
	type_index_free(index);
	bytes_fini(&bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(structs_have_their_fields_and_typedefs_are_what_they_stand_for),
		cmocka_unit_test(variables_have_their_addresses),
		cmocka_unit_test(variables_of_functions_are_in_their_frames_and_registers),
		cmocka_unit_test(parts_go_on_with_numbers_and_addresses),
		cmocka_unit_test(what_a_closure_captures_is_told_by_offset),
		cmocka_unit_test(numbers_that_are_none_are_refused),
		cmocka_unit_test(damaged_indexes_never_lead_outside),
		cmocka_unit_test(every_truncation_and_anything_more_is_refused),
		cmocka_unit_test(damaged_dwarf_is_indexed_or_refused),
		cmocka_unit_test(an_index_beyond_the_limit_is_refused),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
