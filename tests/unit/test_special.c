/* Special records, queues and tiny blocks, over a made-up runtime. */
#include "tests/support/assertions.h"

#include <stdlib.h>

#include "agent/goruntime/root.h"
#include "agent/goruntime/span.h"
#include "agent/goruntime/special.h"
#include "tests/support/fake_runtime.h"

enum { FINALIZER = 2, WEAK_HANDLE = 3, PROFILE = 4, PIN_COUNTER = 6, CLEANUP = 7 };

enum { ROOTS_MAX = 256 };

/* A sink that keeps what it is given. */
struct kept_roots {
	struct root_sink sink;
	struct root roots[ROOTS_MAX];
	uint32_t count;
};

static struct error *keep(struct root_sink *sink, const struct root *root)
{
	struct kept_roots *kept = (struct kept_roots *)sink;

	if (kept->count == ROOTS_MAX)
		return error_new(ERROR_LIMIT, "too many roots");
	kept->roots[kept->count++] = *root;
	return NULL;
}

static void assert_root(const struct kept_roots *kept, uint32_t index, enum root_kind kind,
			taddr slot, uint64_t value)
{
	assert_in_range(index + 1, 1, kept->count);
	assert_int_equal(kept->roots[index].kind, kind);
	assert_int_equal(kept->roots[index].slot, slot);
	assert_int_equal(kept->roots[index].value, value);
	assert_int_equal(kept->roots[index].goroutine, ROOT_NO_GOROUTINE);
}

static int set_up(void **state)
{
	struct fake_runtime *runtime = malloc(sizeof(*runtime));

	fake_runtime_init(runtime);
	*state = runtime;
	return 0;
}

static int tear_down(void **state)
{
	fake_runtime_fini(*state);
	free(*state);
	return 0;
}

/* Reads the specials, all on one span of 32 objects of 256 bytes. */
static struct special_table *read_specials(struct fake_runtime *r, taddr first,
					   struct span_table **ret_spans)
{
	struct memory *memory = fake_memory_memory(r->memory);
	struct special_table *table = NULL;

	fake_runtime_span(r, &(struct fake_span){ .page = 1,
						  .elem_size = 256,
						  .elem_count = 32,
						  .span_class = 41,
						  .free_index = 32,
						  .free_index_for_scan = 32,
						  .specials = first });
	fake_memory_forget(r->memory);
	assert_success(span_table_read(memory, &r->layout, ret_spans));
	assert_success(special_table_read(memory, &r->layout, *ret_spans, &table));
	return table;
}

static void records_are_known_by_their_meaning(void **state)
{
	static const struct {
		uint64_t offset;
		int64_t number;
		enum special_kind kind;
		uint32_t object;
	} records[] = {
		{ 0, FINALIZER, SPECIAL_FINALIZER, 1 },
		{ 0, PROFILE, SPECIAL_PROFILE, 1 },
		{ 255, PIN_COUNTER, SPECIAL_OTHER, 1 },
		{ 256, WEAK_HANDLE, SPECIAL_WEAK_HANDLE, 2 },
		{ 31 * 256 + 7, CLEANUP, SPECIAL_CLEANUP, 32 },
		{ 31 * 256 + 7, CLEANUP, SPECIAL_CLEANUP, 32 },
	};
	const uint32_t count = sizeof(records) / sizeof(records[0]);
	struct fake_runtime *r = *state;
	struct special_table *table;
	struct span_table *spans;
	taddr first = 0;

	for (uint32_t i = count; i-- > 0;)
		first = fake_runtime_special(r, records[i].offset, records[i].number, first);
	table = read_specials(r, first, &spans);
	assert_int_equal(special_table_count(table), count);
	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(special_table_at(table, i)->kind, records[i].kind);
		assert_int_equal(special_table_at(table, i)->object, records[i].object);
	}
	assert_int_equal(special_table_skipped(table), 0);
	special_table_free(table);
	span_table_free(spans);
}

static void kinds_that_a_runtime_lacks_are_others(void **state)
{
	struct fake_runtime *r = *state;
	struct special_table *table;
	struct span_table *spans;
	taddr last = fake_runtime_special(r, 512, 0, 0);
	taddr first = fake_runtime_special(r, 256, WEAK_HANDLE, last);

	r->layout.const_special_weak_handle.known = false;
	r->layout.const_special_cleanup = (struct layout_constant){ 0, false };
	table = read_specials(r, first, &spans);
	assert_int_equal(special_table_count(table), 2);
	assert_int_equal(special_table_at(table, 0)->kind, SPECIAL_OTHER);
	assert_int_equal(special_table_at(table, 1)->kind, SPECIAL_OTHER);
	special_table_free(table);
	span_table_free(spans);
}

static void records_hold_their_words(void **state)
{
	struct fake_runtime *r = *state;
	struct kept_roots kept = { .sink = { keep } };
	taddr cleanup = fake_runtime_special(r, 768, CLEANUP, 0);
	taddr profile = fake_runtime_special(r, 512, PROFILE, cleanup);
	taddr weak = fake_runtime_special(r, 256, WEAK_HANDLE, profile);
	taddr finalizer = fake_runtime_special(r, 0, FINALIZER, weak);
	struct special_table *table;
	struct span_table *spans;

	fake_memory_store(r->memory, finalizer + 24, 8, 111);
	fake_memory_store(r->memory, weak + 24, 8, 222);
	for (unsigned i = 0; i < 3; i++)
		fake_memory_store(r->memory, cleanup + 24 + 8 * i, 8, 331 + i);
	table = read_specials(r, finalizer, &spans);
	assert_success(
	    special_table_roots(table, fake_memory_memory(r->memory), &r->layout, &kept.sink));
	assert_int_equal(kept.count, 5);
	assert_root(&kept, 0, ROOT_FINALIZER, finalizer + 24, 111);
	assert_root(&kept, 1, ROOT_WEAK_HANDLE, weak + 24, 222);
	assert_root(&kept, 2, ROOT_CLEANUP, cleanup + 24, 331);
	assert_root(&kept, 3, ROOT_CLEANUP, cleanup + 32, 332);
	assert_root(&kept, 4, ROOT_CLEANUP, cleanup + 40, 333);
	special_table_free(table);
	span_table_free(spans);
}

static void a_list_that_does_not_hold_together_is_cut(void **state)
{
	struct fake_runtime *r = *state;
	taddr good[4];
	struct special_table *table;
	struct span_table *spans;

	/* four lists of a good record and then one that is not */
	good[0] = fake_runtime_special(r, 512, PROFILE,
				       fake_runtime_special(r, 256, PROFILE, 0)); /* goes back */
	good[1] = fake_runtime_special(r, 512, PROFILE,
				       fake_runtime_special(r, 32 * 256, PROFILE, 0)); /* outside */
	good[2] = fake_runtime_special(r, 512, PROFILE, 0x123456789000); /* not readable */
	good[3] = fake_runtime_special(r, 512, PROFILE, r->next);        /* back to itself */
	fake_runtime_set(r, good[3], r->layout.special_next, good[3]);
	for (unsigned i = 0; i < 4; i++)
		fake_runtime_span(r, &(struct fake_span){ .page = 2 + i,
							  .elem_size = 256,
							  .elem_count = 32,
							  .span_class = 41,
							  .free_index = 32,
							  .specials = good[i] });
	table = read_specials(r, 0, &spans);
	assert_int_equal(special_table_count(table), 4);
	assert_int_equal(special_table_skipped(table), 4);
	special_table_free(table);
	span_table_free(spans);
}

static void long_cycles_end(void **state)
{
	struct fake_runtime *r = *state;
	struct special_table *table;
	struct span_table *spans;
	taddr last = fake_runtime_special(r, 0, CLEANUP, 0), first = last;

	for (unsigned i = 0; i < 1000; i++)
		first = fake_runtime_special(r, 0, CLEANUP, first);
	fake_runtime_set(r, last, r->layout.special_next, first);
	table = read_specials(r, first, &spans);
	assert_in_range(special_table_count(table), 1001, 4004);
	assert_int_equal(special_table_skipped(table), 1);
	special_table_free(table);
	span_table_free(spans);
}

static struct error *queue_roots(struct fake_runtime *r, struct kept_roots *kept)
{
	*kept = (struct kept_roots){ .sink = { keep } };
	fake_memory_forget(r->memory);
	return special_queue_roots(fake_memory_memory(r->memory), &r->layout, &kept->sink);
}

/* A block of so many finalizers, each of whose words is its number. */
static taddr finalizer_block(struct fake_runtime *r, uint32_t count, taddr alllink)
{
	taddr block = fake_runtime_room(r, r->layout.fin_block.size);

	fake_runtime_set(r, block, r->layout.fin_block_alllink, alllink);
	fake_runtime_set(r, block, r->layout.fin_block_count, count);
	for (uint32_t i = 0; i < 505; i++)
		fake_memory_store(r->memory, block + 24 + 8 * i, 8, i);
	return block;
}

static void queued_finalizers_hold_all_but_their_size(void **state)
{
	struct fake_runtime *r = *state;
	struct kept_roots kept;
	taddr empty = finalizer_block(r, 0, 0);
	taddr full = finalizer_block(r, 2, empty);

	fake_memory_store(r->memory, r->layout.global_allfin.addr, 8, full);
	assert_success(queue_roots(r, &kept));
	assert_int_equal(kept.count, 8);
	assert_root(&kept, 0, ROOT_FINALIZER_QUEUE, full + 24, 0);
	assert_root(&kept, 1, ROOT_FINALIZER_QUEUE, full + 32, 1);
	assert_root(&kept, 2, ROOT_FINALIZER_QUEUE, full + 48, 3);
	assert_root(&kept, 3, ROOT_FINALIZER_QUEUE, full + 56, 4);
	assert_root(&kept, 4, ROOT_FINALIZER_QUEUE, full + 64, 5);
	assert_root(&kept, 7, ROOT_FINALIZER_QUEUE, full + 96, 9);
}

static void queued_cleanups_hold_all_their_words(void **state)
{
	struct fake_runtime *r = *state;
	const struct layout *l = &r->layout;
	taddr block = fake_runtime_room(r, l->cleanup_block.size);
	struct kept_roots kept;

	fake_memory_store(r->memory, l->global_gc_cleanups.addr + l->cleanup_queue_all.offset, 8,
			  block);
	fake_runtime_set(r, block, l->cleanup_block_count, 2);
	for (unsigned i = 0; i < 60; i++)
		fake_memory_store(r->memory, block + 32 + 8 * i, 8, 100 + i);
	assert_success(queue_roots(r, &kept));
	assert_int_equal(kept.count, 6);
	for (unsigned i = 0; i < 6; i++)
		assert_root(&kept, i, ROOT_CLEANUP_QUEUE, block + 32 + 8 * i, 100 + i);

	/* where an entry is a function alone */
	r->layout.cleanup_fn.size = 0;
	assert_success(queue_roots(r, &kept));
	assert_int_equal(kept.count, 2);
	assert_root(&kept, 1, ROOT_CLEANUP_QUEUE, block + 40, 101);
}

static void every_p_holds_its_tiny_block(void **state)
{
	struct fake_runtime *r = *state;
	taddr p = fake_runtime_processors(r, 3), mcache;
	struct kept_roots kept;

	fake_runtime_set(r, p + 128, r->layout.p_mcache, 0); /* one without an mcache */
	memcpy(&mcache, fake_memory_bytes(r->memory, p + 56, 8), 8);
	fake_runtime_set(r, mcache, r->layout.mcache_tiny, 0xc000000010);
	fake_runtime_set(r, mcache + 256, r->layout.mcache_tiny, 0xc000000020);
	assert_success(queue_roots(r, &kept));
	assert_int_equal(kept.count, 2);
	assert_root(&kept, 0, ROOT_TINY_BLOCK, mcache + 24, 0xc000000010);
	assert_root(&kept, 1, ROOT_TINY_BLOCK, mcache + 256 + 24, 0xc000000020);
}

static void queues_that_contradict_themselves_are_errors(void **state)
{
	struct fake_runtime *r = *state;
	taddr first = finalizer_block(r, 0, 0), second = finalizer_block(r, 0, first);
	struct kept_roots kept;

	fake_memory_store(r->memory, r->layout.global_allfin.addr, 8, second);
	fake_runtime_set(r, first, r->layout.fin_block_alllink, second);
	assert_error(queue_roots(r, &kept), ERROR_CORRUPT_TARGET);
	fake_runtime_set(r, first, r->layout.fin_block_alllink, 0);
	fake_runtime_set(r, first, r->layout.fin_block_count, 102);
	assert_error(queue_roots(r, &kept), ERROR_CORRUPT_TARGET);
	fake_runtime_set(r, first, r->layout.fin_block_count, 0);
	fake_memory_store(r->memory, r->layout.global_allp.addr + 8, 8, UINT64_MAX);
	assert_error(queue_roots(r, &kept), ERROR_LIMIT);
}

static void an_error_of_the_sink_ends_the_walk(void **state)
{
	struct fake_runtime *r = *state;
	struct kept_roots kept;

	fake_memory_store(r->memory, r->layout.global_allfin.addr, 8, finalizer_block(r, 101, 0));
	assert_error(queue_roots(r, &kept), ERROR_LIMIT);
	assert_int_equal(kept.count, ROOTS_MAX);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(records_are_known_by_their_meaning),
		TEST(kinds_that_a_runtime_lacks_are_others),
		TEST(records_hold_their_words),
		TEST(a_list_that_does_not_hold_together_is_cut),
		TEST(long_cycles_end),
		TEST(queued_finalizers_hold_all_but_their_size),
		TEST(queued_cleanups_hold_all_their_words),
		TEST(every_p_holds_its_tiny_block),
		TEST(queues_that_contradict_themselves_are_errors),
		TEST(an_error_of_the_sink_ends_the_walk),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("special", tests, NULL, NULL);
}
