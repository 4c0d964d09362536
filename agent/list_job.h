/*
 * A listing: a keeper goes through all processes and opens their executables, which may hang on a
 * file system of somebody's own; one decoder says of those that are new which are Go programs; the
 * agent adds what /proc says of these.
 */
#ifndef AGENT_LIST_JOB_H
#define AGENT_LIST_JOB_H

#include "agent/job.h"

must_check struct error *list_job_start(struct supervisor *supervisor, struct reply *reply,
					struct job **ret);

#endif
