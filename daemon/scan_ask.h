/*
 * Asking the agent for a scan. Used by the daemon, which shares and keeps the answers, and by
 * goheap where no daemon runs.
 */
#ifndef DAEMON_SCAN_ASK_H
#define DAEMON_SCAN_ASK_H

#include <sys/types.h>

#include "daemon/agent_client.h"
#include "daemon/label_query.h"

/* What a scan's result carries besides identity and scan. */
enum scan_parts {
	SCAN_MEMORY = 1 << 0,
	SCAN_GOROUTINES = 1 << 1,
	SCAN_DEAD_GOROUTINES = 1 << 2,
	SCAN_MAPPINGS = 1 << 3,
	SCAN_LABELS = 1 << 4,
};

struct scan_question {
	uint32_t pid;
	uint64_t start_ticks;
	Goheapd__Mode mode;
	Goheapd__Depth depth;
	unsigned parts;
	const struct label_query *labels;  /* NULL: nothing beyond the part; borrowed */
	const Goheapd__Analysis *analysis; /* NULL: nothing; borrowed */
	uint64_t max_pause_us, timeout_us;
	const char *keep_id; /* NULL: nothing is kept; borrowed */
	uint64_t keep_us;
	bool keep_implied; /* nobody has asked for it */
	uid_t caller;      /* for the audit line, as is path */
	const char *path;  /* borrowed */
};

/* As agent_client_call; the answer's scan is set. */
must_check struct error *scan_ask(struct agent_client *agent, const struct scan_question *question,
				  const struct patience *patience, uint64_t grace_us,
				  Goheapd__Answer **ret, uint64_t *ret_retry_after_ms);

enum { SCAN_ID_DIGITS = 16, SCAN_ID_SIZE = 24 };

/* Unique on this machine and not to be guessed: an id is all that a later request shows. */
must_check struct error *scan_make_id(char id[SCAN_ID_SIZE]);

#endif
