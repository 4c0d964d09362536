#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "agent/facts.h"
#include "agent/file_key.h"
#include "agent/keeper_orders.h"
#include "agent/target/process.h"
#include "agent/target_files.h"

static const char *const file_names[TARGET_FILE_COUNT] = {
	[TARGET_FILE_EXE] = "exe",         [TARGET_FILE_MAPS] = "maps",
	[TARGET_FILE_PAGEMAP] = "pagemap", [TARGET_FILE_STATUS] = "status",
	[TARGET_FILE_AUXV] = "auxv",       [TARGET_FILE_MEM] = "mem",
};

struct error *keeper_find(struct keeper *keeper, const struct keeper_target *target,
			  struct process **ret)
{
	const Goheapd__CloneAllowed *allowed = target->clone_allowed;
	struct process *process scoped(process_freep) = NULL;
	uint32_t pid = target->pid;
	struct error *err = facts_read(&keeper->procfs, (pid_t)pid, &process);

	if (err)
		return err;
	if (process->start_ticks != target->start_ticks)
		return error_new(ERROR_PROCESS_CHANGED,
				 "process %u is another one than was meant: it began later", pid);
	if (facts_is_snapshot(process))
		return error_new(ERROR_NO_PROCESS, "process %u is a snapshot", pid);
	if (process->kernel_thread)
		return error_new(ERROR_NOT_GO, "process %u is a kernel thread", pid);
	process->filters_vouched =
	    cgroup_matches(&process->cgroup, allowed->cgroups, allowed->n_cgroups, allowed->units,
			   allowed->n_units);
	*ret = take(process);
	return NULL;
}

static struct error *open_files(const struct process *process, int *fds)
{
	for (unsigned i = 0; i < TARGET_FILE_COUNT; i++) {
		/* a target's executable may be anything by now: opening it must not wait */
		struct error *err =
		    process_open(process, file_names[i], O_RDONLY | O_NONBLOCK | O_NOCTTY, &fds[i]);

		if (err && error_code(err) == ERROR_DENIED) {
			error_free(err);
			return process_denied(process);
		}
		if (err)
			return error_context(err, "open %s of process %d", file_names[i],
					     (int)process->pid);
	}
	return NULL;
}

static ProtobufCBinaryData borrow_text(const char *text)
{
	return (ProtobufCBinaryData){ strlen(text), (uint8_t *)(uintptr_t)text };
}

static struct error *tell_decoder(struct keeper *keeper, const struct process *process,
				  const struct keeper_forecast *forecast, const int *fds)
{
	Goheapd__TargetEvent event = GOHEAPD__TARGET_EVENT__INIT;
	Goheapd__TargetOpened opened = GOHEAPD__TARGET_OPENED__INIT;
	struct error *err = facts_cgroup(process, &opened.cgroup);

	if (err)
		return err;
	opened.pid = (uint32_t)process->pid;
	opened.start_ticks = process->start_ticks;
	opened.start_time_ns = process->start_time_ns;
	opened.comm = borrow_text(process->comm);
	opened.exe = borrow_text(process->exe ? process->exe : "");
	opened.uid = process->uid;
	opened.threads = process->thread_count;
	opened.rss_bytes = process->rss_bytes;
	opened.mode = forecast->mode;
	opened.has_why = forecast->reason[0] != '\0';
	opened.why = borrow_text(forecast->reason);
	opened.pause_us = forecast->pause_us;
	event.body_case = GOHEAPD__TARGET_EVENT__BODY_OPENED;
	event.opened = &opened;
	err = frame_queue_add(&keeper->to_decoder, &event.base, fds, TARGET_FILE_COUNT);
	goheapd__cgroup__free_unpacked(opened.cgroup, NULL);
	return err;
}

static struct error *tell_agent(struct keeper *keeper, Goheapd__FileKey *key)
{
	Goheapd__KeeperEvent event = GOHEAPD__KEEPER_EVENT__INIT;
	Goheapd__KeeperOpened opened = GOHEAPD__KEEPER_OPENED__INIT;

	opened.executable = key;
	event.body_case = GOHEAPD__KEEPER_EVENT__BODY_OPENED;
	event.opened = &opened;
	return keeper_tell_agent(keeper, &event, NULL, 0);
}

struct error *keeper_open(struct keeper *keeper, const struct process *process,
			  const struct keeper_forecast *forecast)
{
	int fds[TARGET_FILE_COUNT];
	Goheapd__FileKey key;
	struct error *err;

	for (unsigned i = 0; i < TARGET_FILE_COUNT; i++)
		fds[i] = -1;
	err = open_files(process, fds);
	if (!err)
		err = file_key_read(fds[TARGET_FILE_EXE], &key);
	if (!err)
		err = tell_decoder(keeper, process, forecast, fds);
	if (!err)
		err = tell_agent(keeper, &key);
	for (unsigned i = 0; i < TARGET_FILE_COUNT; i++)
		closep(&fds[i]);
	return err;
}
