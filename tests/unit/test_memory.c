#include "tests/support/assertions.h"

#include "agent/target/memory.h"

enum { BASE = 0x10000, SIZE = 3 * 4096 };

/* Bytes at BASE, with a count of the reads that reach them. */
struct array_memory {
	struct memory memory;
	uint8_t bytes[SIZE];
	unsigned reads;
};

static struct error *array_read(struct memory *memory, taddr addr, void *buf, size_t size)
{
	struct array_memory *array = (struct array_memory *)memory;

	array->reads++;
	if (addr < BASE || addr - BASE > SIZE || size > SIZE - (addr - BASE))
		return error_new(ERROR_FAULT, "outside");
	memcpy(buf, array->bytes + (addr - BASE), size);
	return NULL;
}

static void array_free(struct memory *memory)
{
	memory_fini(memory);
	free(memory);
}

static struct array_memory *array_new(void)
{
	static const struct memory_ops ops = { .read = array_read, .free = array_free };
	struct array_memory *array = calloc(1, sizeof(*array));

	assert_non_null(array);
	memory_init(&array->memory, &ops);
	for (size_t i = 0; i < SIZE; i++)
		array->bytes[i] = (uint8_t)(i * 7);
	return array;
}

static void numbers_are_little_endian(void **state)
{
	struct array_memory *array = array_new();
	uint64_t value;
	uint32_t value32;
	uint8_t value8;

	(void)state;
	memcpy(array->bytes + 8, "\x01\x02\x03\x04\x05\x06\x07\x88", 8);
	assert_success(memory_u64(&array->memory, BASE + 8, &value));
	assert_true(value == UINT64_C(0x8807060504030201));
	assert_success(memory_u32(&array->memory, BASE + 8, &value32));
	assert_int_equal(value32, 0x04030201);
	assert_success(memory_u8(&array->memory, BASE + 15, &value8));
	assert_int_equal(value8, 0x88);
	assert_success(memory_uint(&array->memory, BASE + 8, 2, &value));
	assert_int_equal(value, 0x0201);
	assert_error(memory_uint(&array->memory, BASE + 8, 3, &value), ERROR_FORMAT);
	memory_free(&array->memory);
}

static void small_reads_share_a_page(void **state)
{
	struct array_memory *array = array_new();
	uint64_t value;

	(void)state;
	for (taddr addr = BASE; addr < BASE + 4096; addr += 8)
		assert_success(memory_u64(&array->memory, addr, &value));
	assert_int_equal(array->reads, 1);
	assert_int_equal(array->memory.bytes_read, 4096);
	memory_free(&array->memory);
}

static void a_read_may_cross_pages(void **state)
{
	struct array_memory *array = array_new();
	uint8_t got[4096];

	(void)state;
	assert_success(memory_read(&array->memory, BASE + 100, got, sizeof(got)));
	assert_memory_equal(got, array->bytes + 100, sizeof(got));
	assert_success(memory_read(&array->memory, BASE + 4095, got, 2));
	assert_memory_equal(got, array->bytes + 4095, 2);
	memory_free(&array->memory);
}

static void large_reads_pass_the_cache(void **state)
{
	struct array_memory *array = array_new();
	uint8_t got[SIZE];

	(void)state;
	assert_success(memory_read(&array->memory, BASE, got, sizeof(got)));
	assert_memory_equal(got, array->bytes, sizeof(got));
	assert_int_equal(array->reads, 1);
	assert_success(memory_read_bulk(&array->memory, BASE + 1, got, 1));
	assert_int_equal(array->reads, 2);
	assert_int_equal(array->memory.bytes_read, SIZE + 1);
	memory_free(&array->memory);
}

static void what_cannot_be_read_is_a_fault(void **state)
{
	struct array_memory *array = array_new();
	uint8_t got[8192];
	uint64_t value;

	(void)state;
	assert_error(memory_u64(&array->memory, BASE - 4096, &value), ERROR_FAULT);
	assert_error(memory_u64(&array->memory, BASE + SIZE - 4, &value), ERROR_FAULT);
	assert_error(memory_read_bulk(&array->memory, UINT64_MAX - 1, got, 8), ERROR_FAULT);
	assert_error(memory_read(&array->memory, UINT64_MAX - 8, got, 8192), ERROR_FAULT);
	assert_error(memory_u64(&array->memory, UINT64_MAX - 3, &value), ERROR_FAULT);
	/* a page that failed is not in the cache */
	assert_error(memory_u64(&array->memory, BASE - 4096, &value), ERROR_FAULT);
	memory_free(&array->memory);
}

static void nothing_can_be_read_anywhere(void **state)
{
	struct array_memory *array = array_new();

	(void)state;
	assert_success(memory_read(&array->memory, 0, NULL, 0));
	assert_success(memory_read_bulk(&array->memory, UINT64_MAX, NULL, 0));
	assert_int_equal(array->reads, 0);
	memory_free(&array->memory);
}

static void an_array_is_believed_as_far_as_it_can_be_read(void **state)
{
	struct array_memory *array = array_new();
	uint64_t *words = NULL;

	(void)state;
	memcpy(array->bytes + 16, "\x01\x02\x03\x04\x05\x06\x07\x88", 8);
	assert_success(memory_read_words(&array->memory, BASE + 8, 2, 2, &words));
	assert_true(words[1] == UINT64_C(0x8807060504030201));
	free(words);
	words = NULL;
	assert_success(memory_read_words(&array->memory, BASE, SIZE / 8, UINT64_MAX, &words));
	free(words);
	words = NULL;
	assert_success(memory_read_words(&array->memory, 0, 0, 0, &words)); /* none: nowhere */
	free(words);
	words = NULL;
	assert_error(memory_read_words(&array->memory, BASE, 3, 2, &words), ERROR_LIMIT);
	/* what no machine has room for is not even asked of it */
	array->reads = 0;
	assert_error(memory_read_words(&array->memory, BASE, UINT64_MAX / 8, UINT64_MAX, &words),
		     ERROR_FAULT);
	assert_int_equal(array->reads, 1);
	assert_null(words);
	memory_free(&array->memory);
}

static void strings_are_read_within_their_limit(void **state)
{
	struct array_memory *array = array_new();
	const uint64_t header[2] = { BASE + 64, 5 }, longer[2] = { BASE, UINT64_MAX };
	char *text;
	size_t size;

	(void)state;
	memcpy(array->bytes, header, sizeof(header));
	memcpy(array->bytes + 16, longer, sizeof(longer));
	memcpy(array->bytes + 64, "he\0lo", 5);
	assert_success(memory_go_string(&array->memory, BASE, 5, &text, &size));
	assert_int_equal(size, 5);
	assert_memory_equal(text, "he\0lo", 6);
	free(text);
	assert_error(memory_go_string(&array->memory, BASE, 4, &text, &size), ERROR_LIMIT);
	assert_error(memory_go_string(&array->memory, BASE + 16, 1 << 20, &text, &size),
		     ERROR_LIMIT);
	memory_free(&array->memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_little_endian),
		cmocka_unit_test(small_reads_share_a_page),
		cmocka_unit_test(a_read_may_cross_pages),
		cmocka_unit_test(large_reads_pass_the_cache),
		cmocka_unit_test(what_cannot_be_read_is_a_fault),
		cmocka_unit_test(nothing_can_be_read_anywhere),
		cmocka_unit_test(an_array_is_believed_as_far_as_it_can_be_read),
		cmocka_unit_test(strings_are_read_within_their_limit),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
