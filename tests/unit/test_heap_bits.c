/* Pointer bits in every form, over a made-up runtime. */
#include "tests/support/assertions.h"

#include <stdlib.h>

#include "agent/goruntime/bitmap.h"
#include "agent/goruntime/heap_bits.h"
#include "agent/goruntime/span.h"
#include "tests/support/fake_runtime.h"

enum { PAGE_WORDS = GO_PAGE_SIZE / 8, PAGES_MAX = 64, ARENA_PAGES = 32 };

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

/* A reader over what has been made so far. */
struct reader {
	struct span_table *spans;
	struct heap_bits *bits;
	uint64_t words[PAGES_MAX * PAGE_WORDS];
	uint64_t mask[PAGES_MAX * PAGE_WORDS / 64];
};

static struct reader *open_reader(struct fake_runtime *r)
{
	struct reader *reader = calloc(1, sizeof(*reader));
	struct memory *memory = fake_memory_memory(r->memory);

	fake_memory_forget(r->memory);
	assert_success(span_table_read(memory, &r->layout, &reader->spans));
	assert_int_equal(span_table_totals(reader->spans)->skipped_spans, 0);
	assert_success(heap_bits_new(memory, &r->layout, reader->spans, &reader->bits));
	return reader;
}

static void close_reader(struct reader *reader)
{
	heap_bits_free(reader->bits);
	span_table_free(reader->spans);
	free(reader);
}

/* Reads the mask of the span at a page: large ones in runs of a page, small ones at once. */
static const uint64_t *read_mask(struct fake_runtime *r, struct reader *reader, uint32_t page)
{
	const struct span *span = span_table_find(reader->spans, fake_heap_page(page));
	uint64_t words = span->page_count * PAGE_WORDS;
	uint64_t run = span->span_class >> 1 ? words : PAGE_WORDS;

	memset(reader->mask, 0xa5, sizeof(reader->mask));
	memcpy(reader->words, fake_memory_bytes(r->memory, span->base, words * 8), words * 8);
	for (uint64_t at = 0; at < words; at += run)
		assert_success(heap_bits_read(reader->bits, span, at * 8, reader->words + at,
					      (uint32_t)run, reader->mask + at / 64));
	return reader->mask;
}

/* The words of a mask that are set are these, in order, and no others. */
static void assert_words(const uint64_t *mask, uint64_t word_count, const uint32_t *expected,
			 uint32_t count)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < word_count; i++) {
		if (!bitmap_get(mask, i))
			continue;
		assert_in_range(found, 0, count ? count - 1 : 0);
		assert_int_equal(i, expected[found]);
		found++;
	}
	assert_int_equal(found, count);
}

#define WORDS(...)                                                                                 \
	(const uint32_t[]){ __VA_ARGS__ },                                                         \
	    sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t)

static void store_word(struct fake_runtime *r, taddr addr, uint64_t value)
{
	fake_memory_store(r->memory, addr, 8, value);
}

static struct fake_span small_span(uint32_t page, uint32_t elem_size, uint32_t elem_count)
{
	return (struct fake_span){ .page = page,
				   .elem_size = elem_size,
				   .elem_count = elem_count,
				   .span_class = 40,
				   .free_index = elem_count,
				   .free_index_for_scan = elem_count };
}

static void noscan_spans_have_no_pointers(void **state)
{
	struct fake_runtime *r = *state;
	struct fake_span span = small_span(0, 64, 128);
	struct reader *reader;

	span.span_class |= 1;
	fake_runtime_span(r, &span);
	memset(fake_memory_bytes(r->memory, fake_heap_page(0), GO_PAGE_SIZE), 0xff, GO_PAGE_SIZE);
	reader = open_reader(r);
	assert_words(read_mask(r, reader, 0), PAGE_WORDS, NULL, 0);
	close_reader(reader);
}

static void bits_in_the_span_are_its_last_128_bytes(void **state)
{
	struct fake_runtime *r = *state;
	struct fake_span span = small_span(0, 48, 168);
	taddr bits = fake_heap_page(1) - 128;
	struct reader *reader;

	fake_runtime_span(r, &span);
	store_word(r, bits, 0x43);
	store_word(r, bits + 15 * 8, 0x8000800000000001); /* of words 960, 1007 and 1023 */
	reader = open_reader(r);
	assert_words(read_mask(r, reader, 0), PAGE_WORDS, WORDS(0, 1, 6, 960, 1007));
	close_reader(reader);
}

static void bits_in_the_span_are_below_its_marks(void **state)
{
	struct fake_runtime *r = *state;
	struct fake_span span = small_span(7, 48, 165);
	taddr bits = fake_heap_page(8) - 256;
	struct reader *reader;

	fake_runtime_use_inline_marks(r);
	span.has_inline_marks = true;
	span.inline_marks[0] = UINT64_MAX;
	fake_runtime_span(r, &span);
	span = small_span(8, 8, 1008); /* too small to have marks inside */
	span.alloc_bits[0] = 0;
	fake_runtime_span(r, &span);
	store_word(r, bits, 0x43);
	store_word(r, bits + 15 * 8, UINT64_MAX); /* the last slot ends at word 990 */
	for (unsigned i = 0; i < 16; i++)
		store_word(r, fake_heap_page(9) - 128 + 8 * i, i < 2 ? 0 : UINT64_MAX);
	reader = open_reader(r);
	assert_words(read_mask(r, reader, 7), 960, WORDS(0, 1, 6));
	assert_int_equal(reader->mask[15], 0x3fffffff);
	read_mask(r, reader, 8);
	for (uint32_t i = 0; i < PAGE_WORDS; i++)
		assert_int_equal(bitmap_get(reader->mask, i), i >= 128 && i < 1008);
	close_reader(reader);
}

static void objects_beyond_512_bytes_begin_with_their_type(void **state)
{
	struct fake_runtime *r = *state;
	struct fake_span span = small_span(1, 704, 11);
	taddr one = fake_runtime_masked_type(r, 640, 0x5); /* of a single value */
	taddr many = fake_runtime_masked_type(r, 40, 0x9); /* of elements of five words */
	taddr base = fake_heap_page(1);
	struct reader *reader;

	fake_runtime_span(r, &span);
	store_word(r, base, one);
	store_word(r, base + 10 * 704, many);
	reader = open_reader(r);
	read_mask(r, reader, 1);
	for (uint32_t word = 0; word < PAGE_WORDS; word++) {
		uint32_t in_slot = word % 88, slot = word / 88;
		bool expected = false;

		if (slot == 0)
			expected = word == 1 || word == 3 || word == 81 || word == 83;
		if (slot == 10 && in_slot)
			expected = (in_slot - 1) % 5 == 0 || (in_slot - 1) % 5 == 3;
		assert_int_equal(bitmap_get(reader->mask, word), expected);
	}
	/* the others have none: what they are is not known */
	assert_int_equal(heap_bits_skipped_bytes(reader->bits), 9 * 704);
	close_reader(reader);
}

static void free_and_unfinished_objects_are_not_asked_for_their_type(void **state)
{
	struct fake_runtime *r = *state;
	struct fake_span span = small_span(1, 704, 11);
	taddr type = fake_runtime_masked_type(r, 16, 0x1);
	struct reader *reader;

	span.free_index = 2;
	span.free_index_for_scan = 1; /* slot 1 was just handed out, its header not written */
	span.alloc_bits[0] = 0x10;
	fake_runtime_span(r, &span);
	store_word(r, fake_heap_page(1), type);
	store_word(r, fake_heap_page(1) + 3 * 704, type);  /* a free slot */
	store_word(r, fake_heap_page(1) + 4 * 704, 12345); /* no type */
	reader = open_reader(r);
	read_mask(r, reader, 1);
	for (uint32_t word = 0; word < PAGE_WORDS; word++)
		assert_int_equal(bitmap_get(reader->mask, word), word && word < 88 && word % 2);
	assert_int_equal(heap_bits_skipped_bytes(reader->bits), 704);
	close_reader(reader);
}

static void large_objects_have_their_type_in_the_span(void **state)
{
	struct fake_runtime *r = *state;
	struct fake_span span = { .page = 2,
				  .page_count = 5,
				  .elem_size = 5 * GO_PAGE_SIZE,
				  .elem_count = 1,
				  .free_index = 1,
				  .free_index_for_scan = 1 };
	struct reader *reader;

	span.large_type = fake_runtime_masked_type(r, 7 * 8, 0x22);
	fake_runtime_span(r, &span);
	reader = open_reader(r);
	read_mask(r, reader, 2);
	for (uint32_t word = 0; word < 5 * PAGE_WORDS; word++)
		assert_int_equal(bitmap_get(reader->mask, word), word % 7 == 1 || word % 7 == 5);
	assert_int_equal(heap_bits_skipped_bytes(reader->bits), 0);
	close_reader(reader);
}

static void a_large_object_that_is_being_zeroed_has_no_type(void **state)
{
	struct fake_runtime *r = *state;
	struct fake_span span = { .page_count = 5,
				  .elem_size = 5 * GO_PAGE_SIZE,
				  .elem_count = 1,
				  .free_index = 1,
				  .free_index_for_scan = 1 };
	struct reader *reader;

	fake_runtime_span(r, &span);
	span.page = 6;
	span.large_type = fake_runtime_masked_type(r, 6 * GO_PAGE_SIZE, 1); /* larger than itself */
	fake_runtime_span(r, &span);
	reader = open_reader(r);
	assert_words(read_mask(r, reader, 0), 5 * PAGE_WORDS, NULL, 0);
	assert_int_equal(heap_bits_skipped_bytes(reader->bits), 0);
	assert_words(read_mask(r, reader, 6), 5 * PAGE_WORDS, NULL, 0);
	assert_int_equal(heap_bits_skipped_bytes(reader->bits), 5 * GO_PAGE_SIZE);
	close_reader(reader);
}

static taddr arena_bits(const struct fake_runtime *r, uint32_t page)
{
	/* heapArenas lie in a row; see fake_runtime.c */
	return 0x1000000 + page / ARENA_PAGES * r->layout.heap_arena.size +
	       r->layout.heap_arena_bitmap.offset +
	       page % ARENA_PAGES * r->layout.heap_arena_bitmap.size / ARENA_PAGES;
}

static void one_bit_for_each_word_of_the_arena(void **state)
{
	struct fake_runtime *r = *state;
	struct fake_span span = small_span(3, 1024, 7);
	struct fake_span large = { .page = ARENA_PAGES - 1,
				   .page_count = 2,
				   .elem_size = 2 * GO_PAGE_SIZE,
				   .elem_count = 1 };
	struct reader *reader;

	fake_runtime_use_arena_bitmap(r, 1);
	fake_runtime_span(r, &span);
	fake_runtime_span(r, &large); /* in two arenas */
	store_word(r, arena_bits(r, 3), 0x8000000000000002);
	store_word(r, arena_bits(r, 3) + 13 * 8, 0x1);
	store_word(r, arena_bits(r, 3) + 14 * 8, 0x1); /* behind the last slot */
	store_word(r, arena_bits(r, ARENA_PAGES - 1) + 15 * 8, UINT64_C(1) << 63);
	store_word(r, arena_bits(r, ARENA_PAGES), 0x3);
	reader = open_reader(r);
	assert_words(read_mask(r, reader, 3), PAGE_WORDS, WORDS(1, 63, 832));
	assert_words(read_mask(r, reader, ARENA_PAGES - 1), 2 * PAGE_WORDS,
		     WORDS(1023, 1024, 1025));
	close_reader(reader);
}

/* Sets the bits of a word of a page: pointer, and more to scan. */
static void store_pair(struct fake_runtime *r, uint32_t page, uint32_t word, bool pointer,
		       bool more)
{
	uint8_t *byte = fake_memory_bytes(r->memory, arena_bits(r, page) + word / 4, 1);

	*byte |= (uint8_t)((pointer | more << 4) << word % 4);
}

static void of_two_bits_the_second_says_whether_to_go_on(void **state)
{
	struct fake_runtime *r = *state;
	struct fake_span span = small_span(3, 96, 85);
	struct reader *reader;

	fake_runtime_use_arena_bitmap(r, 2);
	fake_runtime_span(r, &span);
	store_pair(r, 3, 0, true, true);
	store_pair(r, 3, 1, false, true);
	store_pair(r, 3, 2, true, true);
	store_pair(r, 3, 4, true, true);    /* left by another object: word 3 has no more */
	store_pair(r, 3, 12, true, true);   /* the next object has one pointer, */
	store_pair(r, 3, 14, true, true);   /* and this is not it */
	store_pair(r, 3, 1019, true, true); /* the last object begins at word 1008 */
	for (uint32_t word = 1008; word < 1019; word++)
		store_pair(r, 3, word, false, true);
	store_pair(r, 3, 1020, true, true); /* behind the last slot */
	reader = open_reader(r);
	assert_words(read_mask(r, reader, 3), PAGE_WORDS, WORDS(0, 2, 12, 1019));
	close_reader(reader);
}

static void where_checkmarks_share_it_the_second_words_bit_says_nothing(void **state)
{
	struct fake_runtime *r = *state;
	struct fake_span span = small_span(3, 96, 85);
	struct reader *reader;

	fake_runtime_use_arena_bitmap(r, 2);
	r->layout.heap_arena_checkmarks = (struct layout_field){ 0, 0 };
	fake_runtime_span(r, &span);
	store_pair(r, 3, 0, true, true);
	store_pair(r, 3, 1, true, false);
	store_pair(r, 3, 2, true, true);
	store_pair(r, 3, 4, true, true);
	store_pair(r, 3, 12, true, true);
	store_pair(r, 3, 15, true, true); /* word 14 has no more */
	reader = open_reader(r);
	assert_words(read_mask(r, reader, 3), PAGE_WORDS, WORDS(0, 1, 2, 12));
	close_reader(reader);
}

static void two_bits_of_large_objects_are_read_run_by_run(void **state)
{
	struct fake_runtime *r = *state;
	struct fake_span large = { .page = ARENA_PAGES - 1,
				   .page_count = 3,
				   .elem_size = 3 * GO_PAGE_SIZE,
				   .elem_count = 1 };
	struct reader *reader;

	fake_runtime_use_arena_bitmap(r, 2);
	fake_runtime_span(r, &large);
	for (uint32_t word = 0; word < PAGE_WORDS; word++)
		store_pair(r, ARENA_PAGES - 1, word, word == 500, true);
	for (uint32_t word = 0; word < 100; word++)
		store_pair(r, ARENA_PAGES, word, word == 1 || word == 99, true);
	reader = open_reader(r);
	assert_words(read_mask(r, reader, ARENA_PAGES - 1), 3 * PAGE_WORDS, WORDS(500, 1025, 1123));
	close_reader(reader);
}

static void runs_that_are_not_of_the_span_are_refused(void **state)
{
	struct fake_runtime *r = *state;
	struct fake_span span = small_span(0, 704, 11);
	const struct span *small, *large;
	struct reader *reader;
	uint64_t mask[32] = { 0 };

	fake_runtime_span(r, &span);
	fake_runtime_span(
	    r, &(struct fake_span){
		   .page = 1, .page_count = 5, .elem_count = 1, .elem_size = 5 * GO_PAGE_SIZE });
	reader = open_reader(r);
	small = span_table_find(reader->spans, fake_heap_page(0));
	large = span_table_find(reader->spans, fake_heap_page(1));
	assert_error(heap_bits_read(reader->bits, small, 0, reader->words, 512, mask),
		     ERROR_FORMAT);
	assert_error(heap_bits_read(reader->bits, small, 0, reader->words, 2048, mask),
		     ERROR_FORMAT);
	assert_error(heap_bits_read(reader->bits, large, 256, reader->words, 64, mask),
		     ERROR_FORMAT);
	assert_error(
	    heap_bits_read(reader->bits, large, 4 * GO_PAGE_SIZE, reader->words, 2048, mask),
	    ERROR_FORMAT);
	assert_error(heap_bits_read(reader->bits, large, UINT64_MAX - 511, reader->words, 64, mask),
		     ERROR_FORMAT);
	assert_success(
	    heap_bits_read(reader->bits, large, 4 * GO_PAGE_SIZE, reader->words, 1024, mask));
	close_reader(reader);
}

static void a_runtime_without_known_bits_is_not_supported(void **state)
{
	struct fake_runtime *r = *state;
	struct span_table *spans;
	struct heap_bits *bits = NULL;

	r->layout.const_malloc_header_size.value = 16;
	assert_success(span_table_read(fake_memory_memory(r->memory), &r->layout, &spans));
	assert_error(heap_bits_new(fake_memory_memory(r->memory), &r->layout, spans, &bits),
		     ERROR_UNSUPPORTED);
	r->layout.heap_arena_bitmap = (struct layout_field){ 1024, 100 };
	assert_error(heap_bits_new(fake_memory_memory(r->memory), &r->layout, spans, &bits),
		     ERROR_UNSUPPORTED);
	assert_null(bits);
	span_table_free(spans);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(noscan_spans_have_no_pointers),
		TEST(bits_in_the_span_are_its_last_128_bytes),
		TEST(bits_in_the_span_are_below_its_marks),
		TEST(objects_beyond_512_bytes_begin_with_their_type),
		TEST(free_and_unfinished_objects_are_not_asked_for_their_type),
		TEST(large_objects_have_their_type_in_the_span),
		TEST(a_large_object_that_is_being_zeroed_has_no_type),
		TEST(one_bit_for_each_word_of_the_arena),
		TEST(of_two_bits_the_second_says_whether_to_go_on),
		TEST(where_checkmarks_share_it_the_second_words_bit_says_nothing),
		TEST(two_bits_of_large_objects_are_read_run_by_run),
		TEST(runs_that_are_not_of_the_span_are_refused),
		TEST(a_runtime_without_known_bits_is_not_supported),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("heap_bits", tests, NULL, NULL);
}
