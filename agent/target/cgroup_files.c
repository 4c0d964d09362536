#include "agent/target/cgroup_files.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FILE_LIMIT = 64 << 10, MOUNTS_LIMIT = 1 << 20 };

/* Version 1 writes "no limit" as the largest multiple of a page below 2^63. */
static const uint64_t unlimited_v1 = UINT64_C(0x7fffffff00000000);

/* ---- the list ---- */

/* One line of it: hierarchy:controllers:path. */
struct membership {
	const char *controllers;
	size_t controllers_size;
	const char *path;
	size_t path_size;
};

static bool next_membership(const char **line, struct membership *ret)
{
	const char *colon, *second, *end;

	for (;; *line = end + 1) {
		if (!**line)
			return false;
		end = strchrnul(*line, '\n');
		colon = memchr(*line, ':', (size_t)(end - *line));
		second = colon ? memchr(colon + 1, ':', (size_t)(end - colon - 1)) : NULL;
		if (second || !*end)
			break;
	}
	if (!second)
		return false;
	*ret = (struct membership){ colon + 1, (size_t)(second - colon - 1), second + 1,
				    (size_t)(end - second - 1) };
	*line = *end ? end + 1 : end;
	return true;
}

/* Whether name is one of the controllers, which commas part. */
static bool has_controller(const struct membership *membership, const char *name)
{
	const char *p = membership->controllers, *end = p + membership->controllers_size;
	size_t size = strlen(name);

	while (p < end) {
		const char *comma = memchr(p, ',', (size_t)(end - p));
		const char *stop = comma ? comma : end;

		if ((size_t)(stop - p) == size && !memcmp(p, name, size))
			return true;
		p = comma ? comma + 1 : end;
	}
	return false;
}

static bool find_membership(const struct procfs_text *list, const char *controller,
			    struct membership *ret, unsigned *ret_version)
{
	const char *line = list->data;
	struct membership m;
	bool found = false;

	while (next_membership(&line, &m)) {
		if (controller && has_controller(&m, controller)) {
			*ret = m;
			*ret_version = 1;
			return true;
		}
		if (!m.controllers_size) {
			*ret = m;
			*ret_version = 2;
			found = true;
		}
	}
	return found;
}

/* ---- places ---- */

static bool exists(const struct procfs *procfs, const char *folder, const char *path,
		   const char *name)
{
	char full[PATH_MAX];
	int size = snprintf(full, sizeof(full), "%s%s%s%s", procfs->cgroup, folder, path, name);

	return size > 0 && (size_t)size < sizeof(full) && !access(full, F_OK);
}

/* Version 2 is mounted alone, or in a folder beside those of version 1. */
static void find_folder_v2(struct cgroup_place *place)
{
	bool beside = !exists(place->procfs, "", "", "/cgroup.controllers") &&
		      exists(place->procfs, "/unified", "", "/cgroup.controllers");

	strcpy(place->folder, beside ? "/unified" : "");
}

/* Controllers of one hierarchy ("cpu,cpuacct") share a folder, with or without links to it. */
static void find_folder_v1(struct cgroup_place *place, const struct membership *m,
			   const char *controller)
{
	snprintf(place->folder, sizeof(place->folder), "/%s", controller);
	if (exists(place->procfs, place->folder, "", "") ||
	    m->controllers_size + 2 > sizeof(place->folder))
		return;
	snprintf(place->folder, sizeof(place->folder), "/%.*s", (int)m->controllers_size,
		 m->controllers);
}

/* The next field of a line of mountinfo, which blanks part. */
static bool next_field(const char **pos, const char **ret, size_t *ret_size)
{
	*ret = *pos + strspn(*pos, " ");
	*ret_size = strcspn(*ret, " \n");
	*pos = *ret + *ret_size;
	return *ret_size;
}

/* What of the hierarchy is mounted at that path: *ret is the group that is its root there. */
static bool find_mounted_root(const char *line, const char *mount_point, const char **ret,
			      size_t *ret_size)
{
	enum { ROOT = 3, MOUNT_POINT = 4 };
	size_t wanted = strlen(mount_point);

	for (; *line; line = *line ? line + 1 : line) {
		const char *field;
		size_t size;

		for (int i = 0; next_field(&line, &field, &size) && i < MOUNT_POINT; i++) {
			if (i == ROOT) {
				*ret = field;
				*ret_size = size;
			}
		}
		if (size == wanted && !memcmp(field, mount_point, size))
			return true;
		line = strchrnul(line, '\n');
	}
	return false;
}

/* In a container a part of the hierarchy may be mounted as if it were all of it. */
static void rebase(struct cgroup_place *place)
{
	char mount_point[PATH_MAX];
	struct procfs_text text;
	const char *root = "";
	size_t size = 0;
	struct error *err =
	    procfs_read(&text, MOUNTS_LIMIT, "%s/self/mountinfo", place->procfs->proc);

	if (err) {
		error_free(err);
		return;
	}
	snprintf(mount_point, sizeof(mount_point), "%s%s", place->procfs->cgroup, place->folder);
	if (find_mounted_root(text.data, mount_point, &root, &size) && size > 1 &&
	    !strncmp(place->path, root, size) && (place->path[size] == '/' || !place->path[size]))
		memmove(place->path, place->path + size, strlen(place->path + size) + 1);
	procfs_text_fini(&text);
}

bool cgroup_place_find(const struct procfs *procfs, const struct procfs_text *list,
		       const char *controller, struct cgroup_place *ret)
{
	struct membership m;

	if (!find_membership(list, controller, &m, &ret->version) ||
	    m.path_size >= sizeof(ret->path))
		return false;
	ret->procfs = procfs;
	memcpy(ret->path, m.path, m.path_size);
	ret->path[m.path_size] = '\0';
	if (!strcmp(ret->path, "/"))
		*ret->path = '\0';
	if (ret->version == 1)
		find_folder_v1(ret, &m, controller);
	else
		find_folder_v2(ret);
	if (!cgroup_place_visible(ret))
		rebase(ret);
	return true;
}

/* Whether a part of the path is "..". */
static bool leads_out(const char *path)
{
	for (const char *p = path; (p = strstr(p, "/..")); p += 3) {
		if (!p[3] || p[3] == '/')
			return true;
	}
	return false;
}

bool cgroup_place_visible(const struct cgroup_place *place)
{
	return !*place->path ||
	       (!leads_out(place->path) && exists(place->procfs, place->folder, place->path, ""));
}

bool cgroup_place_up(struct cgroup_place *place)
{
	char *slash = strrchr(place->path, '/');

	if (!slash)
		return false;
	*slash = '\0';
	return true;
}

/* ---- their files ---- */

bool cgroup_place_read(const struct cgroup_place *place, const char *name, struct procfs_text *ret)
{
	struct error *err;

	if (leads_out(place->path))
		return false;
	err = procfs_read(ret, FILE_LIMIT, "%s%s%s/%s", place->procfs->cgroup, place->folder,
			  place->path, name);
	error_free(err);
	return !err;
}

uint64_t cgroup_place_number(const struct cgroup_place *place, const char *name)
{
	struct procfs_text text;
	uint64_t value = UINT64_MAX;
	const char *pos;

	if (!cgroup_place_read(place, name, &text))
		return UINT64_MAX;
	pos = text.data;
	if (!procfs_number(&pos, 10, &value)) /* "max" */
		value = UINT64_MAX;
	procfs_text_fini(&text);
	return place->version == 1 && value >= unlimited_v1 ? UINT64_MAX : value;
}

uint64_t cgroup_place_field(const struct cgroup_place *place, const char *name, const char *key)
{
	struct procfs_text text;
	uint64_t value = UINT64_MAX;
	const char *pos;

	if (!cgroup_place_read(place, name, &text))
		return UINT64_MAX;
	pos = procfs_field(&text, key);
	if (pos && !procfs_number(&pos, 10, &value))
		value = UINT64_MAX;
	procfs_text_fini(&text);
	return value;
}
