/*
 * Where everything hangs in a program without symbols: the pc-line table, which is known by its
 * first bytes, and runtime.firstmoduledata, which begins with that table's address (since go1.2;
 * cmd/link/internal/ld/symtab.go writes it, runtime/symtab.go has the struct).
 */
#ifndef AGENT_GORUNTIME_ANCHOR_H
#define AGENT_GORUNTIME_ANCHOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

struct layout;

/* The part of a loaded segment that the file fills; addresses as in memory. */
struct anchor_segment {
	taddr start, end;
	bool writable, executable;
};

/*
 * Finds the one moduledata that fits the layout. pclntab is where the section lies, 0 if there are
 * no section headers. ERROR_CORRUPT_TARGET if there is none, or more than one.
 */
must_check struct error *anchor_find(struct memory *memory, const struct anchor_segment *segments,
				     size_t segment_count, taddr pclntab,
				     const struct layout *layout, taddr *ret);

#endif
