/* For tests: all threads of a process stopped by ptrace, with their registers. */
#ifndef TESTS_SUPPORT_LIVE_THREADS_H
#define TESTS_SUPPORT_LIVE_THREADS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/goruntime/goroutine.h"
#include "proto/base/error.h"

struct live_threads {
	struct stopped_thread *threads;
	uint32_t count;
};

/* Stops every thread of pid. The caller lets them go with live_threads_fini. */
must_check struct error *live_threads_stop(pid_t pid, struct live_threads *ret);
/*
 * Lets the index-th thread execute one instruction, and take a signal if one is due. *ret is false
 * if that is a system call that does not return while the others are stopped.
 */
must_check struct error *live_threads_step(struct live_threads *threads, uint32_t index, bool *ret);

/*
 * Lets all run until one is about to execute the instruction at one of up to
 * LIVE_BREAKPOINTS_MAX addresses, and stops them again, those that are new included. It is the CPU
 * that watches, so not a byte of the process is changed. *ret is the index of that thread, or
 * UINT32_MAX if none came there in time.
 */
enum { LIVE_BREAKPOINTS_MAX = 4 };
must_check struct error *live_threads_run_to(pid_t pid, struct live_threads *threads,
					     const uint64_t *addrs, unsigned addr_count,
					     unsigned timeout_ms, uint32_t *ret);

void live_threads_fini(struct live_threads *threads);

#endif
