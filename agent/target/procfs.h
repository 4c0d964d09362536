/*
 * The files in which the kernel describes processes. Where /proc and /sys/fs/cgroup are mounted
 * is a parameter, so that tests give recorded trees. Everything read is bounded, and what a
 * process chose (its name, its paths) is taken as bytes and never trusted.
 */
#ifndef AGENT_TARGET_PROCFS_H
#define AGENT_TARGET_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/base/error.h"

struct procfs {
	const char *proc;          /* "/proc"; borrowed */
	const char *cgroup;        /* "/sys/fs/cgroup"; borrowed */
	uint64_t boot_time_ns;     /* since the epoch, read once so that a process keeps its time */
	uint64_t ticks_per_second; /* of start times */
};

/* Both strings are borrowed for the life of *ret. Reads PROC/stat. */
must_check struct error *procfs_init(struct procfs *ret, const char *proc, const char *cgroup);

/* The text of a small file. */
struct procfs_text {
	char *data; /* NUL-terminated; NULs inside are left as they are */
	size_t size;
};

/*
 * Reads the file of that path, built as by printf. ERROR_GONE if it does not exist or its process
 * is gone, ERROR_LIMIT if it is larger than limit. Give *ret back with procfs_text_fini.
 */
must_check struct error *procfs_read(struct procfs_text *ret, size_t limit, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void procfs_text_fini(struct procfs_text *text);

/* Points at the value of the line "key<tab or blanks>value" (key with its colon); NULL: none. */
const char *procfs_field(const struct procfs_text *text, const char *key);

/* A decimal, octal or hexadecimal number at *pos, which moves past it and the blanks before it. */
bool procfs_number(const char **pos, int base, uint64_t *ret);

/* One line of /proc/PID/stat, as far as it is used. */
struct procfs_stat {
	char state;
	pid_t parent; /* the process, in our pid namespace */
	uint64_t flags;
	uint64_t thread_count; /* of the process; a leader that has ended counts */
	uint64_t start_ticks;
	int exit_signal; /* what its end sends to its parent; 0: nothing, -1: it is a thread */
};

/* The kernel's PF_* (include/linux/sched.h). */
enum {
	PROCFS_FLAG_EXITING = 0x4,
	PROCFS_FLAG_FORKNOEXEC = 0x40,
	PROCFS_FLAG_KTHREAD = 0x200000
};

must_check struct error *procfs_stat(const struct procfs *procfs, pid_t pid, pid_t tid,
				     struct procfs_stat *ret);
must_check struct error *procfs_stat_parse(const char *line, struct procfs_stat *ret);

/* Z or X: it has ended and waits to be collected. */
bool procfs_state_dead(char state);

/* The numeric names of a folder, unsorted. The caller frees *ret. ERROR_GONE: no such folder. */
must_check struct error *procfs_ids(const char *folder, pid_t **ret, size_t *ret_count);

#endif
