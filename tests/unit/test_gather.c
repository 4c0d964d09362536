/* Reading many small things at once, and bits in words. */
#include "tests/support/assertions.h"

#include <stdlib.h>

#include "agent/goruntime/bitmap.h"
#include "agent/goruntime/gather.h"
#include "tests/support/fake_memory.h"

enum { ITEMS = 3000 };

static const taddr somewhere = 0x7f0000000000;

struct visits {
	taddr last;
	uint32_t count, unreadable;
	bool seen[ITEMS];
};

/* Each item holds its own address. */
static void visit(void *arg, const struct gather_item *item, const uint8_t *bytes)
{
	struct visits *visits = arg;
	taddr value;

	assert_true(item->addr >= visits->last);
	assert_false(visits->seen[item->tag]);
	visits->seen[item->tag] = true;
	visits->last = item->addr;
	visits->count++;
	if (!bytes) {
		visits->unreadable++;
		return;
	}
	memcpy(&value, bytes + item->size - 8, 8);
	assert_int_equal(value, item->addr);
}

static void put(struct fake_memory *fake, struct gather_item *item, taddr addr, uint32_t size,
		uint32_t tag)
{
	*item = (struct gather_item){ addr, size, tag };
	fake_memory_store(fake, addr + size - 8, 8, addr);
}

static void items_are_visited_once_in_address_order(void **state)
{
	struct fake_memory *fake = fake_memory_new();
	struct gather_item items[ITEMS];
	struct visits visits = { 0 };
	uint64_t random = 7;

	(void)state;
	fake_memory_map(fake, somewhere, 64 << 20);
	for (uint32_t i = 0; i < ITEMS; i++) {
		/* a different place for each, in no order */
		uint64_t place = (i * UINT64_C(1103)) % ITEMS;

		random = random * 6364136223846793005 + 1442695040888963407;
		put(fake, &items[i], somewhere + place * 20000 + (random >> 56) * 8, 160, i);
	}
	assert_success(gather_read(fake_memory_memory(fake), items, ITEMS, visit, &visits));
	assert_int_equal(visits.count, ITEMS);
	assert_int_equal(visits.unreadable, 0);
	fake_memory_free(fake);
}

static void a_hole_spoils_only_what_lies_in_it(void **state)
{
	struct fake_memory *fake = fake_memory_new();
	struct gather_item items[30];
	struct visits visits = { 0 };

	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		fake_memory_map(fake, somewhere + i * 4096, 4096);
	for (uint32_t i = 0; i < 30; i++)
		put(fake, &items[i], somewhere + i * 408, 160, i);
	fake_memory_unmap(fake, somewhere + 4096); /* items 10 to 20 begin or end there */
	assert_success(gather_read(fake_memory_memory(fake), items, 30, visit, &visits));
	assert_int_equal(visits.count, 30);
	assert_int_equal(visits.unreadable, 11);
	fake_memory_free(fake);
}

static void runs_are_read_at_once(void **state)
{
	struct fake_memory *fake = fake_memory_new();
	struct memory *memory = fake_memory_memory(fake);
	struct gather_item items[4];
	struct visits visits = { 0 };

	(void)state;
	fake_memory_map(fake, somewhere, 4 << 20);
	put(fake, &items[0], somewhere, 8, 0);
	put(fake, &items[1], somewhere + 4000, 8, 1);     /* near enough */
	put(fake, &items[2], somewhere + 9000, 8, 2);     /* too far: a run of its own */
	put(fake, &items[3], somewhere + 9000, 16384, 3); /* over the same bytes */
	fake_memory_store(fake, somewhere + 9000, 8, somewhere + 9000);
	assert_success(gather_read(memory, items, 4, visit, &visits));
	assert_int_equal(visits.count, 4);
	assert_int_equal(memory->bytes_read, 4008 + 16384);
	fake_memory_free(fake);
}

static void nothing_to_gather_is_no_error(void **state)
{
	struct fake_memory *fake = fake_memory_new();
	struct visits visits = { 0 };

	(void)state;
	assert_success(gather_read(fake_memory_memory(fake), NULL, 0, visit, &visits));
	assert_int_equal(visits.count, 0);
	fake_memory_free(fake);
}

static void ranges_of_bits_are_moved_at_any_offset(void **state)
{
	const uint64_t from[3] = { 0x123456789abcdef0, 0xfedcba9876543210, 0x5555aaaa5555aaaa };

	(void)state;
	for (unsigned at = 0; at < 70; at++) {
		for (unsigned to = 0; to < 70; to += 3) {
			uint64_t bits[4] = { 0 };

			bitmap_or_range(bits, to, from, at, 100);
			for (unsigned i = 0; i < 256; i++)
				assert_int_equal(bitmap_get(bits, i),
						 i >= to && i < to + 100 &&
						     bitmap_get(from, at + i - to));
			bitmap_clear_range(bits, to + 10, 80);
			for (unsigned i = to + 10; i < to + 90; i++)
				assert_false(bitmap_get(bits, i));
			for (unsigned i = 0; i < 10; i++) {
				assert_int_equal(bitmap_get(bits, to + i),
						 bitmap_get(from, at + i));
				assert_int_equal(bitmap_get(bits, to + 90 + i),
						 bitmap_get(from, at + 90 + i));
			}
		}
	}
}

static void periods_repeat_to_the_last_bit(void **state)
{
	(void)state;
	for (uint64_t period = 1; period < 100; period += 7) {
		uint64_t bits[8] = { 0 };

		bitmap_set(bits, 3 + period - 1);
		bitmap_repeat(bits, 3, period, 401);
		for (uint64_t i = 0; i < 512; i++)
			assert_int_equal(bitmap_get(bits, i),
					 i >= 3 && i < 404 && (i - 3) % period == period - 1);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(items_are_visited_once_in_address_order),
		cmocka_unit_test(a_hole_spoils_only_what_lies_in_it),
		cmocka_unit_test(runs_are_read_at_once),
		cmocka_unit_test(nothing_to_gather_is_no_error),
		cmocka_unit_test(ranges_of_bits_are_moved_at_any_offset),
		cmocka_unit_test(periods_repeat_to_the_last_bit),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("gather", tests, NULL, NULL);
}
