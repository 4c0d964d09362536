#include "agent/target/fork_safety.h"

#include <inttypes.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agent/target/process.h"
#include "agent/target/procfs.h"

enum {
	FILE_LIMIT = 64 << 10,
	STRICT_OVERCOMMIT = 2, /* vm.overcommit_memory */

	/* Predictions, from what was measured where nothing else ran. */
	STOP_BASE_US = 300,
	STOP_THREAD_US = 15,
	FORK_MIB_US = 20,  /* page tables copied; file mappings are not */
	READ_MIB_US = 170, /* memory turned into a graph under the stop */
	/* The structures of a MiB of spans, all of one page. */
	CENSUS_MIB_US = 15,
	CENSUS_SPANS_US = 10, /* that are looked at in a microsecond */
	/* Fewer are not worth a longer pause. */
	HUGE_PAGES_LEAST = 64 << 20,
};

static const uint64_t default_max_pause_us = 250000;

static void give_reason(struct fork_safety *verdict, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The first reason is the one that is told. */
static void give_reason(struct fork_safety *verdict, const char *format, ...)
{
	va_list args;

	verdict->safe = verdict->preferred = false;
	if (*verdict->reason)
		return;
	va_start(args, format);
	vsnprintf(verdict->reason, sizeof(verdict->reason), format, args);
	va_end(args);
}

/* The number behind the key in a file of "key value"; key NULL: the file's first word. */
static bool file_number(const char *proc, const char *name, const char *key, int base,
			uint64_t *ret)
{
	struct procfs_text text;
	const char *pos;
	bool found;
	struct error *err = procfs_read(&text, FILE_LIMIT, "%s/%s", proc, name);

	if (err) {
		error_free(err);
		return false;
	}
	pos = key ? procfs_field(&text, key) : text.data;
	found = pos && procfs_number(&pos, base, ret);
	procfs_text_fini(&text);
	return found;
}

static void judge_freezer(const struct cgroup *cgroup, struct fork_safety *verdict)
{
	if (!cgroup->frozen_by)
		return;
	verdict->stoppable = cgroup->frozen_by != 1;
	give_reason(verdict,
		    verdict->stoppable
			? "its control group is frozen (cgroup.freeze), and no call can run in it"
			: "its control group is frozen (freezer.state), and does not stop "
			  "until it is thawed");
}

static void judge_seccomp(const struct process *process, const struct fork_safety_policy *policy,
			  struct fork_safety *verdict)
{
	if (process->seccomp_strict)
		give_reason(verdict, "a thread of it is in seccomp's strict mode");
	if (process->seccomp_filter && !process->filters_vouched && !policy->can_suspend_filters)
		give_reason(verdict,
			    "a seccomp filter may forbid clone or wait4 to it: an agent with "
			    "CAP_SYS_ADMIN could suspend it, and the configuration could say that "
			    "it allows them (clone_allowed_cgroups, clone_allowed_units)");
}

static uint64_t mib(uint64_t bytes)
{
	return bytes >> 20;
}

static void judge_group_memory(const struct cgroup *cgroup, struct fork_safety *verdict)
{
	if (cgroup->hidden)
		give_reason(verdict,
			    "its control group cannot be seen from here, nor how much memory "
			    "it may use");
	if (cgroup->headroom_bytes >= verdict->copy_bytes)
		return;
	give_reason(verdict,
		    "%s of %s leaves %" PRIu64
		    " MiB, and copies of its writable pages could take %" PRIu64 " MiB%s",
		    cgroup->headroom_limit,
		    cgroup->headroom_above ? "a group above its control group"
					   : "its control group",
		    mib(cgroup->headroom_bytes), mib(verdict->copy_bytes),
		    cgroup->oom_group ? " (memory.oom.group would end the whole group)" : "");
}

static void judge_machine_memory(const char *proc, struct fork_safety *verdict)
{
	uint64_t kib, mode;

	if (file_number(proc, "meminfo", "MemAvailable:", 10, &kib) &&
	    kib < verdict->copy_bytes / 1024)
		give_reason(verdict,
			    "the machine has %" PRIu64
			    " MiB available, and copies of its writable pages could take %" PRIu64
			    " MiB",
			    mib(kib * 1024), mib(verdict->copy_bytes));
	if (file_number(proc, "sys/vm/overcommit_memory", NULL, 10, &mode) &&
	    mode == STRICT_OVERCOMMIT)
		give_reason(verdict, "the machine does not overcommit memory "
				     "(vm.overcommit_memory is 2)");
}

/* Tasks of the whole machine: behind the slash in "0.20 0.18 0.12 1/80 11206". */
static bool all_tasks(const char *proc, uint64_t *ret)
{
	struct procfs_text text;
	const char *pos;
	bool found;
	struct error *err = procfs_read(&text, FILE_LIMIT, "%s/loadavg", proc);

	if (err) {
		error_free(err);
		return false;
	}
	pos = strchr(text.data, '/');
	if (pos)
		pos++;
	found = pos && procfs_number(&pos, 10, ret);
	procfs_text_fini(&text);
	return found;
}

/* Threads of all processes whose real uid it is: what RLIMIT_NPROC counts. */
static struct error *count_tasks(const struct procfs *procfs, uint32_t uid, uint64_t *ret)
{
	pid_t *pids scoped(freep) = NULL;
	size_t count;
	struct error *err = procfs_ids(procfs->proc, &pids, &count);

	if (err)
		return err;
	*ret = 0;
	for (size_t i = 0; i < count; i++) {
		char name[64];
		uint64_t owner, threads;

		snprintf(name, sizeof(name), "%d/status", pids[i]);
		if (file_number(procfs->proc, name, "Uid:", 10, &owner) && owner == uid &&
		    file_number(procfs->proc, name, "Threads:", 10, &threads))
			*ret += threads;
	}
	return NULL;
}

/* Root is not held to RLIMIT_NPROC, nor who has such rights outside of a user namespace. */
static bool has_nproc_limit(const struct process *process)
{
	const uint64_t exempt = UINT64_C(1) << CAP_SYS_RESOURCE | UINT64_C(1) << CAP_SYS_ADMIN;

	return process->nproc_limit != UINT64_MAX && process->uid &&
	       !(process->same_user_namespace && process->cap_effective & exempt);
}

/* Counting takes a while, and can be left if all would fit. */
static struct error *judge_nproc(const struct process *process, struct fork_safety *verdict)
{
	uint64_t tasks, limit = process->nproc_limit;
	struct error *err;

	if (!has_nproc_limit(process))
		return NULL;
	if (all_tasks(process->procfs->proc, &tasks) && cgroup_tasks_slack(tasks, limit) >= 0)
		return NULL;
	err = count_tasks(process->procfs, process->uid, &tasks);
	if (err)
		return err;
	if (cgroup_tasks_slack(tasks, limit) < 0)
		give_reason(verdict,
			    "its user has %" PRIu64 " of the %" PRIu64
			    " tasks that RLIMIT_NPROC allows",
			    tasks, limit);
	return NULL;
}

static struct error *judge_tasks(const struct process *process, struct fork_safety *verdict)
{
	const struct cgroup *cgroup = &process->cgroup;

	if (cgroup->pids_max != CGROUP_NONE &&
	    cgroup_tasks_slack(cgroup->pids_current, cgroup->pids_max) < 0)
		give_reason(verdict,
			    "its control group has %" PRIu64 " of the %" PRIu64
			    " tasks that pids.max allows",
			    cgroup->pids_current, cgroup->pids_max);
	if (process->foreign_child_namespace)
		give_reason(verdict, "a child of it would be the first process of another pid "
				     "namespace, which would end with it");
	return judge_nproc(process, verdict);
}

/*
 * Every private page that is resident may be written while the snapshot lives, pages in swap come
 * back when the snapshot is read, and it has page tables of its own.
 */
static uint64_t copy_bytes(const struct process *process)
{
	return process->rss_anon_bytes + process->swap_bytes + process->page_table_bytes;
}

uint64_t fork_safety_huge_page_bytes(const struct process *process)
{
	char name[64];
	uint64_t kib;

	snprintf(name, sizeof(name), "%d/task/%d/smaps_rollup", process->pid, process->tid);
	return file_number(process->procfs->proc, name, "AnonHugePages:", 10, &kib) ? kib * 1024
										    : 0;
}

struct error *fork_safety_judge(const struct process *process,
				const struct fork_safety_policy *policy, struct fork_safety *ret)
{
	struct fork_safety verdict = {
		.stoppable = true,
		.safe = true,
		.preferred = true,
		.copy_bytes = copy_bytes(process),
		.huge_page_bytes = policy->huge_page_bytes,
	};
	struct error *err;

	judge_freezer(&process->cgroup, &verdict);
	judge_seccomp(process, policy, &verdict);
	judge_group_memory(&process->cgroup, &verdict);
	judge_machine_memory(process->procfs->proc, &verdict);
	err = judge_tasks(process, &verdict);
	if (err)
		return error_context(err, "process %d", process->pid);
	*ret = verdict;
	return NULL;
}

/* Its size says what it can be at most; large objects have few spans. */
static uint64_t census_us(const struct process *process, const struct fork_safety_scan *scan)
{
	uint64_t by_size = mib(process->rss_anon_bytes) * CENSUS_MIB_US;
	uint64_t by_spans = scan->span_count / CENSUS_SPANS_US;

	return scan->span_count && by_spans < by_size ? by_spans : by_size;
}

/* A huge page is one entry of the page tables, which is nothing beside 512. */
static void predict_pauses(const struct process *process, const struct fork_safety_scan *scan,
			   struct fork_safety *verdict)
{
	uint64_t base = STOP_BASE_US + (uint64_t)process->thread_count * STOP_THREAD_US;
	uint64_t anonymous = process->rss_anon_bytes, huge = verdict->huge_page_bytes;
	uint64_t small = anonymous > huge ? anonymous - huge : 0;

	verdict->fork_pause_us = base + mib(small) * FORK_MIB_US;
	verdict->census_pause_us = base + census_us(process, scan) + scan->stacks_us;
	verdict->stop_pause_us = scan->census
				     ? verdict->census_pause_us
				     : base + mib(anonymous) * READ_MIB_US + scan->stacks_us;
}

static uint64_t max_pause_us(const struct fork_safety_scan *scan)
{
	return scan->max_pause_us ? scan->max_pause_us : default_max_pause_us;
}

/* Where a snapshot takes longer than the asker allows and a stop does not, it is the stop. */
static void weigh_pauses(const struct fork_safety_scan *scan, struct fork_safety *verdict)
{
	if (!verdict->safe || verdict->fork_pause_us <= max_pause_us(scan) ||
	    verdict->stop_pause_us > max_pause_us(scan))
		return;
	give_reason(verdict,
		    "a snapshot would take about %" PRIu64 " ms, which is more than max_pause, and "
		    "a stop about %" PRIu64 " ms",
		    verdict->fork_pause_us / 1000, verdict->stop_pause_us / 1000);
	verdict->safe = true;
}

/* The pause that the target's huge pages are worth. */
static uint64_t huge_pages_worth_us(const struct process *process,
				    const struct fork_safety_scan *scan, uint64_t huge)
{
	double part =
	    huge < process->rss_anon_bytes ? (double)huge / (double)process->rss_anon_bytes : 1;

	return (uint64_t)((double)max_pause_us(scan) * part * scan->huge_page_weight);
}

/*
 * One write into a huge page while the snapshot lives splits it for good. Where they are many and
 * reading all of them under a stop takes little of what the asker allows, a stop is kinder.
 */
static void weigh_huge_pages(const struct process *process, const struct fork_safety_scan *scan,
			     struct fork_safety *verdict)
{
	uint64_t huge = verdict->huge_page_bytes;

	if (!verdict->safe || huge < HUGE_PAGES_LEAST ||
	    verdict->stop_pause_us > huge_pages_worth_us(process, scan, huge))
		return;
	give_reason(verdict,
		    "a snapshot would split %" PRIu64
		    " MiB of huge pages, and a stop takes about %" PRIu64
		    " ms (huge_page_weight in the configuration)",
		    mib(huge), verdict->stop_pause_us / 1000);
	verdict->safe = true;
}

void fork_safety_predict(const struct process *process, const struct fork_safety_scan *scan,
			 struct fork_safety *verdict)
{
	predict_pauses(process, scan, verdict);
	weigh_pauses(scan, verdict);
	weigh_huge_pages(process, scan, verdict);
}
