#include "agent/report/heap_usage.h"

#include "agent/analysis/mark.h"
#include "agent/goruntime/page_alloc.h"
#include "agent/goruntime/span_lookup.h"
#include "agent/report/range_list.h"
#include "agent/report/resident.h"

struct count {
	const struct heap_pages *heap;
	const struct resident *resident;
	struct heap_usage *usage;
};

static uint64_t resident_in(const struct count *c, taddr start, taddr end)
{
	return resident_count(c->resident, start, end).resident;
}

static struct usage usage_of(const struct count *c, taddr start, taddr end)
{
	return (struct usage){ end - start, resident_in(c, start, end) };
}

/* Where a slot counts. */
static struct usage *slot_usage(const struct count *c, const struct span *span, uint32_t slot)
{
	uint32_t object = span->first_object + slot;

	if (!span_slot_allocated(c->heap->spans, span, slot))
		return &c->usage->free_slots;
	if (!c->heap->mark)
		return &c->usage->unmarked;
	if (mark_is_live(c->heap->mark, object))
		return &c->usage->live;
	return mark_is_finalizable(c->heap->mark, object) ? &c->usage->finalizable
							  : &c->usage->garbage;
}

/* A span that is in RAM in part: each slot has what lies on pages that are. */
static void count_slots(const struct count *c, const struct span *span)
{
	for (uint32_t slot = 0; slot < span->elem_count; slot++) {
		taddr start = span->base + slot * span->elem_size;

		usage_add(slot_usage(c, span, slot), usage_of(c, start, start + span->elem_size));
	}
}

static void add_slots(struct usage *usage, uint64_t count, const struct span *span, bool in_ram)
{
	usage->bytes += count * span->elem_size;
	usage->resident += in_ram ? count * span->elem_size : 0;
}

/* A span that is in RAM as a whole, or not at all: numbers of slots suffice. */
static void count_whole(const struct count *c, const struct span *span, bool in_ram)
{
	const struct span_lookup *lookup = span_table_lookup(c->heap->spans);
	uint64_t allocated = bitmap_count(lookup->allocated, span->bits, span->elem_count);
	struct heap_usage *usage = c->usage;
	struct mark_counts marked;

	add_slots(&usage->free_slots, span->elem_count - allocated, span, in_ram);
	if (!c->heap->mark) {
		add_slots(&usage->unmarked, allocated, span, in_ram);
		return;
	}
	marked = mark_count(c->heap->mark, span->first_object, span->elem_count);
	add_slots(&usage->live, marked.live, span, in_ram);
	add_slots(&usage->finalizable, marked.finalizable, span, in_ram);
	add_slots(&usage->garbage, allocated - marked.live - marked.finalizable, span, in_ram);
}

static void count_in_use(const struct count *c, const struct span *span)
{
	taddr slots_end = span->base + span->elem_count * span->elem_size;
	taddr end = span->base + span->page_count * GO_PAGE_SIZE;
	uint64_t in_ram = resident_in(c, span->base, end);

	if (in_ram == 0 || in_ram == end - span->base)
		count_whole(c, span, in_ram != 0);
	else
		count_slots(c, span);
	usage_add(&c->usage->round, usage_of(c, slots_end, end));
}

static void count_manual(const struct count *c, const struct span *span)
{
	const struct range_list *stacks = c->heap->stacks;
	taddr at = span->base, end = span->base + span->page_count * GO_PAGE_SIZE;

	for (uint32_t i = range_list_after(stacks, at);
	     i < stacks->count && stacks->items[i].start < end; i++) {
		taddr start = stacks->items[i].start > at ? stacks->items[i].start : at;
		taddr stack_end = stacks->items[i].end < end ? stacks->items[i].end : end;

		usage_add(&c->usage->manual, usage_of(c, at, start));
		usage_add(&c->usage->stacks, usage_of(c, start, stack_end));
		at = stack_end;
	}
	usage_add(&c->usage->manual, usage_of(c, at, end));
}

static void count_free(const struct count *c)
{
	const struct page_alloc *pages = c->heap->pages;

	for (uint64_t i = 0; i < page_alloc_count(pages); i++) {
		const struct free_run *run = page_alloc_at(pages, i);

		usage_add(run->released ? &c->usage->released : &c->usage->kept,
			  usage_of(c, run->start, run->start + run->page_count * GO_PAGE_SIZE));
	}
}

void heap_usage_count(const struct heap_pages *heap, const struct resident *resident,
		      struct heap_usage *ret)
{
	struct heap_usage usage = { 0 };
	const struct count c = { heap, resident, &usage };

	for (uint32_t i = 0; i < span_table_count(heap->spans); i++) {
		const struct span *span = span_table_at(heap->spans, i);

		if (span_is_quarantined(span))
			continue;
		if (span->state == SPAN_IN_USE)
			count_in_use(&c, span);
		else
			count_manual(&c, span);
	}
	count_free(&c);
	*ret = usage;
}
