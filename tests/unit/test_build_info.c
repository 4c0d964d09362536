#include "agent/binary/build_info.h"

#include <unistd.h>

#include "agent/binary/elf_file.h"
#include "proto/base/bytes.h"
#include "tests/support/assertions.h"
#include "tests/support/elf_writer.h"

#define MARK "0123456789abcdef"

static const char modules[] = MARK "path\texample.com/shop/cmd/till\n"
				   "mod\texample.com/shop\tv1.2.3\th1:abc=\n"
				   "dep\texample.com/other\tv9.9.9\th1:def=\n"
				   "build\t-compiler=gc\n"
				   "build\tvcs=git\n"
				   "build\tvcs.revision=9c1e77aa\n"
				   "build\tvcs.time=2026-01-02T03:04:05Z\n"
				   "build\tvcs.modified=true\n" MARK;

static const char version[] = "go1.26.11-X:nogreenteagc";

/* The newer form. */
static size_t make_inline(uint8_t *out, const char *version_text, const char *module_text,
			  size_t module_size)
{
	size_t size = 32;

	memset(out, 0, 32);
	memcpy(out, "\xff Go buildinf:", 14);
	out[14] = 8;
	out[15] = 2;
	out[size++] = (uint8_t)strlen(version_text);
	memcpy(out + size, version_text, strlen(version_text));
	size += strlen(version_text);
	out[size++] = (uint8_t)(module_size | 0x80);
	out[size++] = (uint8_t)(module_size >> 7);
	memcpy(out + size, module_text, module_size);
	return size + module_size;
}

static void assert_sample(const struct build_info *info)
{
	assert_int_equal(info->dependency_count, 1);
	assert_string_equal(info->dependencies[0], "example.com/other");
	assert_string_equal(info->version, version);
	assert_string_equal(info->path, "example.com/shop/cmd/till");
	assert_string_equal(info->module, "example.com/shop");
	assert_string_equal(info->module_version, "v1.2.3");
	assert_string_equal(info->vcs_revision, "9c1e77aa");
	assert_string_equal(info->vcs_time, "2026-01-02T03:04:05Z");
	assert_true(info->vcs_modified);
}

static void the_newer_form_holds_its_strings(void **state)
{
	uint8_t bytes[1024];
	struct build_info *info;
	size_t size = make_inline(bytes, version, modules, sizeof(modules) - 1);

	(void)state;
	assert_success(build_info_parse(bytes, size, NULL, &info));
	assert_sample(info);
	build_info_free(info);
}

static void every_truncation_of_the_newer_form_is_refused(void **state)
{
	uint8_t bytes[1024];
	size_t full = make_inline(bytes, version, modules, sizeof(modules) - 1);

	(void)state;
	for (size_t size = 0; size < full; size++) {
		struct tail_copy copy = tail_copy(bytes, size);
		struct build_info *info = NULL;

		assert_error(build_info_parse(copy.bytes, size, NULL, &info), ERROR_FORMAT);
		assert_null(info);
		tail_copy_fini(&copy);
	}
}

static void programs_without_modules_have_a_version_only(void **state)
{
	static const char unmarked[] = "path\tx\nmod\ty\tz\n";
	uint8_t bytes[1024];
	struct build_info *info;
	size_t size = make_inline(bytes, "go1.19.8", "", 0);

	(void)state;
	assert_success(build_info_parse(bytes, size, NULL, &info));
	assert_string_equal(info->version, "go1.19.8");
	assert_string_equal(info->module, "");
	build_info_free(info);
	size = make_inline(bytes, "go1.19.8", unmarked, sizeof(unmarked) - 1);
	assert_success(build_info_parse(bytes, size, NULL, &info));
	assert_string_equal(info->path, "");
	build_info_free(info);
}

static void strings_that_are_too_long_are_refused(void **state)
{
	uint8_t bytes[64] = "\xff Go buildinf:\x08\x02";
	struct build_info *info = NULL;

	(void)state;
	memset(bytes + 32, 0xff, 8); /* a length of 56 bits */
	bytes[40] = 0;
	assert_error(build_info_parse(bytes, sizeof(bytes), NULL, &info), ERROR_LIMIT);
	assert_null(info);
}

/* The older form, in a data segment of its own. */
enum { DATA_ADDR = 0x500000, VERSION_HEADER = 64, MODULES_HEADER = 80, TEXTS = 96 };

static size_t make_pointers(uint8_t *out, const char *version_text)
{
	size_t size = TEXTS;

	memset(out, 0, TEXTS);
	memcpy(out, "\xff Go buildinf:", 14);
	out[14] = 8;
	store_u64le(out + 16, DATA_ADDR + VERSION_HEADER);
	store_u64le(out + 24, DATA_ADDR + MODULES_HEADER);
	store_u64le(out + VERSION_HEADER, DATA_ADDR + size);
	store_u64le(out + VERSION_HEADER + 8, strlen(version_text));
	memcpy(out + size, version_text, strlen(version_text));
	size += strlen(version_text);
	store_u64le(out + MODULES_HEADER, DATA_ADDR + size);
	store_u64le(out + MODULES_HEADER + 8, sizeof(modules) - 1);
	memcpy(out + size, modules, sizeof(modules) - 1);
	return size + sizeof(modules) - 1;
}

/* *ret is NULL where the file has no build info. */
static struct error *read_from(const struct elf_writer *writer, struct build_info **ret)
{
	int fd scoped(closep) = elf_writer_open(writer, writer->size);
	struct elf_file *file scoped(elf_file_freep) = NULL;
	struct error *err = elf_file_open(fd, &file);

	return err ? err : build_info_read(file, ret);
}

static void write_file(struct elf_writer *writer, const char *section, const uint8_t *bytes,
		       size_t size)
{
	uint64_t offset;

	elf_writer_init(writer, ET_EXEC);
	offset = elf_writer_section(writer, section, SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, DATA_ADDR,
				    bytes, size);
	elf_writer_segment(writer, PT_LOAD, PF_R | PF_W, DATA_ADDR, offset, size, size + 4096);
	elf_writer_finish(writer);
}

static void the_older_form_points_to_its_strings(void **state)
{
	static struct elf_writer writer;
	uint8_t bytes[1024];
	struct build_info *info = NULL;

	(void)state;
	write_file(&writer, ".go.buildinfo", bytes, make_pointers(bytes, version));
	assert_success(read_from(&writer, &info));
	assert_sample(info);
	build_info_free(info);
}

static void pointers_out_of_the_file_are_refused(void **state)
{
	static struct elf_writer writer;
	uint8_t bytes[1024];
	size_t size = make_pointers(bytes, version);
	struct build_info *info = NULL;

	(void)state;
	store_u64le(bytes + 16, 0x123456789);
	write_file(&writer, ".go.buildinfo", bytes, size);
	assert_error(read_from(&writer, &info), ERROR_FAULT);
	size = make_pointers(bytes, version);
	store_u64le(bytes + VERSION_HEADER + 8, BUILD_INFO_VERSION_MAX + 1);
	write_file(&writer, ".go.buildinfo", bytes, size);
	assert_error(read_from(&writer, &info), ERROR_LIMIT);
	size = make_pointers(bytes, version);
	store_u64le(bytes + MODULES_HEADER, UINT64_MAX - 8);
	write_file(&writer, ".go.buildinfo", bytes, size);
	assert_error(read_from(&writer, &info), ERROR_FAULT);
	assert_null(info);
}

static void modules_in_bss_are_none(void **state)
{
	static struct elf_writer writer;
	uint8_t bytes[1024];
	size_t size = make_pointers(bytes, version);
	struct build_info *info;

	(void)state;
	store_u64le(bytes + 24, DATA_ADDR + size + 16); /* go1.15 without modules */
	write_file(&writer, ".go.buildinfo", bytes, size);
	assert_success(read_from(&writer, &info));
	assert_string_equal(info->version, version);
	assert_string_equal(info->module, "");
	build_info_free(info);
}

static void without_its_section_the_writable_segment_is_searched(void **state)
{
	static struct elf_writer writer;
	uint8_t bytes[1024 + 48] = { 0 };
	struct build_info *info = NULL;
	size_t size = make_inline(bytes + 48, version, modules, sizeof(modules) - 1);

	(void)state;
	write_file(&writer, ".data", bytes, size + 48);
	assert_success(read_from(&writer, &info));
	assert_sample(info);
	build_info_free(info);
	/* it stands at multiples of 16 only */
	memmove(bytes + 56, bytes + 48, size);
	memset(bytes, 0, 56);
	write_file(&writer, ".data", bytes, size + 56);
	info = (struct build_info *)&writer;
	assert_success(read_from(&writer, &info));
	assert_null(info);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_newer_form_holds_its_strings),
		cmocka_unit_test(every_truncation_of_the_newer_form_is_refused),
		cmocka_unit_test(programs_without_modules_have_a_version_only),
		cmocka_unit_test(strings_that_are_too_long_are_refused),
		cmocka_unit_test(the_older_form_points_to_its_strings),
		cmocka_unit_test(pointers_out_of_the_file_are_refused),
		cmocka_unit_test(modules_in_bss_are_none),
		cmocka_unit_test(without_its_section_the_writable_segment_is_searched),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("build_info", tests, NULL, NULL);
}
