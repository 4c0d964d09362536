#include "agent/index_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "agent/file_key.h"
#include "proto/wire/limits.h"

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

int index_store_open(const struct index_store *store, enum index_kind kind,
		     const Goheapd__FileKey *key)
{
	char name[INDEX_NAME_SIZE];
	struct index_file_key index_key;

	if (store->folder_fd < 0)
		return -1;
	file_key_to_index(key, &index_key);
	index_file_name(kind, &index_key, name);
	return openat(store->folder_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
}

struct survey {
	unsigned count;
	uint64_t bytes;
	char oldest[NAME_MAX + 1];
};

/* Counts the files and finds the one that was written first. */
static void survey(DIR *folder, struct survey *ret)
{
	const struct dirent *entry;
	struct timespec oldest = { 0 };

	*ret = (struct survey){ 0 };
	while ((entry = readdir(folder))) {
		struct stat st;

		if (fstatat(dirfd(folder), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISREG(st.st_mode))
			continue;
		if (!ret->count || st.st_mtim.tv_sec < oldest.tv_sec ||
		    (st.st_mtim.tv_sec == oldest.tv_sec && st.st_mtim.tv_nsec < oldest.tv_nsec)) {
			oldest = st.st_mtim;
			snprintf(ret->oldest, sizeof(ret->oldest), "%s", entry->d_name);
		}
		ret->count++;
		ret->bytes += (uint64_t)st.st_size;
	}
}

/* Makes room for one more of that size. */
static void prune(const struct index_store *store, size_t size)
{
	int fd = openat(store->folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	struct survey found;

	if (!folder) {
		closep(&fd);
		return;
	}
	survey(folder, &found);
	while (found.count >= INDEX_STORE_FILES_MAX ||
	       (found.count && found.bytes + size > index_store_bytes_max)) {
		if (unlinkat(store->folder_fd, found.oldest, 0))
			break;
		rewinddir(folder);
		survey(folder, &found);
	}
	closedir(folder);
}

struct error *index_store_write(const struct index_store *store, enum index_kind kind,
				const Goheapd__FileKey *key, const void *content, size_t size)
{
	struct index_file_key index_key;

	if (store->folder_fd < 0)
		return NULL;
	prune(store, size);
	file_key_to_index(key, &index_key);
	return index_file_write(kind, store->folder_fd, &index_key, content, size);
}

/* Nobody can change or cut off any more what is mapped; how large it is. */
static struct error *check_sealed(int fd, size_t *ret_size)
{
	enum { SEALS = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW };
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	if (seals < 0 || (seals & SEALS) != SEALS)
		return error_new(ERROR_FORMAT, "types in a file that is not sealed");
	if (fstat(fd, &st))
		return error_system(errno, "stat");
	if (st.st_size <= 0 || st.st_size > LIMIT_TYPE_INDEX_BYTES)
		return error_new(ERROR_FORMAT, "types of %lld bytes", (long long)st.st_size);
	*ret_size = (size_t)st.st_size;
	return NULL;
}

struct error *index_store_write_types(const struct index_store *store, const Goheapd__FileKey *key,
				      int fd)
{
	size_t size;
	void *content;
	struct error *err = check_sealed(fd, &size);

	if (err)
		return err;
	content = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (content == MAP_FAILED)
		return error_system(errno, "map");
	err = index_store_write(store, INDEX_TYPES, key, content, size);
	munmap(content, size);
	return err;
}
