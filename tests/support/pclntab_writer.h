/*
 * Writes a small pclntab in any format: main.first with frames, lines and two inlined calls,
 * main.second with nothing.
 */
#ifndef TESTS_SUPPORT_PCLNTAB_WRITER_H
#define TESTS_SUPPORT_PCLNTAB_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PCLNTAB_WRITER_FORMS = 4, /* from magic 0xfffffffb to 0xfffffff1 */
	PCLNTAB_WRITER_TEXT = 0x401000,
	PCLNTAB_WRITER_GOFUNC = 0x900000,
	PCLNTAB_WRITER_FIRST_SIZE = 0x20,
	PCLNTAB_WRITER_SECOND_SIZE = 0x10,
};

struct pclntab_writer {
	uint8_t bytes[2048]; /* the table, as in a file whose load bias is 0 */
	size_t size;
	int form;
	uint8_t tree[64]; /* content of main.first's inline tree */
	size_t tree_size;
};

void pclntab_writer_make(int form, struct pclntab_writer *writer);

/* Addresses in the table are absolute rather than offsets. */
bool pclntab_writer_is_absolute(int form);

#endif
