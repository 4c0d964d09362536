#include "agent/report/resident.h"

#include <inttypes.h>
#include <stdlib.h>

#include "agent/goruntime/bitmap.h"
#include "agent/report/pagemap.h"
#include "agent/target/maps.h"

enum {
	PAGE_SHIFT = 12,
	CHUNK_SHIFT = 21,
	CHUNK_PAGES = 1 << (CHUNK_SHIFT - PAGE_SHIFT),
	CHUNK_WORDS = CHUNK_PAGES / BITMAP_WORD_BITS,
};

/* Without PAGEMAP_SCAN every page costs 8 bytes of reading: 1 TiB takes about a second. */
#define ENTRY_WALK_MAX (UINT64_C(1) << 40)

struct chunk {
	uint64_t number; /* address >> CHUNK_SHIFT */
	uint64_t in_ram[CHUNK_WORDS], touched[CHUNK_WORDS];
};

struct resident {
	struct chunk *chunks; /* by number */
	size_t count, capacity;
	uint64_t skipped_bytes;
	uint64_t walked_bytes; /* entry by entry */
};

struct error *resident_new(struct resident **ret)
{
	struct resident *resident = calloc(1, sizeof(*resident));

	if (!resident)
		return &error_nomem;
	*ret = resident;
	return NULL;
}

void resident_free(struct resident *resident)
{
	if (!resident)
		return;
	free(resident->chunks);
	free(resident);
}

/* The last chunk, which is made if it is not the one of that number. */
static struct error *chunk_for(struct resident *resident, uint64_t number, struct chunk **ret)
{
	if (!resident->count || resident->chunks[resident->count - 1].number != number) {
		if (resident->count == resident->capacity) {
			size_t capacity = resident->capacity ? resident->capacity * 2 : 64;
			struct chunk *grown =
			    reallocarray(resident->chunks, capacity, sizeof(*grown));

			if (!grown)
				return &error_nomem;
			resident->chunks = grown;
			resident->capacity = capacity;
		}
		resident->chunks[resident->count++] = (struct chunk){ .number = number };
	}
	*ret = &resident->chunks[resident->count - 1];
	return NULL;
}

static void set_range(uint64_t *bits, uint32_t start, uint32_t end)
{
	while (start < end) {
		uint32_t shift = start % BITMAP_WORD_BITS;
		uint32_t part = BITMAP_WORD_BITS - shift;

		if (part > end - start)
			part = end - start;
		bits[start / BITMAP_WORD_BITS] |= bitmap_low_mask(part) << shift;
		start += part;
	}
}

struct error *resident_add(struct resident *resident, taddr start, taddr end, bool in_ram)
{
	uint64_t page = start >> PAGE_SHIFT, end_page = end >> PAGE_SHIFT;

	while (page < end_page) {
		uint32_t first = page % CHUNK_PAGES;
		uint32_t last = end_page - page < CHUNK_PAGES - first
				    ? first + (uint32_t)(end_page - page)
				    : CHUNK_PAGES;
		struct chunk *chunk;
		struct error *err = chunk_for(resident, page / CHUNK_PAGES, &chunk);

		if (err)
			return err;
		set_range(chunk->touched, first, last);
		if (in_ram)
			set_range(chunk->in_ram, first, last);
		page += last - first;
	}
	return NULL;
}

static struct error *add_pages(void *arg, taddr start, taddr end, bool in_ram)
{
	return resident_add(arg, start, end, in_ram);
}

static struct error *walk_mapping(struct resident *resident, int pagemap,
				  const struct mapping *mapping, bool *scan)
{
	uint64_t size = mapping->end - mapping->start;

	/* What cannot be accessed is reserved: Go alone reserves gigabytes. */
	if (!mapping->read && !mapping->write && !mapping->execute)
		return NULL;
	if (mapping->start >= UINT64_C(1) << 63) /* [vsyscall] is the kernel's */
		return NULL;
	if (!*scan) {
		if (size > ENTRY_WALK_MAX - resident->walked_bytes) {
			resident->skipped_bytes += size;
			return NULL;
		}
		resident->walked_bytes += size;
	}
	return pagemap_walk(pagemap, mapping->start, mapping->end, scan, add_pages, resident);
}

struct error *resident_read(int pagemap, const struct maps *maps, struct resident **ret)
{
	struct resident *resident scoped(resident_freep) = NULL;
	bool scan = true;
	struct error *err = resident_new(&resident);

	for (uint32_t i = 0; !err && pagemap >= 0 && i < maps->count; i++)
		err = walk_mapping(resident, pagemap, &maps->items[i], &scan);
	if (err)
		return error_context(err, "resident pages");
	*ret = take(resident);
	return NULL;
}

/* Index of the first chunk whose number is not below. */
static size_t find_chunk(const struct resident *resident, uint64_t number)
{
	size_t low = 0, high = resident->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (resident->chunks[middle].number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Of pages [first, last) of a chunk whole, less what lies before start and from end on. */
static uint64_t count_bits(const uint64_t *bits, taddr chunk_start, taddr start, taddr end)
{
	uint64_t first = (start - chunk_start) >> PAGE_SHIFT;
	uint64_t last = (end - 1 - chunk_start) >> PAGE_SHIFT;
	const uint64_t page_mask = (1 << PAGE_SHIFT) - 1;
	uint64_t bytes = bitmap_count(bits, first, last - first + 1) << PAGE_SHIFT;

	if (bitmap_get(bits, first))
		bytes -= start & page_mask;
	if (bitmap_get(bits, last))
		bytes -= page_mask - ((end - 1) & page_mask);
	return bytes;
}

struct resident_bytes resident_count(const struct resident *resident, taddr start, taddr end)
{
	struct resident_bytes total = { 0 };

	if (start >= end)
		return total;
	for (size_t i = find_chunk(resident, start >> CHUNK_SHIFT); i < resident->count; i++) {
		const struct chunk *chunk = &resident->chunks[i];
		taddr chunk_start = chunk->number << CHUNK_SHIFT;
		taddr chunk_end = chunk_start + (UINT64_C(1) << CHUNK_SHIFT);
		taddr from = start > chunk_start ? start : chunk_start;
		taddr to = end < chunk_end ? end : chunk_end;

		if (chunk_start >= end)
			break;
		total.resident += count_bits(chunk->in_ram, chunk_start, from, to);
		total.touched += count_bits(chunk->touched, chunk_start, from, to);
	}
	return total;
}

uint64_t resident_skipped_bytes(const struct resident *resident)
{
	return resident->skipped_bytes;
}
