/*
 * The control group of a process, version 1 or 2: what it may use, what it uses, and which
 * container it is. A figure that the kernel does not give, or that has no limit, is UINT64_MAX.
 */
#ifndef AGENT_TARGET_CGROUP_H
#define AGENT_TARGET_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/error.h"

struct procfs;
struct procfs_text;

#define CGROUP_NONE UINT64_MAX

struct cgroup {
	char *path;         /* of the memory controller; NULL: none */
	unsigned version;   /* 1 or 2, 0: none */
	char *container_id; /* 64 hex digits found in the path; NULL: none */
	uint64_t current_bytes;
	uint64_t limit_bytes; /* the smallest along the way to the root */
	uint64_t high_bytes;
	uint64_t headroom_bytes; /* the smallest limit - use (less inactive file) along the way */
	uint64_t anon_bytes, file_bytes, kernel_bytes;
	uint64_t oom_kills;
	bool oom_group;                  /* one kill takes the whole group, here or above */
	uint64_t pids_current, pids_max; /* of the group that is nearest to its limit */
};

/* text is /proc/PID/cgroup. Files that are missing leave their figures at CGROUP_NONE. */
must_check struct error *cgroup_read(const struct procfs *procfs, const struct procfs_text *text,
				     struct cgroup *ret);
void cgroup_fini(struct cgroup *cgroup);

#endif
