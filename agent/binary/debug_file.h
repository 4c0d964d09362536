/*
 * DWARF in a file of its own, as objcopy --only-keep-debug makes it: how an executable names that
 * file, and whether a file is the one. It is found by the executable's GNU build id, or by the name
 * in .gnu_debuglink, beside which stands a checksum of the whole file.
 */
#ifndef AGENT_BINARY_DEBUG_FILE_H
#define AGENT_BINARY_DEBUG_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/binary/elf_file.h"

enum { DEBUG_LINK_NAME_SIZE = 256 }; /* one component of a path, and a NUL */

struct debug_link {
	char name[DEBUG_LINK_NAME_SIZE]; /* no slash in it */
	uint32_t checksum;
};

/* False if the executable has no such link, or none that could be one. */
must_check struct error *debug_link_read(const struct elf_file *executable, struct debug_link *ret,
					 bool *ret_found);

/*
 * ERROR_FORMAT, saying why, unless file, open as fd, holds the DWARF of just that build of the
 * executable: by the GNU build ids if both have one, else by the checksum of the link. link is NULL
 * if there is none.
 */
must_check struct error *debug_file_check(const struct elf_file *executable,
					  const struct debug_link *link,
					  const struct elf_file *file, int fd);

#endif
