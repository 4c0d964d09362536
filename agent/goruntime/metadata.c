#include "agent/goruntime/metadata.h"

#include <stdbool.h>
#include <stdlib.h>

#include "agent/goruntime/arena.h"
#include "agent/goruntime/layout.h"
#include "agent/goruntime/module.h"
#include "proto/base/bytes.h"

enum {
	PERSISTENT_CHUNK_SIZE = 256 << 10, /* runtime/malloc.go, persistentChunkSize */
	PERSISTENT_BLOCK_MAX = 64 << 10,   /* runtime/malloc.go, persistentalloc: maxBlock */
	BUCKET_HASH_SIZE = 179999,         /* runtime/mprof.go, buckHashSize */
	CHAIN_MAX = 1 << 22,               /* 1 TiB of the smaller chunks */
	STATES_MAX = 1 << 16,              /* one for each M */
	OS_PAGE_SIZE = 4096,
	SLICE_SIZE = 24,
};

struct finder {
	struct memory *memory;
	const struct layout *layout;
	struct metadata_sink *sink;
};

/* The kernel gave it in whole pages. */
static struct error *add(struct finder *f, taddr start, uint64_t size)
{
	const taddr page_mask = OS_PAGE_SIZE - 1;
	taddr first = start & ~page_mask, last;

	if (!start || !size || size > UINT64_MAX - page_mask - start)
		return NULL;
	last = (start + size + page_mask) & ~page_mask;
	return f->sink->add(f->sink, first, last - first);
}

/* A pointer that cannot be read leads nowhere; only a target that is gone ends the search. */
static struct error *read_pointer(struct finder *f, taddr at, taddr *ret)
{
	struct error *err = memory_u64(f->memory, at, ret);

	if (err && error_code(err) == ERROR_FAULT) {
		error_free(err);
		*ret = 0;
		return NULL;
	}
	return err;
}

/* What a pointer variable leads to. */
static struct error *add_pointed(struct finder *f, taddr at, uint64_t size)
{
	taddr start;
	struct error *err = read_pointer(f, at, &start);

	return err ? err : add(f, start, size);
}

/* The backing store of a slice, to its capacity. */
static struct error *add_slice(struct finder *f, taddr at, uint64_t elem_size)
{
	taddr start;
	uint64_t capacity;
	struct error *err = read_pointer(f, at, &start);

	if (!err)
		err = read_pointer(f, at + 16, &capacity);
	if (err)
		return err;
	return capacity <= UINT64_MAX / elem_size ? add(f, start, capacity * elem_size) : NULL;
}

/* On the way along a chain: what tells that it has come round. */
struct walk {
	uint32_t steps;
	taddr anchor;
};

/* Whether the chain goes on at piece: a cycle meets the piece remembered at each power of two. */
static bool goes_on(struct walk *walk, taddr piece)
{
	if (!piece || piece == walk->anchor || walk->steps == CHAIN_MAX)
		return false;
	if ((walk->steps & (walk->steps - 1)) == 0)
		walk->anchor = piece;
	walk->steps++;
	return true;
}

/* Pieces of one size, each with a pointer to the next at an offset. */
static struct error *add_chain(struct finder *f, taddr start, uint64_t size, uint64_t next_offset)
{
	struct walk walk = { 0 };

	while (goes_on(&walk, start)) {
		struct error *err = add(f, start, size);

		if (!err)
			err = read_pointer(f, start + next_offset, &start);
		if (err)
			return err;
	}
	return NULL;
}

/* runtime/mheap.go, mheap.arenas: each arena's heapArena, and the tables that lead to them. */
static struct error *find_arenas(struct finder *f, const struct arena_table *arenas)
{
	const struct layout *l = f->layout;
	taddr tables = l->global_mheap.addr + l->mheap_arenas.offset;
	uint64_t table_size = UINT64_C(8) << l->const_arena_l2_bits.value;
	struct error *err = NULL;

	for (uint32_t i = 0; !err && i < l->mheap_arenas.size / 8; i++)
		err = add_pointed(f, tables + 8 * i, table_size);
	for (uint32_t i = 0; !err && i < arena_table_count(arenas); i++)
		err = add(f, arena_table_at(arenas, i)->metadata, l->heap_arena.size);
	return err;
}

/* runtime/mpagealloc.go, pageAlloc; mgcscavenge.go, scavengeIndex. */
static struct error *find_page_tables(struct finder *f)
{
	const struct layout *l = f->layout;
	taddr mheap = l->global_mheap.addr;
	uint64_t chunks_size = (uint64_t)l->palloc_data.size
			       << l->const_palloc_chunks_l2_bits.value;
	struct error *err = NULL;

	for (uint32_t i = 0; !err && i < l->mheap_page_chunks.size / 8; i++)
		err = add_pointed(f, mheap + l->mheap_page_chunks.offset + 8 * i, chunks_size);
	for (uint32_t i = 0; !err && i < l->mheap_page_summary.size / SLICE_SIZE; i++)
		err = add_slice(f, mheap + l->mheap_page_summary.offset + SLICE_SIZE * i, 8);
	if (!err && layout_has(l, mheap_scavenge_index))
		err = add_slice(f, mheap + l->mheap_scavenge_index.offset,
				layout_has(l, scavenge_chunk) ? l->scavenge_chunk.size : 1);
	return err;
}

/*
 * runtime/mheap.go, gcBitsArenas {lock, free, next, current, previous}: the type has no name, the
 * four lists are its last words.
 */
static struct error *find_slot_bits(struct finder *f)
{
	const struct layout *l = f->layout;
	taddr lists = l->global_gc_bits_arenas.addr + l->global_gc_bits_arenas.size - 4 * 8;
	struct error *err = NULL;

	if (l->global_gc_bits_arenas.size < 4 * 8 || !layout_has(l, gc_bits_arena))
		return NULL;
	for (int i = 0; !err && i < 4; i++) {
		taddr first;

		err = read_pointer(f, lists + 8 * i, &first);
		if (!err)
			err = add_chain(f, first, l->gc_bits_arena.size,
					l->gc_bits_arena_next.offset);
	}
	return err;
}

/* Pointer masks of modules, if too large for a persistent chunk; runtime/mbitmap.go. */
static struct error *find_masks(struct finder *f, const struct module_table *modules)
{
	const uint64_t bytes_a_bit = 64;
	struct error *err = NULL;

	for (uint32_t i = 0; !err && i < module_table_count(modules); i++) {
		const struct module *module = module_table_at(modules, i);
		uint64_t data = (module->edata - module->data) / bytes_a_bit;
		uint64_t bss = (module->ebss - module->bss) / bytes_a_bit;

		if (data >= PERSISTENT_BLOCK_MAX)
			err = add_pointed(
			    f, module->moduledata + f->layout->moduledata_data_mask.offset, data);
		if (!err && bss >= PERSISTENT_BLOCK_MAX)
			err = add_pointed(
			    f, module->moduledata + f->layout->moduledata_bss_mask.offset, bss);
	}
	return err;
}

/* runtime/mgcmark_greenteagc.go, spanSPMC, since go1.26: queues of spans to scan, freed late. */
static struct error *find_span_rings(struct finder *f)
{
	const struct layout *l = f->layout;
	taddr ring = 0;
	struct walk walk = { 0 };
	struct error *err = NULL;

	if (layout_has(l, work_span_rings) && layout_has(l, span_ring))
		err = read_pointer(f, l->global_work.addr + l->work_span_rings.offset, &ring);
	while (!err && goes_on(&walk, ring)) {
		taddr start;
		uint64_t capacity;

		err = read_pointer(f, ring + l->span_ring_ring.offset, &start);
		if (!err)
			err = read_pointer(f, ring + l->span_ring_capacity.offset, &capacity);
		if (!err)
			err = add(f, start, (uint32_t)capacity * sizeof(taddr));
		if (!err)
			err = read_pointer(f, ring + l->span_ring_next.offset, &ring);
	}
	return err;
}

/* runtime/vgetrandom_linux.go, since go1.24: blocks for the vDSO, several in a page. */
static struct error *find_random_states(struct finder *f)
{
	const struct layout *l = f->layout;
	uint64_t *addrs scoped(freep) = NULL;
	taddr states, count = 0;
	struct error *err;

	if (!layout_has(l, global_vgetrandom_alloc))
		return NULL;
	err = read_pointer(f, l->global_vgetrandom_alloc.addr, &states);
	if (!err)
		err = read_pointer(f, l->global_vgetrandom_alloc.addr + 8, &count);
	if (err || !states)
		return err;
	err = memory_read_words(f->memory, states, count, STATES_MAX, &addrs);
	if (err && (error_code(err) == ERROR_FAULT || error_code(err) == ERROR_LIMIT)) {
		error_free(err);
		return NULL;
	}
	for (uint64_t i = 0; !err && i < count; i++)
		err = add(f, addrs[i], 1);
	return err;
}

static struct error *find_tables(struct finder *f)
{
	const struct layout *l = f->layout;
	taddr first = 0;
	struct error *err =
	    add_slice(f, l->global_mheap.addr + l->mheap_allspans.offset, sizeof(taddr));

	if (!err && layout_has(l, global_persistent_chunks))
		err = read_pointer(f, l->global_persistent_chunks.addr, &first);
	if (!err)
		err = add_chain(f, first, PERSISTENT_CHUNK_SIZE, 0);
	if (!err && layout_has(l, global_bucket_hash))
		err = add_pointed(f, l->global_bucket_hash.addr, BUCKET_HASH_SIZE * 8);
	return err;
}

struct error *metadata_find(struct memory *memory, const struct layout *layout,
			    const struct arena_table *arenas, const struct module_table *modules,
			    struct metadata_sink *sink)
{
	struct finder f = { memory, layout, sink };
	struct error *err = find_arenas(&f, arenas);

	if (!err)
		err = find_page_tables(&f);
	if (!err)
		err = find_tables(&f);
	if (!err)
		err = find_slot_bits(&f);
	if (!err)
		err = find_masks(&f, modules);
	if (!err)
		err = find_span_rings(&f);
	if (!err)
		err = find_random_states(&f);
	return err ? error_context(err, "runtime metadata") : NULL;
}
