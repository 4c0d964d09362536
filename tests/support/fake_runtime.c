#include "tests/support/fake_runtime.h"

#include <assert.h>
#include <string.h>

#include "agent/goruntime/bitmap.h"
#include "agent/goruntime/span.h"

enum {
	SPANS_MAX = 512,
	ROOM_SIZE = 4 << 20,
	METADATA_STRIDE = 64 << 10, /* between heapArenas */
	MSPAN_STRIDE = 192,
	PROCESSOR_SIZE = 128,
	MCACHE_SIZE = 128,
	L2_BITS = 4,
};

static const taddr globals = 0x100000, metadata = 0x1000000, room = 0x4000000;

#define PLACE(offset, size) ((struct layout_field){ offset, size })

static void lay_out_mspan(struct layout *l)
{
	l->mspan.size = 160;
	l->mspan_start_addr = PLACE(24, 8);
	l->mspan_page_count = PLACE(32, 8);
	l->mspan_free_index = PLACE(48, 2);
	l->mspan_elem_count = PLACE(50, 2);
	l->mspan_free_index_for_scan = PLACE(52, 2);
	l->mspan_alloc_bits = PLACE(64, 8);
	l->mspan_mark_bits = PLACE(72, 8);
	l->mspan_sweepgen = PLACE(88, 4);
	l->mspan_alloc_count = PLACE(96, 2);
	l->mspan_span_class = PLACE(98, 1);
	l->mspan_state = PLACE(99, 1);
	l->mspan_is_user_arena_chunk = PLACE(101, 1);
	l->mspan_elem_size = PLACE(104, 8);
	l->mspan_limit = PLACE(112, 8);
	l->mspan_specials = PLACE(128, 8);
	l->mspan_large_type = PLACE(152, 8);
}

static void lay_out_heap(struct layout *l)
{
	const uint32_t pages = FAKE_ARENA_BYTES / GO_PAGE_SIZE;

	l->heap_arena.size = METADATA_STRIDE;
	l->heap_arena_spans = PLACE(0, 8 * pages);
	l->heap_arena_checkmarks = PLACE(METADATA_STRIDE - 8, 8);
	l->mheap.size = 4096;
	l->mheap_sweepgen = PLACE(0, 4);
	l->mheap_allspans = PLACE(8, 24);
	l->mheap_pages_in_use = PLACE(32, 8);
	l->mheap_arenas = PLACE(40, 8);
	l->mheap_arena_list = PLACE(48, 24);
	l->mheap_page_ranges = PLACE(72, 24);
	l->mheap_page_chunks = PLACE(96, 16);
	l->const_heap_arena_bytes = (struct layout_constant){ FAKE_ARENA_BYTES, true };
	l->const_arena_l2_bits = (struct layout_constant){ L2_BITS, true };
	l->const_arena_base = (struct layout_constant){ (int64_t)FAKE_HEAP, true };
	l->const_palloc_chunks_l2_bits = (struct layout_constant){ 1, true };
	l->const_malloc_header_size = (struct layout_constant){ 8, true };
	l->const_min_size_for_malloc_header = (struct layout_constant){ 512, true };
	l->palloc_data.size = 16;
	l->palloc_data_allocated = PLACE(0, 8);
	l->palloc_data_scavenged = PLACE(8, 8);
}

static void lay_out_processors(struct layout *l)
{
	l->page_cache.size = 24;
	l->page_cache_base = PLACE(0, 8);
	l->page_cache_free = PLACE(8, 8);
	l->page_cache_scavenged = PLACE(16, 8);
	l->p.size = PROCESSOR_SIZE;
	l->p_mcache = PLACE(56, 8);
	l->p_page_cache = PLACE(64, 24);
	l->mcache.size = MCACHE_SIZE;
	l->mcache_tiny = PLACE(24, 8);
}

static void lay_out_specials(struct layout *l)
{
	l->special.size = 24;
	l->special_next = PLACE(0, 8);
	l->special_offset = PLACE(8, 8);
	l->special_kind = PLACE(16, 1);
	l->special_finalizer.size = 56;
	l->special_finalizer_fn = PLACE(24, 8);
	l->special_weak_handle.size = 32;
	l->special_weak_handle_handle = PLACE(24, 8);
	l->special_cleanup.size = 56;
	l->special_cleanup_fn = PLACE(24, 24);
	l->finalizer.size = 40;
	l->finalizer_fn = PLACE(0, 8);
	l->finalizer_arg = PLACE(8, 8);
	l->finalizer_fint = PLACE(24, 8);
	l->finalizer_ot = PLACE(32, 8);
	l->fin_block.size = 4064;
	l->fin_block_alllink = PLACE(0, 8);
	l->fin_block_count = PLACE(16, 4);
	l->fin_block_entries = PLACE(24, 4040);
	l->cleanup_fn.size = 24;
	l->cleanup_block.size = 512;
	l->cleanup_block_alllink = PLACE(16, 8);
	l->cleanup_block_count = PLACE(24, 4);
	l->cleanup_block_entries = PLACE(32, 480);
	l->cleanup_queue.size = 248;
	l->cleanup_queue_all = PLACE(128, 8);
	l->const_special_finalizer = (struct layout_constant){ 2, true };
	l->const_special_weak_handle = (struct layout_constant){ 3, true };
	l->const_special_profile = (struct layout_constant){ 4, true };
	l->const_special_cleanup = (struct layout_constant){ 7, true };
}

static void lay_out_types(struct layout *l)
{
	l->type.size = 48;
	l->type_size = PLACE(0, 8);
	l->type_ptr_bytes = PLACE(8, 8);
	l->type_tflag = PLACE(20, 1);
	l->type_kind = PLACE(23, 1);
	l->type_gc_data = PLACE(32, 8);
	l->array_type.size = 72;
	l->array_type_elem = PLACE(48, 8);
	l->array_type_len = PLACE(64, 8);
	l->struct_type.size = 80;
	l->struct_type_fields = PLACE(56, 24);
	l->struct_field.size = 24;
	l->struct_field_type = PLACE(8, 8);
	l->struct_field_offset = PLACE(16, 8);
	l->const_tflag_mask_on_demand = (struct layout_constant){ 16, true };
	l->global_mask_in_progress = (struct layout_global){ globals + 0x3000, 1 };
}

static void lay_out(struct layout *l)
{
	lay_out_mspan(l);
	lay_out_heap(l);
	lay_out_processors(l);
	lay_out_specials(l);
	lay_out_types(l);
	l->global_mheap = (struct layout_global){ globals, 4096 };
	l->global_gcphase = (struct layout_global){ globals + 0x2000, 4 };
	l->global_allp = (struct layout_global){ globals + 0x2010, 24 };
	l->global_allfin = (struct layout_global){ globals + 0x2030, 8 };
	l->global_gc_cleanups = (struct layout_global){ globals + 0x2100, 248 };
}

static void store_slice(struct fake_runtime *r, taddr addr, taddr data, uint64_t length)
{
	fake_memory_store(r->memory, addr, 8, data);
	fake_memory_store(r->memory, addr + 8, 8, length);
	fake_memory_store(r->memory, addr + 16, 8, length);
}

static void make_arenas(struct fake_runtime *r)
{
	taddr table = fake_runtime_room(r, 8 << L2_BITS);
	taddr list = fake_runtime_room(r, 8 * FAKE_ARENAS);

	fake_memory_map(r->memory, metadata, FAKE_ARENAS * METADATA_STRIDE);
	fake_memory_map(r->memory, FAKE_HEAP, FAKE_ARENAS * FAKE_ARENA_BYTES);
	for (unsigned i = 0; i < FAKE_ARENAS; i++) {
		fake_memory_store(r->memory, table + 8 * i, 8, metadata + i * METADATA_STRIDE);
		/* in any order */
		fake_memory_store(r->memory, list + 8 * i, 8, FAKE_ARENAS - 1 - i);
	}
	fake_runtime_set(r, globals, r->layout.mheap_arenas, table);
	store_slice(r, globals + r->layout.mheap_arena_list.offset, list, FAKE_ARENAS);
}

void fake_runtime_init(struct fake_runtime *runtime)
{
	struct fake_runtime *r = runtime;

	memset(r, 0, sizeof(*r));
	r->memory = fake_memory_new();
	lay_out(&r->layout);
	fake_memory_map(r->memory, globals, 0x4000);
	fake_memory_map(r->memory, room, ROOM_SIZE);
	r->next = room;
	make_arenas(r);
	r->allspans = fake_runtime_room(r, 8 * SPANS_MAX);
	store_slice(r, globals + r->layout.mheap_allspans.offset, r->allspans, 0);
	fake_runtime_set(r, globals, r->layout.mheap_sweepgen, FAKE_SWEEPGEN);
}

void fake_runtime_fini(struct fake_runtime *runtime)
{
	fake_memory_free(runtime->memory);
}

void fake_runtime_use_arena_bitmap(struct fake_runtime *runtime, unsigned bits)
{
	runtime->layout.heap_arena_bitmap = PLACE(1024, FAKE_ARENA_BYTES / 64 * bits);
	runtime->layout.mspan_large_type = PLACE(0, 0);
	runtime->layout.const_malloc_header_size.known = false;
}

void fake_runtime_use_inline_marks(struct fake_runtime *runtime)
{
	runtime->layout.heap_arena_page_inline_marks =
	    PLACE(512, FAKE_ARENA_BYTES / GO_PAGE_SIZE / 8);
	runtime->layout.span_inline_marks.size = 128;
	runtime->layout.span_inline_marks_marks = PLACE(64, 63);
}

void fake_runtime_use_reusable(struct fake_runtime *runtime)
{
	runtime->layout.mcache_reusable_noscan = PLACE(64, 64);
	fake_runtime_processors(runtime, 1);
}

taddr fake_runtime_room(struct fake_runtime *runtime, size_t size)
{
	taddr addr = runtime->next;

	runtime->next += (size + 63) / 64 * 64;
	assert(runtime->next <= room + ROOM_SIZE);
	return addr;
}

taddr fake_heap_page(uint32_t page)
{
	return FAKE_HEAP + (taddr)page * GO_PAGE_SIZE;
}

void fake_runtime_set(struct fake_runtime *runtime, taddr addr, struct layout_field field,
		      uint64_t value)
{
	fake_memory_store(runtime->memory, addr + field.offset, field.size < 8 ? field.size : 8,
			  value);
}

/* Bits of up to 128 slots, in room of their own. */
static taddr store_bits(struct fake_runtime *r, const uint64_t bits[2])
{
	taddr addr = fake_runtime_room(r, 128);

	fake_memory_store(r->memory, addr, 8, bits[0]);
	fake_memory_store(r->memory, addr + 8, 8, bits[1]);
	return addr;
}

static void tell_arenas(struct fake_runtime *r, const struct fake_span *span, uint32_t page_count,
			taddr mspan)
{
	const uint32_t pages = FAKE_ARENA_BYTES / GO_PAGE_SIZE;

	for (uint32_t page = span->page; page < span->page + page_count; page++) {
		taddr arena = metadata + page / pages * METADATA_STRIDE;

		fake_memory_store(r->memory, arena + 8 * (page % pages), 8, mspan);
	}
	if (span->has_inline_marks) {
		taddr arena = metadata + span->page / pages * METADATA_STRIDE;
		uint8_t *flags = fake_memory_bytes(
		    r->memory, arena + r->layout.heap_arena_page_inline_marks.offset, pages / 8);
		taddr marks = fake_heap_page(span->page + 1) - 64;

		flags[span->page % pages / 8] |= (uint8_t)(1 << span->page % 8);
		fake_memory_store(r->memory, marks, 8, span->inline_marks[0]);
		fake_memory_store(r->memory, marks + 8, 8, span->inline_marks[1]);
	}
}

static void list_mspan(struct fake_runtime *r, taddr mspan)
{
	taddr slice = globals + r->layout.mheap_allspans.offset;

	assert(r->span_count < SPANS_MAX);
	fake_memory_store(r->memory, r->allspans + 8 * r->span_count, 8, mspan);
	fake_memory_store(r->memory, slice + 8, 8, ++r->span_count);
}

taddr fake_runtime_span(struct fake_runtime *runtime, const struct fake_span *span)
{
	struct fake_runtime *r = runtime;
	const struct layout *l = &r->layout;
	taddr mspan = fake_runtime_room(r, MSPAN_STRIDE);
	uint32_t page_count = span->page_count ? span->page_count : 1;
	taddr base = fake_heap_page(span->page);
	const struct {
		struct layout_field field;
		uint64_t value;
	} fields[] = {
		{ l->mspan_start_addr, base },
		{ l->mspan_page_count, page_count },
		{ l->mspan_free_index, span->free_index },
		{ l->mspan_free_index_for_scan, span->free_index_for_scan },
		{ l->mspan_elem_count, span->elem_count },
		{ l->mspan_elem_size, span->elem_size },
		{ l->mspan_alloc_bits, store_bits(r, span->alloc_bits) },
		{ l->mspan_mark_bits, store_bits(r, span->mark_bits) },
		{ l->mspan_sweepgen, (uint32_t)(FAKE_SWEEPGEN + span->sweep) },
		{ l->mspan_alloc_count, span->alloc_count },
		{ l->mspan_span_class, span->span_class },
		{ l->mspan_state, span->state ? span->state : SPAN_IN_USE },
		{ l->mspan_limit,
		  span->limit ? span->limit : base + (taddr)span->elem_size * span->elem_count },
		{ l->mspan_specials, span->specials },
		{ l->mspan_large_type, span->large_type },
		{ l->mspan_is_user_arena_chunk, span->user_arena },
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (fields[i].field.size)
			fake_runtime_set(r, mspan, fields[i].field, fields[i].value);
	if (!span->unknown_to_arena)
		tell_arenas(r, span, page_count, mspan);
	list_mspan(r, mspan);
	return mspan;
}

taddr fake_runtime_type(struct fake_runtime *runtime, const struct fake_type *type)
{
	const struct layout *l = &runtime->layout;
	taddr addr = fake_runtime_room(runtime, 128);

	fake_runtime_set(runtime, addr, l->type_size, type->size);
	fake_runtime_set(runtime, addr, l->type_ptr_bytes, type->ptr_bytes);
	fake_runtime_set(runtime, addr, l->type_kind, type->kind);
	fake_runtime_set(runtime, addr, l->type_tflag, type->tflag);
	fake_runtime_set(runtime, addr, l->type_gc_data, type->gc_data);
	return addr;
}

taddr fake_runtime_masked_type(struct fake_runtime *runtime, uint64_t size, uint64_t mask)
{
	struct fake_type type = { .size = size, .gc_data = fake_runtime_room(runtime, 8) };

	for (uint64_t left = mask; left; left >>= 1)
		type.ptr_bytes += 8;
	fake_memory_store(runtime->memory, type.gc_data, 8, mask);
	return fake_runtime_type(runtime, &type);
}

taddr fake_runtime_special(struct fake_runtime *runtime, uint64_t offset, int64_t kind, taddr next)
{
	const struct layout *l = &runtime->layout;
	taddr addr = fake_runtime_room(runtime, 64);

	fake_runtime_set(runtime, addr, l->special_next, next);
	fake_runtime_set(runtime, addr, l->special_offset, offset);
	fake_runtime_set(runtime, addr, l->special_kind, (uint64_t)kind);
	return addr;
}

taddr fake_runtime_processors(struct fake_runtime *runtime, uint32_t count)
{
	struct fake_runtime *r = runtime;
	taddr list = fake_runtime_room(r, 8 * count);
	taddr first = fake_runtime_room(r, PROCESSOR_SIZE * count);
	taddr mcaches = fake_runtime_room(r, MCACHE_SIZE * count);

	for (uint32_t i = 0; i < count; i++) {
		taddr p = first + PROCESSOR_SIZE * i;

		fake_memory_store(r->memory, list + 8 * i, 8, p);
		fake_runtime_set(r, p, r->layout.p_mcache, mcaches + MCACHE_SIZE * i);
	}
	store_slice(r, r->layout.global_allp.addr, list, count);
	return first;
}
