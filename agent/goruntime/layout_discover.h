/*
 * The layout of a running program that has no DWARF: a built-in one (layout_table.h) for its
 * version of Go, with the addresses of its globals as its own code tells them (global_find.h).
 */
#ifndef AGENT_GORUNTIME_LAYOUT_DISCOVER_H
#define AGENT_GORUNTIME_LAYOUT_DISCOVER_H

#include <stdint.h>

#include "agent/goruntime/layout.h"
#include "agent/goruntime/layout_table.h"
#include "agent/target/memory.h"
#include "proto/base/error.h"

struct elf_file;

/* What is known of the program beforehand; borrowed. */
struct layout_program {
	const struct elf_file *file;
	uint64_t load_bias; /* what run-time addresses have over the file's */
	struct memory *memory;
	const char *version; /* of its build info; "" if that cannot be read */
};

struct layout_found {
	const char *table_version; /* of the entry that was used; lives for ever */
	enum layout_match match;   /* nearest: everything that can be must be verified */
};

/*
 * The caller frees *ret; its addresses are run-time ones, firstmoduledata among them, and its
 * version is the program's, as the running program tells it if need be.
 * ERROR_UNSUPPORTED for a version that nothing is known of, and naming the globals that cannot be
 * found; ERROR_CORRUPT_TARGET if there is no moduledata.
 */
must_check struct error *layout_discover(const struct layout_program *program, struct layout **ret,
					 struct layout_found *ret_found);

/*
 * What went wrong with a layout that is only the nearest known: where the target looks broken, it
 * is rather the layout that does not fit, which is ERROR_UNSUPPORTED. Consumes err; NULL is
 * allowed.
 */
must_check struct error *layout_doubt(struct error *err, const char *version,
				      const char *table_version);

#endif
