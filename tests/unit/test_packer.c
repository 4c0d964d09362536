#include "agent/binary/packer.h"

#include <string.h>
#include <unistd.h>

#include "agent/binary/elf_file.h"
#include "tests/support/assertions.h"
#include "tests/support/elf_writer.h"

static const char text_content[64] = "text";

/* An executable with two program headers, whose place in the file is the caller's to overwrite. */
static void write_sample(struct elf_writer *writer)
{
	uint64_t text;

	elf_writer_init(writer, ET_EXEC);
	text = elf_writer_section(writer, ".text", SHT_PROGBITS, SHF_ALLOC, 0x400000, text_content,
				  sizeof(text_content));
	elf_writer_segment(writer, PT_LOAD, PF_R | PF_X, 0x400000, text, sizeof(text_content),
			   sizeof(text_content));
	elf_writer_segment(writer, PT_LOAD, PF_R | PF_W, 0x500000, text, sizeof(text_content),
			   sizeof(text_content));
	elf_writer_finish(writer);
}

static size_t end_of_headers(const struct elf_writer *writer)
{
	Elf64_Ehdr header;

	memcpy(&header, writer->bytes, sizeof(header));
	return header.e_phoff + (size_t)header.e_phnum * sizeof(Elf64_Phdr);
}

static const char *packer_of(const struct elf_writer *writer, size_t size)
{
	int fd = elf_writer_open(writer, size);
	struct elf_file *file = NULL;
	const char *packer = "not told";

	assert_success(elf_file_open(fd, &file));
	assert_success(packer_find(file, &packer));
	elf_file_free(file);
	close(fd);
	return packer;
}

static void upx_is_known_by_what_follows_the_headers(void **state)
{
	static struct elf_writer writer;

	(void)state;
	write_sample(&writer);
	assert_null(packer_of(&writer, writer.size));
	memcpy(writer.bytes + end_of_headers(&writer) + 4, "UPX!", 4);
	assert_string_equal(packer_of(&writer, writer.size), "UPX");
	memcpy(writer.bytes + end_of_headers(&writer) + 4, "UPX?", 4);
	assert_null(packer_of(&writer, writer.size));
}

static void a_file_that_ends_with_its_headers_is_not_packed(void **state)
{
	static struct elf_writer writer;
	Elf64_Ehdr header;

	(void)state;
	write_sample(&writer);
	memcpy(&header, writer.bytes, sizeof(header));
	header.e_shoff = 0;
	header.e_shnum = 0;
	header.e_shstrndx = 0;
	memcpy(writer.bytes, &header, sizeof(header));
	for (size_t behind = 0; behind < 8; behind++)
		assert_null(packer_of(&writer, end_of_headers(&writer) + behind));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(upx_is_known_by_what_follows_the_headers),
		cmocka_unit_test(a_file_that_ends_with_its_headers_is_not_packed),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("packer", tests, NULL, NULL);
}
