/*
 * How long to wait, and for whom: everything that waits on behalf of a request takes one, so that
 * nothing waits for ever or for a client who has left.
 */
#ifndef DAEMON_PATIENCE_H
#define DAEMON_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/error.h"

struct patience {
	uint64_t deadline_us; /* as clock_now_us counts */
	int client;           /* a socket whose other side may leave, or -1 */
	int stop;             /* becomes readable when waiting is to end, or -1 */
	/*
	 * Whether a client that sends no more has left: it may only have finished sending. NULL: it
	 * has.
	 */
	bool (*has_left)(int client);
};

/*
 * Waits until event, a descriptor, is readable. ERROR_TIMEOUT when the deadline passes first or the
 * client leaves, ERROR_AGENT_UNAVAILABLE when told to stop.
 */
must_check struct error *patience_wait(const struct patience *patience, int event);

#endif
