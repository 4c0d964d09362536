#include "agent/target/cgroup.h"

#include <fnmatch.h>
#include <string.h>

#include "agent/target/cgroup_files.h"
#include "agent/target/procfs.h"

enum {
	DEPTH_LIMIT = 64,       /* groups inside groups */
	CONTAINER_ID_SIZE = 64, /* hex digits, as Docker, containerd and CRI-O name groups */
};

static uint64_t stat_field(const struct procfs_text *text, const char *key)
{
	const char *pos = procfs_field(text, key);
	uint64_t value;

	return pos && procfs_number(&pos, 10, &value) ? value : CGROUP_NONE;
}

/* ---- memory: the way to the root ---- */

/*
 * What a group may use, and what counts as used. Above memory.high the kernel makes whoever
 * allocates wait, which is no less harm to a target than the end of its room.
 */
static const struct limit {
	unsigned version;
	bool hard;
	const char *max, *used;
} limits[] = {
	{ 1, true, "memory.limit_in_bytes", "memory.usage_in_bytes" },
	{ 1, false, "memory.memsw.limit_in_bytes", "memory.memsw.usage_in_bytes" },
	{ 2, true, "memory.max", "memory.current" },
	{ 2, false, "memory.high", "memory.current" },
};

/* Page cache that the kernel gives up first. */
static uint64_t reclaimable(const struct cgroup_place *place)
{
	uint64_t bytes = cgroup_place_field(
	    place, "memory.stat", place->version == 1 ? "total_inactive_file" : "inactive_file");

	return bytes == CGROUP_NONE ? 0 : bytes;
}

/* Limit and headroom of one group on the way; what counts is the tightest. */
static void meet_limit(const struct cgroup_place *place, const struct limit *limit, unsigned above,
		       struct cgroup *cgroup)
{
	uint64_t max = cgroup_place_number(place, limit->max), used, cache, room;

	if (max == CGROUP_NONE)
		return;
	used = cgroup_place_number(place, limit->used);
	cache = reclaimable(place);
	used -= cache < used ? cache : used;
	room = used < max ? max - used : 0;
	if (limit->hard && max < cgroup->limit_bytes)
		cgroup->limit_bytes = max;
	if (room < cgroup->headroom_bytes) {
		cgroup->headroom_bytes = room;
		cgroup->headroom_limit = limit->max;
		cgroup->headroom_above = above;
	}
}

static void meet_limits(const struct cgroup_place *place, unsigned above, struct cgroup *cgroup)
{
	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
		if (limits[i].version == place->version)
			meet_limit(place, &limits[i], above, cgroup);
	}
}

/* In version 1 a group counts in those above only if the one above says so. */
static bool counts_above(const struct cgroup_place *above)
{
	return above->version != 1 || cgroup_place_number(above, "memory.use_hierarchy") != 0;
}

static void walk_memory(struct cgroup_place *place, struct cgroup *cgroup)
{
	for (unsigned above = 0; above < DEPTH_LIMIT; above++) {
		meet_limits(place, above, cgroup);
		if (place->version == 2 && cgroup_place_number(place, "memory.oom.group") == 1)
			cgroup->oom_group = true;
		if (!cgroup_place_up(place) || !counts_above(place))
			break;
	}
}

/* ---- memory: the group itself ---- */

static void read_memory_v1(const struct cgroup_place *place, struct cgroup *cgroup)
{
	struct procfs_text text;

	cgroup->current_bytes = cgroup_place_number(place, "memory.usage_in_bytes");
	cgroup->kernel_bytes = cgroup_place_number(place, "memory.kmem.usage_in_bytes");
	if (cgroup_place_read(place, "memory.stat", &text)) {
		cgroup->anon_bytes = stat_field(&text, "total_rss");
		cgroup->file_bytes = stat_field(&text, "total_cache");
		procfs_text_fini(&text);
	}
	cgroup->oom_kills = cgroup_place_field(place, "memory.oom_control", "oom_kill");
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

static void read_memory_v2(const struct cgroup_place *place, struct cgroup *cgroup)
{
	struct procfs_text text;

	cgroup->current_bytes = cgroup_place_number(place, "memory.current");
	cgroup->high_bytes = cgroup_place_number(place, "memory.high");
	if (cgroup_place_read(place, "memory.stat", &text)) {
		cgroup->anon_bytes = stat_field(&text, "anon");
		cgroup->file_bytes = stat_field(&text, "file");
		cgroup->kernel_bytes = kernel_bytes(&text);
		procfs_text_fini(&text);
	}
	cgroup->oom_kills = cgroup_place_field(place, "memory.events", "oom_kill");
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

static struct error *read_memory(const struct procfs *procfs, const struct procfs_text *list,
				 struct cgroup *cgroup)
{
	struct cgroup_place place;

	if (!cgroup_place_find(procfs, list, "memory", &place))
		return NULL;
	cgroup->version = place.version;
	cgroup->path = strdup(*place.path ? place.path : "/");
	if (!cgroup->path)
		return &error_nomem;
	cgroup->hidden = !cgroup_place_visible(&place);
	if (place.version == 1)
		read_memory_v1(&place, cgroup);
	else
		read_memory_v2(&place, cgroup);
	walk_memory(&place, cgroup);
	return find_container_id(cgroup->path, &cgroup->container_id);
}

/* ---- tasks ---- */

int64_t cgroup_tasks_slack(uint64_t current, uint64_t max)
{
	uint64_t share = max / CGROUP_TASKS_SHARE + (max % CGROUP_TASKS_SHARE != 0);
	uint64_t reserve = share > CGROUP_TASKS_LEAST ? share : CGROUP_TASKS_LEAST;
	uint64_t left = current < max ? max - current : 0;

	if (left < reserve)
		return -(int64_t)(reserve - left);
	return left - reserve > INT64_MAX ? INT64_MAX : (int64_t)(left - reserve);
}

/* Of all groups up to the root the one that is nearest to having too few left. */
static void read_pids(const struct procfs *procfs, const struct procfs_text *list,
		      struct cgroup *cgroup)
{
	int64_t least = INT64_MAX;
	struct cgroup_place place;

	if (!cgroup_place_find(procfs, list, "pids", &place))
		return;
	for (unsigned depth = 0; depth < DEPTH_LIMIT; depth++) {
		uint64_t max = cgroup_place_number(&place, "pids.max");
		uint64_t current = cgroup_place_number(&place, "pids.current");

		if (max != CGROUP_NONE && current != CGROUP_NONE &&
		    cgroup_tasks_slack(current, max) < least) {
			least = cgroup_tasks_slack(current, max);
			cgroup->pids_current = current;
			cgroup->pids_max = max;
		}
		if (!cgroup_place_up(&place))
			break;
	}
}

/* ---- freezing ---- */

static bool frozen_v1(const struct cgroup_place *place)
{
	struct procfs_text text;
	bool frozen;

	if (!cgroup_place_read(place, "freezer.state", &text))
		return false;
	frozen = !strncmp(text.data, "FREEZING", 8) || !strncmp(text.data, "FROZEN", 6);
	procfs_text_fini(&text);
	return frozen;
}

/* A group is frozen by itself or with one above, when it was told so and when it has come true. */
static bool frozen_v2(struct cgroup_place *place)
{
	if (cgroup_place_field(place, "cgroup.events", "frozen") == 1)
		return true;
	for (unsigned depth = 0; depth < DEPTH_LIMIT; depth++) {
		if (cgroup_place_number(place, "cgroup.freeze") == 1)
			return true;
		if (!cgroup_place_up(place))
			break;
	}
	return false;
}

/* Both may be mounted, and the stricter counts. */
static unsigned read_frozen(const struct procfs *procfs, const struct procfs_text *list)
{
	struct cgroup_place place;

	if (cgroup_place_find(procfs, list, "freezer", &place) && place.version == 1 &&
	    frozen_v1(&place))
		return 1;
	return cgroup_place_find(procfs, list, NULL, &place) && frozen_v2(&place) ? 2 : 0;
}

/* ---- the unit ---- */

static bool ends_in(const char *text, size_t size, const char *end)
{
	size_t end_size = strlen(end);

	return size > end_size && !memcmp(text + size - end_size, end, end_size);
}

/* The innermost part of the path that is a service or a scope. */
static struct error *find_unit(const char *path, char **ret)
{
	for (const char *end = path + strlen(path), *start; end > path; end = start - 1) {
		size_t size;

		for (start = end; start > path && start[-1] != '/'; start--)
			;
		size = (size_t)(end - start);
		if (ends_in(start, size, ".service") || ends_in(start, size, ".scope")) {
			*ret = strndup(start, size);
			return *ret ? NULL : &error_nomem;
		}
		if (start == path)
			break;
	}
	return NULL;
}

/* systemd has a hierarchy of its own in version 1, and uses the one of version 2 where it is alone.
 */
static struct error *read_unit(const struct procfs *procfs, const struct procfs_text *list,
			       char **ret)
{
	struct cgroup_place place;

	if (!cgroup_place_find(procfs, list, "name=systemd", &place))
		return NULL;
	return find_unit(place.path, ret);
}

static bool matches_any(const char *text, char *const *patterns, size_t count)
{
	for (size_t i = 0; text && i < count; i++) {
		if (!fnmatch(patterns[i], text, 0))
			return true;
	}
	return false;
}

bool cgroup_matches(const struct cgroup *cgroup, char *const *paths, size_t path_count,
		    char *const *units, size_t unit_count)
{
	return matches_any(cgroup->path, paths, path_count) ||
	       matches_any(cgroup->unit, units, unit_count);
}

/* ---- all of it ---- */

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
	struct error *err = read_memory(procfs, text, &cgroup);

	if (!err)
		err = read_unit(procfs, text, &cgroup.unit);
	if (err) {
		cgroup_fini(&cgroup);
		return err;
	}
	read_pids(procfs, text, &cgroup);
	cgroup.frozen_by = read_frozen(procfs, text);
	*ret = cgroup;
	return NULL;
}

void cgroup_fini(struct cgroup *cgroup)
{
	free(cgroup->path);
	free(cgroup->container_id);
	free(cgroup->unit);
	cgroup->path = cgroup->container_id = cgroup->unit = NULL;
}
