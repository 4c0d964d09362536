/* Lists and expressions of locations, byte for byte. */
#include "agent/binary/dwarf_lists.h"

#include <string.h>

#include <dwarf.h>

#include "tests/support/assertions.h"

enum { BASE = 0x401000, ENTRIES_MAX = 8 };

struct entry {
	uint64_t start, end;
	uint8_t expression[4];
	size_t size;
};

struct entries {
	struct entry list[ENTRIES_MAX];
	unsigned count;
};

static struct error *note(void *arg, uint64_t start, uint64_t end, const uint8_t *expression,
			  size_t size)
{
	struct entries *entries = arg;
	struct entry *entry = &entries->list[entries->count++];

	assert_true(entries->count <= ENTRIES_MAX && size <= sizeof(entry->expression));
	*entry = (struct entry){ start, end, { 0 }, size };
	if (size)
		memcpy(entry->expression, expression, size);
	return NULL;
}

static void assert_entry(const struct entries *entries, unsigned i, uint64_t start, uint64_t end,
			 uint8_t op)
{
	assert_true(i < entries->count);
	assert_int_equal(entries->list[i].start, start);
	assert_int_equal(entries->list[i].end, end);
	assert_int_equal(entries->list[i].expression[0], op);
}

static uint64_t addresses[] = { 0, 0x402000, 0x403000 };

static uint64_t walked_before;

/* Locations if with_expressions is set, else ranges. */
static struct error *walk(unsigned version, bool with_expressions, const uint8_t *bytes,
			  size_t size, struct entries *ret)
{
	const struct dwarf_section section = { (uint8_t *)(uintptr_t)bytes, size };
	struct dwarf_lists lists = {
		.locations = section,
		.ranges = section,
		.location_lists = section,
		.range_lists = section,
		.addresses = { (uint8_t *)addresses, sizeof(addresses) },
		.walked = walked_before,
	};
	const struct dwarf_unit unit = { .version = version, .base = BASE, .addr_base = 8 };
	const struct dwarf_list_visitor visitor = { note, ret };

	ret->count = 0;
	return with_expressions ? dwarf_lists_locations(&lists, &unit, 1, &visitor)
				: dwarf_lists_ranges(&lists, &unit, 1, &visitor);
}

#define U64(low) (uint8_t)(low), (uint8_t)((low) >> 8), (uint8_t)((low) >> 16), 0, 0, 0, 0, 0
#define ONES     0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff

static const uint8_t old_locations[] = {
	0, /* the list does not begin with the section */
	U64(0x10), U64(0x20), 1, 0,          DW_OP_reg0,  ONES, U64(0x500000),
	U64(0x1),  U64(0x2),  2, 0,          DW_OP_fbreg, 0x70, U64(0x3),
	U64(0x3),  1,         0, DW_OP_reg1, /* nowhere */
	U64(0),    U64(0),
};

static void old_lists_are_offsets_from_a_base_that_can_change(void **state)
{
	struct entries entries;

	(void)state;
	assert_success(walk(4, true, old_locations, sizeof(old_locations), &entries));
	assert_int_equal(entries.count, 2);
	assert_entry(&entries, 0, BASE + 0x10, BASE + 0x20, DW_OP_reg0);
	assert_entry(&entries, 1, 0x500001, 0x500002, DW_OP_fbreg);
}

static void old_ranges_have_no_expressions(void **state)
{
	static const uint8_t bytes[] = { 0,         U64(1),    U64(9), ONES,  U64(0x500000),
					 U64(0x10), U64(0x11), U64(0), U64(0) };
	struct entries entries;

	(void)state;
	assert_success(walk(4, false, bytes, sizeof(bytes), &entries));
	assert_int_equal(entries.count, 2);
	assert_entry(&entries, 0, BASE + 1, BASE + 9, 0);
	assert_entry(&entries, 1, 0x500010, 0x500011, 0);
}

static const uint8_t new_locations[] = {
	0,
	DW_LLE_offset_pair,
	1,
	2,
	1,
	DW_OP_reg0,
	DW_LLE_base_addressx,
	0,
	DW_LLE_offset_pair,
	3,
	4,
	1,
	DW_OP_reg1,
	DW_LLE_startx_endx,
	0,
	1,
	1,
	DW_OP_reg2,
	DW_LLE_startx_length,
	1,
	0x81,
	1,
	1,
	DW_OP_reg3,
	DW_LLE_base_address,
	U64(0x600000),
	DW_LLE_offset_pair,
	5,
	6,
	1,
	DW_OP_reg4,
	DW_LLE_start_end,
	U64(0x700000),
	U64(0x700001),
	1,
	DW_OP_reg5,
	DW_LLE_start_length,
	U64(0x700000),
	7,
	1,
	DW_OP_reg6,
	DW_LLE_default_location,
	1,
	DW_OP_reg7,
	DW_LLE_end_of_list,
};

static void new_lists_have_entries_of_all_kinds(void **state)
{
	struct entries entries;

	(void)state;
	assert_success(walk(5, true, new_locations, sizeof(new_locations), &entries));
	assert_int_equal(entries.count, 7); /* the default is for nowhere in particular */
	assert_entry(&entries, 0, BASE + 1, BASE + 2, DW_OP_reg0);
	assert_entry(&entries, 1, 0x402003, 0x402004, DW_OP_reg1);
	assert_entry(&entries, 2, 0x402000, 0x403000, DW_OP_reg2);
	assert_entry(&entries, 3, 0x403000, 0x403081, DW_OP_reg3);
	assert_entry(&entries, 4, 0x600005, 0x600006, DW_OP_reg4);
	assert_entry(&entries, 5, 0x700000, 0x700001, DW_OP_reg5);
	assert_entry(&entries, 6, 0x700000, 0x700007, DW_OP_reg6);
}

static void new_ranges_have_numbers_of_their_own(void **state)
{
	static const uint8_t bytes[] = { 0,
					 DW_RLE_base_addressx,
					 0,
					 DW_RLE_offset_pair,
					 1,
					 2,
					 DW_RLE_base_address,
					 U64(0x600000),
					 DW_RLE_offset_pair,
					 3,
					 4,
					 DW_RLE_start_end,
					 U64(0x700000),
					 U64(0x700001),
					 DW_RLE_start_length,
					 U64(0x700000),
					 7,
					 DW_RLE_end_of_list };
	struct entries entries;

	(void)state;
	assert_success(walk(5, false, bytes, sizeof(bytes), &entries));
	assert_int_equal(entries.count, 4);
	assert_entry(&entries, 0, 0x402001, 0x402002, 0);
	assert_entry(&entries, 1, 0x600003, 0x600004, 0);
	assert_entry(&entries, 2, 0x700000, 0x700001, 0);
	assert_entry(&entries, 3, 0x700000, 0x700007, 0);
}

static void lists_that_are_cut_off_are_refused(void **state)
{
	struct entries entries;

	(void)state;
	for (size_t size = 0; size < sizeof(old_locations); size++) {
		struct tail_copy copy = tail_copy(old_locations, size);

		assert_error(walk(4, true, copy.bytes, size, &entries), ERROR_FORMAT);
		tail_copy_fini(&copy);
	}
	for (size_t size = 0; size < sizeof(new_locations); size++) {
		struct tail_copy copy = tail_copy(new_locations, size);

		assert_error(walk(5, true, copy.bytes, size, &entries), ERROR_FORMAT);
		tail_copy_fini(&copy);
	}
}

static void entries_that_lead_nowhere_are_refused(void **state)
{
	static const uint8_t unknown[] = { 0, 9, 0, 0 },
			     address[] = { 0, DW_LLE_base_addressx, 2, 0 };
	struct entries entries;

	(void)state;
	assert_error(walk(5, true, unknown, sizeof(unknown), &entries), ERROR_FORMAT);
	assert_error(walk(5, true, address, sizeof(address), &entries), ERROR_FORMAT);
}

static void lists_do_not_go_on_for_ever(void **state)
{
	struct entries entries;

	(void)state;
	walked_before = DWARF_LIST_ENTRIES_MAX - 2;
	assert_error(walk(4, true, old_locations, sizeof(old_locations), &entries), ERROR_LIMIT);
	assert_error(walk(5, true, new_locations, sizeof(new_locations), &entries), ERROR_LIMIT);
	walked_before = 0;
}

/* ---- expressions ---- */

static unsigned take_apart(const uint8_t *bytes, size_t size,
			   struct location_piece ret[LOCATION_PIECES_MAX])
{
	unsigned count = 0;

	assert_success(dwarf_expression_read(bytes, size, ret, &count));
	return count;
}

#define READ(pieces, ...)                                                                          \
	take_apart((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }),     \
		   pieces)

static void assert_piece(const struct location_piece *piece, enum location_kind kind,
			 int64_t number, uint64_t size)
{
	assert_int_equal(piece->kind, kind);
	assert_int_equal(piece->number, number);
	assert_int_equal(piece->size, size);
}

static void variables_are_in_one_place(void **state)
{
	struct location_piece pieces[LOCATION_PIECES_MAX];

	(void)state;
	assert_int_equal(READ(pieces, DW_OP_call_frame_cfa), 1);
	assert_piece(&pieces[0], LOCATION_FRAME, 0, 0);
	assert_int_equal(READ(pieces, DW_OP_fbreg, 0x80, 0x7f), 1);
	assert_piece(&pieces[0], LOCATION_FRAME, -128, 0);
	assert_false(pieces[0].is_address);
	assert_int_equal(READ(pieces, DW_OP_reg3), 1);
	assert_piece(&pieces[0], LOCATION_REGISTER, 3, 0);
	assert_int_equal(READ(pieces, DW_OP_regx, 40), 1);
	assert_piece(&pieces[0], LOCATION_REGISTER, 40, 0);
	assert_int_equal(READ(pieces, DW_OP_addr, U64(0x55aa10)), 1);
	assert_piece(&pieces[0], LOCATION_FIXED, 0x55aa10, 0);
	assert_int_equal(READ(pieces, DW_OP_call_frame_cfa, DW_OP_consts, 24, DW_OP_plus), 1);
	assert_piece(&pieces[0], LOCATION_FRAME, 24, 0);
}

static void what_escaped_is_where_its_address_is(void **state)
{
	struct location_piece pieces[LOCATION_PIECES_MAX];

	(void)state;
	assert_int_equal(READ(pieces, DW_OP_fbreg, 0x58, DW_OP_deref), 1);
	assert_piece(&pieces[0], LOCATION_FRAME, -40, 0);
	assert_true(pieces[0].is_address);
	/* what is behind two addresses is no place that we know */
	assert_int_equal(READ(pieces, DW_OP_fbreg, 0x58, DW_OP_deref, DW_OP_deref), 1);
	assert_int_equal(pieces[0].kind, LOCATION_OTHER);
}

static void pieces_are_told_in_order_those_that_are_nowhere_too(void **state)
{
	struct location_piece pieces[LOCATION_PIECES_MAX];

	(void)state;
	assert_int_equal(READ(pieces, DW_OP_fbreg, 0x68, DW_OP_piece, 8, DW_OP_piece, 8, DW_OP_reg2,
			      DW_OP_piece, 1),
			 3);
	assert_piece(&pieces[0], LOCATION_FRAME, -24, 8);
	assert_piece(&pieces[1], LOCATION_NONE, 0, 8);
	assert_piece(&pieces[2], LOCATION_REGISTER, 2, 1);
}

static void what_is_not_known_is_nowhere_and_what_is_cut_off_refused(void **state)
{
	struct location_piece pieces[LOCATION_PIECES_MAX];
	static const uint8_t cut[] = { DW_OP_fbreg },
			     endless[] = { DW_OP_fbreg, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
					   0x80,        0x80, 0x80, 0x80, 0x80, 0 },
			     nothing[] = { DW_OP_reg0, DW_OP_piece, 0 };
	unsigned count;

	(void)state;
	assert_int_equal(READ(pieces, DW_OP_breg7, 0, DW_OP_stack_value), 0);
	assert_int_equal(take_apart(cut, 0, pieces), 0);
	assert_error(dwarf_expression_read(cut, sizeof(cut), pieces, &count), ERROR_FORMAT);
	assert_error(dwarf_expression_read(endless, sizeof(endless), pieces, &count), ERROR_FORMAT);
	assert_error(dwarf_expression_read(nothing, sizeof(nothing), pieces, &count), ERROR_FORMAT);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(old_lists_are_offsets_from_a_base_that_can_change),
		cmocka_unit_test(old_ranges_have_no_expressions),
		cmocka_unit_test(new_lists_have_entries_of_all_kinds),
		cmocka_unit_test(new_ranges_have_numbers_of_their_own),
		cmocka_unit_test(lists_that_are_cut_off_are_refused),
		cmocka_unit_test(entries_that_lead_nowhere_are_refused),
		cmocka_unit_test(lists_do_not_go_on_for_ever),
		cmocka_unit_test(variables_are_in_one_place),
		cmocka_unit_test(what_escaped_is_where_its_address_is),
		cmocka_unit_test(pieces_are_told_in_order_those_that_are_nowhere_too),
		cmocka_unit_test(what_is_not_known_is_nowhere_and_what_is_cut_off_refused),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("dwarf lists", tests, NULL, NULL);
}
