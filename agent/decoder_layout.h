/*
 * The layout of a target's runtime, and how it is known: from the index of its binary; else from
 * its DWARF, which may be in a file of its own; else from the layouts that are built in, with what
 * its own code tells. An index is made of what was not in one.
 */
#ifndef AGENT_DECODER_LAYOUT_H
#define AGENT_DECODER_LAYOUT_H

#include <stdbool.h>

#include "agent/binary/index.h"
#include "agent/decoder_tasks.h"
#include "agent/goruntime/layout_discover.h"

struct bytes;
struct cursor;
struct decoder_target;
struct layout;

/* Numbers as in the index. */
enum layout_known_by { LAYOUT_BY_DWARF = 1, LAYOUT_BY_TABLE = 2 };

struct decoder_layout {
	struct layout *layout; /* addresses are link-time */
	enum layout_known_by known_by;
	bool index_used; /* no DWARF was opened, no code was searched */
	bool from_debug_file;
	int debug_fd;         /* that file, if it is from one */
	struct index_key key; /* of the executable, and of that file */
	/* By the table: the version whose layout was taken; the program's is in the layout. */
	char table_version[LAYOUT_VERSION_SIZE];
	bool exact; /* the two are the same; otherwise it must be seen to fit */
	/* Sentences on debug files that were found and not used. */
	char *refusals[LIMIT_DEBUG_FILES];
	unsigned refusal_count;
};

/*
 * The target's files and memory are open. index_fd is -1 if there is no index; a bad one is no
 * reason to fail. A new one is sent to the agent. ERROR_UNSUPPORTED naming what is missing, or
 * ERROR_CORRUPT_TARGET. Give *ret back with decoder_layout_fini, also after an error.
 */
must_check struct error *decoder_layout_read(struct decoder *decoder,
					     const struct decoder_target *target, int index_fd,
					     struct decoder_layout *ret);
void decoder_layout_fini(struct decoder_layout *layout);

/* Closes the debug file. */
void decoder_layout_let_go(struct decoder_layout *layout);

/* To and from the content of an index, what comes of debug files aside. */
must_check struct error *decoder_layout_store(const struct decoder_layout *layout,
					      struct bytes *out);
must_check struct error *decoder_layout_load(struct cursor *in, struct decoder_layout *ret);

#endif
