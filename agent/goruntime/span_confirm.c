/*
 * Reading spans, second half: what makes a span real is that the arena's spans array names its
 * structure for each of its pages. Each candidate is noted at its first page in the page table;
 * then the table is walked in address order beside the arenas' arrays, and each candidate that they
 * confirm gets its index, its objects their numbers, and all its pages their entry.
 *
 * runtime/mheap.go, initSpan, setSpans and freeSpanLocked; the same in go1.15 to go1.27.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "agent/goruntime/layout.h"
#include "agent/goruntime/span_table.h"
#include "proto/base/bytes.h"

enum { ARENA_ROWS_MAX = 1 << 26 };

struct walk {
	struct memory *memory;
	const struct layout *layout;
	struct span_table *table;
	struct span_candidate *candidates;
	struct span_source *sources;
	uint64_t next_object;
	/* The arena at hand. */
	const struct arena *arena;
	uint64_t arena_bytes;
	uint8_t *arena_spans;
	uint8_t *arena_inline_marks; /* NULL: no span of this runtime has marks inside */
};

struct error *span_table_make_pages(struct span_table *table)
{
	struct span_lookup *lookup = &table->lookup;
	uint32_t arena_count = arena_table_count(table->arenas);
	uint64_t arena_bytes = arena_table_arena_bytes(table->arenas);
	uint64_t pages = arena_bytes / GO_PAGE_SIZE, row_count = 1;

	if (arena_count) {
		lookup->start = arena_table_at(table->arenas, 0)->start;
		lookup->extent = arena_table_at(table->arenas, arena_count - 1)->start -
				 lookup->start + arena_bytes;
		row_count = lookup->extent / arena_bytes;
	}
	if (row_count > ARENA_ROWS_MAX || pages > UINT32_MAX)
		return error_new(ERROR_LIMIT, "arenas spread over %" PRIu64 " places", row_count);
	table->arena_rows = calloc(row_count, sizeof(*table->arena_rows));
	table->pages = calloc((uint64_t)arena_count + 1, pages * sizeof(*table->pages));
	if (!table->arena_rows || !table->pages)
		return &error_nomem;
	for (uint32_t i = 0; i < arena_count; i++) {
		taddr start = arena_table_at(table->arenas, i)->start;

		table->arena_rows[(start - lookup->start) / arena_bytes] = i + 1;
	}
	lookup->arena_shift = (unsigned)__builtin_ctzll(arena_bytes);
	lookup->arena_page_mask = (uint32_t)(pages - 1);
	lookup->arena_rows = table->arena_rows;
	lookup->pages = table->pages;
	return NULL;
}

/* The page entry of an address in an arena, to write. */
static uint32_t *page_entry(struct span_table *table, taddr addr)
{
	return table->pages + (span_lookup_page(&table->lookup, addr) - table->pages);
}

/*
 * A span that the arenas do not name and that nothing was allocated from is one being made or
 * freed at the stop (its state is set before the arena is told), not a contradiction.
 */
static void drop(struct walk *w, const struct span_candidate *candidate)
{
	if (candidate->span.state == SPAN_IN_USE && candidate->source.alloc_count)
		span_totals_skip(&w->table->totals, &candidate->span);
}

static void note_candidates(struct walk *w, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct span_candidate *candidate = &w->candidates[i];
		uint32_t *entry = NULL;

		if (arena_table_find(w->table->arenas, candidate->span.base))
			entry = page_entry(w->table, candidate->span.base);
		if (entry && !*entry)
			*entry = i + 1;
		else
			drop(w, candidate);
	}
}

/* Brings the metadata of the arena that covers addr to hand. */
static struct error *load_arena(struct walk *w, taddr addr)
{
	const struct layout *l = w->layout;
	struct error *err;

	if (w->arena && addr - w->arena->start < w->arena_bytes)
		return NULL;
	w->arena = arena_table_find(w->table->arenas, addr);
	if (!w->arena)
		return NULL;
	err = memory_read_bulk(w->memory, w->arena->metadata + l->heap_arena_spans.offset,
			       w->arena_spans, l->heap_arena_spans.size);
	if (!err && w->arena_inline_marks)
		err = memory_read_bulk(w->memory,
				       w->arena->metadata + l->heap_arena_page_inline_marks.offset,
				       w->arena_inline_marks, l->heap_arena_page_inline_marks.size);
	if (err)
		return error_context(err, "arena 0x%" PRIx64, w->arena->start);
	return NULL;
}

/* Does an arena name this structure for every page of the span? */
static struct error *confirm(struct walk *w, const struct span_candidate *candidate, bool *ret)
{
	const struct span *span = &candidate->span;

	*ret = false;
	for (uint64_t i = 0; i < span->page_count; i++) {
		taddr addr = span->base + i * GO_PAGE_SIZE;
		struct error *err = load_arena(w, addr);
		uint64_t page;

		if (err || !w->arena)
			return err;
		page = (addr - w->arena->start) / GO_PAGE_SIZE;
		if (load_u64le(w->arena_spans + 8 * page) != candidate->source.mspan)
			return NULL;
	}
	*ret = true;
	return NULL;
}

/* runtime/mgcmark_greenteagc.go, since go1.25: only spans of one page have marks inside. */
static bool has_inline_marks(const struct walk *w, const struct span *span)
{
	uint64_t page = (span->base - w->arena->start) / GO_PAGE_SIZE;

	return w->arena_inline_marks && span->state == SPAN_IN_USE && span->page_count == 1 &&
	       (w->arena_inline_marks[page / 8] >> page % 8 & 1);
}

struct error *span_take_numbers(uint64_t *next, uint32_t count, uint32_t *ret_first)
{
	if (count > UINT32_MAX - *next)
		return error_new(ERROR_LIMIT, "more than %" PRIu32 " object slots", UINT32_MAX);
	*ret_first = (uint32_t)*next;
	*next += count;
	return NULL;
}

/* Gives a confirmed span its place in the table and its objects their numbers. */
static struct error *add_span(struct walk *w, const struct span_candidate *candidate)
{
	struct span_table *table = w->table;
	uint32_t index = table->count++;
	struct span *span = &table->spans[index];
	uint64_t size;
	struct error *err;

	*span = candidate->span;
	err = span_take_numbers(&w->next_object, span->elem_count, &span->first_object);
	if (err)
		return err;
	span->bits = table->bit_count;
	w->sources[index] = candidate->source;
	table->bit_count += bitmap_words(span->elem_count) * BITMAP_WORD_BITS;
	size = span_is_quarantined(span) ? 0 : span->elem_size * span->elem_count;
	if (size > span->limit - span->base)
		size = span->limit - span->base;
	table->first_objects[index] = span->first_object;
	table->slots[index + 1] =
	    (struct span_slots){ span->base, size, span->first_object, span->elem_reciprocal };
	for (uint64_t i = 0; i < span->page_count; i++) {
		uint32_t *entry = page_entry(table, span->base + i * GO_PAGE_SIZE);

		if (i && *entry) /* a candidate inside of another */
			drop(w, &w->candidates[*entry - 1]);
		*entry = index + 1;
	}
	if (span->state == SPAN_IN_USE)
		table->totals.in_use_pages += span->page_count;
	else
		table->totals.manual_pages += span->page_count;
	return NULL;
}

/* Judges the candidate noted at a page; *ret_next is where the walk goes on. */
static struct error *judge(struct walk *w, taddr addr, taddr *ret_next)
{
	uint32_t *entry = page_entry(w->table, addr);
	struct span_candidate *candidate = &w->candidates[*entry - 1];
	bool confirmed;
	struct error *err = load_arena(w, addr);

	if (err)
		return err;
	candidate->span.inline_marks = has_inline_marks(w, &candidate->span);
	err = confirm(w, candidate, &confirmed);
	if (err)
		return err;
	if (confirmed) {
		*ret_next = addr + span_bytes(&candidate->span);
		return add_span(w, candidate);
	}
	drop(w, candidate);
	*entry = 0;
	*ret_next = addr + GO_PAGE_SIZE;
	return NULL;
}

static struct error *walk_arenas(struct walk *w)
{
	const struct arena_table *arenas = w->table->arenas;
	taddr next = 0;

	for (uint32_t i = 0; i < arena_table_count(arenas); i++) {
		taddr start = arena_table_at(arenas, i)->start;
		taddr addr = next > start ? next : start;

		while (addr - start < w->arena_bytes) {
			struct error *err;

			next = addr + GO_PAGE_SIZE;
			if (*page_entry(w->table, addr)) {
				err = judge(w, addr, &next);
				if (err)
					return err;
			}
			addr = next;
		}
	}
	return NULL;
}

/* For each run of objects the span that the first of them is in. */
static struct error *make_hints(struct span_table *table)
{
	uint32_t end = table->lookup.object_end, index = 0;
	uint64_t count = (uint64_t)end / OBJECTS_PER_HINT + 1;

	table->hints = malloc(count * sizeof(*table->hints));
	if (!table->hints)
		return &error_nomem;
	for (uint64_t i = 0; i < count; i++) {
		while (index + 1 < table->count &&
		       table->first_objects[index + 1] <= i * OBJECTS_PER_HINT)
			index++;
		table->hints[i] = index;
	}
	return NULL;
}

static struct error *make_room(struct walk *w, uint32_t count)
{
	struct span_table *table = w->table;
	size_t room = (size_t)count + 1;

	table->spans = calloc(room, sizeof(*table->spans));
	table->slots = calloc(room, sizeof(*table->slots));
	table->first_objects = calloc(room, sizeof(*table->first_objects));
	w->sources = calloc(room, sizeof(*w->sources));
	w->arena_spans = malloc(w->layout->heap_arena_spans.size);
	if (!table->spans || !table->slots || !table->first_objects || !w->sources ||
	    !w->arena_spans)
		return &error_nomem;
	if (!layout_has(w->layout, heap_arena_page_inline_marks) ||
	    !layout_has(w->layout, span_inline_marks))
		return NULL;
	if (w->layout->heap_arena_page_inline_marks.size != w->arena_bytes / GO_PAGE_SIZE / 8)
		return error_new(ERROR_UNSUPPORTED,
				 "pageUseSpanInlineMarkBits of %" PRIu32 " bytes",
				 w->layout->heap_arena_page_inline_marks.size);
	w->arena_inline_marks = malloc(w->layout->heap_arena_page_inline_marks.size);
	return w->arena_inline_marks ? NULL : &error_nomem;
}

static void finish_lookup(struct walk *w)
{
	struct span_table *table = w->table;

	table->first_objects[table->count] = (uint32_t)w->next_object;
	table->lookup.object_end = (uint32_t)w->next_object;
	table->lookup.slots = table->slots;
	table->lookup.first_objects = table->first_objects;
}

struct error *span_table_confirm(struct memory *memory, const struct layout *layout,
				 struct span_candidate *candidates, uint32_t count,
				 struct span_table *table, struct span_source **ret_sources)
{
	struct walk w = { .memory = memory,
			  .layout = layout,
			  .table = table,
			  .candidates = candidates,
			  .next_object = OBJECT_NONE + 1,
			  .arena_bytes = arena_table_arena_bytes(table->arenas) };
	struct error *err = make_room(&w, count);

	if (!err) {
		note_candidates(&w, count);
		err = walk_arenas(&w);
	}
	if (!err) {
		finish_lookup(&w);
		err = make_hints(table);
	}
	free(w.arena_spans);
	free(w.arena_inline_marks);
	if (err) {
		free(w.sources);
		return err;
	}
	table->lookup.hints = table->hints;
	*ret_sources = w.sources;
	return NULL;
}
