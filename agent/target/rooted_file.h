/*
 * Regular files named by a path under somebody's root. Folders, links and files there are hostile:
 * no link leads out of the root or through /proc, nothing is waited for, and devices, pipes and the
 * like are not opened at all.
 */
#ifndef AGENT_TARGET_ROOTED_FILE_H
#define AGENT_TARGET_ROOTED_FILE_H

#include "proto/base/error.h"

struct process;
struct procfs;

/* Of the process's live thread, or of our own if process is NULL. */
must_check struct error *rooted_file_root(const struct process *process, int *ret_root_fd);

/*
 * A path as that root has it, of one that /proc shows: the link to the executable, or a name in
 * maps. *ret is NULL if it is not in that root. The caller frees *ret.
 */
must_check struct error *rooted_file_path(const struct process *process, const char *shown,
					  char **ret);

/* A descriptor to read by, the caller's, or -1 if there is no such file for us. */
int rooted_file_open(const struct procfs *procfs, int root_fd, const char *path);

#endif
