#include "agent/analysis/object_index.h"

#include <inttypes.h>

/* Of spans with several slots; runtime/sizeclasses.go, every version in use, rounded up. */
enum { MIN_SLOT_SIZE = 8, MAX_SLOT_SIZE = 32 << 10, MAX_SLOTTED_SIZE = 128 << 10 };

/*
 * Division by a constant as a product: exact for every offset in a small-object span, which the
 * runtime relies on too (runtime/mksizeclasses.go, computeDivMagic; since go1.16).
 */
static uint32_t reciprocal_of(const struct span *span)
{
	if (span->elem_count <= 1)
		return 0;
	return (uint32_t)(UINT32_MAX / span->elem_size + 1);
}

static struct error *check_span(const struct span *span, const struct object_index *index)
{
	const struct indexed_span *last =
	    index->span_count ? &index->spans[index->span_count - 1] : NULL;
	uint64_t bytes = span->page_count * GO_PAGE_SIZE;

	if (span->base >> INDEX_ADDRESS_BITS || bytes >> INDEX_ADDRESS_BITS ||
	    (span->base + bytes) >> INDEX_ADDRESS_BITS)
		return error_new(ERROR_CORRUPT_TARGET, "span at 0x%" PRIx64 " of %" PRIu64 " pages",
				 span->base, span->page_count);
	if (last && span->base < index->end)
		return error_new(ERROR_CORRUPT_TARGET, "spans overlap at 0x%" PRIx64, span->base);
	if (span->elem_count > 1 &&
	    (span->elem_size < MIN_SLOT_SIZE || span->elem_size > MAX_SLOT_SIZE ||
	     bytes > MAX_SLOTTED_SIZE || span->elem_count > bytes / span->elem_size))
		return error_new(ERROR_CORRUPT_TARGET,
				 "span at 0x%" PRIx64 ": %" PRIu32 " slots of %" PRIu64 " bytes",
				 span->base, span->elem_count, span->elem_size);
	return NULL;
}

static uint64_t data_size(const struct span *span)
{
	uint64_t bytes = span->page_count * GO_PAGE_SIZE;
	uint64_t slots = span->elem_count * span->elem_size;

	if (span->limit > span->base && span->limit - span->base < bytes)
		bytes = span->limit - span->base;
	/* Keeps slot numbers below elem_count whatever limit says. */
	return span->elem_count > 1 && slots < bytes ? slots : bytes;
}

static struct error *add_spans(struct object_index *index)
{
	uint32_t count = span_table_count(index->table);
	struct error *err;

	for (uint32_t i = 0; i < count; i++) {
		const struct span *span = span_table_at(index->table, i);

		if (span->state != SPAN_IN_USE || !span->elem_count)
			continue;
		err = check_span(span, index);
		if (err)
			return err;
		if (!index->span_count)
			index->start = span->base;
		index->end = span->base + span->page_count * GO_PAGE_SIZE;
		index->spans[index->span_count++] = (struct indexed_span){
			.base = span->base,
			.size = data_size(span),
			.first = span->first_object,
			.count = span->elem_count,
			.reciprocal = reciprocal_of(span),
			.number = i,
		};
	}
	return NULL;
}

/* Numbers the blocks that hold spans, from 1: block 0's page entries stay empty. */
static uint32_t number_blocks(struct object_index *index)
{
	uint32_t block_count = 0;

	for (uint32_t i = 0; i < index->span_count; i++) {
		const struct span *span = span_table_at(index->table, index->spans[i].number);
		taddr last = span->base + span->page_count * GO_PAGE_SIZE - 1;

		for (uint64_t block = span->base >> INDEX_BLOCK_SHIFT;
		     block <= last >> INDEX_BLOCK_SHIFT; block++)
			if (!index->blocks[block])
				index->blocks[block] = ++block_count;
	}
	return block_count;
}

static void fill_pages(struct object_index *index)
{
	for (uint32_t i = 0; i < index->span_count; i++) {
		const struct span *span = span_table_at(index->table, index->spans[i].number);

		for (uint64_t page = 0; page < span->page_count; page++) {
			taddr addr = span->base + page * GO_PAGE_SIZE;
			uint64_t block = index->blocks[addr >> INDEX_BLOCK_SHIFT];

			index->page_spans[block * INDEX_BLOCK_PAGES +
					  (addr >> INDEX_PAGE_SHIFT) % INDEX_BLOCK_PAGES] = i + 1;
		}
	}
}

static void fill_groups(struct object_index *index)
{
	uint32_t span = 0;

	for (uint64_t first = 0; first < index->object_end; first += 1 << INDEX_GROUP_SHIFT) {
		while (span + 1 < index->span_count && index->spans[span + 1].first <= first)
			span++;
		index->groups[first >> INDEX_GROUP_SHIFT] = span;
	}
}

static struct error *fill(struct object_index *index, struct budget *budget)
{
	const uint64_t block_entries = UINT64_C(1) << (INDEX_ADDRESS_BITS - INDEX_BLOCK_SHIFT);
	uint64_t spans = span_table_count(index->table);
	uint64_t groups = ((uint64_t)index->object_end >> INDEX_GROUP_SHIFT) + 1;
	uint64_t page_entries;
	struct error *err;

	err = pages_init(&index->span_pages, budget, spans * sizeof(*index->spans));
	if (err)
		return err;
	index->spans = index->span_pages.data;
	err = add_spans(index);
	if (err)
		return err;

	err = pages_init(&index->block_pages, budget, block_entries * sizeof(*index->blocks));
	if (err)
		return err;
	index->blocks = index->block_pages.data;
	page_entries = (number_blocks(index) + UINT64_C(1)) * INDEX_BLOCK_PAGES;
	err = pages_init(&index->page_pages, budget, page_entries * sizeof(*index->page_spans));
	if (err)
		return err;
	index->page_spans = index->page_pages.data;
	fill_pages(index);

	err = pages_init(&index->group_pages, budget, groups * sizeof(*index->groups));
	if (err)
		return err;
	index->groups = index->group_pages.data;
	fill_groups(index);
	return NULL;
}

struct error *object_index_init(struct object_index *index, struct budget *budget,
				const struct span_table *table)
{
	struct error *err;

	*index = (struct object_index){
		.table = table,
		.object_end = span_table_object_end(table),
	};
	err = fill(index, budget);
	if (err)
		object_index_fini(index);
	return err;
}

void object_index_fini(struct object_index *index)
{
	pages_fini(&index->group_pages);
	pages_fini(&index->page_pages);
	pages_fini(&index->block_pages);
	pages_fini(&index->span_pages);
}
