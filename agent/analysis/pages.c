#include "agent/analysis/pages.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <sys/mman.h>

enum { HUGE_PAGE_SIZE = 2 << 20, OS_PAGE_SIZE = 4096 };

static uint64_t round_up(uint64_t size, uint64_t unit)
{
	return (size + unit - 1) & ~(unit - 1);
}

static struct error *charge(struct budget *budget, uint64_t size)
{
	uint64_t used = atomic_fetch_add(&budget->used, size) + size + budget->reserved;

	if (!budget->limit || used <= budget->limit)
		return NULL;
	atomic_fetch_sub(&budget->used, size);
	return error_new(ERROR_OUT_OF_MEMORY,
			 "the object graph needs more than %" PRIu64 " MiB, the limit is %" PRIu64
			 " MiB",
			 (used - 1) >> 20, budget->limit >> 20);
}

/* Huge pages are given to aligned parts only: takes a huge page more and returns both ends. */
static void *map_aligned(size_t size)
{
	size_t room = size + HUGE_PAGE_SIZE;
	uint8_t *map = mmap(NULL, room, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t before;

	if (map == MAP_FAILED)
		return NULL;
	before = round_up((uintptr_t)map, HUGE_PAGE_SIZE) - (uintptr_t)map;
	if (before)
		munmap(map, before);
	munmap(map + before + size, room - before - size);
	/* A wish: without huge pages everything works, only slower. */
	madvise(map + before, size, MADV_HUGEPAGE);
	return map + before;
}

struct error *pages_init(struct pages *pages, struct budget *budget, uint64_t size)
{
	struct error *err;

	*pages = (struct pages){ .budget = budget };
	if (!size)
		return NULL;
	if (size > SIZE_MAX / 2)
		return error_new(ERROR_LIMIT, "an array of %" PRIu64 " bytes", size);
	size = round_up(size, OS_PAGE_SIZE);
	err = charge(budget, size);
	if (err)
		return err;
	pages->data = map_aligned(size);
	if (!pages->data) {
		atomic_fetch_sub(&budget->used, size);
		return error_system(errno, "%" PRIu64 " MiB for the object graph", size >> 20);
	}
	pages->size = size;
	return NULL;
}

struct error *pages_grow(struct pages *pages, struct budget *budget, uint64_t size)
{
	struct pages grown;
	struct error *err = pages_init(&grown, budget, size);

	if (err)
		return err;
	/* Both are aligned to huge pages, which then move as they are. */
	if (pages->size && mremap(pages->data, pages->size, pages->size,
				  MREMAP_MAYMOVE | MREMAP_FIXED, grown.data) == MAP_FAILED) {
		err = error_system(errno, "%zu MiB for the object graph", pages->size >> 20);
		pages_fini(&grown);
		return err;
	}
	atomic_fetch_sub(&budget->used, pages->size);
	*pages = grown;
	return NULL;
}

void pages_fini(struct pages *pages)
{
	if (!pages->size)
		return;
	munmap(pages->data, pages->size);
	atomic_fetch_sub(&pages->budget->used, pages->size);
	pages->data = NULL;
	pages->size = 0;
}

void pages_trim(struct pages *pages, size_t size)
{
	size = round_up(size, OS_PAGE_SIZE);
	if (size >= pages->size)
		return;
	if (!size) {
		pages_fini(pages);
		return;
	}
	munmap((uint8_t *)pages->data + size, pages->size - size);
	atomic_fetch_sub(&pages->budget->used, pages->size - size);
	pages->size = size;
}
