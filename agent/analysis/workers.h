/*
 * Doing one job on several threads: the caller's own and helpers that live for the call. The first
 * error any of them meets is the job's.
 */
#ifndef AGENT_ANALYSIS_WORKERS_H
#define AGENT_ANALYSIS_WORKERS_H

#include "proto/base/error.h"

enum { WORKERS_MAX = 64 };

/*
 * Calls work(arg, i) for i from 0 to count - 1, all at the same time where threads can be had; a
 * thread that cannot be made leaves its share to the caller's, after its own. So work must take
 * what is left of the job rather than a share that is its own, and never wait for another i.
 */
must_check struct error *workers_run(unsigned count, struct error *(*work)(void *arg, unsigned i),
				     void *arg);

/* A thread count within bounds, at least 1. */
unsigned workers_clamp(unsigned count);

#endif
