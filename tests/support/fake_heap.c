#include "tests/support/fake_heap.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/goruntime/heap_bits.h"
#include "agent/goruntime/span_lookup.h"

enum {
	SPANS_MAX = 1 << 14,
	PAGES_MAX = 1 << 17,
	SPECIALS_MAX = 64,
	ARENA_SHIFT = 26,
	CLASSES_MAX = 128,
};

static const taddr heap_base = 0xc000000000;

struct span_table {
	struct span spans[SPANS_MAX];
	uint64_t *bytes[SPANS_MAX];      /* content of each span */
	uint64_t *pointers[SPANS_MAX];   /* a bit for each word */
	uint8_t *slot_states[SPANS_MAX]; /* enum fake_slot */
	bool broken[SPANS_MAX];
	uint64_t class_sizes[CLASSES_MAX]; /* of the slots; class 0 is of large objects */
	uint32_t count, object_end;
	taddr end;
	struct span_totals totals;
	struct span_lookup lookup; /* points to what follows */
	uint32_t arena_rows[PAGES_MAX >> (ARENA_SHIFT - GO_PAGE_SHIFT)];
	uint32_t pages[PAGES_MAX + (1 << (ARENA_SHIFT - GO_PAGE_SHIFT))];
	struct span_slots slots[SPANS_MAX + 1];
	uint32_t first_objects[SPANS_MAX + 1];
	uint32_t *hints;
	uint64_t *allocated, *present, *conservative;
};

struct special_table {
	struct special specials[SPECIALS_MAX];
	uint32_t count;
};

struct fake_memory {
	struct memory memory;
	struct span_table *table;
};

struct fake_heap {
	struct span_table table;
	struct special_table specials;
	struct fake_memory memory;
};

static uint64_t span_bytes(const struct span *span)
{
	return span->page_count * GO_PAGE_SIZE;
}

static uint32_t span_index(const struct span_table *table, const struct span *span)
{
	return (uint32_t)(span - table->spans);
}

static struct error *read_fake(struct memory *memory, taddr addr, void *buf, size_t size)
{
	const struct span_table *table = ((struct fake_memory *)memory)->table;
	uint8_t *to = buf;

	while (size) {
		const struct span *span = span_table_find(table, addr);
		uint64_t offset, run;

		if (!span || table->broken[span_index(table, span)])
			return error_new(ERROR_FAULT, "0x%llx: not readable", (long long)addr);
		offset = addr - span->base;
		run = span_bytes(span) - offset < size ? span_bytes(span) - offset : size;
		memcpy(to, (uint8_t *)table->bytes[span_index(table, span)] + offset, run);
		to += run;
		addr += run;
		size -= run;
	}
	return NULL;
}

static void free_fake(struct memory *memory)
{
	memory_fini(memory);
}

static const struct memory_ops fake_ops = { .read = read_fake, .free = free_fake };

struct fake_heap *fake_heap_new(void)
{
	struct fake_heap *heap = calloc(1, sizeof(*heap));

	assert(heap);
	heap->table.end = heap_base;
	heap->memory.table = &heap->table;
	memory_init(&heap->memory.memory, &fake_ops);
	return heap;
}

void fake_heap_free(struct fake_heap *heap)
{
	for (uint32_t i = 0; i < heap->table.count; i++) {
		free(heap->table.bytes[i]);
		free(heap->table.pointers[i]);
		free(heap->table.slot_states[i]);
	}
	free(heap->table.hints);
	free(heap->table.allocated);
	free(heap->table.present);
	free(heap->table.conservative);
	memory_free(&heap->memory.memory);
	free(heap);
}

/* One size has one class, as in the runtime. */
static uint8_t size_class(struct span_table *table, uint64_t elem_size)
{
	uint8_t i = 1;

	while (table->class_sizes[i] && table->class_sizes[i] != elem_size)
		i++;
	assert(i < CLASSES_MAX);
	table->class_sizes[i] = elem_size;
	return i;
}

uint32_t fake_heap_add(struct fake_heap *heap, uint64_t elem_size, uint32_t elem_count, bool noscan)
{
	struct span_table *table = &heap->table;
	uint32_t i = table->count++;
	struct span *span = &table->spans[i];
	uint64_t pages = (elem_size * elem_count + GO_PAGE_SIZE - 1) / GO_PAGE_SIZE;

	assert(i < SPANS_MAX);
	*span = (struct span){
		.base = table->end,
		.limit = table->end + elem_size * elem_count,
		.page_count = pages,
		.elem_size = elem_count == 1 ? pages * GO_PAGE_SIZE : elem_size,
		.elem_count = elem_count,
		.free_index = elem_count,
		.free_index_for_scan = elem_count,
		.state = SPAN_IN_USE,
		.span_class =
		    (uint8_t)((elem_count == 1 ? 0 : size_class(table, elem_size)) << 1 | noscan),
		.noscan = noscan,
	};
	table->end += span_bytes(span);
	table->bytes[i] = calloc(1, span_bytes(span));
	table->pointers[i] = calloc(1, span_bytes(span) / 64);
	table->slot_states[i] = calloc(1, elem_count);
	assert(table->bytes[i] && table->pointers[i] && table->slot_states[i]);
	return i;
}

void fake_heap_gap(struct fake_heap *heap, uint64_t pages)
{
	heap->table.end += pages * GO_PAGE_SIZE;
}

struct span *fake_heap_span(struct fake_heap *heap, uint32_t span)
{
	return &heap->table.spans[span];
}

/* Sets or clears the slot's bits by its state. */
static void note_slot(struct span_table *table, const struct span *span, uint32_t slot)
{
	enum fake_slot state = (enum fake_slot)table->slot_states[span - table->spans][slot];
	const struct {
		uint64_t *bits;
		bool set;
	} notes[] = {
		{ table->allocated, state != FAKE_FREE },
		{ table->present, state == FAKE_ALLOCATED || state == FAKE_IN_FLIGHT },
		{ table->conservative, state == FAKE_ALLOCATED },
	};

	for (size_t i = 0; i < sizeof(notes) / sizeof(notes[0]); i++) {
		bitmap_clear_range(notes[i].bits, span->bits + slot, 1);
		if (notes[i].set)
			bitmap_set(notes[i].bits, span->bits + slot);
	}
}

/* Rows of pages are numbered from 1, in address order. */
static void make_pages(struct span_table *table)
{
	struct span_lookup *lookup = &table->lookup;

	assert((table->end - heap_base) >> GO_PAGE_SHIFT <= PAGES_MAX);
	lookup->start = heap_base;
	lookup->extent = (table->end - heap_base + (1 << ARENA_SHIFT) - 1) >> ARENA_SHIFT
										  << ARENA_SHIFT;
	lookup->arena_shift = ARENA_SHIFT;
	lookup->arena_page_mask = (1 << (ARENA_SHIFT - GO_PAGE_SHIFT)) - 1;
	for (uint32_t i = 0; i < lookup->extent >> ARENA_SHIFT; i++)
		table->arena_rows[i] = i + 1;
	for (uint32_t i = 0; i < table->count; i++) {
		const struct span *span = &table->spans[i];
		uint64_t page = (span->base - heap_base) >> GO_PAGE_SHIFT;

		for (uint64_t n = 0; n < span->page_count; n++)
			table->pages[lookup->arena_page_mask + 1 + page + n] = i + 1;
	}
	lookup->arena_rows = table->arena_rows;
	lookup->pages = table->pages;
}

static void make_hints(struct span_table *table)
{
	uint32_t span = 0;

	table->hints = calloc(table->object_end / OBJECTS_PER_HINT + 1, sizeof(*table->hints));
	assert(table->hints);
	for (uint32_t object = 0; object < table->object_end; object += OBJECTS_PER_HINT) {
		while (span + 1 < table->count && table->first_objects[span + 1] <= object)
			span++;
		table->hints[object / OBJECTS_PER_HINT] = span;
	}
	table->lookup.hints = table->hints;
	table->lookup.first_objects = table->first_objects;
	table->lookup.slots = table->slots;
	table->lookup.object_end = table->object_end;
}

static void make_bits(struct span_table *table, uint64_t bits)
{
	table->allocated = calloc(bits / 64 + 1, sizeof(uint64_t));
	table->present = calloc(bits / 64 + 1, sizeof(uint64_t));
	table->conservative = calloc(bits / 64 + 1, sizeof(uint64_t));
	assert(table->allocated && table->present && table->conservative);
	table->lookup.allocated = table->allocated;
	table->lookup.present = table->present;
	table->lookup.conservative = table->conservative;
	for (uint32_t i = 0; i < table->count; i++)
		for (uint32_t slot = 0; slot < table->spans[i].elem_count; slot++)
			note_slot(table, &table->spans[i], slot);
}

void fake_heap_finish(struct fake_heap *heap)
{
	struct span_table *table = &heap->table;
	uint64_t bits = 0;

	table->object_end = 1;
	for (uint32_t i = 0; i < table->count; i++) {
		struct span *span = &table->spans[i];

		span->first_object = table->object_end;
		span->bits = bits;
		bits += bitmap_words(span->elem_count) * BITMAP_WORD_BITS;
		span->elem_reciprocal =
		    span->elem_count > 1 ? (uint32_t)(UINT32_MAX / span->elem_size + 1) : 0;
		table->first_objects[i] = span->first_object;
		table->slots[i + 1] = (struct span_slots){
			.base = span->base,
			.size = span->elem_count ? span->limit - span->base : 0,
			.first_object = span->first_object,
			.reciprocal = span->elem_reciprocal,
		};
		table->object_end += span->elem_count;
		table->totals.allocated_objects += span->elem_count;
		table->totals.allocated_bytes += span->elem_count * span->elem_size;
		table->totals.in_use_pages += span->page_count;
	}
	table->first_objects[table->count] = table->object_end;
	make_pages(table);
	make_hints(table);
	make_bits(table, bits);
}

struct memory *fake_heap_memory(struct fake_heap *heap)
{
	return &heap->memory.memory;
}

const struct span_table *fake_heap_spans(const struct fake_heap *heap)
{
	return &heap->table;
}

const struct special_table *fake_heap_specials(const struct fake_heap *heap)
{
	return &heap->specials;
}

uint32_t fake_heap_object(const struct fake_heap *heap, uint32_t span, uint32_t slot)
{
	assert(slot < heap->table.spans[span].elem_count);
	return heap->table.spans[span].first_object + slot;
}

taddr fake_heap_addr(const struct fake_heap *heap, uint32_t object)
{
	return span_object_addr(span_table_span_of(&heap->table, object), object);
}

void fake_heap_point(struct fake_heap *heap, uint32_t object, uint64_t word, taddr addr)
{
	const struct span *span = span_table_span_of(&heap->table, object);
	uint32_t i = span_index(&heap->table, span);
	uint64_t at = (span_object_addr(span, object) - span->base) / 8 + word;

	assert(word < span->elem_size / 8);
	heap->table.bytes[i][at] = addr;
	heap->table.pointers[i][at / 64] |= UINT64_C(1) << at % 64;
}

void fake_heap_store(struct fake_heap *heap, uint32_t object, uint64_t word, uint64_t value)
{
	const struct span *span = span_table_span_of(&heap->table, object);
	uint32_t i = span_index(&heap->table, span);

	assert(word < span->elem_size / 8);
	heap->table.bytes[i][(span_object_addr(span, object) - span->base) / 8 + word] = value;
}

void fake_heap_set_slot(struct fake_heap *heap, uint32_t object, enum fake_slot state)
{
	struct span_table *table = &heap->table;
	uint32_t i = span_index(table, span_table_span_of(table, object));
	struct span *span = &table->spans[i];
	uint8_t *slot = &table->slot_states[i][object - span->first_object];

	if (*slot != FAKE_FREE && state == FAKE_FREE) {
		table->totals.allocated_objects--;
		table->totals.allocated_bytes -= span->elem_size;
	}
	if (state == FAKE_CONDEMNED)
		span->sweep = SPAN_UNSWEPT;
	*slot = (uint8_t)state;
	note_slot(table, span, object - span->first_object);
}

void fake_heap_break(struct fake_heap *heap, uint32_t span)
{
	heap->table.broken[span] = true;
}

void fake_heap_add_record(struct fake_heap *heap, uint32_t object, enum special_kind kind,
			  taddr record)
{
	struct special_table *specials = &heap->specials;

	assert(specials->count < SPECIALS_MAX);
	specials->specials[specials->count++] =
	    (struct special){ .object = object, .kind = kind, .record = record };
}

void fake_heap_add_special(struct fake_heap *heap, uint32_t object, enum special_kind kind)
{
	fake_heap_add_record(heap, object, kind, 1);
}

/* span.h */

uint32_t span_table_count(const struct span_table *table)
{
	return table->count;
}

const struct span *span_table_at(const struct span_table *table, uint32_t index)
{
	return &table->spans[index];
}

uint32_t span_table_object_end(const struct span_table *table)
{
	return table->object_end;
}

const struct span_lookup *span_table_lookup(const struct span_table *table)
{
	return &table->lookup;
}

const struct span *span_table_find(const struct span_table *table, taddr addr)
{
	const uint32_t *page = span_lookup_page(&table->lookup, addr);

	return page && *page ? &table->spans[*page - 1] : NULL;
}

uint32_t span_table_object(const struct span_table *table, taddr addr)
{
	return span_lookup_object(&table->lookup, addr);
}

const struct span *span_table_span_of(const struct span_table *table, uint32_t object)
{
	return &table->spans[span_lookup_span_of(&table->lookup, object)];
}

bool span_slot_allocated(const struct span_table *table, const struct span *span, uint32_t slot)
{
	return span_lookup_bit(table->allocated, span, slot);
}

bool span_slot_present(const struct span_table *table, const struct span *span, uint32_t slot)
{
	return span_lookup_bit(table->present, span, slot);
}

bool span_slot_conservative(const struct span_table *table, const struct span *span, uint32_t slot)
{
	return span_lookup_bit(table->conservative, span, slot);
}

const struct span_totals *span_table_totals(const struct span_table *table)
{
	return &table->totals;
}

/* heap_bits.h */

struct heap_bits {
	const struct span_table *table;
};

struct error *heap_bits_new(struct memory *memory, const struct layout *layout,
			    const struct span_table *spans, struct heap_bits **ret)
{
	struct heap_bits *bits = malloc(sizeof(*bits));

	(void)memory, (void)layout;
	if (!bits)
		return &error_nomem;
	bits->table = spans;
	*ret = bits;
	return NULL;
}

void heap_bits_free(struct heap_bits *bits)
{
	free(bits);
}

struct error *heap_bits_read(struct heap_bits *bits, const struct span *span, uint64_t offset,
			     const uint64_t *words, uint32_t word_count, uint64_t *mask)
{
	const uint64_t *pointers = bits->table->pointers[span_index(bits->table, span)];

	(void)words;
	assert(offset % 512 == 0 && word_count % 64 == 0 && !span->noscan);
	memcpy(mask, pointers + offset / 512, word_count / 8);
	return NULL;
}

uint64_t heap_bits_skipped_bytes(const struct heap_bits *bits)
{
	(void)bits;
	return 0;
}

/* special.h */

uint32_t special_table_count(const struct special_table *table)
{
	return table->count;
}

const struct special *special_table_at(const struct special_table *table, uint32_t index)
{
	return &table->specials[index];
}
