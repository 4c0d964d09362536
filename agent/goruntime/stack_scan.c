#include "agent/goruntime/stack_scan.h"

#include <stdlib.h>

#include "agent/goruntime/stack_object.h"
#include "agent/goruntime/stack_window.h"
#include "proto/base/bytes.h"

enum { OBJECT_READ_AHEAD = 4096 };

void stack_scan_begin(struct stack_scan_state *scan, struct stack_window *window,
		      struct root_sink *sink, uint32_t goroutine, taddr lo, taddr hi)
{
	scan->window = window;
	scan->sink = sink;
	scan->goroutine = goroutine;
	scan->lo = lo;
	scan->hi = hi;
	scan->whole = scan->failed = false;
	scan->object_count = 0;
	scan->exact.count = 0;
	scan->conservative.count = 0;
}

void stack_scan_fini(struct stack_scan_state *scan)
{
	free(scan->objects);
	free(scan->exact.words);
	free(scan->conservative.words);
	*scan = (struct stack_scan_state){ 0 };
}

/* Room for one more element in a growing array. */
static struct error *reserve(void **array, size_t count, size_t *capacity, size_t limit,
			     size_t elem_size)
{
	size_t wanted = *capacity ? 2 * *capacity : 64;
	void *bigger;

	if (count < *capacity)
		return NULL;
	if (count >= limit)
		return error_new(ERROR_LIMIT, "more than %zu pointers into one stack", limit);
	bigger = reallocarray(*array, wanted, elem_size);
	if (!bigger)
		return &error_nomem;
	*array = bigger;
	*capacity = wanted;
	return NULL;
}

static struct error *keep_inner(struct stack_scan_state *scan, enum root_kind kind, taddr value)
{
	struct inner_words *words =
	    root_kind_is_conservative(kind) ? &scan->conservative : &scan->exact;
	struct error *err = reserve((void **)&words->words, words->count, &words->capacity,
				    SCAN_WORDS_MAX, sizeof(*words->words));

	if (err)
		return err;
	words->words[words->count++] = value;
	return NULL;
}

struct error *stack_scan_word(struct stack_scan_state *scan, enum root_kind kind, taddr slot,
			      uint64_t value)
{
	const struct root root = {
		.kind = kind, .goroutine = scan->goroutine, .slot = slot, .value = value
	};
	struct error *err;

	if (!value)
		return NULL;
	if (value >= scan->lo && value < scan->hi)
		return scan->whole ? NULL : keep_inner(scan, kind, value);
	err = scan->sink->add(scan->sink, &root);
	if (err)
		scan->failed = true;
	return err;
}

struct error *stack_scan_bytes(struct stack_scan_state *scan, enum root_kind kind, taddr addr,
			       const uint8_t *bytes, uint64_t size)
{
	for (uint64_t i = 0; i + 8 <= size; i += 8) {
		struct error *err =
		    stack_scan_word(scan, kind, addr ? addr + i : 0, load_u64le(bytes + i));

		if (err)
			return err;
	}
	return NULL;
}

struct error *stack_scan_range(struct stack_scan_state *scan, enum root_kind kind, taddr from,
			       taddr to)
{
	from += -from & 7;
	while (from < to && to - from >= 8) {
		uint64_t size = to - from < STACK_VIEW_MAX ? (to - from) & ~(uint64_t)7
							   : (uint64_t)STACK_VIEW_MAX;
		const uint8_t *bytes;
		struct error *err = stack_window_view(scan->window, from, size, &bytes);

		if (!err)
			err = stack_scan_bytes(scan, kind, from, bytes, size);
		if (err)
			return err;
		from += size;
	}
	return NULL;
}

static struct error *masked_view(struct stack_scan_state *scan, enum root_kind kind, taddr addr,
				 const uint8_t *mask, uint32_t word_count)
{
	const uint8_t *bytes;
	struct error *err = stack_window_view(scan->window, addr, 8 * (size_t)word_count, &bytes);

	for (uint32_t i = 0; !err && i < word_count; i++) {
		if (mask[i / 8] >> i % 8 & 1)
			err = stack_scan_word(scan, kind, addr + 8 * (uint64_t)i,
					      load_u64le(bytes + 8 * (size_t)i));
	}
	return err;
}

/* Words at the end without pointers need not even exist: maps of assembly are generous. */
static uint32_t trim(const uint8_t *mask, uint32_t word_count)
{
	while (word_count && !(mask[(word_count - 1) / 8] >> (word_count - 1) % 8 & 1))
		word_count--;
	return word_count;
}

struct error *stack_scan_masked(struct stack_scan_state *scan, enum root_kind kind, taddr addr,
				const uint8_t *mask, uint32_t word_count)
{
	word_count = trim(mask, word_count);
	for (uint32_t done = 0; done < word_count;) {
		uint32_t part =
		    word_count - done < STACK_VIEW_MAX / 8 ? word_count - done : STACK_VIEW_MAX / 8;
		struct error *err =
		    masked_view(scan, kind, addr + 8 * (uint64_t)done, mask + done / 8, part);

		if (err)
			return err;
		done += part;
	}
	return NULL;
}

struct error *stack_scan_add_object(struct stack_scan_state *scan, taddr addr,
				    const struct stack_object *object)
{
	struct error *err =
	    reserve((void **)&scan->objects, scan->object_count, &scan->object_capacity,
		    SCAN_OBJECTS_MAX, sizeof(*scan->objects));

	if (err)
		return err;
	scan->objects[scan->object_count++] = (struct placed_object){ addr, object, object->size };
	return NULL;
}

static int by_address(const void *a, const void *b)
{
	const struct placed_object *left = a, *right = b;

	return (left->addr > right->addr) - (left->addr < right->addr);
}

/* Frames are met in the order of their addresses, and objects in a frame too, mostly. */
static void sort_objects(struct stack_scan_state *scan)
{
	for (size_t i = 1; i < scan->object_count; i++) {
		if (scan->objects[i - 1].addr > scan->objects[i].addr) {
			qsort(scan->objects, scan->object_count, sizeof(*scan->objects),
			      by_address);
			return;
		}
	}
}

static struct placed_object *find_object(struct stack_scan_state *scan, taddr addr)
{
	size_t low = 0, high = scan->object_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (scan->objects[middle].addr <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || addr - scan->objects[low - 1].addr >= scan->objects[low - 1].size)
		return NULL;
	return &scan->objects[low - 1];
}

/*
 * Exact pointers go first, so that an object that has one is scanned exactly. A conservative one
 * may revive an object that was left over: its words are only likely, too.
 */
static bool next_inner(struct stack_scan_state *scan, taddr *ret, enum root_kind *ret_kind)
{
	bool exact = scan->exact.count != 0;
	struct inner_words *words = exact ? &scan->exact : &scan->conservative;

	if (!words->count)
		return false;
	*ret = words->words[--words->count];
	*ret_kind = exact ? ROOT_STACK : ROOT_STACK_CONSERVATIVE;
	return true;
}

struct error *stack_scan_objects(struct stack_scan_state *scan)
{
	enum root_kind kind;
	taddr word;

	sort_objects(scan);
	stack_window_narrow(scan->window, OBJECT_READ_AHEAD);
	while (next_inner(scan, &word, &kind)) {
		struct placed_object *place = find_object(scan, word);
		const struct stack_object *object;
		struct error *err;

		if (!place || !place->object)
			continue;
		object = take(place->object);
		err = stack_scan_masked(scan, kind, place->addr, object->mask, object->word_count);
		if (err)
			return err;
	}
	return NULL;
}
