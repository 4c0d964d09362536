/* The page allocator's bitmaps, over a made-up runtime whose chunks have 64 pages. */
#include "tests/support/assertions.h"

#include <stdlib.h>

#include "agent/goruntime/page_alloc.h"
#include "agent/goruntime/span.h"
#include "tests/support/fake_runtime.h"

enum { CHUNK_PAGES = 64 };

struct fixture {
	struct fake_runtime runtime;
	taddr chunks[2]; /* bitmaps of two chunks: allocated, scavenged */
	taddr ranges;
	struct span_table *spans;
	struct page_alloc *pages;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct fake_runtime *r = &f->runtime;
	const struct layout *l = &r->layout;
	taddr row, mheap;

	fake_runtime_init(r);
	mheap = l->global_mheap.addr;
	row = fake_runtime_room(r, 32);
	fake_runtime_set(r, mheap, l->mheap_page_chunks, row);
	f->chunks[0] = row;
	f->chunks[1] = row + 16;
	f->ranges = fake_runtime_room(r, 64);
	fake_memory_store(r->memory, f->ranges, 8, FAKE_HEAP);
	fake_memory_store(r->memory, f->ranges + 8, 8, fake_heap_page(2 * CHUNK_PAGES));
	fake_memory_store(r->memory, mheap + l->mheap_page_ranges.offset, 8, f->ranges);
	fake_memory_store(r->memory, mheap + l->mheap_page_ranges.offset + 8, 8, 1);
	for (unsigned i = 0; i < 2; i++)
		fake_memory_store(r->memory, f->chunks[i], 8, UINT64_MAX);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	page_alloc_free(f->pages);
	span_table_free(f->spans);
	fake_runtime_fini(&f->runtime);
	free(f);
	return 0;
}

static void store_chunk(struct fixture *f, unsigned chunk, uint64_t allocated, uint64_t scavenged)
{
	fake_memory_store(f->runtime.memory, f->chunks[chunk], 8, allocated);
	fake_memory_store(f->runtime.memory, f->chunks[chunk] + 8, 8, scavenged);
}

static struct error *read_pages(struct fixture *f)
{
	struct memory *memory = fake_memory_memory(f->runtime.memory);

	fake_memory_forget(f->runtime.memory);
	page_alloc_free(f->pages);
	span_table_free(f->spans);
	f->pages = NULL;
	f->spans = NULL;
	assert_success(span_table_read(memory, &f->runtime.layout, &f->spans));
	return page_alloc_read(memory, &f->runtime.layout, f->spans, &f->pages);
}

static void assert_run(const struct fixture *f, uint64_t index, uint32_t page, uint64_t page_count,
		       bool released)
{
	const struct free_run *run;

	assert_in_range(index + 1, 1, page_alloc_count(f->pages));
	run = page_alloc_at(f->pages, index);
	assert_int_equal(run->start, fake_heap_page(page));
	assert_int_equal(run->page_count, page_count);
	assert_int_equal(run->released, released);
}

static void runs_of_free_pages_are_kept_or_released(void **state)
{
	struct fixture *f = *state;
	const struct page_totals *totals;

	store_chunk(f, 0, 0x0fffffffffffff0f, 0x4000000000000010);
	store_chunk(f, 1, 0xfffffffffffffffc, 0x1);
	assert_success(read_pages(f));
	/* pages 4-7: the bit of page 4 says released */
	assert_int_equal(page_alloc_count(f->pages), 7);
	assert_run(f, 0, 4, 1, true);
	assert_run(f, 1, 5, 3, false);
	assert_run(f, 2, 60, 2, false);
	assert_run(f, 3, 62, 1, true);
	assert_run(f, 4, 63, 1, false);
	assert_run(f, 5, 64, 1, true);
	assert_run(f, 6, 65, 1, false);
	totals = page_alloc_totals(f->pages);
	assert_int_equal(totals->managed_pages, 128);
	assert_int_equal(totals->kept_pages, 7);
	assert_int_equal(totals->released_pages, 3);
	assert_int_equal(totals->spanless_pages, 118);
	assert_int_equal(totals->contradictions, 0);
}

static void pages_that_ps_have_cached_are_free(void **state)
{
	struct fixture *f = *state;
	struct fake_runtime *r = &f->runtime;
	const struct layout *l = &r->layout;
	taddr p = fake_runtime_processors(r, 3), cache = p + l->p_page_cache.offset;

	/* the first P has pages of the second chunk, the second P has none, the third is broken */
	fake_runtime_set(r, cache, l->page_cache_base, fake_heap_page(CHUNK_PAGES));
	fake_runtime_set(r, cache, l->page_cache_free, 0x30);
	fake_runtime_set(r, cache, l->page_cache_scavenged, 0xa0);
	cache += 2 * (uint64_t)l->p.size;
	fake_runtime_set(r, cache, l->page_cache_base, fake_heap_page(3));
	fake_runtime_set(r, cache, l->page_cache_free, 0x30);
	assert_success(read_pages(f));
	assert_int_equal(page_alloc_count(f->pages), 2);
	assert_run(f, 0, CHUNK_PAGES + 4, 1, false);
	assert_run(f, 1, CHUNK_PAGES + 5, 1, true);
	assert_int_equal(page_alloc_totals(f->pages)->cached_pages, 2);
	assert_int_equal(page_alloc_totals(f->pages)->spanless_pages, 126);
}

static void pages_are_compared_with_spans(void **state)
{
	struct fixture *f = *state;

	fake_runtime_span(&f->runtime, &(struct fake_span){ .page = 2,
							    .page_count = 3,
							    .elem_count = 1,
							    .elem_size = 3 * GO_PAGE_SIZE });
	fake_runtime_span(&f->runtime, &(struct fake_span){ .page = 5, .state = SPAN_MANUAL });
	store_chunk(f, 0, 0x3f & ~UINT64_C(0x10), 0);
	store_chunk(f, 1, 0, UINT64_MAX);
	assert_success(read_pages(f));
	assert_int_equal(page_alloc_totals(f->pages)->spanless_pages, 2);
	assert_int_equal(page_alloc_totals(f->pages)->contradictions, 1);
	assert_int_equal(page_alloc_totals(f->pages)->kept_pages, 59);
	assert_int_equal(page_alloc_totals(f->pages)->released_pages, 64);
}

static void ranges_that_make_no_sense_are_refused(void **state)
{
	struct fixture *f = *state;
	struct fake_runtime *r = &f->runtime;
	taddr slice = r->layout.global_mheap.addr + r->layout.mheap_page_ranges.offset;

	fake_memory_store(r->memory, f->ranges + 8, 8, fake_heap_page(CHUNK_PAGES) + 1);
	fake_memory_store(r->memory, slice + 8, 8, 2);
	assert_error(read_pages(f), ERROR_CORRUPT_TARGET);
	fake_memory_store(r->memory, f->ranges + 8, 8, fake_heap_page(CHUNK_PAGES));
	fake_memory_store(r->memory, slice + 8, 8, UINT64_MAX);
	assert_error(read_pages(f), ERROR_LIMIT);
	fake_memory_store(r->memory, slice + 8, 8, 1);
	assert_success(read_pages(f));
}

/* A stop in pageAlloc.grow, which makes the bitmaps of a range after it has listed it. */
static void a_chunk_without_bitmaps_is_free_and_was_never_used(void **state)
{
	struct fixture *f = *state;
	const struct layout *l = &f->runtime.layout;

	fake_runtime_set(&f->runtime, l->global_mheap.addr, l->mheap_page_chunks, 0);
	assert_success(read_pages(f));
	assert_int_equal(page_alloc_totals(f->pages)->managed_pages, 2 * CHUNK_PAGES);
	assert_int_equal(page_alloc_totals(f->pages)->released_pages, 2 * CHUNK_PAGES);
	assert_int_equal(page_alloc_totals(f->pages)->kept_pages, 0);
	assert_run(f, 0, 0, 2 * CHUNK_PAGES, true);
}

/* Half of an entry is written: its limit is still that of a neighbour far away. */
static void what_lies_in_no_arena_is_left_out_and_counted(void **state)
{
	struct fixture *f = *state;
	struct fake_runtime *r = &f->runtime;

	fake_memory_store(r->memory, f->ranges + 8, 8, fake_heap_page(5 * CHUNK_PAGES));
	assert_success(read_pages(f));
	assert_int_equal(page_alloc_totals(f->pages)->managed_pages, 2 * CHUNK_PAGES);
	assert_int_equal(page_alloc_totals(f->pages)->foreign_pages, 3 * CHUNK_PAGES);
	fake_memory_store(r->memory, f->ranges, 8, 0);
	fake_memory_store(r->memory, f->ranges + 8, 8, UINT64_C(1) << 63);
	assert_success(read_pages(f));
	assert_int_equal(page_alloc_totals(f->pages)->managed_pages, 2 * CHUNK_PAGES);
	assert_int_equal(page_alloc_totals(f->pages)->foreign_pages,
			 (UINT64_C(1) << 63) / GO_PAGE_SIZE - 2 * CHUNK_PAGES);
}

/* addrRanges.add counts one more before it has moved the list to where there is room for it. */
static void the_last_range_of_a_list_that_moves_may_be_anything(void **state)
{
	struct fixture *f = *state;
	struct fake_runtime *r = &f->runtime;
	taddr slice = r->layout.global_mheap.addr + r->layout.mheap_page_ranges.offset;

	fake_memory_store(r->memory, slice + 8, 8, 2);
	fake_memory_store(r->memory, f->ranges + 16, 8, 0x1234);
	fake_memory_store(r->memory, f->ranges + 24, 8, 0x12);
	assert_success(read_pages(f));
	assert_int_equal(page_alloc_totals(f->pages)->managed_pages, 2 * CHUNK_PAGES);
	assert_int_equal(page_alloc_totals(f->pages)->broken_ranges, 1);
}

/* As a stop in the midst of addrRanges.add finds them. */
static void ranges_being_added_are_walked_once(void **state)
{
	const struct {
		uint32_t first[2], second[2], chunks;
	} moments[] = {
		{ { 0, 1 }, { 0, 0 }, 1 }, /* the list has grown, the range is not written */
		{ { 0, 1 }, { 0, 1 }, 1 }, /* the neighbour was moved up, and is overwritten next */
		{ { 0, 2 }, { 1, 2 }, 2 }, /* merged, and taken out next */
	};
	struct fixture *f = *state;
	struct fake_runtime *r = &f->runtime;
	taddr slice = r->layout.global_mheap.addr + r->layout.mheap_page_ranges.offset;

	fake_memory_store(r->memory, slice + 8, 8, 2);
	for (size_t i = 0; i < sizeof(moments) / sizeof(moments[0]); i++) {
		for (int k = 0; k < 2; k++) {
			uint32_t second = moments[i].second[k];

			fake_memory_store(r->memory, f->ranges + 8 * k, 8,
					  fake_heap_page(moments[i].first[k] * CHUNK_PAGES));
			fake_memory_store(
			    r->memory, f->ranges + 16 + 8 * k, 8,
			    moments[i].second[1] ? fake_heap_page(second * CHUNK_PAGES) : 0);
		}
		assert_success(read_pages(f));
		assert_int_equal(page_alloc_totals(f->pages)->managed_pages,
				 moments[i].chunks * CHUNK_PAGES);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(runs_of_free_pages_are_kept_or_released),
		TEST(pages_that_ps_have_cached_are_free),
		TEST(pages_are_compared_with_spans),
		TEST(ranges_that_make_no_sense_are_refused),
		TEST(a_chunk_without_bitmaps_is_free_and_was_never_used),
		TEST(what_lies_in_no_arena_is_left_out_and_counted),
		TEST(the_last_range_of_a_list_that_moves_may_be_anything),
		TEST(ranges_being_added_are_walked_once),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("page_alloc", tests, NULL, NULL);
}
