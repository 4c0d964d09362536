/*
 * A question to a kept scan while it is open: who waits for the answer, and how long. For
 * kept_scan.c.
 */
#ifndef AGENT_KEPT_QUESTION_H
#define AGENT_KEPT_QUESTION_H

#include "agent/event.h"
#include "agent/job.h"

struct kept_question {
	struct job job; /* in no list of the supervisor's: it has no helper of its own */
	struct kept_question *next;
	struct event_timer timer;
	Goheapd__Analysis *analysis;
	/* Called when nobody waits any more: it may be that its decoder goes on all the same. */
	void (*given_up)(struct kept_question *question);
	void *owner;
};

must_check struct error *kept_question_new(struct event_loop *loop, const Goheapd__Ask *request,
					   struct reply *reply,
					   void (*given_up)(struct kept_question *question),
					   void *owner, struct kept_question **ret);
void kept_question_free(struct kept_question *question);

/* Answers with a failure, if somebody waits, and frees it. Consumes err. */
void kept_question_fail(struct kept_question *question, struct error *err);

#endif
