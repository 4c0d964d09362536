/*
 * The layout of a target's runtime: from the index of its binary, else from its DWARF, of which an
 * index is then made. The DWARF may be in a file of its own.
 */
#ifndef AGENT_DECODER_LAYOUT_H
#define AGENT_DECODER_LAYOUT_H

#include <stdbool.h>

#include "agent/decoder_tasks.h"

struct elf_file;
struct layout;

struct decoder_layout {
	struct layout *layout; /* addresses are link-time */
	bool index_used;       /* no DWARF was opened */
	bool from_debug_file;
	/* Sentences on debug files that were found and not used. */
	char *refusals[LIMIT_DEBUG_FILES];
	unsigned refusal_count;
};

/*
 * The version is the one of the build info. index_fd is -1 if there is no index; a bad one is no
 * reason to fail. A new one is sent to the agent. ERROR_NO_DEBUG_INFO, or ERROR_UNSUPPORTED naming
 * what is missing. Give *ret back with decoder_layout_fini, also after an error.
 */
must_check struct error *decoder_layout_read(struct decoder *decoder, const struct elf_file *file,
					     const char *version, int exe_fd, int index_fd,
					     struct decoder_layout *ret);
void decoder_layout_fini(struct decoder_layout *layout);

#endif
