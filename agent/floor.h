/*
 * When each target was stopped last, so that a minimal time passes between two stops of one. The
 * agent keeps it by itself: whoever holds the daemon cannot hold a process still.
 */
#ifndef AGENT_FLOOR_H
#define AGENT_FLOOR_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/base/error.h"

struct floor_stop;

struct floor {
	uint64_t interval_ms;
	struct floor_stop *stops; /* younger than the interval, and some that are not */
	size_t count, capacity;
};

void floor_init(struct floor *floor, uint64_t interval_ms);
void floor_fini(struct floor *floor);

/* How long until that process may be stopped; 0: now. Times are CLOCK_MONOTONIC. */
uint64_t floor_wait_ms(const struct floor *floor, pid_t pid, uint64_t start_ticks, uint64_t now_ms);

/* Notes that it stood still until now. */
must_check struct error *floor_note(struct floor *floor, pid_t pid, uint64_t start_ticks,
				    uint64_t now_ms);

#endif
