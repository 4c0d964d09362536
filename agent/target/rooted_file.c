#include "agent/target/rooted_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/target/process.h"
#include "agent/target/procfs.h"

struct error *rooted_file_root(const struct process *process, int *ret_root_fd)
{
	int fd;

	if (process)
		return process_open(process, "root", O_PATH | O_DIRECTORY, ret_root_fd);
	fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return error_system(errno, "open /");
	*ret_root_fd = fd;
	return NULL;
}

/* What /proc calls the process's root; false if it cannot be told. */
static bool read_root(const struct process *process, char *ret, size_t ret_size)
{
	char path[64];
	ssize_t size;

	snprintf(path, sizeof(path), "%s/%d/task/%d/root", process->procfs->proc, process->pid,
		 process->tid);
	size = readlink(path, ret, ret_size);
	if (size <= 0 || (size_t)size == ret_size)
		return false;
	ret[size] = '\0';
	return true;
}

/*
 * The kernel names files and the root as the mount namespace has them, so that under chroot the
 * one name begins with the other.
 */
struct error *rooted_file_path(const struct process *process, const char *shown, char **ret)
{
	static const char deleted[] = " (deleted)";
	char root[PATH_MAX];
	size_t root_size, size = strlen(shown), mark = sizeof(deleted) - 1;

	*ret = NULL;
	if (size >= mark && !strcmp(shown + size - mark, deleted))
		size -= mark;
	if (!size || shown[0] != '/' || !read_root(process, root, sizeof(root)))
		return NULL;
	root_size = strcmp(root, "/") ? strlen(root) : 0;
	if (root_size &&
	    (size <= root_size || strncmp(shown, root, root_size) != 0 || shown[root_size] != '/'))
		return NULL;
	*ret = strndup(shown + root_size, size - root_size);
	return *ret ? NULL : &error_nomem;
}

/* Opens without side effects: what it is is looked at before it is opened for reading. */
static int find(int root_fd, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };

	return (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
}

int rooted_file_open(const struct procfs *procfs, int root_fd, const char *path)
{
	int found scoped(closep) = find(root_fd, path);
	char own[64];
	struct stat st;

	if (found < 0 || fstat(found, &st) || !S_ISREG(st.st_mode))
		return -1;
	snprintf(own, sizeof(own), "%s/self/fd/%d", procfs->proc, found);
	return open(own, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}
