/*
 * What a keeper that died has left in a target: dead children that nobody will ever collect.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/target/collect.h"
#include "agent/target/inject.h"
#include "agent/target/process.h"
#include "agent/target/procfs.h"
#include "agent/target/snapshot.h"
#include "agent/target/thread_list.h"
#include "agent/target/tracee.h"

enum {
	REST_ROUND = 1000, /* of tracee_rest: long enough to sleep */
	LOOKS = 20,        /* for what is not there yet */
};

static const uint64_t end_timeout_ns = UINT64_C(10000000000);

/* A child of the target that sends nothing at its end and never ran a program of its own. */
static struct error *is_snapshot(const struct process *process, pid_t pid,
				 struct procfs_stat *ret_stat, bool *ret)
{
	struct error *err = procfs_stat(process->procfs, pid, pid, ret_stat);

	*ret = false;
	if (err && error_code(err) == ERROR_GONE) {
		error_free(err);
		return NULL;
	}
	if (err)
		return err;
	*ret = ret_stat->parent == process->pid && !ret_stat->exit_signal &&
	       ret_stat->flags & PROCFS_FLAG_FORKNOEXEC;
	return NULL;
}

/* Through a pidfd, looking again once we have it: the pid may be another's by now. */
static struct error *kill_snapshot(const struct process *process, pid_t pid)
{
	struct procfs_stat stat;
	int pidfd scoped(closep) = -1;
	bool found;
	struct error *err = process_open_pidfd(pid, &pidfd);

	if (!err)
		err = is_snapshot(process, pid, &stat, &found);
	if (!err && found && syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) &&
	    errno != ESRCH)
		err = error_system(errno, "killing snapshot %d", pid);
	if (err && error_code(err) == ERROR_GONE) {
		error_free(err);
		return NULL;
	}
	return err;
}

/* Without its tracer a snapshot ends by itself, if it was not killed: it only takes a moment. */
static struct error *wait_until_dead(const struct process *process, pid_t pid, bool *ret_found)
{
	uint64_t deadline_ns = tracee_now_ns() + end_timeout_ns;

	for (;;) {
		struct procfs_stat stat;
		struct error *err = is_snapshot(process, pid, &stat, ret_found);

		if (err || !*ret_found || procfs_state_dead(stat.state))
			return err;
		if (tracee_now_ns() >= deadline_ns)
			return error_new(ERROR_TIMEOUT, "snapshot %d does not end", pid);
		tracee_rest(REST_ROUND);
	}
}

static struct error *namespace_pid(const struct process *process, pid_t pid, pid_t *ret)
{
	const struct process child = { .procfs = process->procfs, .pid = pid, .tid = pid };
	struct task_status status;
	struct error *err = task_status_read(&child, pid, &status);

	if (err)
		return err;
	*ret = status.namespace_tid;
	return NULL;
}

static struct error *collect_one(struct injector *injector, pid_t pid, unsigned *count)
{
	const struct process *process = injector_process(injector);
	uint64_t pause_us;
	pid_t inner;
	bool found;
	struct error *err = wait_until_dead(process, pid, &found);

	if (err || !found)
		return err;
	err = namespace_pid(process, pid, &inner);
	if (!err)
		err = collect_child(injector, inner, &pause_us);
	if (err)
		return err;
	++*count;
	return NULL;
}

static struct error *collect_all(struct injector *injector, unsigned *collected)
{
	const struct process *process = injector_process(injector);
	pid_t *pids scoped(freep) = NULL;
	size_t count;
	struct error *err = procfs_ids(process->procfs->proc, &pids, &count);

	for (size_t i = 0; !err && i < count; i++) {
		struct procfs_stat stat;
		bool found;

		err = is_snapshot(process, pids[i], &stat, &found);
		if (!err && found)
			err = collect_one(injector, pids[i], collected);
	}
	return err;
}

/* ---- threads that have not run since the keeper's death ---- */

struct waiting {
	pid_t *tids; /* 0: it has run, or ended */
	uint64_t *runs;
	size_t count;
};

static void waiting_fini(struct waiting *waiting)
{
	free(waiting->tids);
	free(waiting->runs);
}

/* How often a runnable thread has been given a processor; UINT64_MAX for others, or if not known.
 */
static uint64_t count_runs(const struct process *process, pid_t tid)
{
	enum { SCHEDSTAT_LIMIT = 256 };
	struct procfs_stat stat;
	struct procfs_text text;
	uint64_t numbers[3] = { 0, 0, UINT64_MAX }; /* time, delay, times */
	const char *pos;
	struct error *err = procfs_stat(process->procfs, process->pid, tid, &stat);

	if (!err && stat.state != 'R')
		return UINT64_MAX;
	if (!err)
		err = procfs_read(&text, SCHEDSTAT_LIMIT, "%s/%d/task/%d/schedstat",
				  process->procfs->proc, process->pid, tid);
	if (err) {
		error_free(err);
		return UINT64_MAX;
	}
	pos = text.data;
	for (int i = 0; i < 3 && pos; i++) {
		if (!procfs_number(&pos, 10, &numbers[i]))
			numbers[2] = UINT64_MAX;
	}
	procfs_text_fini(&text);
	return numbers[2];
}

static struct error *waiting_init(struct waiting *waiting, const struct process *process)
{
	char folder[PATH_MAX];
	struct error *err;

	*waiting = (struct waiting){ 0 };
	snprintf(folder, sizeof(folder), "%s/%d/task", process->procfs->proc, process->pid);
	err = procfs_ids(folder, &waiting->tids, &waiting->count);
	if (err)
		return err;
	waiting->runs = calloc(waiting->count + 1, sizeof(*waiting->runs));
	if (!waiting->runs)
		return &error_nomem;
	for (size_t i = 0; i < waiting->count; i++) {
		waiting->runs[i] = count_runs(process, waiting->tids[i]);
		if (waiting->runs[i] == UINT64_MAX)
			waiting->tids[i] = 0;
	}
	return NULL;
}

/* Whether any has still not run. */
static bool waiting_any(struct waiting *waiting, const struct process *process)
{
	bool any = false;

	for (size_t i = 0; i < waiting->count; i++) {
		if (waiting->tids[i] && count_runs(process, waiting->tids[i]) != waiting->runs[i])
			waiting->tids[i] = 0;
		any |= waiting->tids[i] != 0;
	}
	return any;
}

/*
 * Where the keeper died before the injected clone, the thread runs it when the scheduler comes to
 * it: what is not there yet may still come, and on a crowded machine it may take a while.
 */
static struct error *look_for_any(struct injector *injector, unsigned *collected)
{
	const struct process *process = injector_process(injector);
	uint64_t deadline_ns = tracee_now_ns() + end_timeout_ns;
	struct waiting waiting;
	struct error *err = waiting_init(&waiting, process);

	for (unsigned look = 0; !err && !*collected; look++) {
		bool more = look < LOOKS || waiting_any(&waiting, process);

		err = collect_all(injector, collected);
		if (!more || tracee_now_ns() >= deadline_ns)
			break;
		tracee_rest(REST_ROUND);
	}
	waiting_fini(&waiting);
	return err;
}

struct error *snapshot_collect_leftover(struct injector *injector, pid_t snapshot_pid,
					unsigned *ret_count)
{
	unsigned collected = 0;
	struct error *err = NULL;

	if (snapshot_pid) {
		err = kill_snapshot(injector_process(injector), snapshot_pid);
		if (!err)
			err = collect_one(injector, snapshot_pid, &collected);
	} else {
		err = look_for_any(injector, &collected);
	}
	if (err)
		return err;
	*ret_count = collected;
	return NULL;
}
