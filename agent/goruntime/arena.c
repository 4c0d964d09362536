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

static struct error *add_arena(struct memory *memory, const struct layout *layout,
			       struct arena_table *table, uint64_t index)
{
	struct arena arena;
	taddr entry;
	struct error *err = entry_addr(memory, layout, table, index, &entry);

	if (err)
		return err;
	err = memory_u64(memory, entry, &arena.metadata);
	if (err)
		return err;
	if (!arena.metadata)
		return error_new(ERROR_CORRUPT_TARGET, "arena %" PRIu64 " has no metadata", index);
	arena.start = index * table->arena_bytes + table->base;
	table->arenas[table->count++] = arena;
	return NULL;
}

/* Adds the arenas of one list, a slice of indices, to the table. */
static struct error *add_list(struct memory *memory, const struct layout *layout, taddr slice,
			      struct arena_table *table)
{
	uint64_t data, length;
	struct arena *arenas;
	struct error *err = memory_u64(memory, slice, &data);

	if (!err)
		err = memory_u64(memory, slice + SLICE_LEN, &length);
	if (err)
		return err;
	if (length > ARENAS_MAX - table->count)
		return error_new(ERROR_LIMIT, "%" PRIu64 " arenas", length);
	arenas = realloc(table->arenas, (table->count + length + 1) * sizeof(*arenas));
	if (!arenas)
		return &error_nomem;
	table->arenas = arenas;
	for (uint64_t i = 0; i < length; i++) {
		uint64_t index;

		err = memory_u64(memory, data + 8 * i, &index);
		if (!err)
			err = add_arena(memory, layout, table, index);
		if (err)
			return err;
	}
	return NULL;
}

static int compare_arenas(const void *a, const void *b)
{
	const struct arena *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Before go1.25 allArenas has the arenas of user arenas too, later another list has them. */
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
