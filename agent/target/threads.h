/*
 * All threads of a target, stopped. While this object lives the target stands still; freeing it
 * lets every thread go on. It is the pause that a scan costs, so its time is counted here.
 *
 * A thread that never stopped (vfork, uninterruptible sleep) cannot be detached by anybody: the
 * kernel lets it go when the keeper ends. A keeper that got ERROR_NOT_STOPPABLE ends soon.
 */
#ifndef AGENT_TARGET_THREADS_H
#define AGENT_TARGET_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/target/memory.h"
#include "agent/target/registers.h"
#include "proto/base/error.h"

struct process;
struct threads;
struct tracee;

struct stop_limits {
	uint64_t max_pause_us; /* all stops together; 0: no limit */
	unsigned wait_us;      /* for a thread to stop, unless it only lacks a processor */
	unsigned attempts;     /* at stopping, with a rest between them */
};

/* 50 ms, 4 attempts, 250 ms of pause. */
extern const struct stop_limits stop_limits_default;

/*
 * Stops every thread, until a list of them holds no new one. ERROR_ALREADY_TRACED naming the other
 * tracer, ERROR_NOT_STOPPABLE, ERROR_GONE (exit or exec meanwhile), ERROR_DENIED saying why, and
 * ERROR_PAUSE_EXCEEDED. After an error every thread that did stop runs again. process is borrowed
 * until threads_free.
 */
must_check struct error *threads_stop(const struct process *process,
				      const struct stop_limits *limits, struct threads **ret);

/* Lets all run again, if threads_resume has not done so. */
void threads_free(struct threads *threads);
DEFINE_FREEP(threads, threads_free)

/*
 * Lets all run again, now; a target that had been stopped by others stays stopped. What threads_at
 * gives stays as it was.
 */
void threads_resume(struct threads *threads);

struct thread {
	pid_t tid;           /* in our pid namespace */
	pid_t namespace_tid; /* in the target's own */
	struct registers registers;
	bool signal_pending; /* was about to take a signal, which it will when let go */
};

/* The thread of index < threads_count. Read at the stop; belongs to threads. */
uint32_t threads_count(const struct threads *threads);
const struct thread *threads_at(const struct threads *threads, uint32_t index);

/* Vector registers of a thread while it is stopped, as tracee_extended_state gives them. */
must_check struct error *threads_extended_state(const struct threads *threads, uint32_t index,
						void *buffer, size_t size, size_t *ret_size);

struct address_range {
	taddr start, end;
};

/*
 * Lets threads whose pc lies in one of the ranges (sorted, not overlapping) run for some
 * microseconds and stops them again, up to rounds times. *ret_left is how many still are there.
 * After an error (as those of threads_stop) all run again.
 */
must_check struct error *threads_settle(struct threads *threads, const struct address_range *ranges,
					uint32_t range_count, unsigned rounds, uint32_t *ret_left);

/*
 * For the injection alone: the thread of that index under ptrace. It must be left stopped, and
 * with the registers that it had.
 */
struct tracee *threads_tracee(struct threads *threads, uint32_t index);

/* Time stopped so far, in all stops. */
uint64_t threads_pause_us(const struct threads *threads);
/* What is left of max_pause_us, 0 if it has passed, UINT64_MAX without a limit. */
uint64_t threads_pause_left_us(const struct threads *threads);

#endif
