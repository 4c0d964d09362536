#include "agent/target/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/target/collect.h"
#include "agent/target/inject.h"
#include "agent/target/process.h"
#include "agent/target/procfs.h"
#include "agent/target/threads.h"
#include "agent/target/tracee.h"

/* How long the child may take to stop without descriptors, and to its end with its page tables. */
static const uint64_t settle_timeout_ns = 1000000000, end_timeout_ns = UINT64_C(10000000000);

struct snapshot {
	struct injector *injector; /* borrowed */
	struct tracee child;
	pid_t namespace_pid; /* what the target calls it */
	int pidfd;           /* -1: none */
	bool separated; /* it dies with us, and has dropped the target's descriptors if it could */
	bool dropping;
	bool reaped, collected;
};

static const struct procfs *procfs_of(const struct snapshot *snapshot)
{
	return injector_process(snapshot->injector)->procfs;
}

/* ---- taking it ---- */

/* A thread that can be used, with its stack; threads made last come first in runtime.allm. */
static struct error *choose_thread(struct threads *threads, const struct injector *injector,
				   struct tracee **ret, struct inject_stack *ret_stack)
{
	struct error *last = error_new(ERROR_UNSUPPORTED, "no thread can be used");

	for (uint32_t i = threads_count(threads); i--;) {
		struct tracee *tracee = threads_tracee(threads, i);
		struct error *err = injector_find_stack(
		    injector, tracee, threads_at(threads, i)->namespace_tid, ret_stack);

		if (!err) {
			error_free(last);
			*ret = tracee;
			return NULL;
		}
		if (error_code(last) == ERROR_BUSY && error_code(err) == ERROR_UNSUPPORTED) {
			error_free(err);
			continue;
		}
		error_free(last);
		last = err;
	}
	return last;
}

/* The kernel's words for why a clone failed, if it did. */
static struct error *check_clone(const struct inject_result *result)
{
	if (result->value > 0 && result->child > 0)
		return NULL;
	if (result->value < 0)
		return error_recode(error_system((int)-result->value, "the target's clone"),
				    ERROR_FORK_UNSAFE);
	return error_new(ERROR_FORK_UNSAFE, "the target's clone made no child that we see");
}

/*
 * Shared from the clone on, no descriptor was ever held twice; from here on the child has none.
 * That takes microseconds, and the target stands still for it; but a file system that wants to hear
 * of every close does not hold it up beyond its pause.
 */
static struct error *separate(struct snapshot *snapshot, uint64_t deadline_ns)
{
	struct error *err;

	if (!snapshot->separated) {
		if (!tracee_wait(&snapshot->child, deadline_ns))
			return NULL;
		err = injector_drop_descriptors(snapshot->injector, &snapshot->child,
						&snapshot->dropping);
		if (err)
			return err;
		snapshot->separated = true;
	}
	return snapshot->dropping ? injector_await_drop(&snapshot->child, deadline_ns) : NULL;
}

static uint64_t separation_deadline(const struct threads *threads)
{
	uint64_t left_us = threads_pause_left_us(threads);
	uint64_t most_us = settle_timeout_ns / 1000;

	return tracee_now_ns() + (left_us < most_us ? left_us : most_us) * 1000;
}

/* The child dies with us, never the other way round, and is the first that the OOM killer takes. */
static struct error *secure(struct snapshot *snapshot)
{
	char path[PATH_MAX];
	int fd scoped(closep) = -1;
	struct error *err = separate(snapshot, tracee_now_ns() + settle_timeout_ns);

	if (err)
		return err;
	if (!snapshot->separated)
		return error_new(ERROR_TIMEOUT, "the snapshot does not come to a stop");
	snprintf(path, sizeof(path), "%s/%d/oom_score_adj", procfs_of(snapshot)->proc,
		 snapshot->child.tid);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "1000", 4) != 4)
		return error_system(errno, "%s", path);
	return process_open_pidfd(snapshot->child.tid, &snapshot->pidfd);
}

struct error *snapshot_take(struct threads *threads, struct injector *injector,
			    struct snapshot **ret)
{
	struct snapshot *snapshot scoped(snapshot_freep) = calloc(1, sizeof(*snapshot));
	struct inject_result result;
	struct inject_stack stack;
	struct tracee *tracee;
	struct error *err;

	if (!snapshot)
		return &error_nomem;
	snapshot->injector = injector;
	snapshot->pidfd = -1;
	snapshot->reaped = snapshot->collected = true; /* there is no child yet */
	err = choose_thread(threads, injector, &tracee, &stack);
	if (err)
		return error_context(err, "snapshot");
	err = injector_clone(injector, tracee, &stack, &result);
	if (result.child) {
		snapshot->child = (struct tracee){ .tid = result.child, .stop = TRACEE_RUNNING };
		snapshot->namespace_pid = (pid_t)result.value;
		snapshot->reaped = snapshot->collected = false;
	}
	if (!err)
		err = check_clone(&result);
	if (err)
		return error_context(err, "snapshot");
	err = separate(snapshot, separation_deadline(threads));
	threads_resume(threads);
	if (!err)
		err = secure(snapshot);
	if (err)
		return error_context(err, "snapshot");
	*ret = take(snapshot);
	return NULL;
}

/* ---- letting go ---- */

/* It is ours until we have waited for it: its pid cannot be another's. */
struct error *snapshot_end(struct snapshot *snapshot)
{
	uint64_t deadline_ns = tracee_now_ns() + end_timeout_ns;

	if (snapshot->reaped)
		return NULL;
	kill(snapshot->child.tid, SIGKILL);
	while (snapshot->child.stop != TRACEE_GONE) {
		snapshot->child.stop = TRACEE_RUNNING;
		if (!tracee_wait(&snapshot->child, deadline_ns))
			return error_new(ERROR_TIMEOUT, "the snapshot does not end");
	}
	snapshot->reaped = true;
	return NULL;
}

struct error *snapshot_collect(struct snapshot *snapshot, uint64_t *ret_pause_us)
{
	struct error *err = snapshot_end(snapshot);

	*ret_pause_us = 0;
	if (err)
		return err;
	if (snapshot->collected)
		return NULL;
	err = collect_child(snapshot->injector, snapshot->namespace_pid, ret_pause_us);
	snapshot->collected = !err;
	return err;
}

void snapshot_free(struct snapshot *snapshot)
{
	uint64_t pause_us;

	if (!snapshot)
		return;
	error_free(snapshot_collect(snapshot, &pause_us));
	closep(&snapshot->pidfd);
	free(snapshot);
}

/* ---- using it ---- */

pid_t snapshot_pid(const struct snapshot *snapshot)
{
	return snapshot->child.tid;
}

int snapshot_pidfd(const struct snapshot *snapshot)
{
	return snapshot->pidfd;
}

struct error *snapshot_open(const struct snapshot *snapshot, const char *name, int *ret_fd)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%d/%s", procfs_of(snapshot)->proc, snapshot->child.tid,
		 name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return error_system(errno == ENOENT ? ESRCH : errno, "%s", path);
	*ret_fd = fd;
	return NULL;
}
