/* The runtime's own memory, found through made-up tables. */
#include "tests/support/assertions.h"

#include "agent/goruntime/arena.h"
#include "agent/goruntime/layout.h"
#include "agent/goruntime/metadata.h"
#include "agent/goruntime/module.h"
#include "tests/support/fake_memory.h"

enum { MHEAP = 0x500000, GLOBALS = 0x510000, CHUNKS = 0x40000000, KIB = 1 << 10 };

/* Stands in for agent/goruntime's. */
struct arena_table {
	struct arena arenas[2];
	uint32_t count;
};

uint32_t arena_table_count(const struct arena_table *table)
{
	return table->count;
}

const struct arena *arena_table_at(const struct arena_table *table, uint32_t index)
{
	return &table->arenas[index];
}

struct module_table {
	struct module module;
	uint32_t count;
};

uint32_t module_table_count(const struct module_table *table)
{
	return table->count;
}

const struct module *module_table_at(const struct module_table *table, uint32_t index)
{
	(void)index;
	return &table->module;
}

struct found {
	struct metadata_sink sink;
	struct {
		taddr start;
		uint64_t size;
	} pieces[64];
	unsigned count;
};

static struct error *keep(struct metadata_sink *sink, taddr start, uint64_t size)
{
	struct found *found = (struct found *)sink;

	if (found->count == 64)
		return error_new(ERROR_LIMIT, "too many pieces");
	found->pieces[found->count].start = start;
	found->pieces[found->count].size = size;
	found->count++;
	return NULL;
}

static unsigned count_of(const struct found *found, taddr start, uint64_t size)
{
	unsigned count = 0;

	for (unsigned i = 0; i < found->count; i++)
		count += found->pieces[i].start == start && found->pieces[i].size == size;
	return count;
}

struct fixture {
	struct fake_memory *memory;
	struct layout layout;
	struct arena_table arenas;
	struct module_table modules;
	struct found found;
};

/* Nothing but an empty mheap: each test adds what it is about. */
static int setup(void **state)
{
	static struct fixture f;
	struct layout *l = &f.layout;

	f = (struct fixture){ .memory = fake_memory_new(), .found.sink.add = keep };
	fake_memory_map(f.memory, MHEAP, 0x2000);
	fake_memory_map(f.memory, GLOBALS, 0x1000);
	l->global_mheap = (struct layout_global){ MHEAP, 0x2000 };
	l->mheap_arenas = (struct layout_field){ 0, 8 };
	l->mheap_page_chunks = (struct layout_field){ 8, 16 };
	l->mheap_page_summary = (struct layout_field){ 24, 48 };
	l->mheap_allspans = (struct layout_field){ 96, 24 };
	l->const_arena_l2_bits = (struct layout_constant){ 10, true };
	l->const_palloc_chunks_l2_bits = (struct layout_constant){ 4, true };
	l->palloc_data.size = 128;
	l->heap_arena.size = 0x11008;
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	fake_memory_free(f->memory);
	return 0;
}

static const struct found *find(struct fixture *f)
{
	f->found.count = 0;
	fake_memory_forget(f->memory);
	assert_success(metadata_find(fake_memory_memory(f->memory), &f->layout, &f->arenas,
				     &f->modules, &f->found.sink));
	return &f->found;
}

static void an_empty_heap_has_no_tables(void **state)
{
	assert_int_equal(find(*state)->count, 0);
}

static void arenas_and_page_tables_are_found_in_whole_pages(void **state)
{
	struct fixture *f = *state;
	const struct found *found;

	fake_memory_store(f->memory, MHEAP, 8, 0x7000000);
	f->arenas = (struct arena_table){
		.arenas = { { 0xc000000000, 0x7100000 }, { 0xc004000000, 0x7200100 } }, .count = 2
	};
	fake_memory_store(f->memory, MHEAP + 16, 8, 0x7300000);
	fake_memory_store(f->memory, MHEAP + 24, 8, 0x7400000);
	fake_memory_store(f->memory, MHEAP + 40, 8, 1024);
	fake_memory_store(f->memory, MHEAP + 96, 8, 0x7500000);
	fake_memory_store(f->memory, MHEAP + 104, 8, 5);
	fake_memory_store(f->memory, MHEAP + 112, 8, 513);
	found = find(f);
	assert_int_equal(found->count, 6);
	assert_int_equal(count_of(found, 0x7000000, 8 * KIB), 1);
	assert_int_equal(count_of(found, 0x7100000, 0x12000), 1);
	assert_int_equal(count_of(found, 0x7200000, 0x12000), 1);
	assert_int_equal(count_of(found, 0x7300000, 0x1000), 1); /* 2 KiB, rounded */
	assert_int_equal(count_of(found, 0x7400000, 8 * KIB), 1);
	assert_int_equal(count_of(found, 0x7500000, 0x2000), 1); /* to its capacity */
}

static void chunks_are_followed_until_they_cannot_be_read(void **state)
{
	struct fixture *f = *state;
	const struct found *found;

	f->layout.global_persistent_chunks = (struct layout_global){ GLOBALS, 8 };
	fake_memory_store(f->memory, GLOBALS, 8, CHUNKS);
	fake_memory_map(f->memory, CHUNKS, 0x1000);
	fake_memory_store(f->memory, CHUNKS, 8, CHUNKS + 0x1000000);
	fake_memory_map(f->memory, CHUNKS + 0x1000000, 0x1000);
	fake_memory_store(f->memory, CHUNKS + 0x1000000, 8, CHUNKS + 0x2000000);
	found = find(f);
	assert_int_equal(found->count, 3);
	for (taddr i = 0; i < 3; i++)
		assert_int_equal(count_of(found, CHUNKS + i * 0x1000000, 256 * KIB), 1);
}

static void a_chain_that_bites_its_tail_ends(void **state)
{
	struct fixture *f = *state;
	const struct found *found;

	f->layout.global_persistent_chunks = (struct layout_global){ GLOBALS, 8 };
	fake_memory_store(f->memory, GLOBALS, 8, CHUNKS);
	fake_memory_map(f->memory, CHUNKS, 0x1000);
	fake_memory_store(f->memory, CHUNKS, 8, CHUNKS);
	found = find(f);
	assert_int_equal(count_of(found, CHUNKS, 256 * KIB), 1);
	assert_int_equal(found->count, 1);
	/* a circle of two with a piece before it */
	fake_memory_store(f->memory, CHUNKS, 8, CHUNKS + 0x100);
	fake_memory_store(f->memory, CHUNKS + 0x100, 8, CHUNKS + 0x200);
	fake_memory_store(f->memory, CHUNKS + 0x200, 8, CHUNKS + 0x100);
	found = find(f);
	assert_true(found->count >= 3 && found->count <= 8);
}

static void slot_bits_hang_on_four_lists(void **state)
{
	struct fixture *f = *state;
	const struct found *found;

	f->layout.global_gc_bits_arenas = (struct layout_global){ GLOBALS, 40 };
	f->layout.gc_bits_arena.size = 64 * KIB;
	f->layout.gc_bits_arena_next = (struct layout_field){ 8, 8 };
	fake_memory_map(f->memory, CHUNKS, 0x1000);
	fake_memory_store(f->memory, GLOBALS + 8, 8, CHUNKS);     /* free */
	fake_memory_store(f->memory, GLOBALS + 32, 8, 0x7000000); /* previous */
	fake_memory_store(f->memory, CHUNKS + 8, 8, 0x7100000);
	found = find(f);
	assert_int_equal(found->count, 3);
	assert_int_equal(count_of(found, CHUNKS, 64 * KIB), 1);
	assert_int_equal(count_of(found, 0x7100000, 64 * KIB), 1);
	assert_int_equal(count_of(found, 0x7000000, 64 * KIB), 1);
}

static void only_large_masks_have_a_mapping_of_their_own(void **state)
{
	struct fixture *f = *state;
	const struct found *found;

	f->layout.moduledata_data_mask = (struct layout_field){ 0x100, 8 };
	f->layout.moduledata_bss_mask = (struct layout_field){ 0x110, 8 };
	fake_memory_store(f->memory, GLOBALS + 0x100, 8, 0x7000000);
	fake_memory_store(f->memory, GLOBALS + 0x110, 8, 0x7100000);
	f->modules.count = 1;
	f->modules.module = (struct module){ .moduledata = GLOBALS,
					     .data = 0x800000,
					     .edata = 0x800000 + (64 * KIB - 1) * 64,
					     .bss = 0x10000000,
					     .ebss = 0x10000000 + 64 * KIB * 64 };
	found = find(f);
	assert_int_equal(found->count, 1);
	assert_int_equal(count_of(found, 0x7100000, 64 * KIB), 1);
}

static void random_states_and_span_rings_are_found(void **state)
{
	struct fixture *f = *state;
	struct layout *l = &f->layout;
	const struct found *found;

	l->global_vgetrandom_alloc = (struct layout_global){ GLOBALS, 48 };
	fake_memory_store(f->memory, GLOBALS, 8, GLOBALS + 0x200);
	fake_memory_store(f->memory, GLOBALS + 8, 8, 2);
	fake_memory_store(f->memory, GLOBALS + 0x200, 8, 0x7000100);
	fake_memory_store(f->memory, GLOBALS + 0x208, 8, 0x7005000);
	l->global_work = (struct layout_global){ GLOBALS + 0x300, 0x100 };
	l->work_span_rings = (struct layout_field){ 0x20, 8 };
	l->span_ring.size = 64;
	l->span_ring_next = (struct layout_field){ 8, 8 };
	l->span_ring_capacity = (struct layout_field){ 20, 4 };
	l->span_ring_ring = (struct layout_field){ 32, 8 };
	fake_memory_store(f->memory, GLOBALS + 0x320, 8, GLOBALS + 0x400);
	fake_memory_store(f->memory, GLOBALS + 0x400 + 20, 4, 1024);
	fake_memory_store(f->memory, GLOBALS + 0x400 + 24, 4, 77); /* not of the capacity */
	fake_memory_store(f->memory, GLOBALS + 0x400 + 32, 8, 0x7100000);
	found = find(f);
	assert_int_equal(found->count, 3);
	assert_int_equal(count_of(found, 0x7000000, 4 * KIB), 1);
	assert_int_equal(count_of(found, 0x7005000, 4 * KIB), 1);
	assert_int_equal(count_of(found, 0x7100000, 8 * KIB), 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(an_empty_heap_has_no_tables),
		TEST(arenas_and_page_tables_are_found_in_whole_pages),
		TEST(chunks_are_followed_until_they_cannot_be_read),
		TEST(a_chain_that_bites_its_tail_ends),
		TEST(slot_bits_hang_on_four_lists),
		TEST(only_large_masks_have_a_mapping_of_their_own),
		TEST(random_states_and_span_rings_are_found),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
