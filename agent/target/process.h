/*
 * A process as the kernel describes it: which one it is, whose, and what hinders an inspection.
 * Nothing is stopped. Everything is addressed through a live thread: the leader of a Go program
 * built as a C archive may be a zombie while its threads run, and its maps, exe and memory are
 * empty then.
 */
#ifndef AGENT_TARGET_PROCESS_H
#define AGENT_TARGET_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/target/cgroup.h"
#include "proto/base/error.h"

struct procfs;

struct process {
	const struct procfs *procfs; /* borrowed */
	pid_t pid;
	pid_t tid; /* a live thread: the leader, unless that is a zombie */
	bool zombie_leader;
	char state; /* of that thread, as in /proc/PID/stat */
	bool kernel_thread;
	uint64_t start_ticks;   /* since boot: with the pid, the identity of a process */
	uint64_t start_time_ns; /* the same instant since the epoch */
	char comm[64];
	char *exe;                      /* NULL: none that can be read; may end in " (deleted)" */
	uint64_t exe_device, exe_inode; /* 0: not known */

	uint32_t uid, effective_uid; /* of that thread */
	uint32_t *uids, *gids;       /* distinct real, effective and saved ones, over all threads */
	uint32_t uid_count, gid_count;
	bool dumpable;          /* also true of what cannot be told: processes of uid 0 */
	uint64_t cap_permitted; /* of any thread */
	uint64_t cap_effective; /* of every thread */
	bool same_user_namespace;
	bool same_pid_namespace;
	uint64_t user_namespace, pid_namespace, mount_namespace; /* inodes; 0: not known */
	bool foreign_child_namespace; /* a thread's children would live in another pid namespace */
	pid_t namespace_pid;          /* its pid in its own pid namespace */

	pid_t tracer_pid;                    /* of any thread; 0: none */
	bool seccomp_strict, seccomp_filter; /* the modes of seccomp that threads are in */
	bool filters_vouched; /* for whoever knows: the filters let clone and wait4 pass */
	bool shadow_stack;    /* user shadow stacks are on */
	uint32_t thread_count;
	uint64_t rss_bytes, rss_anon_bytes, swap_bytes, page_table_bytes;
	uint64_t nproc_limit; /* RLIMIT_NPROC; UINT64_MAX: none */
	struct cgroup cgroup;
};

/*
 * ERROR_NO_PROCESS if there is none of that pid, or nothing but a zombie. The caller frees *ret;
 * procfs is borrowed for its life.
 */
must_check struct error *process_read(const struct procfs *procfs, pid_t pid, struct process **ret);
void process_free(struct process *process);
DEFINE_FREEP(process, process_free)

/* Reads again what it uses and what it may use, which other processes change too. */
must_check struct error *process_refresh(struct process *process);

/* Field 22 of /proc/PID/stat alone, for telling processes apart. */
must_check struct error *process_start_ticks(const struct procfs *procfs, pid_t pid, uint64_t *ret);

/*
 * ERROR_PROCESS_CHANGED, saying what differs, unless both are one process in one image, which has
 * gained no rights.
 */
must_check struct error *process_same(const struct process *before, const struct process *now);

/*
 * The same against the process as it is now, for use under a stop: through one live thread, so
 * that it takes no longer where there are many. ERROR_GONE if it is gone.
 */
must_check struct error *process_check(const struct process *before);

/* Whether the live thread, if it can be asked, runs another executable than it did then. */
bool process_image_changed(const struct process *process);

/*
 * Whether a child of that thread would live in another pid namespace than the thread. No for one
 * that is ending, which makes none.
 */
bool process_child_namespace_differs(const struct process *process, pid_t tid);

/* AT_ENTRY of a descriptor of /proc/PID/auxv: where the program began. ERROR_GONE without one. */
must_check struct error *process_entry(int auxv_fd, uint64_t *ret);

/* Opens a file such as "maps" of the live thread, close-on-exec. */
must_check struct error *process_open(const struct process *process, const char *name, int flags,
				      int *ret_fd);

/* A descriptor that polls readable when the process is gone, close-on-exec. */
must_check struct error *process_open_pidfd(pid_t pid, int *ret_fd);

/*
 * Whether the image behind a descriptor of /proc/PID/mem is gone, because the process exited or
 * has run another program. A pidfd does not tell the latter.
 */
bool process_image_gone(int mem_fd);

/* Why the kernel refuses us a trace of the process, with what to do: always ERROR_DENIED. */
must_check struct error *process_denied(const struct process *process);

#endif
