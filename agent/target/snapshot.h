/*
 * The snapshot: a copy-on-write image of the target, made by a clone that one of its threads is
 * made to run (agent/target/inject.h). It runs nothing but the call that gives it a table of
 * descriptors of its own, an empty one, and sends no signal at its end.
 *
 * Whoever holds it watches target and snapshot, and collects it as early as can be: every page
 * that the target writes meanwhile is copied, and an exit or exec of the target would be held up.
 */
#ifndef AGENT_TARGET_SNAPSHOT_H
#define AGENT_TARGET_SNAPSHOT_H

#include <stdint.h>
#include <sys/types.h>

#include "proto/base/error.h"

struct injector;
struct process;
struct snapshot;
struct threads;

/*
 * Takes it with all threads stopped. On success they have been resumed (threads_resume). On failure
 * they are still stopped: ERROR_BUSY if no thread can be used just now (let them run, and try
 * again), ERROR_UNSUPPORTED if none ever can or ERROR_FORK_UNSAFE if the kernel refuses (take stop
 * mode), ERROR_GONE. The injector, made before the stop, is borrowed for the snapshot's life.
 */
must_check struct error *snapshot_take(struct threads *threads, struct injector *injector,
				       struct snapshot **ret);

/* Kills and reaps the snapshot, which takes a moment where it is large. The target runs on. */
must_check struct error *snapshot_end(struct snapshot *snapshot);

/*
 * Ends the snapshot and has the target collect it, which may be the same program run
 * again. NULL also if the target is gone; ERROR_PROCESS_CHANGED if it runs another program.
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
 * For a fresh keeper after the death of another: finds its snapshots among the children of the
 * target (those that send nothing at their end and never ran a program: a Go program makes none),
 * waits until they are dead, and has the target collect them. snapshot_pid, if not 0, is the only
 * one meant, and is killed. *ret_count is how many were collected.
 */
must_check struct error *snapshot_collect_leftover(struct injector *injector, pid_t snapshot_pid,
						   unsigned *ret_count);

#endif
