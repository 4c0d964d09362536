/*
 * Reading spans, first half: mheap_.allspans lists every mspan structure that was ever made, freed
 * ones included, whose memory is used again for others. All are read, in address order, and those
 * that are in use or manual and make sense become candidates, for span_confirm.c to judge.
 *
 * runtime/mheap.go, mspan and initSpan; the same in go1.15 to go1.27 but for the fields' widths.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "agent/goruntime/gather.h"
#include "agent/goruntime/layout.h"
#include "agent/goruntime/span_table.h"
#include "proto/base/bytes.h"

enum {
	MSPANS_MAX = 1 << 28,
	MSPAN_SIZE_MAX = 4096,
};

struct reading {
	const struct layout *layout;
	uint32_t heap_sweepgen;
	struct span_candidate *candidates;
	uint32_t count;
	struct span_totals *totals;
};

static uint64_t raw_field(const uint8_t *raw, struct layout_field field)
{
	return load_uint_le(raw + field.offset, field.size);
}

/* False for a generation that no span of a running program has; runtime/mheap.go, mspan. */
static bool take_sweep(uint32_t sweepgen, uint32_t heap_sweepgen, struct span *span)
{
	switch ((int32_t)(sweepgen - heap_sweepgen)) {
	case 3: /* swept, then cached by a P, which allocates from it */
		span->newest = span->free_index;
		span->sweep = SPAN_SWEPT;
		return true;
	case 0: /* swept */
		span->sweep = SPAN_SWEPT;
		return true;
	case -2: /* to be swept */
	case 1:  /* cached before the sweep began, to be swept */
		span->sweep = SPAN_UNSWEPT;
		return true;
	case -1:
		span->sweep = SPAN_SWEEPING;
		return true;
	default:
		return false;
	}
}

static bool limit_fits(const struct span *span)
{
	return span->limit >= span->base && span->limit - span->base <= span_bytes(span);
}

/*
 * The limit of a new span is set last (mcentral.go, grow, and where large objects are made), after
 * the arena has been told of it: until then it is that of what the structure stood for before.
 */
static bool take_limit(struct span *span, uint32_t alloc_count)
{
	if (limit_fits(span))
		return true;
	if (alloc_count || span->free_index)
		return false;
	span->limit = span->base + span->elem_size * span->elem_count;
	return true;
}

/*
 * The slots of an in-use span. Division by multiplication is exact as long as size * elem_size
 * stays below 2^32, which holds for every size class by a wide margin.
 */
static bool take_slots(struct span *span, uint32_t alloc_count)
{
	uint64_t size = span_bytes(span);

	if (!span->elem_size || span->elem_size % 8 || !span->elem_count ||
	    span->elem_size > size / span->elem_count || span->free_index > span->elem_count)
		return false;
	if (!take_limit(span, alloc_count))
		return false;
	if (span->free_index_for_scan > span->free_index)
		span->free_index_for_scan = span->free_index;
	if (span->span_class >> 1 == 0)
		return span->elem_count == 1;
	if (size > UINT32_MAX / span->elem_size)
		return false;
	span->elem_reciprocal = UINT32_MAX / (uint32_t)span->elem_size + 1;
	return true;
}

/* Fields that only spans of the GC heap have a meaning for; false if they make no sense. */
static bool take_in_use(const struct reading *r, const uint8_t *raw,
			struct span_candidate *candidate)
{
	const struct layout *l = r->layout;
	struct span *span = &candidate->span;
	uint64_t elem_count = raw_field(raw, l->mspan_elem_count);
	uint64_t free_index = raw_field(raw, l->mspan_free_index);
	uint64_t for_scan = free_index;

	if (layout_has(l, mspan_free_index_for_scan))
		for_scan = raw_field(raw, l->mspan_free_index_for_scan);
	if (elem_count > UINT32_MAX || free_index > elem_count)
		return false;
	span->elem_count = (uint32_t)elem_count;
	span->free_index = (uint32_t)free_index;
	span->free_index_for_scan = for_scan < free_index ? (uint32_t)for_scan : span->free_index;
	span->elem_size = raw_field(raw, l->mspan_elem_size);
	span->limit = raw_field(raw, l->mspan_limit);
	span->span_class = (uint8_t)raw_field(raw, l->mspan_span_class);
	span->noscan = span->span_class & 1;
	span->specials = raw_field(raw, l->mspan_specials);
	if (layout_has(l, mspan_large_type))
		span->large_type = raw_field(raw, l->mspan_large_type);
	if (layout_has(l, mspan_is_user_arena_chunk))
		span->user_arena = raw_field(raw, l->mspan_is_user_arena_chunk) != 0;
	candidate->source.alloc_bits = raw_field(raw, l->mspan_alloc_bits);
	candidate->source.mark_bits = raw_field(raw, l->mspan_mark_bits);
	candidate->source.alloc_count = (uint32_t)raw_field(raw, l->mspan_alloc_count);
	if (!take_sweep((uint32_t)raw_field(raw, l->mspan_sweepgen), r->heap_sweepgen, span))
		return false;
	if (layout_has(l, mspan_free_index_for_scan))
		span->newest = 0;
	return take_slots(span, candidate->source.alloc_count);
}

static bool take_pages(const struct reading *r, const uint8_t *raw, struct span *span)
{
	span->base = raw_field(raw, r->layout->mspan_start_addr);
	span->page_count = raw_field(raw, r->layout->mspan_page_count);
	return span->base % GO_PAGE_SIZE == 0 && span->page_count &&
	       span->page_count <= (UINT64_MAX - span->base) / GO_PAGE_SIZE;
}

/* A gather_visit: keeps one structure, if it describes a span at all. */
static void visit_mspan(void *arg, const struct gather_item *item, const uint8_t *raw)
{
	struct reading *r = arg;
	struct span_candidate candidate = { .source.mspan = item->addr };
	struct span *span = &candidate.span;

	if (!raw) {
		r->totals->skipped_spans++;
		return;
	}
	span->state = (uint8_t)raw_field(raw, r->layout->mspan_state);
	if (span->state != SPAN_IN_USE && span->state != SPAN_MANUAL)
		return;
	if (!take_pages(r, raw, span)) {
		r->totals->skipped_spans++;
		return;
	}
	if (span->state == SPAN_IN_USE && !take_in_use(r, raw, &candidate)) {
		span_totals_skip(r->totals, span);
		return;
	}
	r->candidates[r->count++] = candidate;
}

/* The addresses in allspans, as items to gather. One just being appended may still be nil. */
static struct error *list_mspans(struct memory *memory, const struct layout *layout,
				 struct gather_item **ret, size_t *ret_count)
{
	struct gather_item *items scoped(freep) = NULL;
	taddr *addrs scoped(freep) = NULL;
	taddr allspans = layout->global_mheap.addr + layout->mheap_allspans.offset;
	uint64_t data, length;
	size_t count = 0;
	struct error *err = memory_u64(memory, allspans, &data);

	if (!err)
		err = memory_u64(memory, allspans + 8, &length);
	if (err)
		return err;
	err = memory_read_words(memory, data, length, MSPANS_MAX, &addrs);
	if (err)
		return err;
	items = malloc(length * sizeof(*items) + 1);
	if (!items)
		return &error_nomem;
	for (uint64_t i = 0; i < length; i++)
		if (addrs[i])
			items[count++] = (struct gather_item){ addrs[i], layout->mspan.size, 0 };
	*ret = take(items);
	*ret_count = count;
	return NULL;
}

static struct error *read_items(struct memory *memory, const struct layout *layout,
				struct span_totals *totals, struct gather_item *items, size_t count,
				struct span_candidate **ret, uint32_t *ret_count)
{
	struct span_candidate *candidates scoped(freep) = NULL;
	struct reading r = { .layout = layout, .totals = totals };
	taddr sweepgen = layout->global_mheap.addr + layout->mheap_sweepgen.offset;
	struct error *err = memory_u32(memory, sweepgen, &r.heap_sweepgen);

	if (err)
		return error_context(err, "mheap_.sweepgen");
	r.candidates = candidates = malloc(count * sizeof(*candidates) + 1);
	if (!candidates)
		return &error_nomem;
	err = gather_read(memory, items, count, visit_mspan, &r);
	if (err)
		return err;
	*ret = take(candidates);
	*ret_count = r.count;
	return NULL;
}

struct error *span_read_sample(struct memory *memory, const struct layout *layout, size_t most,
			       struct span_totals *totals, struct span_candidate **ret,
			       uint32_t *ret_count, uint32_t *ret_stride)
{
	struct gather_item *items scoped(freep) = NULL;
	size_t count, kept = 0, stride;
	struct error *err;

	if (layout->mspan.size > MSPAN_SIZE_MAX)
		return error_new(ERROR_UNSUPPORTED, "mspan structures of %" PRIu32 " bytes",
				 layout->mspan.size);
	err = list_mspans(memory, layout, &items, &count);
	if (err)
		return error_context(err, "mheap_.allspans");
	stride = count > most ? (count + most - 1) / most : 1;
	for (size_t i = 0; i < count; i += stride)
		items[kept++] = items[i];
	*ret_stride = (uint32_t)stride;
	return read_items(memory, layout, totals, items, kept, ret, ret_count);
}

struct error *span_read_candidates(struct memory *memory, const struct layout *layout,
				   struct span_totals *totals, struct span_candidate **ret,
				   uint32_t *ret_count)
{
	uint32_t stride;

	return span_read_sample(memory, layout, SIZE_MAX, totals, ret, ret_count, &stride);
}
