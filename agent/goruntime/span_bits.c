/*
 * Which slots of a span hold objects. The allocator's own rule is that slot i is allocated if
 * i < freeindex or bit i of allocBits is set: allocation only advances freeindex, and sweeping
 * replaces allocBits by what was marked. What that is worth after a collection depends on whether
 * the span was swept yet:
 *
 *   swept      allocated slots are present
 *   unswept    allocated slots are present if marked; the others are what the sweeper will free
 *   sweeping   a thread is between these two; see settle_sweeping
 *
 * Marks are in gcmarkBits and, of green tea's spans, in the span's own last bytes until it is
 * swept. An unmarked object that has a finalizer is revived by the sweeper, so it counts as marked.
 *
 * The collector's conservative scan ignores slots from freeIndexForScan on that allocBits lacks,
 * as they may not be initialised yet; while marking, such a slot is allocated black, so that one
 * which is marked is an object (since go1.25 freeIndexForScan stands still then, until the span is
 * swept).
 *
 * runtime/mgcsweep.go (sweep), mbitmap.go (isFree, isFreeOrNewlyAllocated), malloc.go; go1.15 to
 * go1.27.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/goruntime/gather.h"
#include "agent/goruntime/layout.h"
#include "agent/goruntime/span_reusable.h"
#include "agent/goruntime/span_table.h"
#include "agent/goruntime/special_list.h"
#include "proto/base/bytes.h"

struct bits_reading {
	struct memory *memory;
	const struct layout *layout;
	const struct span_source *sources;
	struct span_table *table;
	uint64_t *into; /* the bitmap that gathered bytes go to */
};

/* Sets the slots [0, count) of a span in a bitmap. */
static void set_first(uint64_t *bits, const struct span *span, uint32_t count)
{
	uint64_t *words = bits + span->bits / BITMAP_WORD_BITS;

	for (uint32_t done = 0; done < count; done += BITMAP_WORD_BITS)
		words[done / BITMAP_WORD_BITS] |= bitmap_low_mask(count - done);
}

/* Adds bytes of the target's bitmaps to ours, of which slots beyond the last stay clear. */
static void add_bytes(uint64_t *bits, const struct span *span, const uint8_t *bytes, uint32_t size)
{
	uint64_t *words = bits + span->bits / BITMAP_WORD_BITS;

	for (uint32_t i = 0; i < size && i * 8 < span->elem_count; i += 8) {
		uint8_t raw[8] = { 0 };

		memcpy(raw, bytes + i, size - i < 8 ? size - i : 8);
		words[i / 8] |= load_u64le(raw) & bitmap_low_mask(span->elem_count - i * 8);
	}
}

static uint32_t bit_bytes(const struct span *span)
{
	return span->elem_count / 8 + (span->elem_count % 8 != 0);
}

/* A gather_visit: the bits of one span. What cannot be read counts as clear. */
static void visit_bits(void *arg, const struct gather_item *item, const uint8_t *bytes)
{
	struct bits_reading *r = arg;
	const struct span *span = &r->table->spans[item->tag];

	if (bytes)
		add_bytes(r->into, span, bytes, item->size);
	else
		span_totals_skip(&r->table->totals, span);
}

/* Where a span's own marks lie; runtime/mgcmark_greenteagc.go, spanInlineMarkBits. */
static struct gather_item inline_marks_item(const struct layout *l, const struct span *span,
					    uint32_t tag)
{
	taddr marks = span->base + span_bytes(span) - l->span_inline_marks.size +
		      l->span_inline_marks_marks.offset;
	uint32_t size = bit_bytes(span);

	if (size > l->span_inline_marks_marks.size)
		size = l->span_inline_marks_marks.size;
	return (struct gather_item){ marks, size, tag };
}

/*
 * Whether the marks of a span say something about its slots. Those of a swept one do so of slots
 * that were handed out since freeIndexForScan: but for the time of a cycle, from the beginning of
 * marking until sweepgen moves on (after gcphase, which is why it is not asked), they are clear.
 */
static bool marks_matter(const struct span *span)
{
	return span->sweep == SPAN_UNSWEPT ||
	       (span->sweep == SPAN_SWEPT && span->free_index_for_scan < span->free_index);
}

/*
 * Of a full span, too, unless freeIndexForScan says as much: it stays behind where the last slots
 * were passed over, not handed out (mbitmap.go, nextFreeIndex).
 */
static bool alloc_bits_matter(const struct span *span)
{
	return span->state == SPAN_IN_USE && span->sweep != SPAN_SWEEPING &&
	       span->free_index_for_scan < span->elem_count;
}

static struct error *gather_alloc_bits(struct bits_reading *r, struct gather_item *items)
{
	struct span_table *table = r->table;
	size_t count = 0;

	for (uint32_t i = 0; i < table->count; i++) {
		const struct span *span = &table->spans[i];

		if (alloc_bits_matter(span))
			items[count++] =
			    (struct gather_item){ r->sources[i].alloc_bits, bit_bytes(span), i };
	}
	r->into = table->allocated;
	return gather_read(r->memory, items, count, visit_bits, r);
}

static struct error *gather_marks(struct bits_reading *r, struct gather_item *items)
{
	struct span_table *table = r->table;
	size_t count = 0;

	for (uint32_t i = 0; i < table->count; i++) {
		const struct span *span = &table->spans[i];

		if (span->state != SPAN_IN_USE || !marks_matter(span))
			continue;
		items[count++] =
		    (struct gather_item){ r->sources[i].mark_bits, bit_bytes(span), i };
		if (span->inline_marks)
			items[count++] = inline_marks_item(r->layout, span, i);
	}
	r->into = table->present;
	return gather_read(r->memory, items, count, visit_bits, r);
}

/* A special_visit: the sweeper will mark an object that has a finalizer; mgcsweep.go, sweep. */
static struct error *revive(void *arg, const struct span *span, const struct special_record *record)
{
	struct span_table *table = arg;

	if (record->kind == SPECIAL_FINALIZER)
		bitmap_set(table->present, span->bits + record->slot);
	return NULL;
}

static struct error *add_revived(struct bits_reading *r, const struct span *span)
{
	bool cut;

	return special_list_walk(r->memory, r->layout, span, revive, r->table, &cut);
}

/* From bits as they were read (allocBits in allocated, marks in present) to what they mean. */
static void settle(struct span_table *table, const struct span *span)
{
	uint64_t first = span->bits / BITMAP_WORD_BITS;
	uint64_t *allocated = table->allocated + first, *present = table->present + first;
	uint64_t *conservative = table->conservative + first;
	uint64_t words = bitmap_words(span->elem_count);

	memcpy(conservative, allocated, words * sizeof(*conservative));
	set_first(table->conservative, span, span->free_index_for_scan);
	set_first(table->allocated, span, span->free_index);
	for (uint64_t i = 0; i < words; i++) {
		if (span->sweep == SPAN_SWEPT) {
			conservative[i] = (conservative[i] | present[i]) & allocated[i];
			present[i] = allocated[i];
		} else {
			present[i] &= allocated[i];
			conservative[i] = present[i];
		}
	}
}

static bool all_clear(const uint64_t *bits, const struct span *span)
{
	for (uint64_t i = 0; i < bitmap_words(span->elem_count); i++)
		if (bits[span->bits / BITMAP_WORD_BITS + i])
			return false;
	return true;
}

static struct error *read_bits(struct bits_reading *r, const struct gather_item *item,
			       uint64_t *into)
{
	uint8_t *bytes scoped(freep) = malloc((size_t)item->size + 1);
	struct error *err;

	if (!bytes)
		return &error_nomem;
	err = memory_read(r->memory, item->addr, bytes, item->size);
	if (err && error_code(err) != ERROR_FAULT)
		return err;
	if (!err)
		add_bytes(into, &r->table->spans[item->tag], bytes, item->size);
	error_free(err);
	return NULL;
}

/*
 * A span that a thread was sweeping. In this order sweep merges the inline marks into gcmarkBits,
 * sets freeindex to 0, makes gcmarkBits the allocBits, and takes an empty gcmarkBits. So marks,
 * wherever they are, are the survivors; if there are none and freeindex is 0, the exchange has
 * probably been made and allocBits are the survivors. Objects that nothing marked are then kept
 * rather than dropped.
 */
static struct error *settle_sweeping(struct bits_reading *r, uint32_t index)
{
	struct span_table *table = r->table;
	const struct span *span = &table->spans[index];
	const struct span_source *source = &r->sources[index];
	uint64_t first = span->bits / BITMAP_WORD_BITS, words = bitmap_words(span->elem_count);
	struct gather_item items[] = { { source->alloc_bits, bit_bytes(span), index },
				       { source->mark_bits, bit_bytes(span), index },
				       inline_marks_item(r->layout, span, index) };
	struct error *err = read_bits(r, &items[0], table->allocated);

	if (!err)
		err = read_bits(r, &items[1], table->present);
	if (!err && span->inline_marks)
		err = read_bits(r, &items[2], table->present);
	if (err)
		return err;
	if (all_clear(table->present, span) && !span->free_index) {
		memcpy(table->present + first, table->allocated + first,
		       words * sizeof(*table->present));
	} else {
		err = add_revived(r, span);
		if (err)
			return err;
		for (uint64_t i = 0; i < words; i++)
			table->allocated[first + i] |= table->present[first + i];
	}
	settle(table, span);
	return NULL;
}

static struct error *settle_all(struct bits_reading *r)
{
	struct span_table *table = r->table;

	for (uint32_t i = 0; i < table->count; i++) {
		const struct span *span = &table->spans[i];
		struct error *err = NULL;

		if (span->state != SPAN_IN_USE)
			continue;
		if (span->sweep == SPAN_SWEEPING) {
			err = settle_sweeping(r, i);
		} else {
			if (span->sweep == SPAN_UNSWEPT && span->specials)
				err = add_revived(r, span);
			settle(table, span);
		}
		if (err)
			return err;
	}
	return NULL;
}

static void remove_quarantined(struct span_table *table, const struct span *span)
{
	uint64_t first = span->bits / BITMAP_WORD_BITS;

	table->allocated[first] = table->present[first] = table->conservative[first] = 0;
	table->totals.quarantined_bytes += span_bytes(span);
}

static uint64_t count_slots(const struct span_table *table, const struct span *span)
{
	uint64_t first = span->bits / BITMAP_WORD_BITS, slots = 0;

	for (uint64_t i = 0; i < bitmap_words(span->elem_count); i++)
		slots += (uint64_t)__builtin_popcountll(table->allocated[first + i]);
	return slots;
}

/*
 * Holds the slots of each span against its own count. An allocation moves freeindex and then counts
 * (malloc.go, nextFreeFast), so that a thread may have been stopped one apart; a sweeping span
 * changes all of it.
 */
static void compare_counts(struct bits_reading *r)
{
	struct span_totals *totals = &r->table->totals;

	for (uint32_t i = 0; i < r->table->count; i++) {
		const struct span *span = &r->table->spans[i];
		uint64_t counted = r->sources[i].alloc_count, slots;

		if (span->state != SPAN_IN_USE)
			continue;
		if (!counted || span_is_quarantined(span))
			totals->empty_pages += span->page_count;
		if (span->user_arena)
			totals->user_arena_pages += span->page_count;
		if (span->sweep == SPAN_SWEEPING || span->user_arena)
			continue;
		slots = count_slots(r->table, span);
		totals->uneven_spans += slots == counted + 1 || slots + 1 == counted;
		totals->miscounted_spans += slots > counted + 1 || slots + 1 < counted;
	}
}

static void count_span(struct span_table *table, const struct span *span, uint32_t alloc_count)
{
	struct span_totals *totals = &table->totals;
	uint64_t slots = count_slots(table, span);

	totals->allocated_objects += slots;
	totals->allocated_bytes += slots * span->elem_size;
	totals->alloc_count_sum += alloc_count;
	totals->unswept_spans += span->sweep == SPAN_UNSWEPT;
	totals->sweeping_spans += span->sweep == SPAN_SWEEPING;
}

static void count_all(struct bits_reading *r)
{
	struct span_table *table = r->table;

	for (uint32_t i = 0; i < table->count; i++) {
		const struct span *span = &table->spans[i];

		if (span->state != SPAN_IN_USE)
			continue;
		if (span_is_quarantined(span))
			remove_quarantined(table, span);
		else
			count_span(table, span, r->sources[i].alloc_count);
	}
}

static struct error *make_bitmaps(struct span_table *table)
{
	size_t words = table->bit_count / BITMAP_WORD_BITS + 1;

	table->allocated = calloc(words, sizeof(*table->allocated));
	table->present = calloc(words, sizeof(*table->present));
	table->conservative = calloc(words, sizeof(*table->conservative));
	if (!table->allocated || !table->present || !table->conservative)
		return &error_nomem;
	table->lookup.allocated = table->allocated;
	table->lookup.present = table->present;
	table->lookup.conservative = table->conservative;
	return NULL;
}

struct error *span_table_read_bits(struct memory *memory, const struct layout *layout,
				   const struct span_source *sources, struct span_table *table)
{
	struct bits_reading r = {
		.memory = memory, .layout = layout, .sources = sources, .table = table
	};
	struct gather_item *items scoped(freep) = NULL;
	struct error *err;

	items = malloc(2 * (size_t)table->count * sizeof(*items) + 1);
	if (!items)
		return &error_nomem;
	err = make_bitmaps(table);
	if (!err)
		err = gather_alloc_bits(&r, items);
	if (!err)
		err = gather_marks(&r, items);
	if (!err)
		err = settle_all(&r);
	if (err)
		return err;
	compare_counts(&r); /* which has what may be used again still counted in */
	err = span_reusable_remove(memory, layout, table);
	if (!err)
		count_all(&r);
	return err;
}
