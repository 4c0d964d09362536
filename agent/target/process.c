#include "agent/target/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/target/procfs.h"

enum {
	STAT_LIMIT = 4096,
	STATUS_LIMIT = 64 << 10,
	CGROUP_LIMIT = 64 << 10,
	LIMITS_LIMIT = 16 << 10,
};

struct error *process_start_ticks(const struct procfs *procfs, pid_t pid, uint64_t *ret)
{
	struct procfs_stat line;
	struct error *err = procfs_stat(procfs, pid, pid, &line);

	if (err)
		return err;
	*ret = line.start_ticks;
	return NULL;
}

/* Adds value unless it is there. */
static struct error *add_distinct(uint32_t **ids, uint32_t *count, uint32_t value)
{
	uint32_t *bigger;

	for (uint32_t i = 0; i < *count; i++) {
		if ((*ids)[i] == value)
			return NULL;
	}
	bigger = reallocarray(*ids, *count + 1, sizeof(*bigger));
	if (!bigger)
		return &error_nomem;
	bigger[(*count)++] = value;
	*ids = bigger;
	return NULL;
}

/* "Uid: real effective saved filesystem"; the first three count for ptrace. */
static struct error *add_ids(const struct procfs_text *status, const char *key, uint32_t **ids,
			     uint32_t *count, uint32_t first_two[2])
{
	const char *pos = procfs_field(status, key);

	for (int i = 0; i < 3; i++) {
		uint64_t value;
		struct error *err;

		if (!pos || !procfs_number(&pos, 10, &value) || value > UINT32_MAX)
			return error_new(ERROR_FORMAT, "status: %s is malformed", key);
		if (i < 2 && first_two)
			first_two[i] = (uint32_t)value;
		err = add_distinct(ids, count, (uint32_t)value);
		if (err)
			return err;
	}
	return NULL;
}

static uint64_t status_number(const struct procfs_text *status, const char *key, int base,
			      uint64_t otherwise)
{
	const char *pos = procfs_field(status, key);
	uint64_t value;

	return pos && procfs_number(&pos, base, &value) ? value : otherwise;
}

/* What counts of every thread, since credentials and filters belong to threads. */
static struct error *add_thread(struct process *process, const struct procfs_text *status)
{
	uint64_t tracer = status_number(status, "TracerPid:", 10, 0);
	uint64_t seccomp = status_number(status, "Seccomp:", 10, 0);
	struct error *err;

	err = add_ids(status, "Uid:", &process->uids, &process->uid_count, NULL);
	if (!err)
		err = add_ids(status, "Gid:", &process->gids, &process->gid_count, NULL);
	if (err)
		return err;
	process->cap_permitted |= status_number(status, "CapPrm:", 16, UINT64_MAX);
	process->cap_effective &= status_number(status, "CapEff:", 16, 0);
	if (tracer && tracer <= INT_MAX)
		process->tracer_pid = (pid_t)tracer;
	if (seccomp == SECCOMP_MODE_STRICT)
		process->seccomp_strict = true;
	else if (seccomp)
		process->seccomp_filter = true;
	return NULL;
}

/* The last number of "NSpid: 812 7 1". */
static pid_t innermost_pid(const struct procfs_text *status, pid_t otherwise)
{
	const char *pos = procfs_field(status, "NSpid:");
	uint64_t value = (uint64_t)otherwise, next;

	while (pos && procfs_number(&pos, 10, &next))
		value = next;
	return value && value <= INT_MAX ? (pid_t)value : otherwise;
}

static bool has_shadow_stack(const struct procfs_text *status)
{
	const char *features = procfs_field(status, "x86_Thread_features:");
	const char *end = features ? strchrnul(features, '\n') : NULL;
	const char *found = features ? strstr(features, "shstk") : NULL;

	return found && found < end;
}

/* What is looked at in the live thread only. */
static struct error *read_live_status(struct process *process)
{
	uint32_t uids[2];
	uint32_t *all scoped(freep) = NULL;
	uint32_t count = 0;
	struct procfs_text text;
	struct error *err = procfs_read(&text, STATUS_LIMIT, "%s/%d/task/%d/status",
					process->procfs->proc, process->pid, process->tid);

	if (err)
		return err;
	err = add_ids(&text, "Uid:", &all, &count, uids);
	if (!err) {
		process->uid = uids[0];
		process->effective_uid = uids[1];
		process->rss_bytes = status_number(&text, "VmRSS:", 10, 0) * 1024;
		process->rss_anon_bytes = status_number(&text, "RssAnon:", 10, 0) * 1024;
		process->swap_bytes = status_number(&text, "VmSwap:", 10, 0) * 1024;
		process->page_table_bytes = status_number(&text, "VmPTE:", 10, 0) * 1024;
		process->shadow_stack = has_shadow_stack(&text);
	}
	procfs_text_fini(&text);
	return err;
}

/* NSpid of the leader: what the target calls itself. */
static struct error *read_leader_status(struct process *process)
{
	struct procfs_text text;
	struct error *err =
	    procfs_read(&text, STATUS_LIMIT, "%s/%d/status", process->procfs->proc, process->pid);

	if (err)
		return err;
	process->namespace_pid = innermost_pid(&text, process->pid);
	procfs_text_fini(&text);
	return NULL;
}

/* The inode in a link such as "pid:[4026531836]"; 0 if it cannot be read. */
static uint64_t namespace_inode(const char *path)
{
	char target[64];
	ssize_t size = readlink(path, target, sizeof(target) - 1);
	const char *pos;
	uint64_t inode;

	if (size <= 0)
		return 0;
	target[size] = '\0';
	pos = strchr(target, '[');
	if (!pos)
		return 0;
	pos++;
	return procfs_number(&pos, 10, &inode) ? inode : 0;
}

static uint64_t namespace_of(const struct process *process, pid_t tid, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%d/task/%d/%s", process->procfs->proc, process->pid, tid,
		 name);
	return namespace_inode(path);
}

/* One that has ended counts, too. */
static bool is_exiting(const struct process *process, pid_t tid)
{
	struct procfs_stat stat;
	struct error *err = procfs_stat(process->procfs, process->pid, tid, &stat);

	if (err) {
		error_free(err);
		return true;
	}
	return stat.flags & PROCFS_FLAG_EXITING;
}

/*
 * The link for children cannot be read where the thread has left for a namespace that has no first
 * process yet, but also of a thread on its way out, which lets go of its namespaces before it is
 * seen to have ended (kernel/exit.c, do_exit).
 */
bool process_child_namespace_differs(const struct process *process, pid_t tid)
{
	uint64_t for_children = namespace_of(process, tid, "ns/pid_for_children");
	uint64_t own = namespace_of(process, tid, "ns/pid");

	if (!for_children && is_exiting(process, tid))
		return false;
	return own && own != for_children;
}

/* One that has ended makes no children: the leader that a C archive has left behind, say. */
static bool is_alive(const struct procfs_text *status)
{
	const char *state = procfs_field(status, "State:");

	return !state || !procfs_state_dead(state[strspn(state, " \t")]);
}

/* Threads that end meanwhile are left out. */
static struct error *read_thread(struct process *process, pid_t tid)
{
	struct procfs_text text;
	bool alive;
	struct error *err = procfs_read(&text, STATUS_LIMIT, "%s/%d/task/%d/status",
					process->procfs->proc, process->pid, tid);

	if (err) {
		if (error_code(err) != ERROR_GONE)
			return err;
		error_free(err);
		return NULL;
	}
	err = add_thread(process, &text);
	alive = is_alive(&text);
	procfs_text_fini(&text);
	if (alive && process_child_namespace_differs(process, tid))
		process->foreign_child_namespace = true;
	return err;
}

/* The leader, or where it has exited another thread that has not. */
static struct error *find_live_thread(struct process *process, const pid_t *tids, size_t count)
{
	struct procfs_stat line;
	struct error *err = procfs_stat(process->procfs, process->pid, process->pid, &line);

	if (err)
		return err;
	process->start_ticks = line.start_ticks;
	process->tid = process->pid;
	process->zombie_leader = procfs_state_dead(line.state);
	for (size_t i = 0; procfs_state_dead(line.state); i++) {
		if (i == count)
			return error_new(ERROR_NO_PROCESS, "process %d is a zombie", process->pid);
		process->tid = tids[i];
		err = procfs_stat(process->procfs, process->pid, tids[i], &line);
		if (err)
			return err;
	}
	process->state = line.state;
	process->kernel_thread = line.flags & PROCFS_FLAG_KTHREAD;
	return NULL;
}

static struct error *read_threads(struct process *process)
{
	char folder[PATH_MAX];
	pid_t *tids scoped(freep) = NULL;
	size_t count;
	struct error *err;

	snprintf(folder, sizeof(folder), "%s/%d/task", process->procfs->proc, process->pid);
	err = procfs_ids(folder, &tids, &count);
	if (!err)
		err = find_live_thread(process, tids, count);
	for (size_t i = 0; i < count && !err; i++)
		err = read_thread(process, tids[i]);
	process->thread_count = (uint32_t)(err ? 0 : count);
	return err;
}

static struct error *read_comm(struct process *process)
{
	struct procfs_text text;
	size_t size;
	struct error *err = procfs_read(&text, STAT_LIMIT, "%s/%d/task/%d/comm",
					process->procfs->proc, process->pid, process->tid);

	if (err)
		return err;
	size = text.size && text.data[text.size - 1] == '\n' ? text.size - 1 : text.size;
	if (size >= sizeof(process->comm))
		size = sizeof(process->comm) - 1;
	memcpy(process->comm, text.data, size);
	process->comm[size] = '\0';
	procfs_text_fini(&text);
	return NULL;
}

/* The path of a file of the live thread. */
static void file_path(const struct process *process, const char *name, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/%d/task/%d/%s", process->procfs->proc, process->pid,
		 process->tid, name);
}

/* Kernel threads have none, and we may have no right to see it. */
static struct error *read_exe(struct process *process)
{
	char path[PATH_MAX], target[PATH_MAX];
	struct stat st;
	ssize_t size;

	file_path(process, "exe", path);
	size = readlink(path, target, sizeof(target) - 1);
	if (size <= 0)
		return NULL;
	target[size] = '\0';
	process->exe = strdup(target);
	if (!process->exe)
		return &error_nomem;
	if (!stat(path, &st)) {
		process->exe_device = st.st_dev;
		process->exe_inode = st.st_ino;
	}
	return NULL;
}

static uint64_t own_namespace(const struct process *process, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/self/%s", process->procfs->proc, name);
	return namespace_inode(path);
}

static void read_namespaces(struct process *process)
{
	process->user_namespace = namespace_of(process, process->tid, "ns/user");
	process->pid_namespace = namespace_of(process, process->tid, "ns/pid");
	process->mount_namespace = namespace_of(process, process->tid, "ns/mnt");
	process->same_user_namespace =
	    process->user_namespace && process->user_namespace == own_namespace(process, "ns/user");
	process->same_pid_namespace =
	    process->pid_namespace && process->pid_namespace == own_namespace(process, "ns/pid");
}

/*
 * Files in /proc/PID belong to root instead of the effective uid when the process is not dumpable
 * (the kernel's task_dump_owner, in fs/proc/base.c). Of a process of root's there is no telling,
 * and no need: only root may ask about it.
 */
static void read_dumpable(struct process *process)
{
	char path[PATH_MAX];
	struct stat st;

	file_path(process, "status", path);
	process->dumpable = !stat(path, &st) && st.st_uid == process->effective_uid;
}

/* "Max processes  127000  127000  processes": the soft limit. */
static struct error *read_nproc_limit(struct process *process)
{
	struct procfs_text text;
	const char *pos;
	struct error *err = procfs_read(&text, LIMITS_LIMIT, "%s/%d/task/%d/limits",
					process->procfs->proc, process->pid, process->tid);

	process->nproc_limit = UINT64_MAX;
	if (err) {
		/* recorded trees and foreign processes may not show it */
		bool fatal = error_code(err) == ERROR_NOMEM;

		if (fatal)
			return err;
		error_free(err);
		return NULL;
	}
	pos = procfs_field(&text, "Max processes");
	if (pos)
		procfs_number(&pos, 10, &process->nproc_limit);
	procfs_text_fini(&text);
	return NULL;
}

static struct error *read_cgroup(struct process *process)
{
	struct procfs_text text;
	struct error *err = procfs_read(&text, CGROUP_LIMIT, "%s/%d/task/%d/cgroup",
					process->procfs->proc, process->pid, process->tid);

	if (err)
		return err;
	err = cgroup_read(process->procfs, &text, &process->cgroup);
	procfs_text_fini(&text);
	return err;
}

/* What makes it this process, beside its threads: the rest can change without its being another. */
static struct error *read_image(struct process *process)
{
	struct error *err = read_live_status(process);

	if (!err)
		err = read_exe(process);
	if (err)
		return err;
	read_namespaces(process);
	read_dumpable(process);
	return NULL;
}

static struct error *read_identity(struct process *process)
{
	struct error *err = read_threads(process);

	return err ? err : read_image(process);
}

/* The same through one thread, which was alive before; all of them if it is no longer. */
static struct error *glance_at_identity(struct process *process, pid_t tid)
{
	struct procfs_stat line;
	struct error *err = procfs_stat(process->procfs, process->pid, tid, &line);

	if (err && error_code(err) != ERROR_GONE)
		return err;
	if (err || procfs_state_dead(line.state)) {
		error_free(err);
		return read_identity(process);
	}
	process->tid = tid;
	err = process_start_ticks(process->procfs, process->pid, &process->start_ticks);
	if (!err)
		err = read_thread(process, tid);
	return err ? err : read_image(process);
}

static struct error *read_rest(struct process *process)
{
	struct error *err = read_leader_status(process);

	if (!err)
		err = read_comm(process);
	if (!err)
		err = read_nproc_limit(process);
	if (!err)
		err = read_cgroup(process);
	return err;
}

static struct error *new_process(const struct procfs *procfs, pid_t pid, struct process **ret)
{
	struct process *process = calloc(1, sizeof(*process));

	if (!process)
		return &error_nomem;
	process->procfs = procfs;
	process->pid = pid;
	process->cap_effective = UINT64_MAX; /* as long as no thread says less */
	*ret = process;
	return NULL;
}

struct error *process_read(const struct procfs *procfs, pid_t pid, struct process **ret)
{
	struct process *process scoped(process_freep) = NULL;
	struct error *err = new_process(procfs, pid, &process);

	if (err)
		return err;
	err = read_identity(process);
	if (!err)
		err = read_rest(process);
	if (err && error_code(err) == ERROR_GONE)
		err = error_recode(err, ERROR_NO_PROCESS);
	if (err)
		return error_context(err, "process %d", pid);
	process->start_time_ns =
	    procfs->boot_time_ns +
	    process->start_ticks * (UINT64_C(1000000000) / procfs->ticks_per_second);
	*ret = take(process);
	return NULL;
}

struct error *process_refresh(struct process *process)
{
	struct error *err = read_live_status(process);

	if (err)
		return err;
	cgroup_fini(&process->cgroup);
	return read_cgroup(process);
}

struct error *process_check(const struct process *before)
{
	struct process *now scoped(process_freep) = NULL;
	struct error *err = new_process(before->procfs, before->pid, &now);

	if (!err)
		err = glance_at_identity(now, before->tid);
	if (err)
		return error_context(err, "process %d", before->pid);
	return process_same(before, now);
}

void process_free(struct process *process)
{
	if (!process)
		return;
	free(process->exe);
	free(process->uids);
	free(process->gids);
	cgroup_fini(&process->cgroup);
	free(process);
}
