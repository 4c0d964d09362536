/*
 * The layout of one Go runtime: where its structs keep their fields, what its constants are, and
 * where its global variables lie. Filled from DWARF or from the index of a binary; what is in it
 * is listed in layout.def. Code that needs to know how a runtime behaves asks what its layout has
 * (layout_has), not for its version.
 */
#ifndef AGENT_GORUNTIME_LAYOUT_H
#define AGENT_GORUNTIME_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/binary/layout_source.h"
#include "agent/target/memory.h"
#include "proto/base/error.h"

struct bytes;
struct cursor;

struct layout_struct {
	uint32_t size; /* 0: not in this runtime */
};

struct layout_field {
	uint32_t offset; /* from the start of the struct */
	uint32_t size;   /* 0: not in this runtime */
};

struct layout_constant {
	int64_t value;
	bool known;
};

struct layout_global {
	taddr addr;    /* link-time in a fresh layout, run-time after layout_relocate */
	uint64_t size; /* 0: not in this runtime */
};

enum { LAYOUT_VERSION_SIZE = 256 };

struct layout {
	/* Go's version, by which the layout was found complete; "": not known. */
	char version[LAYOUT_VERSION_SIZE];
#define STRUCT(id, names, need)      struct layout_struct id;
#define FIELD(type, id, paths, need) struct layout_field type##_##id;
#define CONSTANT(id, names, need)    struct layout_constant const_##id;
#define GLOBAL(id, names, need)      struct layout_global global_##id;
#include "agent/goruntime/layout.def"
#undef STRUCT
#undef FIELD
#undef CONSTANT
#undef GLOBAL
};

/* The global variables by number, in the order of layout.def. */
enum layout_global_id {
#define STRUCT(id, names, need)
#define FIELD(type, id, paths, need)
#define CONSTANT(id, names, need)
#define GLOBAL(id, names, need) LAYOUT_GLOBAL_##id,
#include "agent/goruntime/layout.def"
#undef STRUCT
#undef FIELD
#undef CONSTANT
#undef GLOBAL
	LAYOUT_GLOBAL_COUNT
};

/* A global by its number, and its name ("mheap"). */
struct layout_global *layout_global(struct layout *layout, enum layout_global_id id);
const char *layout_global_name(enum layout_global_id id);

/* Whether this runtime has the field or struct at all. */
#define layout_has(layout, member) ((layout)->member.size != 0)

/*
 * ERROR_UNSUPPORTED naming every entry that a runtime of this version has (as layout.def says) and
 * the source lacks. Without a version it must be complete for some version. The caller frees *ret.
 */
must_check struct error *layout_read(struct layout_source *source, const char *version,
				     struct layout **ret);
void layout_free(struct layout *layout);

/* Adds the structs that the layout lacks and the source has: types that only a plugin uses. */
must_check struct error *layout_complete(struct layout *layout, struct layout_source *source);
DEFINE_FREEP(layout, layout_free)

/*
 * A copy of a layout whose globals are yet to be found; the caller frees *ret. And, when that is
 * done: ERROR_UNSUPPORTED naming the NEEDED globals without an address. Optional ones are taken
 * out, as if this runtime had none.
 */
must_check struct error *layout_copy(const struct layout *layout, struct layout **ret);
must_check struct error *layout_complete_globals(struct layout *layout);

/*
 * To and from the index: entries by name, so that a layout written for another layout.def is
 * refused (ERROR_FORMAT), never misread.
 */
must_check struct error *layout_store(const struct layout *layout, struct bytes *out);
must_check struct error *layout_load(struct cursor *in, struct layout **ret);

/* Adds the load bias (run-time address - link-time address) of the main binary to all globals. */
void layout_relocate(struct layout *layout, uint64_t load_bias);

/* Reads the field of the struct at addr, zero-extended; the field must be there. */
must_check struct error *layout_read_field(struct memory *memory, taddr addr,
					   struct layout_field field, uint64_t *ret);

#endif
