/*
 * A job is one open request that needs helpers: a scan, an overview, a listing, a collection. It
 * owns itself: it answers at most once, and goes when its last helper has ended, which may be long
 * after its answer. Whoever asked may lose interest at any time.
 */
#ifndef AGENT_JOB_H
#define AGENT_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"

struct job;
struct supervisor;

/* Where the answer goes. It fills in the id; the answer is borrowed for the call. */
struct reply {
	void (*answer)(struct reply *reply, Goheapd__Answer *answer);
	const void *asker; /* the session: what is kept is kept for it */
};

struct job_ops {
	const char *name; /* for the log */
	/* Let everything go at once; the job ends as soon as it can. May be called again. */
	void (*stop)(struct job *job);
	void (*free)(struct job *job);
};

struct job {
	struct job *next; /* in the supervisor's list */
	struct supervisor *supervisor;
	const struct job_ops *ops;
	struct reply *reply; /* NULL: answered, or nobody listens */
	bool is_scan;        /* it may stop a process */
	pid_t target;        /* which is in our hands now; 0: none, or no more */
	/* Ours, and so no process that anybody should see; 0: none. */
	pid_t keeper, snapshot;
};

void job_answer(struct job *job, Goheapd__Answer *answer);

/* Answers with a failure and consumes err. What is internal gets an id, under which it is logged.
 */
void job_fail(struct job *job, struct error *err);

/* The asker is gone: nothing is answered, everything is let go. */
void job_abandon(struct job *job);

#endif
