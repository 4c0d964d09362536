/*
 * The heap's structures: a small made-up heap that makes sense, of a form that the first byte
 * chooses, and then changes to it of four bytes each: place in two, low and high byte of the value.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/goruntime/gtype.h"
#include "agent/goruntime/heap_bits.h"
#include "agent/goruntime/page_alloc.h"
#include "agent/goruntime/root.h"
#include "agent/goruntime/span.h"
#include "agent/goruntime/special.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/fake_runtime.h"

enum {
	CHANGE_SIZE = 4,
	GLOBALS_SIZE = 0x2200, /* the first places are of global variables, the others of room */
	SPAN_WORDS_MAX = 64 * GO_PAGE_SIZE / 8,
	FORM_TWO_BITS = 1,
	FORM_ONE_BIT = 2,
	FORM_INLINE_MARKS = 3,
};

static struct error *ignore(struct root_sink *sink, const struct root *root)
{
	(void)sink, (void)root;
	return NULL;
}

/* An array type whose mask has to be built. */
static taddr large_type(struct fake_runtime *r)
{
	taddr elem = fake_runtime_masked_type(r, 24, 0x5);
	taddr type =
	    fake_runtime_type(r, &(struct fake_type){ .size = 24 * 1000,
						      .ptr_bytes = 24 * 1000,
						      .kind = GTYPE_KIND_ARRAY,
						      .tflag = 16,
						      .gc_data = fake_runtime_room(r, 8) });

	fake_runtime_set(r, type, r->layout.array_type_elem, elem);
	fake_runtime_set(r, type, r->layout.array_type_len, 1000);
	return type;
}

static void make_pages(struct fake_runtime *r)
{
	const struct layout *l = &r->layout;
	taddr mheap = l->global_mheap.addr, row = fake_runtime_room(r, 32);
	taddr ranges = fake_runtime_room(r, 16);

	fake_runtime_set(r, mheap, l->mheap_page_chunks, row);
	fake_memory_store(r->memory, row, 8, 0xff);
	fake_memory_store(r->memory, ranges, 8, FAKE_HEAP);
	fake_memory_store(r->memory, ranges + 8, 8, fake_heap_page(64));
	fake_memory_store(r->memory, mheap + l->mheap_page_ranges.offset, 8, ranges);
	fake_memory_store(r->memory, mheap + l->mheap_page_ranges.offset + 8, 8, 1);
	fake_runtime_processors(r, 2);
}

static void make_heap(struct fake_runtime *r, uint8_t form)
{
	struct fake_span span = { .elem_size = 64,
				  .elem_count = 124,
				  .span_class = 10,
				  .free_index = 60,
				  .free_index_for_scan = 50,
				  .has_inline_marks = form == FORM_INLINE_MARKS };
	taddr last = fake_runtime_special(r, 128, 3, 0);

	for (; span.page < 4; span.page++) {
		span.sweep = (int32_t)span.page - 2;
		span.specials = fake_runtime_special(r, 64, 2, last);
		fake_runtime_span(r, &span);
	}
	span = (struct fake_span){ .page = 4,
				   .elem_size = 704,
				   .elem_count = 11,
				   .span_class = 40,
				   .free_index = 11,
				   .free_index_for_scan = 11 };
	fake_runtime_span(r, &span);
	fake_memory_store(r->memory, fake_heap_page(4), 8, fake_runtime_masked_type(r, 40, 0x9));
	span = (struct fake_span){ .page = 5,
				   .page_count = 3,
				   .elem_size = 3 * GO_PAGE_SIZE,
				   .elem_count = 1,
				   .free_index = 1,
				   .free_index_for_scan = 1,
				   .large_type = large_type(r) };
	fake_runtime_span(r, &span);
	make_pages(r);
}

static void change(struct fake_runtime *r, taddr room, const uint8_t *data, size_t size)
{
	for (; size >= CHANGE_SIZE; data += CHANGE_SIZE, size -= CHANGE_SIZE) {
		size_t place = (size_t)(data[0] | data[1] << 8);
		taddr addr = place < GLOBALS_SIZE ? r->layout.global_mheap.addr + place
						  : room + (place - GLOBALS_SIZE);

		fake_memory_store(r->memory, addr, 2, (uint64_t)(data[2] | data[3] << 8));
	}
}

static void read_masks(struct memory *memory, const struct layout *layout,
		       const struct span_table *spans)
{
	struct heap_bits *bits = NULL;
	uint64_t *words = calloc(SPAN_WORDS_MAX, sizeof(*words));
	uint64_t *mask = calloc(SPAN_WORDS_MAX / 64, sizeof(*mask));

	error_free(heap_bits_new(memory, layout, spans, &bits));
	for (uint32_t i = 0; bits && i < span_table_count(spans); i++) {
		const struct span *span = span_table_at(spans, i);
		uint64_t count = span->page_count * GO_PAGE_SIZE / 8;
		struct error *err;

		if (span->state != SPAN_IN_USE || count > SPAN_WORDS_MAX)
			continue;
		err = memory_read_bulk(memory, span->base, words, count * 8);
		if (!err)
			err = heap_bits_read(bits, span, 0, words, (uint32_t)count, mask);
		error_free(err);
	}
	heap_bits_free(bits);
	free(words);
	free(mask);
}

static void read_all(struct memory *memory, const struct layout *layout)
{
	struct root_sink sink = { ignore };
	struct span_table *spans = NULL;
	struct special_table *specials = NULL;
	struct page_alloc *pages = NULL;

	error_free(special_queue_roots(memory, layout, &sink));
	error_free(span_table_read(memory, layout, &spans));
	if (!spans)
		return;
	read_masks(memory, layout, spans);
	error_free(special_table_read(memory, layout, spans, &specials));
	if (specials)
		error_free(special_table_roots(specials, memory, layout, &sink));
	error_free(page_alloc_read(memory, layout, spans, &pages));
	page_alloc_free(pages);
	special_table_free(specials);
	span_table_free(spans);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fake_runtime r;

	if (!size)
		return 0;
	fake_runtime_init(&r);
	if (data[0] == FORM_TWO_BITS || data[0] == FORM_ONE_BIT)
		fake_runtime_use_arena_bitmap(&r, data[0] == FORM_TWO_BITS ? 2 : 1);
	if (data[0] == FORM_INLINE_MARKS)
		fake_runtime_use_inline_marks(&r);
	make_heap(&r, data[0]);
	change(&r, r.allspans, data + 1, size - 1);
	read_all(fake_memory_memory(r.memory), &r.layout);
	fake_runtime_fini(&r);
	return 0;
}
