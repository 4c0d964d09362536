#include "agent/facts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/report/message.h"
#include "agent/target/process.h"
#include "agent/target/procfs.h"

/* A thread has a folder in /proc like a process, which no listing shows. */
static struct error *check_leader(const struct procfs *procfs, pid_t pid)
{
	enum { STATUS_MAX = 64 << 10 };
	struct procfs_text status = { 0 };
	uint64_t leader = 0;
	const char *field;
	struct error *err =
	    procfs_read(&status, STATUS_MAX, "%s/%d/status", procfs->proc, (int)pid);

	if (err && error_code(err) == ERROR_GONE) {
		error_free(err);
		return error_new(ERROR_NO_PROCESS, "there is no process %d", (int)pid);
	}
	if (err)
		return err;
	field = procfs_field(&status, "Tgid:");
	if (!field || !procfs_number(&field, 10, &leader) || leader != (uint64_t)pid)
		err = error_new(ERROR_NO_PROCESS, "%d is a thread of process %" PRIu64, (int)pid,
				leader);
	procfs_text_fini(&status);
	return err;
}

struct error *facts_read(const struct procfs *procfs, pid_t pid, struct process **ret)
{
	struct error *err = check_leader(procfs, pid);

	return err ? err : process_read(procfs, pid, ret);
}

uint64_t facts_start_time_ns(const struct procfs *procfs, uint64_t start_ticks)
{
	return procfs->boot_time_ns +
	       start_ticks * (UINT64_C(1000000000) / procfs->ticks_per_second);
}

bool facts_is_snapshot(const struct process *process)
{
	struct procfs_stat stat;
	struct error *err;

	if (!process->tracer_pid)
		return false;
	err = procfs_stat(process->procfs, process->pid, process->pid, &stat);
	if (err) {
		error_free(err);
		return false;
	}
	return !stat.exit_signal && (stat.flags & PROCFS_FLAG_FORKNOEXEC);
}

static struct error *copy_ids(const uint32_t *ids, uint32_t count, uint32_t **ret,
			      size_t *ret_count)
{
	if (!count)
		return NULL;
	*ret = malloc(count * sizeof(*ids));
	if (!*ret)
		return &error_nomem;
	memcpy(*ret, ids, count * sizeof(*ids));
	*ret_count = count;
	return NULL;
}

static struct error *make_access(const struct process *process, Goheapd__Access **ret)
{
	Goheapd__Access *access = malloc(sizeof(*access));
	struct error *err;

	if (!access)
		return &error_nomem;
	goheapd__access__init(access);
	*ret = access; /* part of the message from here on, which frees it */
	access->dumpable = process->dumpable;
	access->cap_permitted = process->cap_permitted;
	access->same_user_namespace = process->same_user_namespace;
	err = copy_ids(process->uids, process->uid_count, &access->uids, &access->n_uids);
	return err ? err
		   : copy_ids(process->gids, process->gid_count, &access->gids, &access->n_gids);
}

/* Fills a bytes field that is there only if text is. */
static struct error *optional_text(const char *text, protobuf_c_boolean *ret_has,
				   ProtobufCBinaryData *ret)
{
	if (!text)
		return NULL;
	*ret_has = true;
	return message_text(text, ret);
}

/* Why no scan could be tried; false if one could. */
static bool find_hindrance(const struct process *process, char *reason, size_t size)
{
	if (process->kernel_thread)
		snprintf(reason, size, "it is a kernel thread");
	else if (process->tracer_pid)
		snprintf(reason, size, "process %d traces it already", (int)process->tracer_pid);
	else
		return false;
	return true;
}

static struct error *fill_process(const struct process *process, Goheapd__Process *message)
{
	char reason[128];
	struct error *err;

	message->pid = (uint32_t)process->pid;
	message->start_ticks = process->start_ticks;
	message->start_time_ns = process->start_time_ns;
	message->uid = process->uid;
	message->has_rss_bytes = !process->kernel_thread;
	message->rss_bytes = process->rss_bytes;
	message->inspectable = !find_hindrance(process, reason, sizeof(reason));
	err = message_text(process->comm, &message->comm);
	if (!err)
		err = optional_text(process->exe, &message->has_exe, &message->exe);
	if (!err)
		err = optional_text(process->cgroup.path, &message->has_cgroup, &message->cgroup);
	if (!err)
		err = optional_text(process->cgroup.container_id, &message->has_container_id,
				    &message->container_id);
	if (!err && !message->inspectable)
		err = optional_text(reason, &message->has_reason, &message->reason);
	return err ? err : make_access(process, &message->access);
}

struct error *facts_process(const struct process *process, Goheapd__Process **ret)
{
	Goheapd__Process *message = malloc(sizeof(*message));
	struct error *err;

	if (!message)
		return &error_nomem;
	goheapd__process__init(message);
	err = fill_process(process, message);
	if (err) {
		goheapd__process__free_unpacked(message, NULL);
		return err;
	}
	*ret = message;
	return NULL;
}

/* Figures that the kernel does not give are absent. */
static void set_figure(uint64_t figure, protobuf_c_boolean *ret_has, uint64_t *ret)
{
	*ret_has = figure != CGROUP_NONE;
	*ret = *ret_has ? figure : 0;
}

static void fill_cgroup(const struct process *process, Goheapd__Cgroup *message)
{
	const struct cgroup *cgroup = &process->cgroup;
	uint64_t anon = cgroup->anon_bytes;

	message->version = cgroup->version;
	set_figure(cgroup->current_bytes, &message->has_current_bytes, &message->current_bytes);
	set_figure(cgroup->limit_bytes, &message->has_limit_bytes, &message->limit_bytes);
	set_figure(cgroup->high_bytes, &message->has_high_bytes, &message->high_bytes);
	set_figure(anon, &message->has_anon_bytes, &message->anon_bytes);
	set_figure(cgroup->file_bytes, &message->has_file_bytes, &message->file_bytes);
	set_figure(cgroup->kernel_bytes, &message->has_kernel_bytes, &message->kernel_bytes);
	set_figure(cgroup->oom_kills, &message->has_oom_kills, &message->oom_kills);
	/* anonymous memory belongs to one process alone; the counters are not read at one instant
	 */
	if (anon != CGROUP_NONE) {
		message->has_others_bytes = true;
		message->others_bytes =
		    anon > process->rss_anon_bytes ? anon - process->rss_anon_bytes : 0;
	}
}

struct error *facts_cgroup(const struct process *process, Goheapd__Cgroup **ret)
{
	Goheapd__Cgroup *message;
	struct error *err;

	*ret = NULL;
	if (!process->cgroup.path)
		return NULL;
	message = malloc(sizeof(*message));
	if (!message)
		return &error_nomem;
	goheapd__cgroup__init(message);
	fill_cgroup(process, message);
	err = message_text(process->cgroup.path, &message->path);
	if (err) {
		goheapd__cgroup__free_unpacked(message, NULL);
		return err;
	}
	*ret = message;
	return NULL;
}
