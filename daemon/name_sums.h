/*
 * Figures added up by name, for tables.
 */
#ifndef DAEMON_NAME_SUMS_H
#define DAEMON_NAME_SUMS_H

#include "daemon/chain_tree.h"

struct name_sum {
	ProtobufCBinaryData name; /* borrowed */
	int64_t objects, bytes;
};

struct name_sums {
	struct name_sum *sums;
	size_t count, capacity;
	struct id_index index;
};

void name_sums_init(struct name_sums *sums);
void name_sums_fini(struct name_sums *sums);
must_check struct error *name_sums_add(struct name_sums *sums, ProtobufCBinaryData name,
				       int64_t objects, int64_t bytes);

/* Most bytes first, then most objects, then by name. */
void name_sums_sort(struct name_sums *sums);

/* What each root holds, with all that hangs on it. */
must_check struct error *name_sums_roots(struct name_sums *sums, const struct chain_tree *tree);

/* By the type in which chains end. */
must_check struct error *name_sums_types(struct name_sums *sums, const struct chain_tree *tree);

#endif
