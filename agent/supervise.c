#include "agent/supervise.h"

#include <time.h>

#include "agent/facts.h"
#include "agent/list_job.h"
#include "agent/scan_job.h"
#include "agent/target/process.h"
#include "proto/base/log.h"

enum {
	/* Overviews and listings at once; they stop nobody, but each is two processes of ours. */
	LIGHT_JOBS_MAX = 8,
	BUSY_RETRY_MS = 500,
	/* The part of the machine's memory that kept scans may take, unless it is configured. */
	KEPT_MEMORY_SHARE = 8,
};

uint64_t supervisor_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static struct error *init_kept(struct supervisor *supervisor)
{
	const struct agent_config *config = &supervisor->config;
	struct kept_limits limits = {
		.count_max = config->max_kept_scans,
		.memory_max = config->max_kept_memory,
		.answer_max_ms = KEPT_ANSWER_MAX_MS,
		.look_ms = KEPT_LOOK_MS,
	};

	if (!config->has_max_kept_memory)
		limits.memory_max = pressure_machine_bytes(&supervisor->procfs) / KEPT_MEMORY_SHARE;
	return kept_table_init(&supervisor->kept, supervisor->loop, &supervisor->procfs, &limits);
}

struct error *supervisor_init(struct supervisor *supervisor, struct event_loop *loop,
			      const struct agent_config *config, const char *cache_dir)
{
	struct error *err;

	*supervisor = (struct supervisor){ .loop = loop, .config = *config };
	floor_init(&supervisor->floor, config->min_stop_interval_ms);
	identity_cache_init(&supervisor->identities);
	supervisor->indexes.folder_fd = -1;
	err = procfs_init(&supervisor->procfs, "/proc", "/sys/fs/cgroup");
	if (!err)
		err = init_kept(supervisor);
	if (err)
		return err;
	/* an index saves time; a scan needs none */
	err = index_store_init(&supervisor->indexes, cache_dir);
	if (err)
		log_warning("agent", "no index is kept, every scan reads DWARF err=\"%s\"",
			    error_message(err));
	error_free(err);
	return NULL;
}

void supervisor_fini(struct supervisor *supervisor)
{
	while (supervisor->jobs)
		supervisor_remove(supervisor->jobs);
	kept_table_fini(&supervisor->kept);
	index_store_fini(&supervisor->indexes);
	identity_cache_fini(&supervisor->identities);
	floor_fini(&supervisor->floor);
}

void supervisor_add(struct supervisor *supervisor, struct job *job)
{
	job->next = supervisor->jobs;
	supervisor->jobs = job;
}

void supervisor_remove(struct job *job)
{
	struct supervisor *supervisor = job->supervisor;
	struct job **link = &supervisor->jobs;

	while (*link != job)
		link = &(*link)->next;
	*link = job->next;
	job->ops->free(job);
	if (supervisor->stopping && !supervisor->jobs)
		event_loop_stop(supervisor->loop);
}

void supervisor_stop(struct supervisor *supervisor)
{
	struct job *next;

	supervisor->stopping = true;
	kept_table_drop_all(&supervisor->kept, NULL, "the agent ends");
	for (struct job *job = supervisor->jobs; job; job = next) {
		next = job->next;
		job->ops->stop(job);
	}
	if (!supervisor->jobs)
		event_loop_stop(supervisor->loop);
}

bool supervisor_owns(const struct supervisor *supervisor, pid_t pid, pid_t tracer_pid)
{
	for (const struct job *job = supervisor->jobs; job; job = job->next) {
		if (job->snapshot == pid)
			return true;
		/* a keeper traces its target and the snapshot that it has not told of yet */
		if (job->keeper && job->keeper == tracer_pid && job->target != pid)
			return true;
	}
	return false;
}

/* One job at a time may stop a target. */
static bool is_targeted(const struct supervisor *supervisor, pid_t pid)
{
	for (const struct job *job = supervisor->jobs; job; job = job->next)
		if (job->target == pid)
			return true;
	return false;
}

static unsigned count_scans(const struct supervisor *supervisor)
{
	unsigned count = 0;

	for (const struct job *job = supervisor->jobs; job; job = job->next)
		count += job->target != 0;
	return count;
}

static unsigned count_light(const struct supervisor *supervisor)
{
	unsigned count = 0;

	for (const struct job *job = supervisor->jobs; job; job = job->next)
		count += !job->is_scan;
	return count;
}

static struct error *refuse_when_stopping(const struct supervisor *supervisor)
{
	return supervisor->stopping
		   ? error_new(ERROR_AGENT_UNAVAILABLE, "the agent is about to end")
		   : NULL;
}

static struct error *admit_light(const struct supervisor *supervisor)
{
	if (count_light(supervisor) >= LIGHT_JOBS_MAX)
		return error_new(ERROR_BUSY, "%d listings and overviews run already",
				 LIGHT_JOBS_MAX);
	return refuse_when_stopping(supervisor);
}

/* Pids from outside: no process has 0, and what does not fit a pid_t is none. */
static struct error *check_pid(const struct supervisor *supervisor, uint32_t pid)
{
	if (pid == 0 || pid > INT32_MAX || supervisor_owns(supervisor, (pid_t)pid, 0))
		return error_new(ERROR_NO_PROCESS, "there is no process %u", pid);
	return NULL;
}

struct error *supervise_look(struct supervisor *supervisor, pid_t pid, Goheapd__Process **ret)
{
	struct process *process scoped(process_freep) = NULL;
	struct error *err = check_pid(supervisor, (uint32_t)pid);

	if (!err)
		err = facts_read(&supervisor->procfs, pid, &process);
	if (err)
		return err;
	if (supervisor_owns(supervisor, pid, process->tracer_pid) || facts_is_snapshot(process))
		return error_new(ERROR_NO_PROCESS, "there is no process %d", (int)pid);
	return facts_process(process, ret);
}

struct error *supervise_list(struct supervisor *supervisor, struct reply *reply, struct job **ret)
{
	struct error *err = admit_light(supervisor);

	return err ? err : list_job_start(supervisor, reply, ret);
}

struct error *supervise_overview(struct supervisor *supervisor, const Goheapd__Overview *request,
				 struct reply *reply, struct job **ret)
{
	struct error *err = check_pid(supervisor, request->pid);

	if (!err)
		err = admit_light(supervisor);
	return err ? err : scan_job_start_overview(supervisor, request, reply, ret);
}

/* The floor under every scan. */
static struct error *admit_scan(const struct supervisor *supervisor, const Goheapd__Scan *request,
				uint64_t *ret_retry_after_ms)
{
	pid_t pid = (pid_t)request->pid;
	uint64_t wait_ms;

	*ret_retry_after_ms = BUSY_RETRY_MS;
	if (is_targeted(supervisor, pid))
		return error_new(ERROR_BUSY, "process %d is being scanned", (int)pid);
	if (count_scans(supervisor) >= supervisor->config.max_scans)
		return error_new(ERROR_BUSY, "%u scans run already (max_scans)",
				 supervisor->config.max_scans);
	wait_ms = floor_wait_ms(&supervisor->floor, pid, request->start_ticks,
				supervisor_now_us() / 1000);
	if (!wait_ms)
		return refuse_when_stopping(supervisor);
	*ret_retry_after_ms = wait_ms;
	return error_new(ERROR_BUSY,
			 "process %d was stopped less than %.3g s ago (min_stop_interval)",
			 (int)pid, (double)supervisor->config.min_stop_interval_ms / 1000);
}

struct error *supervise_scan(struct supervisor *supervisor, const Goheapd__Scan *request,
			     struct reply *reply, struct job **ret, uint64_t *ret_retry_after_ms)
{
	struct error *err = check_pid(supervisor, request->pid);

	*ret_retry_after_ms = 0;
	if (!err)
		err = admit_scan(supervisor, request, ret_retry_after_ms);
	return err ? err : scan_job_start(supervisor, request, reply, ret);
}

struct error *supervise_ask(struct supervisor *supervisor, const Goheapd__Ask *request,
			    struct reply *reply, struct job **ret)
{
	return kept_table_ask(&supervisor->kept, reply->asker, request, reply, ret);
}

struct error *supervise_change_kept(struct supervisor *supervisor, const void *asker,
				    const Goheapd__Ask *request)
{
	return kept_table_change(&supervisor->kept, asker, request);
}

struct error *supervise_list_kept(struct supervisor *supervisor, const void *asker,
				  Goheapd__KeptScans **ret)
{
	return kept_table_list(&supervisor->kept, asker, ret);
}

void supervise_forget(struct supervisor *supervisor, const void *asker)
{
	kept_table_drop_all(&supervisor->kept, asker, "who asked for it has gone");
}
