#include "agent/keeper_plugins.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "agent/target/maps.h"
#include "agent/target/process.h"
#include "agent/target/rooted_file.h"

struct found {
	const struct process *process;
	struct maps *maps;
	int root;
	int fds[LIMIT_FRAME_FDS];
	ProtobufCBinaryData names[LIMIT_FRAME_FDS]; /* of the maps */
	unsigned count;
};

static void found_fini(struct found *found)
{
	for (unsigned i = 0; i < found->count; i++)
		closep(&found->fds[i]);
	closep(&found->root);
	maps_free(found->maps);
}

/*
 * Whether the file is the one that is mapped: another may have its name by now. On file systems of
 * several layers the kernel shows a file of another device, and the name has to do.
 */
static bool is_mapped_file(int fd, const struct mapping *mapping)
{
	struct stat st;

	if (fstat(fd, &st))
		return false;
	return st.st_ino == mapping->inode || major(st.st_dev) != mapping->device_major ||
	       minor(st.st_dev) != mapping->device_minor;
}

static bool is_known(const struct found *found, const char *name)
{
	for (unsigned i = 0; i < found->count; i++)
		if (!strcmp((const char *)found->names[i].data, name))
			return true;
	return false;
}

static struct error *look_at(struct found *found, taddr addr)
{
	const struct mapping *mapping = maps_find(found->maps, addr);
	char *path scoped(freep) = NULL;
	int fd scoped(closep) = -1;
	struct error *err;

	if (!mapping || mapping->kind != MAPPING_FILE || mapping->deleted || mapping->shared ||
	    found->count == LIMIT_FRAME_FDS || is_known(found, mapping->name))
		return NULL;
	err = rooted_file_path(found->process, mapping->name, &path);
	if (err || !path)
		return err;
	fd = rooted_file_open(found->process->procfs, found->root, path);
	if (fd < 0 || !is_mapped_file(fd, mapping))
		return NULL;
	found->names[found->count] =
	    (ProtobufCBinaryData){ strlen(mapping->name), (uint8_t *)(uintptr_t)mapping->name };
	found->fds[found->count++] = take_fd(fd);
	return NULL;
}

static struct error *look_at_all(struct found *found, const Goheapd__PluginSearch *search)
{
	int maps_fd scoped(closep) = -1;
	struct error *err = process_open(found->process, "maps", O_RDONLY, &maps_fd);

	if (!err)
		err = maps_read(maps_fd, &found->maps);
	if (!err)
		err = rooted_file_root(found->process, &found->root);
	for (size_t i = 0; !err && i < search->n_addrs; i++)
		err = look_at(found, search->addrs[i]);
	return err;
}

static struct error *hand_over(struct keeper *keeper, struct found *found)
{
	Goheapd__TargetEvent event = GOHEAPD__TARGET_EVENT__INIT;
	Goheapd__PluginFiles files = GOHEAPD__PLUGIN_FILES__INIT;

	files.n_names = found->count;
	files.names = found->names;
	event.body_case = GOHEAPD__TARGET_EVENT__BODY_PLUGIN_FILES;
	event.plugin_files = &files;
	return frame_queue_add(&keeper->to_decoder, &event.base, found->fds, found->count);
}

struct error *keeper_find_plugins(struct keeper *keeper, const struct process *process,
				  const Goheapd__PluginSearch *search)
{
	struct found found = { .process = process, .root = -1 };
	struct error *err = look_at_all(&found, search);

	if (!err)
		err = hand_over(keeper, &found);
	found_fini(&found);
	return err;
}
