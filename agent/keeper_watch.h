/*
 * What a keeper waits for, all at once: the agent's word to let go, the decoder, the target's end
 * or exec, the snapshot's death, and its own deadline. Whatever comes, the keeper never waits for
 * one of them alone, so that a target is let go within milliseconds.
 */
#ifndef AGENT_KEEPER_WATCH_H
#define AGENT_KEEPER_WATCH_H

#include <stdint.h>

#include "agent/keeper_orders.h"

struct keeper_watch {
	struct keeper *keeper;
	int target_pidfd;     /* polls readable at the target's end; -1: not watched */
	int target_mem_fd;    /* tells an exec; -1: not watched */
	int snapshot_pidfd;   /* -1: none */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC; UINT64_MAX: none */
};

enum keeper_wake {
	KEEPER_MESSAGE,  /* of the decoder's, in *ret */
	KEEPER_LET_GO,   /* the agent says so, or is gone; or the decoder is */
	KEEPER_DEADLINE, /* it has passed */
};

/*
 * ERROR_GONE for the target's end, ERROR_SYSTEM for the snapshot's; an error of its connection for
 * a decoder that says what none of ours says. Frees the caller from everything but the three.
 */
must_check struct error *keeper_wait(struct keeper_watch *watch, struct frame *ret,
				     enum keeper_wake *ret_wake);

#endif
