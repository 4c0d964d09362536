#include "agent/target/collect.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>

#include "agent/target/inject.h"
#include "agent/target/process.h"
#include "agent/target/procfs.h"
#include "agent/target/thread_list.h"
#include "agent/target/tracee.h"

enum {
	ROUNDS = 50,       /* over all threads, until one can be used */
	REST_ROUND = 1000, /* of tracee_rest: long enough to sleep */
	OPTIONS = PTRACE_O_TRACESYSGOOD,
};

static const uint64_t stop_timeout_ns = 10000000, late_timeout_ns = 100000000,
		      rounds_timeout_ns = 1000000000;

/* Whether every thread of the process has ended; in the midst of an exec one still lives. */
static bool has_ended(pid_t pid)
{
	int pidfd scoped(closep) = -1;
	struct error *err = process_open_pidfd(pid, &pidfd);
	struct pollfd event = { .fd = pidfd, .events = POLLIN };
	bool ended = err ? error_code(err) == ERROR_GONE : poll(&event, 1, 0) > 0;

	error_free(err);
	return ended;
}

/* Whether the target has ended, and with it all that could be collected. */
static bool is_gone(const struct process *process)
{
	uint64_t ticks = 0;
	struct error *err = process_start_ticks(process->procfs, process->pid, &ticks);
	bool gone = err || ticks != process->start_ticks || has_ended(process->pid);

	error_free(err);
	return gone;
}

/* Its children stay what they were, but of another program we know nothing. */
static struct error *check_image(const struct process *process, pid_t namespace_child)
{
	if (!process_image_changed(process))
		return NULL;
	return error_new(ERROR_PROCESS_CHANGED,
			 "process %d has run another program, whose child %d is dead now and left "
			 "to it",
			 process->pid, namespace_child);
}

/* With the thread stopped: true if the child is collected. */
static struct error *wait_in(struct injector *injector, struct tracee *tracee, pid_t namespace_tid,
			     pid_t namespace_child)
{
	struct inject_stack stack;
	struct inject_result result;
	struct error *err = injector_find_stack(injector, tracee, namespace_tid, &stack);

	if (!err)
		err = injector_wait(injector, tracee, &stack, namespace_child, &result);
	if (err)
		return err;
	if (result.value == namespace_child || result.value == -ECHILD)
		return NULL;
	return error_new(ERROR_SYSTEM, "the target's wait4 returned %lld", (long long)result.value);
}

/*
 * A thread that is asleep for good is left to the next; one that only waits for a processor has to
 * be waited for in any case, and may as well do the work then.
 */
static bool wait_for_stop(const struct process *process, struct tracee *tracee, uint64_t began_ns)
{
	struct task_status status;
	struct error *err;

	if (tracee_wait(tracee, began_ns + stop_timeout_ns))
		return true;
	err = task_status_read(process, tracee->tid, &status);
	if (err || status.state != 'R') {
		error_free(err);
		return false;
	}
	return tracee_wait(tracee, began_ns + late_timeout_ns);
}

/* Lets go of those that have stopped by now; a thread would stand still until our end otherwise. */
static void release_late(struct late_threads *late)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < late->count; i++) {
		tracee_poll(&late->items[i]);
		if (!tracee_detach(&late->items[i]))
			late->items[kept++] = late->items[i];
	}
	late->count = kept;
}

/* Before the last word on the target; a thread that does not stop even then, our end lets go. */
static void await_late(struct late_threads *late)
{
	uint64_t deadline_ns = tracee_now_ns() + late_timeout_ns;

	release_late(late);
	for (unsigned round = 0; late->count && tracee_now_ns() < deadline_ns; round++) {
		tracee_rest(round);
		release_late(late);
	}
}

static struct error *in_thread(struct injector *injector, pid_t tid, pid_t namespace_tid,
			       pid_t namespace_child, uint64_t *pause_us)
{
	struct late_threads *late = injector_late_threads(injector);
	struct tracee tracee;
	uint64_t began_ns;
	struct error *err;

	if (late->count == INJECT_LATE_MAX)
		return error_new(ERROR_NOT_STOPPABLE, "%u threads do not stop", late->count);
	err = tracee_seize(&tracee, tid, OPTIONS);
	if (err)
		return err;
	began_ns = tracee_now_ns();
	err = tracee_interrupt(&tracee);
	if (!err && !wait_for_stop(injector_process(injector), &tracee, began_ns))
		err = error_new(ERROR_NOT_STOPPABLE, "thread %d does not stop", tid);
	if (!err)
		err = wait_in(injector, &tracee, namespace_tid, namespace_child);
	if (!tracee_detach(&tracee))
		late->items[late->count++] = tracee;
	*pause_us += (tracee_now_ns() - began_ns) / 1000;
	return err;
}

/* Threads that wait in the kernel are asked first: their stop costs the target least. */
static bool is_wanted(const struct task_status *status, unsigned round)
{
	return status->state == 'S' || (round && status->state == 'R') || status->state == 'T';
}

/* What one thread could not do another may; what no thread can do is final. */
static bool is_final(enum error_code code)
{
	return code == ERROR_NOMEM || code == ERROR_SYSTEM || code == ERROR_PROCESS_CHANGED;
}

/*
 * Tries one thread after the other. That none is alive may be for a moment only: while the program
 * is run again, its threads have ended and the last of them is about to take the leader's place.
 */
static struct error *try_threads(struct injector *injector, const pid_t *tids, size_t count,
				 unsigned round, pid_t namespace_child, uint64_t *pause_us)
{
	const struct process *process = injector_process(injector);
	struct error *last = error_new(ERROR_BUSY, "no thread is alive just now");

	while (count--) {
		struct task_status status;
		struct error *err = task_status_read(process, tids[count], &status);

		if (!err && task_status_dead(&status))
			continue;
		if (!err && !is_wanted(&status, round))
			err = error_new(ERROR_BUSY, "thread %d is in state %c", tids[count],
					status.state);
		else if (!err)
			err = in_thread(injector, tids[count], status.namespace_tid,
					namespace_child, pause_us);
		error_free(last);
		last = err;
		if (!err || is_final(error_code(err)))
			break;
	}
	return last;
}

static struct error *one_round(struct injector *injector, unsigned round, pid_t namespace_child,
			       uint64_t *pause_us)
{
	const struct process *process = injector_process(injector);
	pid_t *tids scoped(freep) = NULL;
	char folder[PATH_MAX];
	size_t count;
	struct error *err;

	snprintf(folder, sizeof(folder), "%s/%d/task", process->procfs->proc, process->pid);
	err = procfs_ids(folder, &tids, &count);
	if (!err)
		err = try_threads(injector, tids, count, round, namespace_child, pause_us);
	return err;
}

struct error *collect_child(struct injector *injector, pid_t namespace_child,
			    uint64_t *ret_pause_us)
{
	const struct process *process = injector_process(injector);
	uint64_t deadline_ns = tracee_now_ns() + rounds_timeout_ns;
	uint64_t pause_us = 0;
	struct error *err = NULL;

	for (unsigned round = 0; !round || (round < ROUNDS && tracee_now_ns() < deadline_ns);
	     round++) {
		error_free(err);
		err = NULL;
		if (is_gone(process))
			break;
		err = check_image(process, namespace_child);
		if (!err)
			err = injector_refresh(injector);
		if (!err)
			err = one_round(injector, round, namespace_child, &pause_us);
		if (!err || is_final(error_code(err)))
			break;
		tracee_rest(REST_ROUND);
		release_late(injector_late_threads(injector));
	}
	await_late(injector_late_threads(injector));
	/* threads have ended, but the process goes on: it is to be tried again */
	if (err && error_code(err) == ERROR_GONE && !is_gone(process))
		err = error_recode(err, ERROR_BUSY);
	*ret_pause_us = pause_us;
	return err ? error_context(err, "collecting the snapshot") : NULL;
}
