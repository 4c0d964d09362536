/*
 * Scans, shared and spaced. One scan runs per target at a time: a request that asks the same
 * joins it, one that asks something else waits for its end. Between two scans of a target an
 * interval passes, and no more than a configured number of targets is scanned at once. A scan for
 * which nobody waits any more is cancelled. Every scan runs in a thread of its own, so that it
 * outlives whoever began it as long as others wait.
 */
#ifndef DAEMON_SCAN_CACHE_H
#define DAEMON_SCAN_CACHE_H

#include "daemon/agent_client.h"
#include "daemon/kept_scan.h"
#include "daemon/params.h"
#include "daemon/scan_store.h"

struct scan_cache;

struct scan_limits {
	uint64_t min_interval_us;
	unsigned max_scans;
};

/*
 * The client is borrowed and must outlive the cache, as must kept, to which scans go that are to be
 * kept for later questions (NULL: none are).
 */
must_check struct error *scan_cache_new(struct agent_client *client, struct kept_scans *kept,
					const struct scan_limits *limits, struct scan_cache **ret);
/* Waits for scans that run; shut the client down before, so that they end. */
void scan_cache_free(struct scan_cache *cache);
DEFINE_FREEP(scan_cache, scan_cache_free)

/* Who asks for what; borrowed during the call. */
struct scan_request {
	const Goheapd__Process *process;
	const struct params *params;
	unsigned parts;
	const Goheapd__Analysis *analysis; /* NULL: nothing is asked of objects */
	uid_t caller;
	const char *path; /* for the audit line */
};

/*
 * A scan as asked for, a reference of the caller's in *ret; *ret_cached says whether it was kept
 * from earlier. ERROR_BUSY sets *ret_retry_after_ms.
 */
must_check struct error *scan_cache_get(struct scan_cache *cache,
					const struct scan_request *request,
					const struct patience *patience, struct scan **ret,
					bool *ret_cached, uint64_t *ret_retry_after_ms);

#endif
