#include "agent/pressure.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/target/cgroup.h"
#include "agent/target/cgroup_files.h"

enum { FILE_LIMIT = 64 << 10 };

void pressure_init(struct pressure *pressure, const struct procfs *procfs)
{
	*pressure = (struct pressure){ .procfs = procfs };
}

/* A file that is not there tells nothing: old kernels have no PSI, and a container may lack any. */
static bool read_file(struct procfs_text *ret, const struct procfs *procfs, const char *name)
{
	struct error *err = procfs_read(ret, FILE_LIMIT, "%s/%s", procfs->proc, name);
	bool found = !err;

	error_free(err);
	return found;
}

static bool read_kib(const struct procfs_text *text, const char *key, uint64_t *ret_bytes)
{
	const char *pos = procfs_field(text, key);
	uint64_t kib;

	if (!pos || !procfs_number(&pos, 10, &kib) || kib > UINT64_MAX >> 10)
		return false;
	*ret_bytes = kib << 10;
	return true;
}

uint64_t pressure_machine_bytes(const struct procfs *procfs)
{
	struct procfs_text text;
	uint64_t bytes = 0;

	if (!read_file(&text, procfs, "meminfo"))
		return 0;
	if (!read_kib(&text, "MemTotal:", &bytes))
		bytes = 0;
	procfs_text_fini(&text);
	return bytes;
}

static bool is_little(uint64_t left, uint64_t all)
{
	return left < all / PRESSURE_LEAST_SHARE;
}

static bool look_at_machine(const struct procfs *procfs, char reason[PRESSURE_REASON_SIZE])
{
	struct procfs_text text;
	uint64_t all, available;
	bool little;

	if (!read_file(&text, procfs, "meminfo"))
		return false;
	little = read_kib(&text, "MemTotal:", &all) &&
		 read_kib(&text, "MemAvailable:", &available) && is_little(available, all);
	procfs_text_fini(&text);
	if (little)
		snprintf(reason, PRESSURE_REASON_SIZE,
			 "the machine has %" PRIu64 " of %" PRIu64 " MiB of memory available",
			 available >> 20, all >> 20);
	return little;
}

/* Limits of all groups up to the root count; what is inactive of files is as good as free. */
static bool look_at_group(const struct procfs *procfs, const struct procfs_text *list,
			  char reason[PRESSURE_REASON_SIZE])
{
	struct cgroup cgroup;
	struct error *err = cgroup_read(procfs, list, &cgroup);
	bool little;

	if (err) {
		error_free(err);
		return false;
	}
	little = cgroup.headroom_bytes != CGROUP_NONE && cgroup.limit_bytes != CGROUP_NONE &&
		 is_little(cgroup.headroom_bytes, cgroup.limit_bytes);
	if (little)
		snprintf(reason, PRESSURE_REASON_SIZE,
			 "%s leaves the agent's control group %" PRIu64 " MiB of memory",
			 cgroup.headroom_limit ? cgroup.headroom_limit : "a limit",
			 cgroup.headroom_bytes >> 20);
	cgroup_fini(&cgroup);
	return little;
}

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234": the last number, in microseconds. */
static bool parse_stall(const struct procfs_text *text, uint64_t *ret_us)
{
	static const char key[] = " total=";
	const char *pos = strncmp(text->data, "some ", 5) == 0 ? strstr(text->data, key) : NULL;

	if (!pos)
		return false;
	pos += sizeof(key) - 1;
	return procfs_number(&pos, 10, ret_us);
}

/* Whether tasks have stood still too much since the look before. text NULL: it cannot be told. */
static bool has_stalled(struct pressure_stall *stall, const struct procfs_text *text,
			uint64_t elapsed_us, const char *whose, char reason[PRESSURE_REASON_SIZE])
{
	struct pressure_stall before = *stall;
	uint64_t stood_us;

	stall->known = text && parse_stall(text, &stall->total_us);
	if (!stall->known || !before.known || !elapsed_us || stall->total_us < before.total_us)
		return false;
	stood_us = stall->total_us - before.total_us;
	if (stood_us / PRESSURE_STALL_PERCENT < elapsed_us / 100)
		return false;
	snprintf(reason, PRESSURE_REASON_SIZE,
		 "tasks of %s stood still for memory for %" PRIu64 " of %" PRIu64 " ms", whose,
		 stood_us / 1000, elapsed_us / 1000);
	return true;
}

static bool look_at_machine_stalls(struct pressure *pressure, uint64_t elapsed_us,
				   char reason[PRESSURE_REASON_SIZE])
{
	struct procfs_text text;
	bool found = read_file(&text, pressure->procfs, "pressure/memory");
	bool stalled = has_stalled(&pressure->machine, found ? &text : NULL, elapsed_us,
				   "the machine", reason);

	if (found)
		procfs_text_fini(&text);
	return stalled;
}

static bool look_at_group_stalls(struct pressure *pressure, const struct procfs_text *list,
				 uint64_t elapsed_us, char reason[PRESSURE_REASON_SIZE])
{
	struct cgroup_place place;
	struct procfs_text text;
	bool found = cgroup_place_find(pressure->procfs, list, NULL, &place) &&
		     cgroup_place_visible(&place) &&
		     cgroup_place_read(&place, "memory.pressure", &text);
	bool stalled = has_stalled(&pressure->group, found ? &text : NULL, elapsed_us,
				   "the agent's control group", reason);

	if (found)
		procfs_text_fini(&text);
	return stalled;
}

bool pressure_look(struct pressure *pressure, uint64_t now_us, char reason[PRESSURE_REASON_SIZE])
{
	const struct procfs *procfs = pressure->procfs;
	uint64_t elapsed_us = pressure->looked_us ? now_us - pressure->looked_us : 0;
	struct procfs_text list;
	/* every count is read, so that the next look can compare */
	bool stalled = look_at_machine_stalls(pressure, elapsed_us, reason);
	bool is_short = look_at_machine(procfs, reason) || stalled;

	pressure->looked_us = now_us;
	if (!read_file(&list, procfs, "self/cgroup"))
		return is_short;
	is_short |= look_at_group_stalls(pressure, &list, elapsed_us, reason);
	is_short |= look_at_group(procfs, &list, reason);
	procfs_text_fini(&list);
	return is_short;
}
