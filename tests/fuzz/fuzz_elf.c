/* ELF: a whole file, of which everything is asked. */
#include <stdlib.h>
#include <unistd.h>

#include "agent/binary/build_info.h"
#include "agent/binary/debug_file.h"
#include "agent/binary/elf_file.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/elf_writer.h"

enum { SECTION_LIMIT = 1 << 20 };

static void read_sections(const struct elf_file *file)
{
	for (uint32_t i = 0; i < elf_file_section_count(file); i++) {
		uint8_t *bytes = NULL;
		size_t size;

		error_free(elf_file_read_section(file, elf_file_section(file, i), SECTION_LIMIT,
						 &bytes, &size));
		free(bytes);
	}
}

static void read_debug_link(const struct elf_file *file, int fd)
{
	struct debug_link link;
	bool found = false;

	error_free(debug_link_read(file, &link, &found));
	error_free(debug_file_check(file, found ? &link : NULL, file, fd));
}

static void read_segments(const struct elf_file *file)
{
	for (uint32_t i = 0; i < elf_file_segment_count(file); i++) {
		taddr pointer;

		error_free(elf_file_read_pointer(file, elf_file_segment(file, i)->addr, &pointer));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memory_file(data, size);
	struct elf_file *file = NULL;
	struct build_info *info = NULL;

	error_free(elf_file_open(fd, &file));
	if (file) {
		read_sections(file);
		read_segments(file);
		read_debug_link(file, fd);
		error_free(build_info_read(file, &info));
		build_info_free(info);
	}
	elf_file_free(file);
	close(fd);
	return 0;
}
