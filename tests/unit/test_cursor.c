#include "proto/base/cursor.h"

#include "tests/support/assertions.h"

static void numbers_are_little_endian(void **state)
{
	static const uint8_t bytes[] = { 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
					 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f };
	struct cursor c;
	uint8_t u8 = 0;
	uint16_t u16 = 0;
	uint32_t u32 = 0;
	uint64_t u64 = 0;

	(void)state;
	cursor_init(&c, "bytes", bytes, sizeof(bytes));
	assert_success(cursor_u8(&c, &u8));
	assert_success(cursor_u16le(&c, &u16));
	assert_success(cursor_u32le(&c, &u32));
	assert_success(cursor_u64le(&c, &u64));
	assert_int_equal(u8, 0x01);
	assert_int_equal(u16, 0x0302);
	assert_int_equal(u32, 0x07060504);
	assert_int_equal(u64, 0x0f0e0d0c0b0a0908);
	assert_int_equal(cursor_left(&c), 0);
}

static void nothing_is_read_past_the_end(void **state)
{
	static const uint8_t bytes[8];

	(void)state;
	for (size_t size = 0; size < 8; size++) {
		struct tail_copy copy = tail_copy(bytes, size);
		struct cursor c;
		uint64_t value = 7;

		cursor_init(&c, "bytes", copy.bytes, size);
		assert_error(cursor_u64le(&c, &value), ERROR_FORMAT);
		assert_int_equal(value, 7);
		assert_int_equal(cursor_left(&c), size);
		assert_error(cursor_skip(&c, UINT64_MAX), ERROR_FORMAT);
		tail_copy_fini(&copy);
	}
}

static void uvarints_use_up_to_64_bits(void **state)
{
	static const struct {
		uint8_t bytes[11];
		size_t size;
		uint64_t value;
	} good[] = {
		{ { 0x00 }, 1, 0 },
		{ { 0x7f }, 1, 127 },
		{ { 0xac, 0x02 }, 2, 300 },
		{ { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01 }, 10, UINT64_MAX },
	};
	static const uint8_t too_long[] = { 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
					    0x80, 0x80, 0x80, 0x02, 0x00 };
	struct cursor c;
	uint64_t value;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		cursor_init(&c, "uvarint", good[i].bytes, good[i].size);
		assert_success(cursor_uvarint(&c, &value));
		assert_true(value == good[i].value);
		assert_int_equal(cursor_left(&c), 0);
		cursor_init(&c, "uvarint", good[i].bytes, good[i].size - 1);
		assert_error(cursor_uvarint(&c, &value), ERROR_FORMAT);
	}
	cursor_init(&c, "uvarint", too_long, sizeof(too_long));
	assert_error(cursor_uvarint(&c, &value), ERROR_FORMAT);
}

static void strings_need_their_nul(void **state)
{
	static const char text[] = "abc\0de";
	struct cursor c;
	const char *string = NULL;

	(void)state;
	cursor_init(&c, "text", text, 6);
	assert_success(cursor_string(&c, &string));
	assert_string_equal(string, "abc");
	assert_error(cursor_string(&c, &string), ERROR_FORMAT);
	assert_int_equal(cursor_left(&c), 2);
}

static void counts_that_cannot_be_filled_are_refused(void **state)
{
	static const uint8_t bytes[] = { 2, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8 };
	struct cursor c;
	uint32_t count = 0;

	(void)state;
	cursor_init(&c, "items", bytes, sizeof(bytes));
	assert_success(cursor_count(&c, 4, &count));
	assert_int_equal(count, 2);
	cursor_init(&c, "items", bytes, sizeof(bytes));
	assert_error(cursor_count(&c, 5, &count), ERROR_FORMAT);
}

static void seeking_stays_inside(void **state)
{
	static const uint8_t bytes[4] = { 1, 2, 3, 4 };
	struct cursor c;
	uint8_t value = 0;

	(void)state;
	cursor_init(&c, "bytes", bytes, sizeof(bytes));
	assert_success(cursor_seek(&c, 3));
	assert_success(cursor_u8(&c, &value));
	assert_int_equal(value, 4);
	assert_success(cursor_seek(&c, 4));
	assert_error(cursor_seek(&c, 5), ERROR_FORMAT);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_little_endian),
		cmocka_unit_test(nothing_is_read_past_the_end),
		cmocka_unit_test(uvarints_use_up_to_64_bits),
		cmocka_unit_test(strings_need_their_nul),
		cmocka_unit_test(counts_that_cannot_be_filled_are_refused),
		cmocka_unit_test(seeking_stays_inside),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("cursor", tests, NULL, NULL);
}
