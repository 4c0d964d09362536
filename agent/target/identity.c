/*
 * Is it still the process that was meant, may we, and the descriptors that name it from then on.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/target/process.h"
#include "agent/target/procfs.h"
#include "proto/base/bytes.h"

/* Whether there is an id now that was not there before. Threads may end, and ids with them. */
static bool has_new_id(const uint32_t *before, uint32_t before_count, const uint32_t *now,
		       uint32_t now_count)
{
	for (uint32_t i = 0; i < now_count; i++) {
		bool known = false;

		for (uint32_t j = 0; j < before_count && !known; j++)
			known = now[i] == before[j];
		if (!known)
			return true;
	}
	return false;
}

struct error *process_same(const struct process *before, const struct process *now)
{
	const struct {
		bool same;
		const char *what;
	} checks[] = {
		{ before->pid == now->pid, "its pid" },
		{ before->start_ticks == now->start_ticks, "its start time" },
		{ !has_new_id(before->uids, before->uid_count, now->uids, now->uid_count),
		  "its uids" },
		{ !has_new_id(before->gids, before->gid_count, now->gids, now->gid_count),
		  "its gids" },
		{ before->dumpable == now->dumpable, "whether it is dumpable" },
		{ !(now->cap_permitted & ~before->cap_permitted), "its capabilities" },
		{ before->exe_device == now->exe_device && before->exe_inode == now->exe_inode,
		  "its executable" },
		{ before->user_namespace == now->user_namespace, "its user namespace" },
		{ before->pid_namespace == now->pid_namespace, "its pid namespace" },
		{ before->mount_namespace == now->mount_namespace, "its mount namespace" },
	};

	for (size_t i = 0; i < sizeof(checks) / sizeof(*checks); i++) {
		if (!checks[i].same)
			return error_new(ERROR_PROCESS_CHANGED,
					 "process %d is not the one that was meant: %s changed",
					 before->pid, checks[i].what);
	}
	return NULL;
}

bool process_image_changed(const struct process *process)
{
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%d/task/%d/exe", process->procfs->proc, process->pid,
		 process->tid);
	return !stat(path, &st) &&
	       (st.st_dev != process->exe_device || st.st_ino != process->exe_inode);
}

struct error *process_entry(int auxv_fd, uint64_t *ret)
{
	enum { ENTRY_SIZE = 16, AUXV_MAX = 4096 };
	uint8_t auxv[AUXV_MAX];
	ssize_t size = pread(auxv_fd, auxv, sizeof(auxv), 0);

	for (ssize_t at = 0; at + ENTRY_SIZE <= size; at += ENTRY_SIZE) {
		if (load_u64le(auxv + at) != AT_ENTRY)
			continue;
		*ret = load_u64le(auxv + at + 8);
		return NULL;
	}
	return error_new(ERROR_GONE, "the process has no auxiliary vector any more");
}

static int open_through(const struct process *process, pid_t tid, const char *name, int flags,
			char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/%d/task/%d/%s", process->procfs->proc, process->pid, tid,
		 name);
	return open(path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

/*
 * A thread other than the leader is chosen where that has ended. If it runs the program again it
 * takes the leader's place and number.
 */
struct error *process_open(const struct process *process, const char *name, int flags, int *ret_fd)
{
	char path[PATH_MAX];
	int fd = open_through(process, process->tid, name, flags, path);

	if (fd < 0 && (errno == ENOENT || errno == ESRCH) && process->tid != process->pid)
		fd = open_through(process, process->pid, name, flags, path);
	if (fd < 0)
		return error_system(errno == ENOENT ? ESRCH : errno, "%s", path);
	*ret_fd = fd;
	return NULL;
}

struct error *process_open_pidfd(pid_t pid, int *ret_fd)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0); /* close-on-exec by itself */

	if (fd < 0)
		return error_system(errno, "pidfd of process %d", pid);
	*ret_fd = fd;
	return NULL;
}

/*
 * A read finds 0 bytes once the last user of that address space is gone, and EIO at an address
 * that is not mapped; the page at 0 never is (vm.mmap_min_addr), and if it were that is life too.
 */
bool process_image_gone(int mem_fd)
{
	char byte;

	return !pread(mem_fd, &byte, sizeof(byte), 0);
}

static bool have_capability(const struct procfs *procfs, unsigned capability)
{
	struct procfs_text text;
	uint64_t effective = 0;
	const char *pos;
	struct error *err = procfs_read(&text, 64 << 10, "%s/self/status", procfs->proc);

	if (err) {
		error_free(err);
		return false;
	}
	pos = procfs_field(&text, "CapEff:");
	if (pos && !procfs_number(&pos, 16, &effective))
		effective = 0;
	procfs_text_fini(&text);
	return effective >> capability & 1;
}

/* kernel.yama.ptrace_scope, 0 where there is no Yama. */
static unsigned yama_scope(const struct procfs *procfs)
{
	struct procfs_text text;
	uint64_t scope = 0;
	const char *pos;
	struct error *err = procfs_read(&text, 64, "%s/sys/kernel/yama/ptrace_scope", procfs->proc);

	if (err) {
		error_free(err);
		return 0;
	}
	pos = text.data;
	if (!procfs_number(&pos, 10, &scope))
		scope = 0;
	procfs_text_fini(&text);
	return (unsigned)scope;
}

struct error *process_denied(const struct process *process)
{
	bool capable = have_capability(process->procfs, CAP_SYS_PTRACE);
	unsigned scope = yama_scope(process->procfs);

	if (scope >= 3)
		return error_new(ERROR_DENIED,
				 "process %d: Yama forbids all tracing until the next boot "
				 "(kernel.yama.ptrace_scope is %u)",
				 process->pid, scope);
	if (!capable && scope)
		return error_new(ERROR_DENIED,
				 "process %d: Yama (kernel.yama.ptrace_scope is %u) asks for "
				 "CAP_SYS_PTRACE: run as root, or set it to 0",
				 process->pid, scope);
	if (!capable)
		return error_new(ERROR_DENIED,
				 "process %d of uid %" PRIu32 "%s asks for CAP_SYS_PTRACE: run as "
				 "root",
				 process->pid, process->uid,
				 process->dumpable ? "" : ", which is not dumpable,");
	if (!process->same_user_namespace)
		return error_new(ERROR_DENIED,
				 "process %d is in a user namespace over which CAP_SYS_PTRACE here "
				 "has no power: run in the initial user namespace",
				 process->pid);
	return error_new(ERROR_DENIED,
			 "process %d: a security module (AppArmor, SELinux) or a seccomp filter "
			 "forbids the trace in spite of CAP_SYS_PTRACE: see the audit log",
			 process->pid);
}
