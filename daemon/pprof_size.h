/*
 * How many samples a tree of chains makes in a profile, and how many bytes at most, so that it can
 * be folded until it fits without being written each time.
 */
#ifndef DAEMON_PPROF_SIZE_H
#define DAEMON_PPROF_SIZE_H

#include "daemon/chain_tree.h"

struct pprof_limits {
	size_t samples;
	size_t bytes; /* uncompressed, without what a profile says of itself */
};

/* Text that is longer is cut, as Pyroscope would. */
enum { PPROF_TEXT_MAX_BYTES = 65535, PPROF_LABELS_MAX = 99 };

/*
 * The tree as it is, or its smallest chains folded into "other" until it fits. *ret is the
 * caller's to give back, and its bytes are those of tree.
 */
must_check struct error *pprof_fit(const struct chain_tree *tree, const struct pprof_limits *limits,
				   struct chain_tree *ret);

#endif
