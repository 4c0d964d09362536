#include "agent/analysis/pages.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
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

/*
 * Pages that were given back, for whoever wants some next: zeroing those again is cheap, while new
 * ones cost faults, and on a virtual machine that tells its host of free memory much more than
 * that. All begin at a huge page.
 */
enum { SPARES_MAX = 16 };

static struct {
	pthread_mutex_t lock;
	struct {
		uint8_t *data;
		size_t size;
	} items[SPARES_MAX];
	unsigned count;
} spares = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void keep_spare(uint8_t *data, size_t size)
{
	bool kept = false;

	pthread_mutex_lock(&spares.lock);
	if (size >= HUGE_PAGE_SIZE && spares.count < SPARES_MAX) {
		spares.items[spares.count].data = data;
		spares.items[spares.count++].size = size;
		kept = true;
	}
	pthread_mutex_unlock(&spares.lock);
	if (!kept)
		munmap(data, size);
}

/* The lock is held. */
static void drop_spares(void)
{
	while (spares.count) {
		spares.count--;
		munmap(spares.items[spares.count].data, spares.items[spares.count].size);
	}
}

/* The smallest that is large enough, or SPARES_MAX. The lock is held. */
static unsigned find_spare(size_t size)
{
	unsigned best = SPARES_MAX;

	for (unsigned i = 0; i < spares.count; i++)
		if (spares.items[i].size >= size &&
		    (best == SPARES_MAX || spares.items[i].size < spares.items[best].size))
			best = i;
	return best;
}

/* Takes the front of a spare; what is left of it stays one from its next huge page on. */
static uint8_t *take_front(unsigned i, size_t size)
{
	uint8_t *data = spares.items[i].data;
	size_t all = spares.items[i].size, next = round_up(size, HUGE_PAGE_SIZE);

	if (next > all)
		next = all;
	if (next > size)
		munmap(data + size, next - size);
	spares.items[i].data = data + next;
	spares.items[i].size = all - next;
	if (!spares.items[i].size)
		spares.items[i] = spares.items[--spares.count];
	return data;
}

/* Where none is large enough all go, so that they never add to what is in use at most. */
static uint8_t *take_spare(size_t size)
{
	uint8_t *data = NULL;
	unsigned i;

	pthread_mutex_lock(&spares.lock);
	i = size >= HUGE_PAGE_SIZE ? find_spare(size) : SPARES_MAX;
	if (i < SPARES_MAX)
		data = take_front(i, size);
	else if (size >= HUGE_PAGE_SIZE)
		drop_spares();
	pthread_mutex_unlock(&spares.lock);
	return data ? memset(data, 0, size) : NULL;
}

void pages_drop_spares(void)
{
	pthread_mutex_lock(&spares.lock);
	drop_spares();
	pthread_mutex_unlock(&spares.lock);
}

/* Charges the budget for size bytes, rounded up to pages, and asks for them. */
static struct error *get(struct pages *pages, struct budget *budget, uint64_t size, bool fresh)
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
	pages->data = fresh ? NULL : take_spare(size);
	if (!pages->data)
		pages->data = map_aligned(size);
	if (!pages->data) {
		atomic_fetch_sub(&budget->used, size);
		return error_system(errno, "%" PRIu64 " MiB for the object graph", size >> 20);
	}
	pages->size = size;
	return NULL;
}

struct error *pages_init(struct pages *pages, struct budget *budget, uint64_t size)
{
	return get(pages, budget, size, false);
}

struct error *pages_grow(struct pages *pages, struct budget *budget, uint64_t size)
{
	struct pages grown;
	struct error *err = get(&grown, budget, size, true);

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
	keep_spare(pages->data, pages->size);
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
