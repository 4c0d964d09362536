#include "agent/report/pagemap.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* As in Linux's uapi/linux/fs.h since 6.7; named apart, since new headers bring their own. */
struct scan_region {
	uint64_t start, end, categories;
};

struct scan_call {
	uint64_t size, flags, start, end, walk_end, regions, region_count, max_pages;
	uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};

#define SCAN_CALL    _IOWR('f', 16, struct scan_call)
#define SCAN_PRESENT (UINT64_C(1) << 3)
#define SCAN_SWAPPED (UINT64_C(1) << 4)
#define SCAN_ZERO    (UINT64_C(1) << 5)

/* Documentation/admin-guide/mm/pagemap.rst */
#define ENTRY_SWAPPED (UINT64_C(1) << 62)
#define ENTRY_PRESENT (UINT64_C(1) << 63)

enum { REGIONS_AT_ONCE = 512, ENTRIES_AT_ONCE = 4096 };

static struct error *visit_regions(const struct scan_region *regions, int count,
				   pagemap_visit *visit, void *arg)
{
	for (int i = 0; i < count; i++) {
		const struct scan_region *region = &regions[i];
		struct error *err;

		/* The zero page is nobody's memory, and no part of a process's RSS. */
		if (region->categories & SCAN_ZERO)
			continue;
		err = visit(arg, region->start, region->end, region->categories & SCAN_PRESENT);
		if (err)
			return err;
	}
	return NULL;
}

/* False without an error if this kernel cannot scan. */
static bool walk_by_scan(int pagemap, taddr start, taddr end, pagemap_visit *visit, void *arg,
			 struct error **ret_err)
{
	struct scan_region regions[REGIONS_AT_ONCE];
	struct scan_call call = {
		.size = sizeof(call),
		.start = start,
		.end = end,
		.regions = (uintptr_t)regions,
		.region_count = REGIONS_AT_ONCE,
		.category_anyof_mask = SCAN_PRESENT | SCAN_SWAPPED,
		.return_mask = SCAN_PRESENT | SCAN_SWAPPED | SCAN_ZERO,
	};

	while (call.start < end) {
		int count = ioctl(pagemap, SCAN_CALL, &call);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0 && (errno == ENOTTY || errno == EINVAL || errno == ENOSYS))
			return false;
		if (count < 0) {
			*ret_err = error_system(errno, "pagemap at 0x%" PRIx64, call.start);
			return true;
		}
		*ret_err = visit_regions(regions, count, visit, arg);
		if (*ret_err || call.walk_end <= call.start)
			return true;
		call.start = call.walk_end;
	}
	return true;
}

/* Visits runs of pages in the same state. */
static struct error *visit_entries(const uint64_t *entries, size_t count, taddr start,
				   pagemap_visit *visit, void *arg)
{
	const uint64_t state_bits = ENTRY_PRESENT | ENTRY_SWAPPED;

	for (size_t i = 0; i < count;) {
		uint64_t state = entries[i] & state_bits;
		size_t first = i++;
		struct error *err;

		while (i < count && (entries[i] & state_bits) == state)
			i++;
		if (!state)
			continue;
		err = visit(arg, start + first * PAGEMAP_PAGE_SIZE, start + i * PAGEMAP_PAGE_SIZE,
			    state & ENTRY_PRESENT);
		if (err)
			return err;
	}
	return NULL;
}

static struct error *walk_by_entries(int pagemap, taddr start, taddr end, pagemap_visit *visit,
				     void *arg)
{
	uint64_t entries[ENTRIES_AT_ONCE];

	while (start < end) {
		uint64_t left = (end - start) / PAGEMAP_PAGE_SIZE;
		size_t wanted = left < ENTRIES_AT_ONCE ? left : ENTRIES_AT_ONCE;
		ssize_t size = pread(pagemap, entries, wanted * sizeof(*entries),
				     (off_t)(start / PAGEMAP_PAGE_SIZE * sizeof(*entries)));
		size_t count;
		struct error *err;

		if (size < 0 && errno == EINTR)
			continue;
		if (size < 0)
			return error_system(errno, "pagemap at 0x%" PRIx64, start);
		count = (size_t)size / sizeof(*entries);
		if (!count)
			return error_new(ERROR_GONE, "pagemap ends at 0x%" PRIx64, start);
		err = visit_entries(entries, count, start, visit, arg);
		if (err)
			return err;
		start += count * PAGEMAP_PAGE_SIZE;
	}
	return NULL;
}

struct error *pagemap_walk(int pagemap, taddr start, taddr end, bool *scan, pagemap_visit *visit,
			   void *arg)
{
	struct error *err = NULL;

	if (*scan && walk_by_scan(pagemap, start, end, visit, arg, &err))
		return err;
	*scan = false;
	return walk_by_entries(pagemap, start, end, visit, arg);
}
