#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "agent/file_key.h"
#include "agent/keeper_orders.h"
#include "agent/target/process.h"

/*
 * The executable of a process, through any thread that has one: a zombie leader has none. -1 for
 * kernel threads, zombies, and what ended or may not be read.
 */
static int open_executable(const struct keeper *keeper, pid_t pid)
{
	char path[64];
	pid_t *tids scoped(freep) = NULL;
	size_t count;
	int fd;
	struct error *err;

	snprintf(path, sizeof(path), "%s/%d/exe", keeper->procfs.proc, (int)pid);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd >= 0 || errno != ENOENT)
		return fd;
	snprintf(path, sizeof(path), "%s/%d/task", keeper->procfs.proc, (int)pid);
	err = procfs_ids(path, &tids, &count);
	if (err) {
		error_free(err);
		return -1;
	}
	for (size_t i = 0; fd < 0 && i < count; i++) {
		if (tids[i] == pid)
			continue;
		snprintf(path, sizeof(path), "%s/%d/task/%d/exe", keeper->procfs.proc, (int)pid,
			 (int)tids[i]);
		fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	}
	return fd;
}

/* Tells the agent of a process; one that ends meanwhile is left out. */
static struct error *list_process(struct keeper *keeper, pid_t pid)
{
	Goheapd__KeeperEvent event = GOHEAPD__KEEPER_EVENT__INIT;
	Goheapd__KeeperListed listed = GOHEAPD__KEEPER_LISTED__INIT;
	Goheapd__FileKey key;
	int exe_fd scoped(closep) = open_executable(keeper, pid);
	struct error *err;

	if (exe_fd < 0)
		return NULL;
	err = file_key_read(exe_fd, &key);
	if (!err)
		err = process_start_ticks(&keeper->procfs, pid, &listed.start_ticks);
	if (err) {
		error_free(err);
		return NULL;
	}
	listed.pid = (uint32_t)pid;
	listed.executable = &key;
	event.body_case = GOHEAPD__KEEPER_EVENT__BODY_LISTED;
	event.listed = &listed;
	return keeper_tell_agent(keeper, &event, &exe_fd, 1);
}

struct error *keeper_list(struct keeper *keeper)
{
	pid_t *pids scoped(freep) = NULL;
	size_t count;
	struct error *err = procfs_ids(keeper->procfs.proc, &pids, &count);

	for (size_t i = 0; !err && i < count; i++)
		err = list_process(keeper, pids[i]);
	return err;
}
