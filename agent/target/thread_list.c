#include "agent/target/thread_list.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>

#include "agent/target/process.h"
#include "agent/target/procfs.h"

enum {
	THREAD_LIMIT = 1 << 20,
	SEIZE_ATTEMPTS = 8,
	STATUS_LIMIT = 64 << 10,
	/* An exec then stops the thread instead of looking like the exit of all the others. */
	OPTIONS = PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD,
};

struct error *task_status_read(const struct process *process, pid_t tid, struct task_status *ret)
{
	struct procfs_text text;
	const char *pos;
	uint64_t value;
	struct error *err = procfs_read(&text, STATUS_LIMIT, "%s/%d/task/%d/status",
					process->procfs->proc, process->pid, tid);

	*ret = (struct task_status){ .namespace_tid = tid };
	if (err) {
		if (error_code(err) != ERROR_GONE)
			return err;
		error_free(err);
		return NULL;
	}
	pos = procfs_field(&text, "State:");
	if (pos)
		ret->state = *pos;
	pos = procfs_field(&text, "TracerPid:");
	if (pos && procfs_number(&pos, 10, &value) && value <= INT_MAX)
		ret->tracer_pid = (pid_t)value;
	pos = procfs_field(&text, "Seccomp:");
	if (pos && procfs_number(&pos, 10, &value))
		ret->seccomp_mode = (unsigned)value;
	pos = procfs_field(&text, "NSpid:");
	while (pos && procfs_number(&pos, 10, &value)) {
		if (value <= INT_MAX)
			ret->namespace_tid = (pid_t)value;
	}
	procfs_text_fini(&text);
	return NULL;
}

bool task_status_dead(const struct task_status *status)
{
	return !status->state || procfs_state_dead(status->state);
}

static struct error *add_entry(struct thread_list *list, const struct list_entry *entry)
{
	if (list->count == THREAD_LIMIT)
		return error_new(ERROR_LIMIT, "more than %d threads", THREAD_LIMIT);
	if (list->count == list->capacity) {
		uint32_t more = list->capacity ? list->capacity * 2 : 64;
		struct list_entry *bigger = reallocarray(list->entries, more, sizeof(*bigger));

		if (!bigger)
			return &error_nomem;
		list->entries = bigger;
		list->capacity = more;
	}
	list->entries[list->count++] = *entry;
	return NULL;
}

void thread_list_drop_gone(struct thread_list *list)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < list->count; i++) {
		if (list->entries[i].tracee.stop != TRACEE_GONE)
			list->entries[kept++] = list->entries[i];
	}
	list->count = kept;
}

/* A thread that cannot be seized: *ret_ended if that is because it has just ended. */
static struct error *why_not_seized(const struct thread_list *list, pid_t tid, bool *ret_ended)
{
	struct task_status status;
	struct error *err = task_status_read(list->process, tid, &status);

	if (err)
		return err;
	*ret_ended = task_status_dead(&status);
	if (*ret_ended)
		return NULL;
	if (status.tracer_pid)
		return error_new(ERROR_ALREADY_TRACED, "process %d is traced by process %d",
				 list->process->pid, status.tracer_pid);
	return process_denied(list->process);
}

/*
 * The kernel refuses a thread that is on its way out like one that we have no right to, and by the
 * time we look an exec may have given its tid to another: only a refusal that lasts is one.
 */
static struct error *seize_tracee(const struct thread_list *list, pid_t tid, struct tracee *ret,
				  bool *ret_ended)
{
	struct error *err = NULL;

	*ret_ended = false;
	for (unsigned attempt = 0; attempt < SEIZE_ATTEMPTS; attempt++) {
		error_free(err);
		err = tracee_seize(ret, tid, OPTIONS);
		if (!err)
			return NULL;
		*ret_ended = error_code(err) == ERROR_GONE;
		if (!*ret_ended && error_code(err) != ERROR_DENIED)
			return err;
		error_free(err);
		err = *ret_ended ? NULL : why_not_seized(list, tid, ret_ended);
		if (*ret_ended || (err && error_code(err) != ERROR_DENIED))
			return err;
		tracee_rest(attempt);
	}
	return err;
}

/* Seizes one thread, which runs on; one that has ended is left out. */
static struct error *seize(struct thread_list *list, pid_t tid)
{
	struct list_entry entry = { .thread = { .tid = tid, .namespace_tid = tid } };
	struct task_status status;
	struct error *err;
	bool ended;

	if (!list->process->same_pid_namespace) {
		err = task_status_read(list->process, tid, &status);
		if (err)
			return err;
		entry.thread.namespace_tid = status.namespace_tid;
	}
	err = seize_tracee(list, tid, &entry.tracee, &ended);
	if (err || ended)
		return err;
	return add_entry(list, &entry);
}

static int compare_tids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

/*
 * Whether there is no thread but those in the list, and a leader that has ended, which is counted
 * until the end of the process. What was listed and has ended since is counted no longer.
 */
static struct error *is_complete(const struct thread_list *list, bool *ret)
{
	pid_t pid = list->process->pid;
	struct procfs_stat stat;
	uint64_t expected = list->count + 1;
	struct error *err = procfs_stat(list->process->procfs, pid, pid, &stat);

	if (err)
		return err;
	for (uint32_t i = 0; i < list->count; i++)
		expected -= list->entries[i].tracee.tid == pid;
	*ret = stat.thread_count == expected;
	return NULL;
}

/* Sorted, of what is in the list. The caller frees. */
static pid_t *known_tids(const struct thread_list *list)
{
	pid_t *known = reallocarray(NULL, (size_t)list->count + 1, sizeof(*known));

	if (!known)
		return NULL;
	for (uint32_t i = 0; i < list->count; i++)
		known[i] = list->entries[i].tracee.tid;
	qsort(known, list->count, sizeof(*known), compare_tids);
	return known;
}

struct error *thread_list_seize_new(struct thread_list *list, uint32_t *ret_added,
				    bool *ret_complete)
{
	uint32_t before = list->count;
	pid_t *known scoped(freep) = known_tids(list);
	pid_t *tids scoped(freep) = NULL;
	char folder[PATH_MAX];
	size_t count;
	struct error *err;

	if (!known)
		return &error_nomem;
	snprintf(folder, sizeof(folder), "%s/%d/task", list->process->procfs->proc,
		 list->process->pid);
	err = procfs_ids(folder, &tids, &count);
	for (size_t i = 0; !err && i < count; i++) {
		if (!bsearch(&tids[i], known, before, sizeof(*known), compare_tids))
			err = seize(list, tids[i]);
	}
	if (!err)
		err = is_complete(list, ret_complete);
	if (err)
		return err;
	*ret_added = list->count - before;
	return NULL;
}

void thread_list_fini(struct thread_list *list)
{
	free(list->entries);
	list->entries = NULL;
	list->count = list->capacity = 0;
}
