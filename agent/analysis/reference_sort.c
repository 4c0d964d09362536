/*
 * Items by object, from the least digit to the greatest. Each pass counts digits and moves items,
 * slice by slice, so that threads can share the slices: where a slice's items of a digit go is
 * known from the counts of all slices.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "agent/analysis/reference_private.h"
#include "agent/analysis/workers.h"

enum {
	RADIX_BITS = 11,
	RADIX = 1 << RADIX_BITS,
	PASSES = 2,
	SLICES_MAX = 8,
	SLICE_ITEMS_MIN = 1 << 16,
};

struct pass {
	const struct walk_item *from;
	struct walk_item *to;
	uint64_t count;
	unsigned shift;
	unsigned slices;
	bool moves; /* else it counts */
	_Atomic unsigned next;
	uint64_t starts[SLICES_MAX][RADIX]; /* how many, then where the next one goes */
};

static unsigned digit_of(const struct pass *pass, const struct walk_item *item)
{
	return item->object >> pass->shift & (RADIX - 1);
}

static void work_slice(struct pass *pass, unsigned slice)
{
	uint64_t *starts = pass->starts[slice];
	uint64_t end = pass->count * (slice + 1) / pass->slices;

	for (uint64_t i = pass->count * slice / pass->slices; i < end; i++) {
		uint64_t *start = &starts[digit_of(pass, &pass->from[i])];

		if (pass->moves)
			pass->to[*start] = pass->from[i];
		++*start;
	}
}

static struct error *work_slices(void *arg, unsigned thread)
{
	struct pass *pass = arg;
	unsigned slice;

	(void)thread;
	while ((slice = atomic_fetch_add(&pass->next, 1)) < pass->slices)
		work_slice(pass, slice);
	return NULL;
}

static struct error *run(struct pass *pass, unsigned threads, bool moves)
{
	pass->moves = moves;
	atomic_store(&pass->next, 0);
	return pass->slices > 1 ? workers_run(threads, work_slices, pass) : work_slices(pass, 0);
}

/* From counts to starts: of one digit, slice after slice. */
static void find_starts(struct pass *pass)
{
	uint64_t sum = 0;

	for (unsigned digit = 0; digit < RADIX; digit++)
		for (unsigned slice = 0; slice < pass->slices; slice++) {
			uint64_t count = pass->starts[slice][digit];

			pass->starts[slice][digit] = sum;
			sum += count;
		}
}

static struct error *run_pass(struct pass *pass, unsigned threads)
{
	struct error *err;

	for (unsigned slice = 0; slice < pass->slices; slice++)
		for (unsigned digit = 0; digit < RADIX; digit++)
			pass->starts[slice][digit] = 0;
	err = run(pass, threads, false);
	if (err)
		return err;
	find_starts(pass);
	return run(pass, threads, true);
}

/* Where there are very many objects, neighbours need no order among themselves. */
static unsigned first_shift(const struct reference_walk *walk)
{
	unsigned shift = 0;

	while (walk->lookup->object_end >> shift >> (PASSES * RADIX_BITS))
		shift++;
	return shift;
}

static struct error *sort_many(const struct reference_walk *walk, struct reference_list *list,
			       struct reference_list *other)
{
	struct pass *pass scoped(freep) = malloc(sizeof(*pass));
	uint64_t slices = list->count / SLICE_ITEMS_MIN;
	struct error *err = pass ? reference_list_reserve(other, list->count) : &error_nomem;

	for (unsigned i = 0; i < PASSES && !err; i++) {
		struct reference_list swap = *list;

		pass->from = list->pages.data;
		pass->to = other->pages.data;
		pass->count = list->count;
		pass->shift = first_shift(walk) + i * RADIX_BITS;
		pass->slices = slices < 1 ? 1 : slices < SLICES_MAX ? (unsigned)slices : SLICES_MAX;
		err = run_pass(pass, walk->thread_count);
		other->count = list->count;
		*list = *other;
		*other = swap;
		other->count = 0;
	}
	return err;
}

static bool is_sorted(const struct walk_item *items, uint64_t count)
{
	for (uint64_t i = 1; i < count; i++)
		if (items[i].object < items[i - 1].object)
			return false;
	return true;
}

static int by_object(const void *left, const void *right)
{
	const struct walk_item *a = left, *b = right;

	if (a->object != b->object)
		return a->object < b->object ? -1 : 1;
	return a->extent < b->extent ? -1 : a->extent > b->extent;
}

struct error *walk_sort(const struct reference_walk *walk, struct reference_list *list,
			struct reference_list *other)
{
	if (is_sorted(list->pages.data, list->count))
		return NULL;
	if (list->count >= RADIX)
		return sort_many(walk, list, other);
	qsort(list->pages.data, list->count, sizeof(struct walk_item), by_object);
	return NULL;
}
