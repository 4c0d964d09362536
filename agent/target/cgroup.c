#include "agent/target/cgroup.h"

#include <ctype.h>
#include <string.h>

#include "agent/target/procfs.h"

enum {
	FILE_LIMIT = 64 << 10,
	PATH_LIMIT = 4096,
	DEPTH_LIMIT = 64,       /* groups inside groups */
	CONTAINER_ID_SIZE = 64, /* hex digits, as Docker, containerd and CRI-O name groups */
};

/* Version 1 writes "no limit" as the largest multiple of a page below 2^63. */
static const uint64_t unlimited_v1 = UINT64_C(0x7fffffff00000000);

/* One line of /proc/PID/cgroup: hierarchy:controllers:path. */
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

/* The group of a version 1 controller; where no such line is, that of version 2. */
static bool find_membership(const struct procfs_text *text, const char *controller,
			    struct membership *ret, unsigned *ret_version)
{
	const char *line = text->data;
	struct membership m;
	bool found = false;

	while (next_membership(&line, &m)) {
		if (has_controller(&m, controller)) {
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

/*
 * The file of one group. From inside a container the path can lead out of what is mounted
 * ("/../.."): there is no file then, and a path with ".." is not followed.
 */
static bool read_group_file(const struct procfs *procfs, unsigned version, const char *controller,
			    const char *group, const char *name, struct procfs_text *ret)
{
	struct error *err;

	if (strstr(group, "/.."))
		return false;
	if (version == 1)
		err = procfs_read(ret, FILE_LIMIT, "%s/%s%s/%s", procfs->cgroup, controller, group,
				  name);
	else
		err = procfs_read(ret, FILE_LIMIT, "%s%s/%s", procfs->cgroup, group, name);
	error_free(err);
	return !err;
}

static uint64_t group_number(const struct procfs *procfs, unsigned version, const char *controller,
			     const char *group, const char *name)
{
	struct procfs_text text;
	uint64_t value = CGROUP_NONE;
	const char *pos;

	if (!read_group_file(procfs, version, controller, group, name, &text))
		return CGROUP_NONE;
	pos = text.data;
	if (!procfs_number(&pos, 10, &value)) /* "max" */
		value = CGROUP_NONE;
	procfs_text_fini(&text);
	if (version == 1 && value >= unlimited_v1)
		value = CGROUP_NONE;
	return value;
}

static uint64_t stat_field(const struct procfs_text *text, const char *key)
{
	const char *pos = procfs_field(text, key);
	uint64_t value;

	return pos && procfs_number(&pos, 10, &value) ? value : CGROUP_NONE;
}

/* Cuts the last part off; false if the root was reached. */
static bool to_parent(char *group)
{
	char *slash = strrchr(group, '/');

	if (!slash || !*group)
		return false;
	*slash = '\0';
	return true;
}

/* Limit and headroom of one group on the way to the root; what counts is the tightest. */
static void meet_memory_limit(const struct procfs *procfs, unsigned version, const char *group,
			      struct cgroup *cgroup)
{
	bool v1 = version == 1;
	uint64_t limit, used, inactive = CGROUP_NONE, room;
	struct procfs_text text;

	limit = group_number(procfs, version, "memory", group,
			     v1 ? "memory.limit_in_bytes" : "memory.max");
	if (limit == CGROUP_NONE)
		return;
	used = group_number(procfs, version, "memory", group,
			    v1 ? "memory.usage_in_bytes" : "memory.current");
	if (read_group_file(procfs, version, "memory", group, "memory.stat", &text)) {
		inactive = stat_field(&text, v1 ? "total_inactive_file" : "inactive_file");
		procfs_text_fini(&text);
	}
	if (used == CGROUP_NONE)
		used = 0;
	if (inactive != CGROUP_NONE)
		used -= inactive < used ? inactive : used;
	room = used < limit ? limit - used : 0;
	if (cgroup->limit_bytes == CGROUP_NONE || limit < cgroup->limit_bytes)
		cgroup->limit_bytes = limit;
	if (cgroup->headroom_bytes == CGROUP_NONE || room < cgroup->headroom_bytes)
		cgroup->headroom_bytes = room;
}

static void read_memory_v1(const struct procfs *procfs, const char *group, struct cgroup *cgroup)
{
	struct procfs_text text;

	cgroup->current_bytes = group_number(procfs, 1, "memory", group, "memory.usage_in_bytes");
	cgroup->kernel_bytes =
	    group_number(procfs, 1, "memory", group, "memory.kmem.usage_in_bytes");
	if (read_group_file(procfs, 1, "memory", group, "memory.stat", &text)) {
		cgroup->anon_bytes = stat_field(&text, "total_rss");
		cgroup->file_bytes = stat_field(&text, "total_cache");
		procfs_text_fini(&text);
	}
	if (read_group_file(procfs, 1, "memory", group, "memory.oom_control", &text)) {
		cgroup->oom_kills = stat_field(&text, "oom_kill");
		procfs_text_fini(&text);
	}
}

/* memory.stat has "kernel" since Linux 5.18; before, its parts are there. */
static uint64_t kernel_bytes(const struct procfs_text *stat)
{
	static const char *const parts[] = { "kernel_stack", "pagetables", "percpu", "sock",
					     "slab" };
	uint64_t sum = stat_field(stat, "kernel");

	if (sum != CGROUP_NONE)
		return sum;
	sum = 0;
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		uint64_t part = stat_field(stat, parts[i]);

		if (part != CGROUP_NONE && __builtin_add_overflow(sum, part, &sum))
			return CGROUP_NONE;
	}
	return sum;
}

static void read_memory_v2(const struct procfs *procfs, const char *group, struct cgroup *cgroup)
{
	struct procfs_text text;

	cgroup->current_bytes = group_number(procfs, 2, "memory", group, "memory.current");
	cgroup->high_bytes = group_number(procfs, 2, "memory", group, "memory.high");
	if (read_group_file(procfs, 2, "memory", group, "memory.stat", &text)) {
		cgroup->anon_bytes = stat_field(&text, "anon");
		cgroup->file_bytes = stat_field(&text, "file");
		cgroup->kernel_bytes = kernel_bytes(&text);
		procfs_text_fini(&text);
	}
	if (read_group_file(procfs, 2, "memory", group, "memory.events", &text)) {
		cgroup->oom_kills = stat_field(&text, "oom_kill");
		procfs_text_fini(&text);
	}
}

static void read_memory(const struct procfs *procfs, char *group, struct cgroup *cgroup)
{
	unsigned depth = 0;

	if (cgroup->version == 1)
		read_memory_v1(procfs, group, cgroup);
	else
		read_memory_v2(procfs, group, cgroup);
	do {
		meet_memory_limit(procfs, cgroup->version, group, cgroup);
		if (cgroup->version == 2 &&
		    group_number(procfs, 2, "memory", group, "memory.oom.group") == 1)
			cgroup->oom_group = true;
	} while (to_parent(group) && ++depth < DEPTH_LIMIT);
}

/* Of all groups up to the root the one with the fewest pids left. */
static void read_pids(const struct procfs *procfs, unsigned version, char *group,
		      struct cgroup *cgroup)
{
	uint64_t least = CGROUP_NONE;
	unsigned depth = 0;

	do {
		uint64_t max = group_number(procfs, version, "pids", group, "pids.max");
		uint64_t current = group_number(procfs, version, "pids", group, "pids.current");
		uint64_t left;

		if (max == CGROUP_NONE || current == CGROUP_NONE)
			continue;
		left = current < max ? max - current : 0;
		if (left < least) {
			least = left;
			cgroup->pids_current = current;
			cgroup->pids_max = max;
		}
	} while (to_parent(group) && ++depth < DEPTH_LIMIT);
}

/* A run of exactly 64 hex digits in the path; the innermost if there are several. */
static struct error *find_container_id(const char *path, char **ret)
{
	const char *found = NULL;

	while (*path) {
		size_t run = strspn(path, "0123456789abcdef");

		if (run == CONTAINER_ID_SIZE)
			found = path;
		path += run ? run : 1;
	}
	*ret = found ? strndup(found, CONTAINER_ID_SIZE) : NULL;
	return found && !*ret ? &error_nomem : NULL;
}

/* The root group becomes "". */
static bool copy_group(const struct membership *m, char group[PATH_LIMIT])
{
	if (m->path_size >= PATH_LIMIT)
		return false;
	memcpy(group, m->path, m->path_size);
	group[m->path_size] = '\0';
	if (!strcmp(group, "/"))
		*group = '\0';
	return true;
}

struct error *cgroup_read(const struct procfs *procfs, const struct procfs_text *text,
			  struct cgroup *ret)
{
	struct cgroup cgroup = {
		.current_bytes = CGROUP_NONE,
		.limit_bytes = CGROUP_NONE,
		.high_bytes = CGROUP_NONE,
		.headroom_bytes = CGROUP_NONE,
		.anon_bytes = CGROUP_NONE,
		.file_bytes = CGROUP_NONE,
		.kernel_bytes = CGROUP_NONE,
		.oom_kills = CGROUP_NONE,
		.pids_current = CGROUP_NONE,
		.pids_max = CGROUP_NONE,
	};
	struct membership m;
	char group[PATH_LIMIT];
	unsigned version;
	struct error *err;

	if (find_membership(text, "memory", &m, &version) && copy_group(&m, group)) {
		cgroup.version = version;
		cgroup.path = strdup(*group ? group : "/");
		if (!cgroup.path)
			return &error_nomem;
		err = find_container_id(cgroup.path, &cgroup.container_id);
		if (err) {
			cgroup_fini(&cgroup);
			return err;
		}
		read_memory(procfs, group, &cgroup);
	}
	if (find_membership(text, "pids", &m, &version) && copy_group(&m, group))
		read_pids(procfs, version, group, &cgroup);
	*ret = cgroup;
	return NULL;
}

void cgroup_fini(struct cgroup *cgroup)
{
	free(cgroup->path);
	free(cgroup->container_id);
	cgroup->path = cgroup->container_id = NULL;
}
