#include "agent/binary/type_index.h"

#include <string.h>

#include "agent/binary/elf_file.h"
#include "proto/base/bytes.h"
#include "tests/support/assertions.h"
#include "tests/support/dwarf_writer.h"

enum { LIMIT = 1 << 20, KIND_ARRAY = 17, KIND_FUNC = 19, KIND_STRUCT = 25, KIND_UNSAFE = 26 };

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
	return err ? err : type_index_build(file, file, ret);
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
	assert_error(type_index_local(index, 0, &local), ERROR_FORMAT);
	assert_success(type_index_locals(index, 0x401000, &first, &count));
	assert_int_equal(count, 0);
	type_index_free(index);
	bytes_fini(&bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(structs_have_their_fields_and_typedefs_are_what_they_stand_for),
		cmocka_unit_test(variables_have_their_addresses),
		cmocka_unit_test(numbers_that_are_none_are_refused),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
