#include "agent/keeper_debug.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/target/process.h"
#include "agent/target/rooted_file.h"

enum { BUILD_ID_MAX = 64, LINK_MAX = 255 };

/* Files that were found, as they are handed over. */
struct found {
	const struct procfs *procfs;
	int target_root, own_root;
	struct stat exe; /* a link to itself leads nowhere */
	int fds[LIMIT_DEBUG_FILES];
	ProtobufCBinaryData paths[LIMIT_DEBUG_FILES];
	unsigned count;
};

static void found_fini(struct found *found)
{
	for (unsigned i = 0; i < found->count; i++) {
		closep(&found->fds[i]);
		free(found->paths[i].data);
	}
	closep(&found->target_root);
	closep(&found->own_root);
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* The executable itself, or a file that another path led to before. */
static bool is_known(const struct found *found, int fd)
{
	struct stat st, other;

	if (fstat(fd, &st) || is_same_file(&st, &found->exe))
		return true;
	for (unsigned i = 0; i < found->count; i++)
		if (!fstat(found->fds[i], &other) && is_same_file(&st, &other))
			return true;
	return false;
}

/* Nothing else is of interest, and nothing else leaves the keeper. */
static bool is_elf(int fd)
{
	static const char magic[4] = "\177ELF";
	char bytes[sizeof(magic)];

	return pread(fd, bytes, sizeof(bytes), 0) == sizeof(bytes) &&
	       !memcmp(bytes, magic, sizeof(magic));
}

static struct error *look_at(struct found *found, int root, const char *path)
{
	int fd scoped(closep) = root < 0 ? -1 : rooted_file_open(found->procfs, root, path);
	char *copy;

	if (fd < 0 || found->count == LIMIT_DEBUG_FILES || is_known(found, fd) || !is_elf(fd))
		return NULL;
	copy = strdup(path);
	if (!copy)
		return &error_nomem;
	found->paths[found->count] = (ProtobufCBinaryData){ strlen(copy), (uint8_t *)copy };
	found->fds[found->count++] = take_fd(fd);
	return NULL;
}

static struct error *look_in_both_roots(struct found *found, const char *path)
{
	struct error *err = look_at(found, found->target_root, path);

	return err ? err : look_at(found, found->own_root, path);
}

static struct error *find_by_build_id(struct found *found, const char *debug_dir,
				      ProtobufCBinaryData id)
{
	char path[PATH_MAX], hex[2 * BUILD_ID_MAX + 1];
	int size;

	if (id.len < 2 || id.len > BUILD_ID_MAX)
		return error_new(ERROR_FORMAT, "a build id of %zu bytes", id.len);
	for (size_t i = 0; i < id.len; i++)
		snprintf(hex + 2 * i, 3, "%02x", id.data[i]);
	size = snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s.debug", debug_dir, hex, hex + 2);
	return size < (int)sizeof(path) ? look_in_both_roots(found, path) : NULL;
}

static bool is_file_name(ProtobufCBinaryData name)
{
	return name.len && name.len <= LINK_MAX && !memchr(name.data, '/', name.len) &&
	       !memchr(name.data, '\0', name.len) &&
	       !(name.data[0] == '.' && (name.len == 1 || (name.len == 2 && name.data[1] == '.')));
}

/* Beside the executable, in a folder .debug there, and under the folder of debug files. */
static struct error *find_by_link(struct found *found, const char *debug_dir, const char *exe,
				  ProtobufCBinaryData link)
{
	const char *slash = exe ? strrchr(exe, '/') : NULL;
	int folder = slash ? (int)(slash - exe) : 0, length = (int)link.len, size;
	const char *name = (const char *)link.data;
	char beside[PATH_MAX], below[PATH_MAX], apart[PATH_MAX];
	struct error *err;

	if (!is_file_name(link))
		return error_new(ERROR_FORMAT, "a debug link that is no file name");
	if (!slash)
		return NULL;
	snprintf(beside, sizeof(beside), "%.*s/%.*s", folder, exe, length, name);
	snprintf(below, sizeof(below), "%.*s/.debug/%.*s", folder, exe, length, name);
	size = snprintf(apart, sizeof(apart), "%s%.*s/%.*s", debug_dir, folder, exe, length, name);
	if (size >= (int)sizeof(apart))
		return NULL;
	err = look_at(found, found->target_root, beside);
	if (!err)
		err = look_at(found, found->target_root, below);
	return err ? err : look_in_both_roots(found, apart);
}

static struct error *hand_over(struct keeper *keeper, struct found *found)
{
	Goheapd__TargetEvent event = GOHEAPD__TARGET_EVENT__INIT;
	Goheapd__DebugFiles files = GOHEAPD__DEBUG_FILES__INIT;

	files.n_paths = found->count;
	files.paths = found->paths;
	event.body_case = GOHEAPD__TARGET_EVENT__BODY_DEBUG_FILES;
	event.debug_files = &files;
	return frame_queue_add(&keeper->to_decoder, &event.base, found->fds, found->count);
}

/* A root that cannot be opened is one in which nothing is found. */
static void open_roots(const struct process *process, struct found *found)
{
	error_free(rooted_file_root(process, &found->target_root));
	error_free(rooted_file_root(NULL, &found->own_root));
}

static struct error *search_all(const struct process *process, const char *debug_dir,
				const Goheapd__DebugSearch *search, struct found *found)
{
	char *exe scoped(freep) = NULL;
	struct error *err = process->exe ? rooted_file_path(process, process->exe, &exe) : NULL;

	found->exe.st_dev = process->exe_device;
	found->exe.st_ino = process->exe_inode;
	open_roots(process, found);
	if (!err && search->has_build_id)
		err = find_by_build_id(found, debug_dir, search->build_id);
	if (!err && search->has_link)
		err = find_by_link(found, debug_dir, exe, search->link);
	return err;
}

struct error *keeper_find_debug(struct keeper *keeper, const struct process *process,
				ProtobufCBinaryData debug_dir, const Goheapd__DebugSearch *search)
{
	struct found found = { .procfs = &keeper->procfs, .target_root = -1, .own_root = -1 };
	char *dir scoped(freep) = strndup((const char *)debug_dir.data, debug_dir.len);
	struct error *err = dir ? search_all(process, dir, search, &found) : &error_nomem;

	if (!err)
		err = hand_over(keeper, &found);
	found_fini(&found);
	return err;
}
