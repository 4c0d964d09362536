/*
 * DWARF outside of the executable: the files that the keeper has found, and which of them is the
 * one.
 */
#ifndef AGENT_DECODER_DEBUG_H
#define AGENT_DECODER_DEBUG_H

#include "agent/binary/debug_file.h"
#include "agent/decoder_tasks.h"

struct elf_file;

struct decoder_debug {
	const struct elf_file *executable; /* borrowed */
	struct debug_link link;
	bool has_link;
	struct frame frame; /* of the keeper's message, with a descriptor for each path */
	unsigned count;
};

/* Asks the keeper. Give *ret back with decoder_debug_fini, also after an error. */
must_check struct error *decoder_debug_find(struct decoder *decoder,
					    const struct elf_file *executable,
					    struct decoder_debug *ret);
void decoder_debug_fini(struct decoder_debug *debug);

/* Belongs to debug. */
int decoder_debug_fd(const struct decoder_debug *debug, unsigned index);

/* Where the file was found, without characters that a log or a terminal would mind. */
void decoder_debug_path(const struct decoder_debug *debug, unsigned index, char *ret, size_t size);

/* Opens a file that is the right one; ERROR_FORMAT, saying why, if it is not. */
must_check struct error *decoder_debug_open(const struct decoder_debug *debug, unsigned index,
					    struct elf_file **ret);

#endif
