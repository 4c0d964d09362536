#include "agent/goruntime/gather.h"

#include <stdbool.h>
#include <stdlib.h>

enum {
	RUN_MAX = 1 << 20, /* bytes of one read */
	GAP_MAX = 4096,    /* reading this much for nothing is cheaper than a call */
};

static int compare_items(const void *a, const void *b)
{
	const struct gather_item *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Structures tend to be listed in the order in which they were made, which is address order. */
static bool are_sorted(const struct gather_item *items, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (items[i].addr < items[i - 1].addr)
			return false;
	return true;
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

	for (size_t i = 0; i < count; i++)
		if (items[i].size > capacity)
			capacity = items[i].size;
	buffer = malloc(capacity);
	if (!buffer)
		return &error_nomem;
	if (!are_sorted(items, count))
		qsort(items, count, sizeof(*items), compare_items);
	for (size_t i = 0; i < count;) {
		uint64_t size;
		size_t end = run_end(items, i, count, &size);
		struct error *err = read_run(memory, items + i, end - i, size, buffer, visit, arg);

		if (err)
			return err;
		i = end;
	}
	return NULL;
}
