#include "tests/support/fake_heap.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/goruntime/heap_bits.h"

enum { SPANS_MAX = 1 << 14, SPECIALS_MAX = 64 };

static const taddr heap_base = 0xc000000000;

struct span_table {
	struct span spans[SPANS_MAX];
	uint64_t *bytes[SPANS_MAX];    /* content of each span */
	uint64_t *pointers[SPANS_MAX]; /* a bit for each word */
	uint8_t *slots[SPANS_MAX];     /* enum fake_slot */
	bool broken[SPANS_MAX];
	uint32_t count, object_end;
	taddr end;
	struct span_totals totals;
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
		free(heap->table.slots[i]);
	}
	memory_free(&heap->memory.memory);
	free(heap);
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
		.span_class = (uint8_t)((elem_count == 1 ? 0 : 5) << 1 | noscan),
		.noscan = noscan,
	};
	table->end += span_bytes(span);
	table->bytes[i] = calloc(1, span_bytes(span));
	table->pointers[i] = calloc(1, span_bytes(span) / 64);
	table->slots[i] = calloc(1, elem_count);
	assert(table->bytes[i] && table->pointers[i] && table->slots[i]);
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

void fake_heap_finish(struct fake_heap *heap)
{
	struct span_table *table = &heap->table;

	table->object_end = 1;
	for (uint32_t i = 0; i < table->count; i++) {
		struct span *span = &table->spans[i];

		span->first_object = table->object_end;
		table->object_end += span->elem_count;
		table->totals.allocated_objects += span->elem_count;
		table->totals.allocated_bytes += span->elem_count * span->elem_size;
		table->totals.in_use_pages += span->page_count;
	}
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

void fake_heap_set_slot(struct fake_heap *heap, uint32_t object, enum fake_slot state)
{
	struct span_table *table = &heap->table;
	uint32_t i = span_index(table, span_table_span_of(table, object));
	struct span *span = &table->spans[i];
	uint8_t *slot = &table->slots[i][object - span->first_object];

	if (*slot != FAKE_FREE && state == FAKE_FREE) {
		table->totals.allocated_objects--;
		table->totals.allocated_bytes -= span->elem_size;
	}
	if (state == FAKE_CONDEMNED)
		span->sweep = SPAN_UNSWEPT;
	span->free_index_for_scan = 0; /* look at each slot */
	*slot = (uint8_t)state;
}

void fake_heap_break(struct fake_heap *heap, uint32_t span)
{
	heap->table.broken[span] = true;
}

void fake_heap_add_special(struct fake_heap *heap, uint32_t object, enum special_kind kind)
{
	struct special_table *specials = &heap->specials;

	assert(specials->count < SPECIALS_MAX);
	specials->specials[specials->count++] =
	    (struct special){ .object = object, .kind = kind, .record = 1 };
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

const struct span *span_table_find(const struct span_table *table, taddr addr)
{
	uint32_t low = 0, high = table->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct span *span = &table->spans[middle];

		if (addr < span->base)
			high = middle;
		else if (addr >= span->base + span_bytes(span))
			low = middle + 1;
		else
			return span;
	}
	return NULL;
}

uint32_t span_table_object(const struct span_table *table, taddr addr)
{
	const struct span *span = span_table_find(table, addr);

	if (!span || !span->elem_count || addr >= span->limit)
		return OBJECT_NONE;
	return span->first_object + (uint32_t)((addr - span->base) / span->elem_size);
}

const struct span *span_table_span_of(const struct span_table *table, uint32_t object)
{
	uint32_t low = 0, high = table->count;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (table->spans[middle].first_object <= object)
			low = middle;
		else
			high = middle;
	}
	return &table->spans[low];
}

static enum fake_slot slot_state(const struct span_table *table, const struct span *span,
				 uint32_t slot)
{
	return (enum fake_slot)table->slots[span_index(table, span)][slot];
}

bool span_slot_allocated(const struct span_table *table, const struct span *span, uint32_t slot)
{
	return slot_state(table, span, slot) != FAKE_FREE;
}

bool span_slot_present(const struct span_table *table, const struct span *span, uint32_t slot)
{
	enum fake_slot state = slot_state(table, span, slot);

	return state == FAKE_ALLOCATED || state == FAKE_IN_FLIGHT;
}

bool span_slot_conservative(const struct span_table *table, const struct span *span, uint32_t slot)
{
	return slot_state(table, span, slot) == FAKE_ALLOCATED;
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
