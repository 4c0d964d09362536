/*
 * The layout of a target's runtime: from the index of its binary, else from its DWARF, of which an
 * index is then made.
 */
#ifndef AGENT_DECODER_LAYOUT_H
#define AGENT_DECODER_LAYOUT_H

#include <stdbool.h>

#include "agent/decoder_tasks.h"

struct elf_file;
struct layout;

/*
 * index_fd is -1 if there is no index; a bad one is no reason to fail. A new one is sent to the
 * agent. ERROR_NO_DEBUG_INFO, or ERROR_UNSUPPORTED naming what is missing. Addresses are
 * link-time.
 */
must_check struct error *decoder_layout_read(struct decoder *decoder, const struct elf_file *file,
					     int exe_fd, int index_fd, struct layout **ret,
					     bool *ret_index_used);

#endif
