/*
 * Results of scans that are kept for a while, so that requests with max_age need no new stop. The
 * store holds a bounded number of bytes and drops the oldest first. Scans are shared by reference
 * and do not change. Not safe for threads by itself: scan_cache guards it; the references are.
 */
#ifndef DAEMON_SCAN_STORE_H
#define DAEMON_SCAN_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/scan_ask.h"

/* Which target was scanned, and how. */
struct scan_key {
	uint32_t pid;
	uint64_t start_ticks;
	uint64_t exe_hash; /* an exec keeps pid and start time */
	Goheapd__Mode mode;
	Goheapd__Depth depth;
	unsigned parts;
	uint64_t max_pause_us;
	uint64_t keep_us;  /* 0: it is not kept for later questions */
	bool keep_implied; /* that is for the pages that follow, as nobody has asked */
	const struct label_query *labels;  /* NULL: nothing is asked of them beyond the part */
	const Goheapd__Analysis *analysis; /* NULL: nothing is asked of objects */
};

struct scan {
	atomic_uint references;
	char id[SCAN_ID_SIZE];
	struct scan_key key;        /* as it was asked for */
	struct label_query *labels; /* the key's own copies, or NULL */
	Goheapd__Analysis *analysis;
	uint64_t started_us; /* as clock_now_us counts */
	Goheapd__Answer *answer;
	size_t bytes;
	struct scan *next; /* the store's, newest first */
};

/* Whether a scan with that was asked of labels answers what is wanted now; either may be NULL. */
bool scan_labels_answer(const struct label_query *had, const struct label_query *wanted);

/* Takes over an answer that holds a scan; one reference is the caller's. id NULL: a new one. */
must_check struct error *scan_new(const struct scan_key *key, const char *id, uint64_t started_us,
				  Goheapd__Answer *answer, struct scan **ret);
struct scan *scan_acquire(struct scan *scan);
void scan_release(struct scan *scan); /* NULL is allowed */
DEFINE_FREEP(scan, scan_release)

uint64_t scan_hash(ProtobufCBinaryData bytes);

struct scan_store {
	struct scan *newest;
	size_t bytes, bytes_max;
	uint64_t age_max_us;
};

void scan_store_init(struct scan_store *store, size_t bytes_max, uint64_t age_max_us);
void scan_store_fini(struct scan_store *store);

/* Keeps a reference of its own, if the scan is not larger than all the store may hold. */
void scan_store_add(struct scan_store *store, struct scan *scan, uint64_t now_us);

/*
 * The newest scan that answers what key asks and began no more than max_age_us ago, as a reference
 * of the caller's, or NULL. A scan in either mode answers "auto", and more parts answer fewer.
 */
struct scan *scan_store_find(const struct scan_store *store, const struct scan_key *key,
			     uint64_t max_age_us, uint64_t now_us);

#endif
