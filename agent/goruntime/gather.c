#include "agent/goruntime/gather.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
	RUN_MAX = 1 << 20, /* bytes of one read */
	GAP_MAX = 4096,    /* reading this much for nothing is cheaper than a call */
	DIGIT_BITS = 11,
	DIGITS = 1 << DIGIT_BITS,
};

/* Structures tend to be listed in the order in which they were made, which is address order. */
static bool are_sorted(const struct gather_item *items, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (items[i].addr < items[i - 1].addr)
			return false;
	return true;
}

/*
 * Sorts by the digits of (address - lowest address) from the least on, taking as many as the
 * addresses differ in: what is gathered lies close together, so that these are few.
 */
static void sort_by_digits(struct gather_item *items, size_t count, struct gather_item *other)
{
	taddr low = UINT64_MAX, high = 0;
	struct gather_item *from = items, *to = other;

	for (size_t i = 0; i < count; i++) {
		low = items[i].addr < low ? items[i].addr : low;
		high = items[i].addr > high ? items[i].addr : high;
	}
	for (unsigned shift = 0; shift < 64 && (high - low) >> shift; shift += DIGIT_BITS) {
		size_t places[DIGITS + 1] = { 0 };
		struct gather_item *swap = from;

		for (size_t i = 0; i < count; i++)
			places[((from[i].addr - low) >> shift) % DIGITS + 1]++;
		for (unsigned i = 1; i < DIGITS; i++)
			places[i] += places[i - 1];
		for (size_t i = 0; i < count; i++)
			to[places[((from[i].addr - low) >> shift) % DIGITS]++] = from[i];
		from = to;
		to = swap;
	}
	if (from != items)
		memcpy(items, from, count * sizeof(*items));
}

static struct error *sort(struct gather_item *items, size_t count)
{
	struct gather_item *other;

	if (are_sorted(items, count))
		return NULL;
	other = malloc(count * sizeof(*other));
	if (!other)
		return &error_nomem;
	sort_by_digits(items, count, other);
	free(other);
	return NULL;
}

/* The end of the run that begins at items[first], and the bytes it covers. */
static size_t run_end(const struct gather_item *items, size_t first, size_t count,
		      uint64_t *ret_size)
{
	taddr start = items[first].addr;
	uint64_t size = items[first].size;
	size_t i;

	for (i = first + 1; i < count; i++) {
		uint64_t skip = items[i].addr - start;
		uint64_t end = skip + items[i].size;

		if (skip > size + GAP_MAX || end > RUN_MAX)
			break;
		if (end > size)
			size = end;
	}
	*ret_size = size;
	return i;
}

/* For a run with a hole in it: what can be read of it is found item by item. */
static struct error *read_singly(struct memory *memory, const struct gather_item *items,
				 size_t count, uint8_t *buffer, gather_visit *visit, void *arg)
{
	for (size_t i = 0; i < count; i++) {
		struct error *err = memory_read_bulk(memory, items[i].addr, buffer, items[i].size);

		if (err && error_code(err) != ERROR_FAULT)
			return err;
		visit(arg, &items[i], err ? NULL : buffer);
		error_free(err);
	}
	return NULL;
}

static struct error *read_run(struct memory *memory, const struct gather_item *items, size_t count,
			      uint64_t size, uint8_t *buffer, gather_visit *visit, void *arg)
{
	taddr start = items[0].addr;
	struct error *err = memory_read_bulk(memory, start, buffer, size);

	if (err) {
		if (error_code(err) != ERROR_FAULT)
			return err;
		error_free(err);
		return read_singly(memory, items, count, buffer, visit, arg);
	}
	for (size_t i = 0; i < count; i++)
		visit(arg, &items[i], buffer + (items[i].addr - start));
	return NULL;
}

struct error *gather_read(struct memory *memory, struct gather_item *items, size_t count,
			  gather_visit *visit, void *arg)
{
	uint8_t *buffer scoped(freep) = NULL;
	uint64_t capacity = RUN_MAX;
	struct error *err;

	for (size_t i = 0; i < count; i++)
		if (items[i].size > capacity)
			capacity = items[i].size;
	buffer = malloc(capacity);
	if (!buffer)
		return &error_nomem;
	err = sort(items, count);
	if (err)
		return err;
	for (size_t i = 0; i < count;) {
		uint64_t size;
		size_t end = run_end(items, i, count, &size);

		err = read_run(memory, items + i, end - i, size, buffer, visit, arg);
		if (err)
			return err;
		i = end;
	}
	return NULL;
}
