/*
 * Where facts about structs, constants and variables of a program come from, asked by name: its
 * DWARF (agent/binary/dwarf_types.h), or what a test makes up. agent/goruntime/layout.h fills a
 * layout from one.
 */
#ifndef AGENT_BINARY_LAYOUT_SOURCE_H
#define AGENT_BINARY_LAYOUT_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

/*
 * Each returns false, without an error, for what is not there; *ret_err, which the caller has set
 * to NULL, is set for what cannot be read. Results are written only when true is returned.
 */
struct layout_source {
	/* Size of a struct type in bytes. */
	bool (*find_struct)(struct layout_source *source, const char *type, uint32_t *ret_size,
			    struct error **ret_err);
	/* A field by its path of names ("state.s.value") through embedded struct types. */
	bool (*find_field)(struct layout_source *source, const char *type, const char *path,
			   uint32_t *ret_offset, uint32_t *ret_size, struct error **ret_err);
	bool (*find_constant)(struct layout_source *source, const char *name, int64_t *ret,
			      struct error **ret_err);
	bool (*find_global)(struct layout_source *source, const char *name, taddr *ret_addr,
			    uint64_t *ret_size, struct error **ret_err);
};

#endif
