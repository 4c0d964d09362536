/*
 * mheap_.arenas is a sparse table of two levels: an array, inside of mheap, of pointers to arrays
 * of pointers to heapArena. On 64-bit Linux the first level has one entry, and the second four
 * million, which is why the lists of arenas are followed rather than the table. An arena's index
 * in it is (address - base) / size, the base being what makes amd64's addresses, which are
 * sign-extended, consecutive. runtime/malloc.go, arenaIndex, since go1.11.
 */
#include "agent/goruntime/arena.h"

#include <inttypes.h>
#include <stdlib.h>

#include "agent/goruntime/layout.h"
#include "agent/goruntime/span.h"

enum {
	ARENAS_MAX = 1 << 22, /* of 48-bit addresses */
	SLICE_LEN = 8,        /* a slice is {pointer, length, capacity} */
};

struct arena_table {
	uint64_t arena_bytes, base;
	uint64_t l1_count, l2_count;
	uint32_t count, capacity;
	struct arena *arenas;
};

/* Where in mheap_.arenas the pointer to the heapArena of an index lies. */
static struct error *entry_addr(struct memory *memory, const struct layout *layout,
				const struct arena_table *table, uint64_t index, taddr *ret)
{
	uint64_t l1 = index / table->l2_count, l2 = index % table->l2_count;
	taddr row;
	struct error *err;

	if (l1 >= table->l1_count)
		return error_new(ERROR_CORRUPT_TARGET, "arena index %" PRIu64 " is out of range",
				 index);
	err = memory_u64(memory, layout->global_mheap.addr + layout->mheap_arenas.offset + 8 * l1,
			 &row);
	if (err)
		return err;
	*ret = row + 8 * l2;
	return NULL;
}

/* Looks an arena up; its metadata is 0 if there is none. */
static struct error *find_arena(struct memory *memory, const struct layout *layout,
				const struct arena_table *table, uint64_t index, struct arena *ret)
{
	taddr entry;
	struct error *err = entry_addr(memory, layout, table, index, &entry);

	if (err)
		return err;
	ret->start = index * table->arena_bytes + table->base;
	return memory_u64(memory, entry, &ret->metadata);
}

static struct error *make_room(struct arena_table *table, uint64_t count)
{
	struct arena *arenas;

	if (count > ARENAS_MAX - table->count)
		return error_new(ERROR_LIMIT, "%" PRIu64 " arenas", count);
	arenas = realloc(table->arenas, (table->count + count + 1) * sizeof(*arenas));
	if (!arenas)
		return &error_nomem;
	table->arenas = arenas;
	return NULL;
}

/*
 * Adds the arenas of one list, a slice of indices, to the table. The last may be caught while it is
 * being added: its index is written after the list has grown, its metadata entered after that
 * (runtime/malloc.go, sysAlloc). Nothing is in it yet.
 */
static struct error *add_list(struct memory *memory, const struct layout *layout, taddr slice,
			      struct arena_table *table)
{
	uint64_t data, length;
	struct error *err = memory_u64(memory, slice, &data);

	if (!err)
		err = memory_u64(memory, slice + SLICE_LEN, &length);
	if (!err)
		err = make_room(table, length);
	if (err)
		return err;
	for (uint64_t i = 0; i < length; i++) {
		struct arena *arena = &table->arenas[table->count];
		uint64_t index;

		err = memory_u64(memory, data + 8 * i, &index);
		if (!err)
			err = find_arena(memory, layout, table, index, arena);
		if (!err && !arena->metadata && i + 1 < length)
			err = error_new(ERROR_CORRUPT_TARGET, "arena %" PRIu64 " has no metadata",
					index);
		if (err)
			return err;
		table->count += arena->metadata != 0;
	}
	return NULL;
}

static int compare_arenas(const void *a, const void *b)
{
	const struct arena *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void sort_and_drop_repeated(struct arena_table *table)
{
	uint32_t kept = 0;

	qsort(table->arenas, table->count, sizeof(*table->arenas), compare_arenas);
	for (uint32_t i = 0; i < table->count; i++)
		if (!kept || table->arenas[i].start != table->arenas[kept - 1].start)
			table->arenas[kept++] = table->arenas[i];
	table->count = kept;
}

static struct error *take_geometry(const struct layout *layout, struct arena_table *table)
{
	uint64_t bytes = (uint64_t)layout->const_heap_arena_bytes.value;
	uint64_t l2_bits = (uint64_t)layout->const_arena_l2_bits.value;
	uint64_t pages = bytes / GO_PAGE_SIZE;

	if (!pages || bytes & (bytes - 1) || l2_bits > 32 ||
	    layout->heap_arena_spans.size != 8 * pages || layout->mheap_arenas.size < 8)
		return error_new(ERROR_UNSUPPORTED, "arenas of %" PRIu64 " bytes in this layout",
				 bytes);
	table->arena_bytes = bytes;
	table->base = (uint64_t)layout->const_arena_base.value;
	table->l1_count = layout->mheap_arenas.size / 8;
	table->l2_count = UINT64_C(1) << l2_bits;
	return NULL;
}

struct error *arena_table_read(struct memory *memory, const struct layout *layout,
			       struct arena_table **ret)
{
	struct arena_table *table scoped(arena_table_freep) = calloc(1, sizeof(*table));
	taddr mheap = layout->global_mheap.addr;
	struct error *err;

	if (!table)
		return &error_nomem;
	err = take_geometry(layout, table);
	if (!err)
		err = add_list(memory, layout, mheap + layout->mheap_arena_list.offset, table);
	if (!err && layout_has(layout, mheap_user_arena_list))
		err = add_list(memory, layout, mheap + layout->mheap_user_arena_list.offset, table);
	if (err)
		return error_context(err, "arenas");
	sort_and_drop_repeated(table);
	*ret = take(table);
	return NULL;
}

struct error *arena_table_add(struct arena_table *table, struct memory *memory,
			      const struct layout *layout, const taddr *addrs, size_t count)
{
	struct error *err = make_room(table, count);

	for (size_t i = 0; i < count && !err; i++) {
		uint64_t index = (addrs[i] - table->base) / table->arena_bytes;
		struct arena *arena = &table->arenas[table->count];

		if (index / table->l2_count >= table->l1_count)
			continue;
		err = find_arena(memory, layout, table, index, arena);
		table->count += !err && arena->metadata;
	}
	sort_and_drop_repeated(table);
	return err;
}

void arena_table_free(struct arena_table *table)
{
	if (!table)
		return;
	free(table->arenas);
	free(table);
}

uint32_t arena_table_count(const struct arena_table *table)
{
	return table->count;
}

const struct arena *arena_table_at(const struct arena_table *table, uint32_t index)
{
	return &table->arenas[index];
}

const struct arena *arena_table_find(const struct arena_table *table, taddr addr)
{
	uint32_t low = 0, high = table->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (table->arenas[middle].start <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || addr - table->arenas[low - 1].start >= table->arena_bytes)
		return NULL;
	return &table->arenas[low - 1];
}

uint64_t arena_table_arena_bytes(const struct arena_table *table)
{
	return table->arena_bytes;
}
