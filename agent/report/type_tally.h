/*
 * How many objects there are of each type. Types are counted by number, since that is quick, and
 * put together by name in the end: two types may print alike.
 */
#ifndef AGENT_REPORT_TYPE_TALLY_H
#define AGENT_REPORT_TYPE_TALLY_H

#include "agent/report/object_type.h"

struct type_count {
	uint64_t objects, bytes;
};

/* All zeros is an empty one. */
struct type_tally {
	struct type_count *counts; /* by type, twice: as such, and arrays of unknown length */
	size_t room;
	struct type_count unknown;
};

void type_tally_fini(struct type_tally *tally);

must_check struct error *type_tally_add(struct type_tally *tally, struct object_type type,
					uint64_t objects, uint64_t bytes);
must_check struct error *type_tally_add_all(struct type_tally *tally,
					    const struct type_tally *other);

/*
 * Rows by name, the largest first; rows that have equal bytes by name. They are appended to *rows,
 * which has *count, as message_reserve wants it.
 */
must_check struct error *type_tally_rows(const struct type_tally *tally,
					 const struct go_types *types, Goheapd__TypeRow ***rows,
					 size_t *count);

/*
 * Which row each type went into, for type_tally_row. The caller frees *ret; it holds for as long as
 * nothing is added to the tally.
 */
must_check struct error *type_tally_find_rows(const struct type_tally *tally,
					      const struct go_types *types,
					      Goheapd__TypeRow *const *rows, size_t count,
					      uint32_t **ret);

/* The row of a type; UINT32_MAX: it has none. */
uint32_t type_tally_row(const struct type_tally *tally, const uint32_t *found,
			struct object_type type);

#endif
