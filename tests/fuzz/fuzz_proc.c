/*
 * What /proc says of a process, parts of which the process chooses: mappings, a line of stat, the
 * list of control groups. All three see the same bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/target/cgroup.h"
#include "agent/target/maps.h"
#include "agent/target/procfs.h"
#include "tests/fuzz/fuzz.h"

static void fuzz_maps(const char *text, size_t size)
{
	struct maps *maps = NULL;
	struct error *err = maps_parse(text, size, &maps);

	for (uint32_t i = 0; !err && i < maps->count; i++) {
		if (maps_find(maps, maps->items[i].start) != &maps->items[i] ||
		    maps_find(maps, maps->items[i].end - 1) != &maps->items[i])
			abort();
	}
	error_free(err);
	maps_free(maps);
}

static void fuzz_cgroup(const struct procfs_text *text)
{
	const struct procfs procfs = { .proc = "/nonexistent", .cgroup = "/nonexistent" };
	struct cgroup cgroup;
	struct error *err = cgroup_read(&procfs, text, &cgroup);

	if (!err)
		cgroup_fini(&cgroup);
	error_free(err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct procfs_text text = { malloc(size + 1), size };
	struct procfs_stat stat;

	if (!text.data)
		abort();
	if (size)
		memcpy(text.data, data, size);
	text.data[size] = '\0';
	fuzz_maps(text.data, size);
	error_free(procfs_stat_parse(text.data, &stat));
	fuzz_cgroup(&text);
	procfs_text_fini(&text);
	return 0;
}
