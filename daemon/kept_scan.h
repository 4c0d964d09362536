/*
 * Scans that are kept for questions that follow (keep=SECONDS): of each the result and who the
 * process was are here, its graph is with the agent, which may have to drop it earlier (memory).
 * What the result has is answered without the agent, also after that; what needs the graph is
 * asked.
 *
 * Every scan has its time. Beyond a number of bytes of results one goes: of those that nobody has
 * asked to keep, else of all, the one whose time is over soonest. Safe for threads.
 */
#ifndef DAEMON_KEPT_SCAN_H
#define DAEMON_KEPT_SCAN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/agent_client.h"
#include "daemon/peer.h"
#include "daemon/scan_store.h"

struct kept_scans;

/* Shared by reference. */
struct kept_scan {
	atomic_uint references;
	struct scan *scan;         /* a reference of its own; scan->id is the id */
	Goheapd__Process *process; /* as it was then: it may be gone, or another by now */
	_Atomic uint64_t until_us; /* as clock_now_us counts, */
	_Atomic uint64_t until_ns; /* and since the epoch */
	atomic_bool implied;       /* nobody has asked for it to be kept */
	atomic_bool has_graph;     /* the agent has not said that it is gone */
	struct kept_scan *next;    /* the table's, newest first */
};

/* The client is borrowed and must outlive the table. */
must_check struct error *kept_scans_new(struct agent_client *agent, struct kept_scans **ret);
void kept_scans_free(struct kept_scans *kept); /* no reference is left by then */
DEFINE_FREEP(kept_scans, kept_scans_free)

struct kept_scan *kept_scan_acquire(struct kept_scan *scan);
void kept_scan_release(struct kept_scan *scan); /* NULL is allowed */
DEFINE_FREEP(kept_scan, kept_scan_release)

/*
 * Keeps a scan for so long; what the agent keeps of it, the result says (kept_until_ns). The
 * process is copied. Nothing is kept if the result alone is larger than all may be.
 */
must_check struct error *kept_scans_add(struct kept_scans *kept, struct scan *scan,
					const Goheapd__Process *process, uint64_t keep_us);

/* The scan of that id, a reference of the caller's. ERROR_NOT_FOUND if it is not kept, or no more.
 */
must_check struct error *kept_scans_find(struct kept_scans *kept, const char *id,
					 struct kept_scan **ret);

/* Which scans: those that fit all that is given. */
struct kept_filter {
	uint32_t pid;            /* 0: any */
	uint64_t start_ticks;    /* 0: any process that had the pid */
	const struct peer *peer; /* only what this one may see; NULL: all */
};

/* Newest first, each a reference of the list's. Give *ret back with kept_list_fini. */
struct kept_list {
	struct kept_scan **scans;
	size_t count;
};

must_check struct error *kept_scans_list(struct kept_scans *kept, const struct kept_filter *filter,
					 struct kept_list *ret);
void kept_list_fini(struct kept_list *list);

/* Learns from the agent which graphs are left, so that has_graph is true of those alone. */
must_check struct error *kept_scans_refresh(struct kept_scans *kept,
					    const struct patience *patience);

/*
 * Asks the agent's graph. *ret, a reference of the caller's, has the id of the kept scan, its
 * identity, scan and heap totals, and the parts that analysis asks for. ERROR_NOT_FOUND if the
 * graph is kept no more.
 */
must_check struct error *kept_scan_ask(struct kept_scans *kept, struct kept_scan *scan,
				       const Goheapd__Analysis *analysis,
				       const struct patience *patience, struct scan **ret);

/*
 * What is wanted now from the result, or else from the graph; as kept_scan_ask. ERROR_BAD_REQUEST
 * names the parts that the scan was not made with.
 */
must_check struct error *kept_scan_answer(struct kept_scans *kept, struct kept_scan *scan,
					  unsigned parts, const struct label_query *labels,
					  const Goheapd__Analysis *analysis,
					  const struct patience *patience, struct scan **ret);

/* Keeps it for so long from now on, if that is longer; and as asked for, unless that is implied. */
must_check struct error *kept_scan_extend(struct kept_scans *kept, struct kept_scan *scan,
					  uint64_t keep_us, bool implied,
					  const struct patience *patience);

/* The same by id. ERROR_NOT_FOUND if it is not kept, or without its graph. */
must_check struct error *kept_scans_extend(struct kept_scans *kept, const char *id,
					   uint64_t keep_us, bool implied,
					   const struct patience *patience);

#endif
