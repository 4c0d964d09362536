/*
 * A scan, or an overview, which is a scan without a stop: one keeper and one decoder, joined by a
 * socket of theirs. The agent passes on what each may know, keeps the time, and answers when the
 * decoder has its result and the keeper says that the target is as it was. A keeper that dies
 * before it says so is followed by a fresh one, which collects what is left.
 */
#ifndef AGENT_SCAN_JOB_H
#define AGENT_SCAN_JOB_H

#include "agent/job.h"

must_check struct error *scan_job_start(struct supervisor *supervisor, const Goheapd__Scan *request,
					struct reply *reply, struct job **ret);
must_check struct error *scan_job_start_overview(struct supervisor *supervisor,
						 const Goheapd__Overview *request,
						 struct reply *reply, struct job **ret);

#endif
