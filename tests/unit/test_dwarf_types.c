#include "agent/binary/dwarf_types.h"

#include <unistd.h>

#include <dwarf.h>

#include "agent/binary/elf_file.h"
#include "proto/base/bytes.h"
#include "tests/support/assertions.h"
#include "tests/support/dwarf_writer.h"

static struct error *open_types(const struct dwarf_writer *writer, struct dwarf_types **ret)
{
	static struct elf_writer elf;
	struct elf_file *file scoped(elf_file_freep) = NULL;
	int fd scoped(closep) = -1;
	struct error *err;

	dwarf_writer_elf(writer, &elf);
	fd = elf_writer_open(&elf, elf.size);
	err = elf_file_open(fd, &file);
	return err ? err : dwarf_types_open(file, ret);
}

static struct dwarf_types *open_version(unsigned version)
{
	struct dwarf_writer writer;
	struct dwarf_types *types = NULL;

	dwarf_writer_make(&writer, version);
	assert_success(open_types(&writer, &types));
	return types;
}

static void assert_field(struct layout_source *source, const char *path, uint32_t offset,
			 uint32_t size)
{
	uint32_t found_offset = 0, found_size = 0;
	struct error *err = NULL;

	assert_true(
	    source->find_field(source, "runtime.outer", path, &found_offset, &found_size, &err));
	assert_null(err);
	assert_int_equal(found_offset, offset);
	assert_int_equal(found_size, size);
}

static void structs_and_their_fields_are_found(void **state)
{
	(void)state;
	for (unsigned version = 4; version <= 5; version++) {
		struct dwarf_types *types = open_version(version);
		struct layout_source *source = dwarf_types_source(types);
		struct error *err = NULL;
		uint32_t size = 0;

		assert_true(source->find_struct(source, "runtime.outer", &size, &err));
		assert_int_equal(size, 112);
		assert_true(source->find_struct(source, "runtime.alias", &size, &err));
		assert_int_equal(size, 16);
		assert_field(source, "in", 16, 16);
		assert_field(source, "in.value", 24, 8);
		assert_field(source, "arr", 32, 64);
		assert_field(source, "arr.value", 40, 8);
		assert_field(source, "ptr", 96, 8);
		assert_field(source, "f", 104, 8);
		dwarf_types_free(types);
	}
}

static void constants_and_globals_are_found(void **state)
{
	(void)state;
	for (unsigned version = 4; version <= 5; version++) {
		struct dwarf_types *types = open_version(version);
		struct layout_source *source = dwarf_types_source(types);
		struct error *err = NULL;
		int64_t value = 0;
		taddr addr = 0;
		uint64_t size = 0;

		assert_true(source->find_constant(source, "runtime.answer", &value, &err));
		assert_int_equal(value, -42);
		assert_true(source->find_global(source, "runtime.v", &addr, &size, &err));
		assert_int_equal(addr, DWARF_WRITER_VARIABLE);
		assert_int_equal(size, 112);
		assert_null(err);
		dwarf_types_free(types);
	}
}

static void what_is_not_there_is_no_error(void **state)
{
	static const char *const paths[] = { "out", "in.other", "ptr.in", "in.value.deeper", "" };
	struct dwarf_types *types = open_version(5);
	struct layout_source *source = dwarf_types_source(types);
	struct error *err = NULL;
	uint32_t offset, size;
	uint64_t size64;
	int64_t value;
	taddr addr;

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		assert_false(
		    source->find_field(source, "runtime.outer", paths[i], &offset, &size, &err));
	assert_false(source->find_struct(source, "runtime.v", &size, &err));
	assert_false(source->find_struct(source, "main.T", &size, &err));
	assert_false(source->find_field(source, "runtime.none", "in", &offset, &size, &err));
	assert_false(source->find_constant(source, "runtime.v", &value, &err));
	assert_false(source->find_global(source, "runtime.answer", &addr, &size64, &err));
	assert_null(err);
	dwarf_types_free(types);
}

static void typedefs_that_go_round_end(void **state)
{
	struct dwarf_writer writer;
	struct dwarf_types *types = NULL;
	struct layout_source *source;
	struct error *err = NULL;
	uint32_t offset, size;

	(void)state;
	dwarf_writer_make(&writer, 5);
	/* the typedef's DIE: a code and its name before the reference */
	store_u32le(writer.info + writer.typedef_place,
		    (uint32_t)(writer.typedef_place - sizeof("runtime.alias") - 1));
	assert_success(open_types(&writer, &types));
	source = dwarf_types_source(types);
	assert_false(source->find_struct(source, "runtime.alias", &size, &err));
	assert_error(err, ERROR_LIMIT);
	err = NULL;
	assert_false(source->find_field(source, "runtime.outer", "in.value", &offset, &size, &err));
	assert_error(err, ERROR_LIMIT);
	dwarf_types_free(types);
}

/* libdwarf would follow them round and round. */
static void sibling_attributes_are_refused(void **state)
{
	static const uint8_t byte_size[] = { DW_AT_byte_size, DW_FORM_udata };
	struct dwarf_writer writer;
	struct dwarf_types *types = NULL;
	uint8_t *place;

	(void)state;
	dwarf_writer_make(&writer, 5);
	place = memmem(writer.abbrev, writer.abbrev_size, byte_size, sizeof(byte_size));
	assert_non_null(place);
	place[0] = DW_AT_sibling;
	assert_error(open_types(&writer, &types), ERROR_FORMAT);
	assert_null(types);
}

static void files_without_dwarf_are_told_how_to_get_it(void **state)
{
	static struct elf_writer elf;
	struct elf_file *file;
	struct dwarf_types *types = NULL;
	struct error *err;

	(void)state;
	elf_writer_init(&elf, ET_EXEC);
	elf_writer_finish(&elf);
	assert_success(elf_file_open(elf_writer_open(&elf, elf.size), &file));
	err = dwarf_types_open(file, &types);
	assert_non_null(err);
	assert_int_equal(error_code(err), ERROR_NO_DEBUG_INFO);
	assert_non_null(strstr(error_message(err), "-ldflags=-w"));
	assert_null(types);
	error_free(err);
	elf_file_free(file);
}

/* Everything that can be asked of spoilt DWARF, whatever comes of it. */
static void use_types(const struct dwarf_writer *writer)
{
	struct dwarf_types *types = NULL;
	struct error *err = open_types(writer, &types);
	struct layout_source *source;
	uint32_t offset, size;
	uint64_t size64;
	int64_t value;
	taddr addr;

	error_free(err);
	err = NULL;
	if (!types)
		return;
	source = dwarf_types_source(types);
	if (!source->find_field(source, "runtime.outer", "arr.value", &offset, &size, &err))
		error_free(err);
	err = NULL;
	if (!source->find_constant(source, "runtime.answer", &value, &err))
		error_free(err);
	err = NULL;
	if (!source->find_global(source, "runtime.v", &addr, &size64, &err))
		error_free(err);
	dwarf_types_free(types);
}

static void every_truncation_is_survived(void **state)
{
	struct dwarf_writer writer;

	(void)state;
	for (unsigned version = 4; version <= 5; version++) {
		dwarf_writer_make(&writer, version);
		while (writer.info_size--)
			use_types(&writer);
		dwarf_writer_make(&writer, version);
		while (writer.abbrev_size--)
			use_types(&writer);
	}
}

static void every_byte_may_be_anything(void **state)
{
	static const uint8_t values[] = { 0x00, 0x01, 0x7f, 0x80, 0xff };
	struct dwarf_writer writer, spoilt;

	(void)state;
	for (unsigned version = 4; version <= 5; version++) {
		dwarf_writer_make(&writer, version);
		for (size_t at = 0; at < writer.info_size + writer.abbrev_size; at++) {
			for (size_t i = 0; i < sizeof(values); i++) {
				spoilt = writer;
				if (at < writer.info_size)
					spoilt.info[at] = values[i];
				else
					spoilt.abbrev[at - writer.info_size] = values[i];
				use_types(&spoilt);
			}
		}
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(structs_and_their_fields_are_found),
		cmocka_unit_test(constants_and_globals_are_found),
		cmocka_unit_test(what_is_not_there_is_no_error),
		cmocka_unit_test(typedefs_that_go_round_end),
		cmocka_unit_test(sibling_attributes_are_refused),
		cmocka_unit_test(files_without_dwarf_are_told_how_to_get_it),
		cmocka_unit_test(every_truncation_is_survived),
		cmocka_unit_test(every_byte_may_be_anything),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("dwarf_types", tests, NULL, NULL);
}
