#include "agent/binary/debug_file.h"

#include <string.h>
#include <unistd.h>

#include <zlib.h>

#include "proto/base/bytes.h"
#include "tests/support/assertions.h"
#include "tests/support/elf_writer.h"

enum { LINK_MAX_SIZE = 512 };

/* A file in memory, opened. */
struct opened {
	int fd;
	struct elf_file *file;
	uint32_t checksum;
};

static struct opened open_written(struct elf_writer *writer)
{
	struct opened opened;

	elf_writer_finish(writer);
	opened.fd = elf_writer_open(writer, writer->size);
	opened.checksum = (uint32_t)crc32_z(0, writer->bytes, writer->size);
	assert_success(elf_file_open(opened.fd, &opened.file));
	return opened;
}

static void opened_fini(struct opened *opened)
{
	elf_file_free(opened->file);
	close(opened->fd);
}

static void add_note(struct elf_writer *writer, const char *owner, uint32_t type, const char *id)
{
	uint8_t note[64] = { 4 };
	size_t size = strlen(id);

	store_u32le(note + 4, (uint32_t)size);
	store_u32le(note + 8, type);
	memcpy(note + 12, owner, strlen(owner));
	memcpy(note + 16, id, size);
	elf_writer_section(writer, ".note", SHT_NOTE, SHF_ALLOC, 0, note, 16 + ((size + 3) & ~3u));
}

/* Ids of "" are left out; debug information is there or not. */
static struct opened make_file(const char *gnu_id, const char *go_id, bool dwarf)
{
	static struct elf_writer writer;

	elf_writer_init(&writer, ET_EXEC);
	if (*gnu_id)
		add_note(&writer, "GNU", NT_GNU_BUILD_ID, gnu_id);
	if (*go_id)
		add_note(&writer, "Go", 4, go_id);
	if (dwarf)
		elf_writer_section(&writer, ".debug_info", SHT_PROGBITS, 0, 0, "dwarf", 5);
	return open_written(&writer);
}

static struct opened make_linked(const void *link, size_t size)
{
	static struct elf_writer writer;

	elf_writer_init(&writer, ET_EXEC);
	elf_writer_section(&writer, ".gnu_debuglink", SHT_PROGBITS, 0, 0, link, size);
	return open_written(&writer);
}

static void a_link_is_a_name_and_a_checksum(void **state)
{
	static const uint8_t bytes[] = "app.debug\0\0\0\x78\x56\x34\x12";
	struct opened program = make_linked(bytes, 16);
	struct debug_link link;
	bool found;

	(void)state;
	assert_success(debug_link_read(program.file, &link, &found));
	assert_true(found);
	assert_string_equal(link.name, "app.debug");
	assert_int_equal(link.checksum, 0x12345678);
	opened_fini(&program);
}

static void assert_no_link(const void *bytes, size_t size)
{
	struct opened program = make_linked(bytes, size);
	struct debug_link link;
	bool found = true;

	assert_success(debug_link_read(program.file, &link, &found));
	assert_false(found);
	opened_fini(&program);
}

static void names_that_lead_elsewhere_are_no_links(void **state)
{
	static const struct {
		const char *bytes;
		size_t size;
	} wrong[] = {
		{ "", 0 },           { "\0\0\0\0abcd", 8 },
		{ "a/b\0abcd", 8 },  { ".\0\0\0abcd", 8 },
		{ "..\0\0abcd", 8 }, { "app.debug\0\0\0abc", 15 }, /* the checksum is cut short */
		{ "app.debug", 9 },                                /* the name has no end */
	};
	char longest[LINK_MAX_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_no_link(wrong[i].bytes, wrong[i].size);
	memset(longest, 'x', sizeof(longest));
	for (size_t size = 250; size <= sizeof(longest); size++)
		assert_no_link(longest, size);
}

static void a_program_without_a_link_has_none(void **state)
{
	struct opened program = make_file("abcd", "", false);
	struct debug_link link;
	bool found = true;

	(void)state;
	assert_success(debug_link_read(program.file, &link, &found));
	assert_false(found);
	opened_fini(&program);
}

struct pairing {
	const char *program_gnu, *program_go, *file_gnu, *file_go;
	bool right_checksum, wrong_checksum, no_link; /* whether it is accepted then */
};

static void check_pairing(const struct pairing *pairing)
{
	struct opened program = make_file(pairing->program_gnu, pairing->program_go, false);
	struct opened file = make_file(pairing->file_gnu, pairing->file_go, true);
	struct debug_link right = { "x", file.checksum }, wrong = { "x", ~file.checksum };
	const struct debug_link *links[] = { &right, &wrong, NULL };
	bool accepted[] = { pairing->right_checksum, pairing->wrong_checksum, pairing->no_link };

	for (int i = 0; i < 3; i++) {
		struct error *err = debug_file_check(program.file, links[i], file.file, file.fd);

		if (accepted[i])
			assert_success(err);
		else
			assert_error(err, ERROR_FORMAT);
	}
	opened_fini(&file);
	opened_fini(&program);
}

static void build_ids_decide_and_else_the_checksum(void **state)
{
	static const struct pairing pairings[] = {
		{ "abcd", "", "abcd", "", true, true, true },
		{ "abcd", "", "abce", "", false, false, false },
		{ "abcd", "", "abcdef", "", false, false, false },
		{ "abcd", "g", "abcd", "h", true, true, true },
		{ "abcd", "", "", "", true, false, false },
		{ "", "", "abcd", "", true, false, false },
		{ "", "", "", "", true, false, false },
		{ "", "go/1", "", "go/1", true, false, false },
		{ "", "go/1", "", "go/2", false, false, false },
		{ "", "go/1", "", "", true, false, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(pairings) / sizeof(pairings[0]); i++)
		check_pairing(&pairings[i]);
}

static void a_file_without_dwarf_is_of_no_use(void **state)
{
	struct opened program = make_file("abcd", "", false);
	struct opened file = make_file("abcd", "", false);

	(void)state;
	assert_error(debug_file_check(program.file, NULL, file.file, file.fd), ERROR_FORMAT);
	opened_fini(&file);
	opened_fini(&program);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_link_is_a_name_and_a_checksum),
		cmocka_unit_test(names_that_lead_elsewhere_are_no_links),
		cmocka_unit_test(a_program_without_a_link_has_none),
		cmocka_unit_test(build_ids_decide_and_else_the_checksum),
		cmocka_unit_test(a_file_without_dwarf_is_of_no_use),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("debug file", tests, NULL, NULL);
}
