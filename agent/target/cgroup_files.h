/*
 * Where the files of a process's control groups are. For cgroup.c.
 */
#ifndef AGENT_TARGET_CGROUP_FILES_H
#define AGENT_TARGET_CGROUP_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/target/procfs.h"

enum { CGROUP_PATH_LIMIT = 4096, CGROUP_FOLDER_LIMIT = 256 };

/*
 * One group on the way from that of a process to the root of its hierarchy. The hierarchy's folder
 * lies below procfs->cgroup; the root's own path is "".
 */
struct cgroup_place {
	const struct procfs *procfs; /* borrowed */
	unsigned version;            /* of the hierarchy: 1 or 2 */
	char folder[CGROUP_FOLDER_LIMIT];
	char path[CGROUP_PATH_LIMIT];
};

/*
 * The group that a list (/proc/PID/cgroup) names for a version 1 controller; where it has no such
 * line, that of version 2. controller NULL: that of version 2 only. false: none.
 */
bool cgroup_place_find(const struct procfs *procfs, const struct procfs_text *list,
		       const char *controller, struct cgroup_place *ret);

/*
 * Whether the group can be seen at all. From inside a container the path can lead out of what is
 * mounted ("/../.."), or name a group that is not mounted; such a path is not followed.
 */
bool cgroup_place_visible(const struct cgroup_place *place);

/* Goes to the group above; false if this is the root. */
bool cgroup_place_up(struct cgroup_place *place);

/* A file of the group; give *ret back with procfs_text_fini. false if there is none. */
bool cgroup_place_read(const struct cgroup_place *place, const char *name, struct procfs_text *ret);

/* The number in such a file; UINT64_MAX if there is none, for "max", and for version 1's word for
 * it.
 */
uint64_t cgroup_place_number(const struct cgroup_place *place, const char *name);

/* The number behind a key in such a file; UINT64_MAX if there is none. */
uint64_t cgroup_place_field(const struct cgroup_place *place, const char *name, const char *key);

#endif
