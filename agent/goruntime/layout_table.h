/*
 * Layouts that are built in, for programs without DWARF: one for each version of Go (and each
 * experiment that changes the runtime) that the table was made from, with the witnesses that tell
 * where its global variables are: of amd64, since data_ref.h reads no other code. The data is
 * layout_table_ARCH.txt, made by tools/layout_table.py from the toolchains themselves.
 */
#ifndef AGENT_GORUNTIME_LAYOUT_TABLE_H
#define AGENT_GORUNTIME_LAYOUT_TABLE_H

#include <stdbool.h>
#include <stddef.h>

struct global_ref;
struct layout;

/* Lives for ever. Addresses of globals are 0, their sizes are known. */
struct layout_table_entry {
	const char *version; /* as go1.26 and later spell it: "go1.25.12-X:greenteagc" */
	const struct layout *layout;
	const struct global_ref *refs;
	size_t ref_count;
};

enum layout_match {
	LAYOUT_MATCH_NONE,    /* a version that no entry is near to */
	LAYOUT_MATCH_NEAREST, /* another patch release, minor version, or set of experiments */
	LAYOUT_MATCH_EXACT,
};

/*
 * The entry for a version of Go, as its binaries spell it ("go1.25.12 X:greenteagc" up to go1.25).
 * The nearest has the same experiments as far as they change the runtime, and the closest version.
 */
enum layout_match layout_table_find(const char *arch, const char *version,
				    const struct layout_table_entry **ret);

/* All entries of an architecture ("amd64", "arm64"); none of any other. */
const struct layout_table_entry *layout_table_entries(const char *arch, size_t *ret_count);

#endif
