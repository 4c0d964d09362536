/*
 * Address space is managed in chunks of 512 pages, each with a bit for every page that is
 * allocated and one for every page that was scavenged, which means something only while the page
 * is free. The chunks' bitmaps are found through a table of two levels, as arenas are; the ranges
 * in use say which exist. A P takes 64 pages at a time out of these bitmaps (they are allocated
 * there) and keeps its own bits of which of them are still free.
 *
 * A stop may fall into pageAlloc.grow (mpagealloc.go), which lists a range before it makes its
 * bitmaps, or into addrRanges.add (mranges.go), which may have written half of an entry, or none of
 * one that it has counted. What lies in no arena is not the heap's, whatever the ranges say: arenas
 * are made before their pages are handed over (mheap.go, grow).
 */
#include "agent/goruntime/page_alloc.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/goruntime/arena.h"
#include "agent/goruntime/bitmap.h"
#include "agent/goruntime/layout.h"
#include "agent/goruntime/processor.h"
#include "agent/goruntime/span.h"
#include "proto/base/bytes.h"

enum {
	RANGES_MAX = 1 << 20,
	RUNS_MAX = 1 << 28,
	RANGE_SIZE = 16,      /* of runtime.addrRange: {base, limit} */
	CHUNK_WORDS_MAX = 64, /* of a chunk's bitmap; there are 8 */
	CHUNK_DATA_MAX = 1024,
};

/* More than any machine has; keeps a corrupt range from being walked for hours. */
static const uint64_t managed_pages_max = UINT64_C(1) << 44 >> 13;

/* The pages that a P has taken out of the bitmaps. */
struct page_cache {
	taddr base; /* of 64 pages */
	uint64_t free, scavenged;
};

struct page_alloc {
	struct free_run *runs;
	uint64_t count, capacity;
	struct page_totals totals;
};

struct walk {
	struct memory *memory;
	const struct layout *layout;
	const struct span_table *spans;
	struct page_alloc *pages;
	struct page_cache *caches; /* in address order */
	uint32_t cache_count, next_cache;
	uint64_t chunk_words, chunk_bytes;
	/* The chunk at hand. */
	uint64_t allocated[CHUNK_WORDS_MAX], scavenged[CHUNK_WORDS_MAX];
};

static struct error *read_cache(struct memory *memory, const struct layout *l, taddr processor,
				struct page_cache *ret)
{
	taddr cache = processor + l->p_page_cache.offset;
	struct error *err = layout_read_field(memory, cache, l->page_cache_base, &ret->base);

	if (!err)
		err = layout_read_field(memory, cache, l->page_cache_free, &ret->free);
	if (!err)
		err = layout_read_field(memory, cache, l->page_cache_scavenged, &ret->scavenged);
	return err;
}

static int compare_caches(const void *a, const void *b)
{
	const struct page_cache *x = a, *y = b;

	return x->base < y->base ? -1 : x->base > y->base;
}

static struct error *read_caches(struct walk *w)
{
	taddr *processors scoped(freep) = NULL;
	uint32_t count;
	struct error *err = processor_list(w->memory, w->layout, &processors, &count);

	if (err)
		return err;
	w->caches = calloc((size_t)count + 1, sizeof(*w->caches));
	if (!w->caches)
		return &error_nomem;
	for (uint32_t i = 0; i < count; i++) {
		struct page_cache *cache = &w->caches[w->cache_count];

		err = read_cache(w->memory, w->layout, processors[i], cache);
		if (err)
			return error_context(err, "page cache of P %" PRIu32, i);
		if (cache->free)
			w->cache_count++;
	}
	qsort(w->caches, w->cache_count, sizeof(*w->caches), compare_caches);
	return NULL;
}

/* Where the pallocData of the chunk at addr lies; 0 if it has none yet. */
static struct error *chunk_data(struct walk *w, taddr addr, taddr *ret)
{
	const struct layout *l = w->layout;
	uint64_t index = (addr - (uint64_t)l->const_arena_base.value) / w->chunk_bytes;
	uint64_t l2_count = UINT64_C(1) << l->const_palloc_chunks_l2_bits.value;
	taddr rows = l->global_mheap.addr + l->mheap_page_chunks.offset, row;
	struct error *err;

	if (index / l2_count >= l->mheap_page_chunks.size / 8)
		return error_new(ERROR_CORRUPT_TARGET, "no room for chunk 0x%" PRIx64, addr);
	err = memory_u64(w->memory, rows + index / l2_count * 8, &row);
	if (!err)
		*ret = row ? row + index % l2_count * l->palloc_data.size : 0;
	return err;
}

/* A chunk without bitmaps is about to get such that say: all free, and never used. */
static struct error *read_chunk(struct walk *w, taddr addr)
{
	const struct layout *l = w->layout;
	uint8_t raw[CHUNK_DATA_MAX];
	taddr data;
	struct error *err = chunk_data(w, addr, &data);

	if (!err && data)
		err = memory_read(w->memory, data, raw, l->palloc_data.size);
	if (err)
		return err;
	for (uint64_t i = 0; i < w->chunk_words; i++) {
		size_t at = 8 * i;

		w->allocated[i] = data ? load_u64le(raw + l->palloc_data_allocated.offset + at) : 0;
		w->scavenged[i] =
		    data ? load_u64le(raw + l->palloc_data_scavenged.offset + at) : UINT64_MAX;
	}
	return NULL;
}

/* Makes free what Ps have cached of the chunk at addr. */
static void add_cached(struct walk *w, taddr addr)
{
	while (w->next_cache < w->cache_count) {
		const struct page_cache *cache = &w->caches[w->next_cache];
		uint64_t skip = cache->base - addr, word = skip / GO_PAGE_SIZE / BITMAP_WORD_BITS;

		if (cache->base >= addr && skip >= w->chunk_bytes)
			return;
		w->next_cache++;
		if (cache->base < addr || skip % (GO_PAGE_SIZE * BITMAP_WORD_BITS))
			continue;
		w->allocated[word] &= ~cache->free;
		w->scavenged[word] =
		    (w->scavenged[word] & ~cache->free) | (cache->scavenged & cache->free);
		w->pages->totals.cached_pages += (uint64_t)__builtin_popcountll(cache->free);
	}
}

static struct error *add_free(struct page_alloc *pages, taddr addr, bool released)
{
	struct free_run *last = pages->count ? &pages->runs[pages->count - 1] : NULL;

	*(released ? &pages->totals.released_pages : &pages->totals.kept_pages) += 1;
	if (last && last->released == released &&
	    last->start + last->page_count * GO_PAGE_SIZE == addr) {
		last->page_count++;
		return NULL;
	}
	if (pages->count == pages->capacity) {
		uint64_t capacity = pages->capacity ? 2 * pages->capacity : 64;
		struct free_run *runs;

		if (capacity > RUNS_MAX)
			return error_new(ERROR_LIMIT, "more than %d runs of free pages", RUNS_MAX);
		runs = realloc(pages->runs, capacity * sizeof(*runs));
		if (!runs)
			return &error_nomem;
		pages->runs = runs;
		pages->capacity = capacity;
	}
	pages->runs[pages->count++] = (struct free_run){ addr, 1, released };
	return NULL;
}

static struct error *walk_chunk(struct walk *w, taddr addr)
{
	struct page_totals *totals = &w->pages->totals;

	for (uint64_t i = 0; i < w->chunk_words * BITMAP_WORD_BITS; i++) {
		taddr page = addr + i * GO_PAGE_SIZE;
		bool in_span = span_table_find(w->spans, page) != NULL;
		struct error *err;

		totals->managed_pages++;
		totals->span_pages += in_span;
		if (bitmap_get(w->allocated, i)) {
			totals->spanless_pages += !in_span;
			continue;
		}
		totals->contradictions += in_span;
		err = add_free(w->pages, page, bitmap_get(w->scavenged, i));
		if (err)
			return err;
	}
	return NULL;
}

/* The first chunk at or after addr of which an arena covers the beginning, or limit. */
static taddr next_chunk(const struct walk *w, taddr addr, taddr limit)
{
	const struct arena_table *arenas = span_table_arenas(w->spans);

	if (arena_table_find(arenas, addr))
		return addr;
	for (uint32_t i = 0; i < arena_table_count(arenas); i++) {
		taddr start = arena_table_at(arenas, i)->start;

		start += -start & (w->chunk_bytes - 1);
		if (start > addr)
			return start < limit ? start : limit;
	}
	return limit;
}

static struct error *walk_range(struct walk *w, taddr base, taddr limit)
{
	struct page_totals *totals = &w->pages->totals;
	struct error *err = NULL;

	for (taddr addr = base; addr < limit && !err; addr += w->chunk_bytes) {
		taddr next = next_chunk(w, addr, limit);

		totals->foreign_pages += (next - addr) / GO_PAGE_SIZE;
		addr = next;
		if (addr == limit)
			return NULL;
		if (totals->managed_pages >= managed_pages_max)
			return error_new(ERROR_LIMIT, "more than %" PRIu64 " pages",
					 managed_pages_max);
		err = read_chunk(w, addr);
		if (!err) {
			add_cached(w, addr);
			err = walk_chunk(w, addr);
		}
	}
	return err;
}

static bool makes_sense(const struct walk *w, taddr base, taddr limit)
{
	return !(base % w->chunk_bytes || limit % w->chunk_bytes || limit < base);
}

/*
 * The ranges are a sorted slice of {base, limit}. One that is just being added may be there twice,
 * be in its neighbour already, or not be written yet: what was walked is not walked again. The last
 * of a list that is just being moved may be anything.
 */
static struct error *walk_ranges(struct walk *w)
{
	const struct layout *l = w->layout;
	taddr slice = l->global_mheap.addr + l->mheap_page_ranges.offset;
	uint64_t data, count;
	taddr last = 0;
	struct error *err = memory_u64(w->memory, slice, &data);

	if (!err)
		err = memory_u64(w->memory, slice + 8, &count);
	if (!err && count > RANGES_MAX)
		err = error_new(ERROR_LIMIT, "%" PRIu64 " address ranges", count);
	for (uint64_t i = 0; !err && i < count; i++) {
		taddr base = 0, limit = 0;

		err = memory_u64(w->memory, data + i * RANGE_SIZE, &base);
		if (!err)
			err = memory_u64(w->memory, data + i * RANGE_SIZE + 8, &limit);
		if (err)
			return err;
		if (!makes_sense(w, base, limit)) {
			if (i + 1 < count)
				return error_new(ERROR_CORRUPT_TARGET,
						 "range 0x%" PRIx64 "-0x%" PRIx64, base, limit);
			w->pages->totals.broken_ranges++;
			return NULL;
		}
		if (limit <= last)
			continue;
		err = walk_range(w, base > last ? base : last, limit);
		last = limit;
	}
	return err;
}

static struct error *check_geometry(const struct layout *l, struct walk *w)
{
	uint64_t bitmap = l->palloc_data_scavenged.size;

	w->chunk_words = bitmap / 8;
	w->chunk_bytes = bitmap * 8 * GO_PAGE_SIZE;
	if (!bitmap || bitmap & (bitmap - 1) || bitmap % 8 || w->chunk_words > CHUNK_WORDS_MAX ||
	    l->palloc_data_allocated.size != bitmap || l->palloc_data.size > CHUNK_DATA_MAX ||
	    l->const_palloc_chunks_l2_bits.value < 0 || l->const_palloc_chunks_l2_bits.value > 32)
		return error_new(ERROR_UNSUPPORTED, "chunks with bitmaps of %" PRIu64 " bytes",
				 bitmap);
	return NULL;
}

struct error *page_alloc_read(struct memory *memory, const struct layout *layout,
			      const struct span_table *spans, struct page_alloc **ret)
{
	struct page_alloc *pages scoped(page_alloc_freep) = calloc(1, sizeof(*pages));
	struct walk w = { .memory = memory, .layout = layout, .spans = spans, .pages = pages };
	struct error *err;

	if (!pages)
		return &error_nomem;
	err = check_geometry(layout, &w);
	if (!err)
		err = read_caches(&w);
	if (!err)
		err = walk_ranges(&w);
	free(w.caches);
	if (err)
		return error_context(err, "page allocator");
	*ret = take(pages);
	return NULL;
}

void page_alloc_free(struct page_alloc *pages)
{
	if (!pages)
		return;
	free(pages->runs);
	free(pages);
}

uint64_t page_alloc_count(const struct page_alloc *pages)
{
	return pages->count;
}

const struct free_run *page_alloc_at(const struct page_alloc *pages, uint64_t index)
{
	return &pages->runs[index];
}

const struct page_totals *page_alloc_totals(const struct page_alloc *pages)
{
	return &pages->totals;
}
