/*
 * A profile of ours read back: what goheap shows of one that a daemon has made.
 */
#ifndef DAEMON_PPROF_DECODE_H
#define DAEMON_PPROF_DECODE_H

#include "daemon/chain_tree.h"
#include "proto/base/bytes.h"

struct pprof_decoded {
	struct chain_tree tree; /* without labels */
	/* what the tree's bytes are in */
	struct bytes plain;
	struct Pprof__Profile *message;
};

/*
 * Takes a gzipped profile as pprof_encode makes it; ERROR_FORMAT for any other. Give it back with
 * pprof_decoded_fini, also after a failure.
 */
must_check struct error *pprof_decode(const void *data, size_t size, struct pprof_decoded *ret);
void pprof_decoded_fini(struct pprof_decoded *decoded);

/* The comment at a place, or nothing. */
ProtobufCBinaryData pprof_comment(const struct pprof_decoded *decoded, size_t place);

#endif
