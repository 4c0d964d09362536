/*
 * Where in an object something lies, as a Go programmer would write it: "items[3].price", "[12]".
 * What is longer than there is room for is cut, and says so.
 */
#ifndef AGENT_REPORT_FIELD_PATH_H
#define AGENT_REPORT_FIELD_PATH_H

#include "agent/report/object_type.h"

enum { FIELD_PATH_BYTES = 1024, FIELD_PATH_LEVELS = 64 };

/* All zeros is the object itself. */
struct field_path {
	char text[FIELD_PATH_BYTES];
	size_t size;
	bool is_cut;
};

void field_path_add_field(struct field_path *path, const char *name);
void field_path_add_index(struct field_path *path, uint64_t index);
/* Back to what it was when it had that size. */
void field_path_shorten(struct field_path *path, size_t size);

/*
 * Adds the way to what lies at offset, as far as the type says, and returns the type of that:
 * no struct nor array unless offset lies between its parts. TYPE_UNKNOWN if nothing is known.
 */
type_id field_path_find(struct field_path *path, const struct go_types *types,
			struct object_type type, uint64_t offset);

/* Whether a word in something of that type may be a pointer; of an unknown type it may. */
bool field_type_may_point(const struct go_types *types, type_id type);

#endif
