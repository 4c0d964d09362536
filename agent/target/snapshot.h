/*
 * The snapshot: a copy-on-write image of the target, made by a clone that one of its threads is
 * made to run (agent/target/inject.h), which never runs an instruction. It shares the target's
 * descriptor table and sends no signal at its end.
 *
 * Whoever holds it watches target and snapshot, and collects it as early as can be: every page
 * that the target writes meanwhile is copied, and an exit or exec of the target would be held up.
 */
#ifndef AGENT_TARGET_SNAPSHOT_H
#define AGENT_TARGET_SNAPSHOT_H

#include <stdint.h>
#include <sys/types.h>

#include "agent/target/inject.h"
#include "proto/base/error.h"

struct process;
struct snapshot;
struct threads;

/*
 * Takes it with all threads stopped, and lets them run again: on success threads are resumed. On
 * failure they are still stopped, unless it is ERROR_GONE or ERROR_PAUSE_EXCEEDED.
 * ERROR_UNSUPPORTED if the plan does not fit or no thread can be used: take stop mode. process is
 * borrowed for the snapshot's life, plan is copied.
 */
must_check struct error *snapshot_take(struct threads *threads, const struct process *process,
				       const struct inject_plan *plan, struct snapshot **ret);

/*
 * Kills and reaps the snapshot and has the target collect it. NULL also if the target is gone.
 * After an error the snapshot is dead all the same, but a zombie may be left in the target;
 * snapshot_collect may be called again. pause_us is how long one thread was stopped.
 */
must_check struct error *snapshot_collect(struct snapshot *snapshot, uint64_t *ret_pause_us);

/* Kills and reaps what snapshot_collect has not. NULL is allowed. */
void snapshot_free(struct snapshot *snapshot);
DEFINE_FREEP(snapshot, snapshot_free)

/* In our pid namespace; the agent notes it for snapshot_collect_leftover. */
pid_t snapshot_pid(const struct snapshot *snapshot);
/* Polls readable when the snapshot is dead (something else killed it). Belongs to the snapshot. */
int snapshot_pidfd(const struct snapshot *snapshot);
/* A descriptor of a file of its such as "mem", "maps" or "smaps", close-on-exec. */
must_check struct error *snapshot_open(const struct snapshot *snapshot, const char *name,
				       int *ret_fd);

/*
 * For a fresh keeper after the death of another: finds snapshots among the children of the target
 * (children that signal nothing at their end are nobody else's in a Go program), waits until they
 * are dead, kills the one of pid snapshot_pid (0: not known) if it is not, and has the target
 * collect them. *ret_count is how many.
 */
must_check struct error *snapshot_collect_leftover(const struct process *process,
						   const struct inject_plan *plan,
						   pid_t snapshot_pid, unsigned *ret_count);

#endif
