/*
 * A scan's job from the inside, shared by the files that make it up: scan_job.c begins, times and
 * answers it, scan_keeper.c hears its keepers and scan_decoder.c its decoder.
 */
#ifndef AGENT_SCAN_STATE_H
#define AGENT_SCAN_STATE_H

#include <stddef.h>

#include "agent/helper.h"
#include "agent/scan_job.h"

/* A keeper that was told to let go and has not by then is stuck, and is killed. */
enum { SCAN_LET_GO_MS = 5000 };

struct scan_job {
	struct job job;
	struct helper keeper;
	struct helper *decoder;   /* NULL: in other hands, with what it keeps */
	struct event_timer timer; /* the request's time, then the time to let go */
	Goheapd__Scan *scan;      /* what was asked for; NULL: an overview */
	pid_t pid;
	uint64_t start_ticks;
	uint64_t begun_us;
	uint64_t prepare_us; /* from then until the target was to be stopped */
	unsigned keepers;    /* started so far */

	/* Of the keeper. */
	Goheapd__FileKey executable;
	bool opened;
	bool types_asked, types_told;  /* by the decoder, which needs or has made them */
	bool stopping;                 /* the target may have been stopped since */
	Goheapd__Injection *injection; /* and forked, by this; NULL: not that */
	bool keeper_done;              /* the target is as it was */
	bool released;                 /* the decoder has read all it needs */
	uint64_t pause_us;
	Goheapd__Mode mode;

	/* Of the decoder: a scan or an overview, in the answer that it will be. */
	Goheapd__Answer *result;

	/* Why there will be no result, by who says so. */
	struct error *own_failure, *keeper_failure, *decoder_failure;
};

/* The job that a helper or timer is part of. */
#define scan_of(pointer, member)                                                                   \
	((struct scan_job *)((char *)(pointer)-offsetof(struct scan_job, member)))

extern const struct helper_kind scan_keeper_kind, scan_decoder_kind;

/* What a keeper's order says of seccomp filters; borrows from the configuration. */
Goheapd__CloneAllowed scan_clone_allowed(const struct scan_job *scan);

/* Why a decoder that has ended like this has no result. */
must_check struct error *scan_decoder_death(const struct helper *decoder, int status);

/* Lets everything go at once. Consumes err; the first reason counts. */
void scan_give_up(struct scan_job *scan, struct error *err);

/*
 * To be called whenever something has changed: answers as soon as there is an answer, and frees the
 * job when nothing of it runs any more, so that only the end of a helper may be the last to call.
 */
void scan_settle(struct scan_job *scan);

#endif
