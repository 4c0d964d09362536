/*
 * Writes an executable with a little DWARF of the runtime's, for tests: see the .c for what is in
 * it.
 */
#ifndef TESTS_SUPPORT_DWARF_WRITER_H
#define TESTS_SUPPORT_DWARF_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "tests/support/elf_writer.h"

enum { DWARF_WRITER_VARIABLE = 0x55aa10, DWARF_WRITER_FUNCTION = 0x401000 };

struct dwarf_writer {
	uint8_t abbrev[256];
	size_t abbrev_size;
	uint8_t info[1024];
	size_t info_size;
	size_t typedef_place; /* in info: what the typedef refers to */
};

/* Version 4 or 5. */
void dwarf_writer_make(struct dwarf_writer *writer, unsigned version);

/* The executable around it. */
void dwarf_writer_elf(const struct dwarf_writer *writer, struct elf_writer *elf);

#endif
