#include "agent/index_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/binary/index.h"
#include "agent/file_key.h"

/* mkdir, with whatever folders above it are missing. */
static struct error *make_folders(const char *path)
{
	char *copy scoped(freep) = strdup(path);

	if (!copy)
		return &error_nomem;
	for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(copy, 0755) && errno != EEXIST)
			return error_system(errno, "make folder %s", copy);
		*slash = '/';
	}
	if (mkdir(copy, 0700) && errno != EEXIST)
		return error_system(errno, "make folder %s", copy);
	return NULL;
}

/* Others must not be able to write in it, nor to read what binaries there are. */
static struct error *make_private(int folder_fd, const char *path)
{
	struct stat st;

	if (fstat(folder_fd, &st))
		return error_system(errno, "stat %s", path);
	if (st.st_uid != geteuid())
		return error_new(ERROR_FORBIDDEN, "%s belongs to uid %u, not to the agent", path,
				 st.st_uid);
	if ((st.st_mode & 077) && fchmod(folder_fd, 0700))
		return error_system(errno, "chmod %s", path);
	return NULL;
}

struct error *index_store_init(struct index_store *store, const char *cache_dir)
{
	char *path scoped(freep) = NULL;
	int folder_fd scoped(closep) = -1;
	struct error *err;

	store->folder_fd = -1;
	if (!cache_dir)
		return NULL;
	if (asprintf(&path, "%s/index", cache_dir) < 0) {
		path = NULL;
		return &error_nomem;
	}
	err = make_folders(path);
	if (err)
		return err;
	folder_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder_fd < 0)
		return error_system(errno, "open %s", path);
	err = make_private(folder_fd, path);
	if (err)
		return err;
	store->folder_fd = take_fd(folder_fd);
	return NULL;
}

void index_store_fini(struct index_store *store)
{
	closep(&store->folder_fd);
	store->folder_fd = -1;
}

int index_store_open(const struct index_store *store, const Goheapd__FileKey *key)
{
	char name[INDEX_NAME_SIZE];
	struct index_file_key index_key;

	if (store->folder_fd < 0)
		return -1;
	file_key_to_index(key, &index_key);
	index_file_name(&index_key, name);
	return openat(store->folder_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
}

/* Counts the files and finds the one that was written first. */
static unsigned survey(DIR *folder, char *ret_oldest, size_t size)
{
	const struct dirent *entry;
	struct timespec oldest = { 0 };
	unsigned count = 0;

	while ((entry = readdir(folder))) {
		struct stat st;

		if (fstatat(dirfd(folder), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISREG(st.st_mode))
			continue;
		if (!count || st.st_mtim.tv_sec < oldest.tv_sec ||
		    (st.st_mtim.tv_sec == oldest.tv_sec && st.st_mtim.tv_nsec < oldest.tv_nsec)) {
			oldest = st.st_mtim;
			snprintf(ret_oldest, size, "%s", entry->d_name);
		}
		count++;
	}
	return count;
}

/* Makes room for one more. */
static void prune(const struct index_store *store)
{
	int fd = openat(store->folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	char oldest[NAME_MAX + 1];

	if (!folder) {
		closep(&fd);
		return;
	}
	if (survey(folder, oldest, sizeof(oldest)) >= INDEX_STORE_FILES_MAX)
		unlinkat(store->folder_fd, oldest, 0);
	closedir(folder);
}

struct error *index_store_write(const struct index_store *store, const Goheapd__FileKey *key,
				const void *content, size_t size)
{
	struct index_file_key index_key;

	if (store->folder_fd < 0)
		return NULL;
	prune(store);
	file_key_to_index(key, &index_key);
	return index_file_write(store->folder_fd, &index_key, content, size);
}
