/*
 * The control group of a process, version 1 or 2: what it may use, what it uses, and which
 * container and unit it is. A figure that the kernel does not give, or that has no limit, is
 * UINT64_MAX.
 */
#ifndef AGENT_TARGET_CGROUP_H
#define AGENT_TARGET_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/error.h"

struct procfs;
struct procfs_text;

#define CGROUP_NONE UINT64_MAX

/* Go dies if it cannot make a thread: so many tasks have to be left, and such a part of a limit. */
enum { CGROUP_TASKS_LEAST = 16, CGROUP_TASKS_SHARE = 10 };

struct cgroup {
	char *path;         /* of the memory controller; NULL: none */
	unsigned version;   /* 1 or 2, 0: none */
	char *container_id; /* 64 hex digits found in the path; NULL: none */
	char *unit;         /* systemd's service or scope; NULL: none */
	bool hidden;        /* the group cannot be seen from here, nor what it may use */
	uint64_t current_bytes;
	uint64_t limit_bytes; /* the smallest along the way to the root */
	uint64_t high_bytes;
	/* The smallest limit - use (less inactive file) along the way, and of which limit. */
	uint64_t headroom_bytes;
	const char *headroom_limit; /* a file's name; NULL: none */
	unsigned headroom_above;    /* 0: the group's own limit, else one of a group above it */
	uint64_t anon_bytes, file_bytes, kernel_bytes;
	uint64_t oom_kills;
	bool oom_group;                  /* one kill takes the whole group, here or above */
	uint64_t pids_current, pids_max; /* of the group that is nearest to too few */
	/* The version of the freezer that holds it: under 1 nothing stops, under 2 nothing runs. */
	unsigned frozen_by;
};

/* text is /proc/PID/cgroup. Files that are missing leave their figures at CGROUP_NONE. */
must_check struct error *cgroup_read(const struct procfs *procfs, const struct procfs_text *text,
				     struct cgroup *ret);
void cgroup_fini(struct cgroup *cgroup);

/* How many more tasks could be made before too few are left; negative if they are already. */
int64_t cgroup_tasks_slack(uint64_t current, uint64_t max);

/*
 * Whether one of the patterns of fnmatch(3), in which * matches / too, is the path of the group,
 * or one of units its unit.
 */
bool cgroup_matches(const struct cgroup *cgroup, char *const *paths, size_t path_count,
		    char *const *units, size_t unit_count);

#endif
