/*
 * Reference chains as a profile for go tool pprof, Pyroscope and Parca (proto/profile.proto). The
 * same chains give the same bytes.
 */
#ifndef DAEMON_PPROF_ENCODE_H
#define DAEMON_PPROF_ENCODE_H

#include "daemon/chain_tree.h"
#include "proto/base/bytes.h"

/* What a profile says of itself. */
struct pprof_about {
	ProtobufCBinaryData exe, build_id;
	ProtobufCBinaryData comments; /* lines */
	uint64_t time_ns;             /* since the epoch */
	uint64_t duration_ns;         /* of a change; else 0 */
	bool retained;                /* values are retained sizes */
};

/* Pyroscope's limit on a profile, uncompressed. */
enum { PPROF_MAX_BYTES = 4 << 20 };

/*
 * Appends the profile, uncompressed; small chains are folded into "other" where it would have more
 * than max_samples or take more than PPROF_MAX_BYTES.
 */
must_check struct error *pprof_encode(const struct chain_tree *tree,
				      const struct pprof_about *about, size_t max_samples,
				      struct bytes *ret);

#endif
