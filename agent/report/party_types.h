/*
 * How many objects of each type each of many parties has: a table of the pairs that occur. Types of
 * one name are put together in the end.
 */
#ifndef AGENT_REPORT_PARTY_TYPES_H
#define AGENT_REPORT_PARTY_TYPES_H

#include "agent/report/type_tally.h"

struct party_type {
	uint32_t party, row;
	struct type_count count;
};

struct party_types {
	struct type_tally all; /* of all parties together */
	struct party_cell *cells;
	size_t used, room; /* of cells; room is a power of two */
};

void party_types_fini(struct party_types *types);

/* Objects of unknown type are left out. */
must_check struct error *party_types_add(struct party_types *types, uint32_t party,
					 struct object_type type, uint64_t bytes);

/*
 * The pairs by party, of one party the largest first. rows are those of type_tally_rows(&all), to
 * whose places the pairs' rows refer. The caller frees *ret.
 */
must_check struct error *party_types_list(const struct party_types *types,
					  const struct go_types *go_types,
					  Goheapd__TypeRow *const *rows, size_t row_count,
					  struct party_type **ret, size_t *ret_count);

#endif
