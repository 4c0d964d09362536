#include "agent/goruntime/anchor.h"

#include "agent/goruntime/layout.h"
#include "tests/support/assertions.h"
#include "tests/support/fake_memory.h"

enum {
	TEXT = 0x400000,
	RODATA = 0x500000,
	DATA = 0x600000,
	SEGMENT_SIZE = 0x3000,
	PCLNTAB = RODATA + 0x1f8,
	MODULEDATA = DATA + 0xff8, /* over the end of a page */
};

static const struct anchor_segment segments[] = {
	{ TEXT, TEXT + SEGMENT_SIZE, false, true },
	{ RODATA, RODATA + SEGMENT_SIZE, false, false },
	{ DATA, DATA + SEGMENT_SIZE, true, false },
};

enum { SEGMENTS = sizeof(segments) / sizeof(segments[0]) };

/* Fields one after the other, behind the address of the table. */
static const struct layout layout = {
	.moduledata = { 96 },
	.moduledata_text = { 8, 8 },
	.moduledata_etext = { 16, 8 },
	.moduledata_noptrdata = { 24, 8 },
	.moduledata_enoptrdata = { 32, 8 },
	.moduledata_data = { 40, 8 },
	.moduledata_edata = { 48, 8 },
	.moduledata_bss = { 56, 8 },
	.moduledata_ebss = { 64, 8 },
	.moduledata_types = { 72, 8 },
	.moduledata_etypes = { 80, 8 },
};

static void store_moduledata(struct fake_memory *fake, taddr addr)
{
	const uint64_t words[] = { PCLNTAB,       TEXT,        TEXT + 0x2000, DATA,
				   DATA + 0x10,   DATA + 0x10, DATA + 0x2000, DATA + 0x2000,
				   DATA + 0x4000, RODATA,      RODATA + 0x100 };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		fake_memory_store(fake, addr + 8 * i, 8, words[i]);
}

static int setup(void **state)
{
	struct fake_memory *fake = fake_memory_new();

	for (size_t i = 0; i < SEGMENTS; i++)
		fake_memory_map(fake, segments[i].start, SEGMENT_SIZE);
	fake_memory_store(fake, PCLNTAB, 8, 0x08010000fffffff1);
	store_moduledata(fake, MODULEDATA);
	*state = fake;
	return 0;
}

static int teardown(void **state)
{
	fake_memory_free(*state);
	return 0;
}

static struct error *find(struct fake_memory *fake, taddr pclntab, taddr *ret)
{
	fake_memory_forget(fake);
	return anchor_find(fake_memory_memory(fake), segments, SEGMENTS, pclntab, &layout, ret);
}

static void it_is_found_with_and_without_section_headers(void **state)
{
	taddr found = 0;

	assert_success(find(*state, PCLNTAB, &found));
	assert_int_equal(found, MODULEDATA);
	found = 0;
	assert_success(find(*state, 0, &found));
	assert_int_equal(found, MODULEDATA);
}

static void every_magic_is_known(void **state)
{
	static const uint64_t magics[] = { 0xfffffffb, 0xfffffffa, 0xfffffff0, 0xfffffff1 };

	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++) {
		taddr found = 0;

		fake_memory_store(*state, PCLNTAB, 8, 0x0801000000000000 | magics[i]);
		assert_success(find(*state, 0, &found));
		assert_int_equal(found, MODULEDATA);
	}
}

static void a_pointer_to_the_table_alone_is_no_moduledata(void **state)
{
	taddr found = 0;

	fake_memory_store(*state, DATA + 0x800, 8, PCLNTAB);
	assert_success(find(*state, 0, &found));
	assert_int_equal(found, MODULEDATA);
	/* at the very end of what can be read */
	fake_memory_store(*state, DATA + SEGMENT_SIZE - 8, 8, PCLNTAB);
	assert_success(find(*state, 0, &found));
	assert_int_equal(found, MODULEDATA);
}

static void ranges_that_cannot_be_are_refused(void **state)
{
	static const unsigned places[] = { 8, 16, 24, 40, 48, 72, 80 };

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		taddr found;

		store_moduledata(*state, MODULEDATA);
		fake_memory_store(*state, MODULEDATA + places[i], 8, 0x10);
		assert_error(find(*state, 0, &found), ERROR_CORRUPT_TARGET);
	}
}

static void none_and_two_are_errors(void **state)
{
	taddr found;

	store_moduledata(*state, DATA + 0x100);
	assert_error(find(*state, 0, &found), ERROR_CORRUPT_TARGET);
	fake_memory_store(*state, PCLNTAB, 8, 0);
	assert_error(find(*state, 0, &found), ERROR_CORRUPT_TARGET);
}

static void tables_without_end_are_an_error(void **state)
{
	taddr found;

	for (taddr addr = RODATA + 0x400; addr < RODATA + 0x600; addr += 8)
		fake_memory_store(*state, addr, 8, 0x08010000fffffff1);
	assert_error(find(*state, 0, &found), ERROR_CORRUPT_TARGET);
}

static void pages_that_are_not_there_are_passed_over(void **state)
{
	const struct anchor_segment more[] = {
		segments[0],
		segments[1],
		segments[2],
		{ 0x700000, 0x702000, true, false },
	};
	taddr found = 0;

	fake_memory_forget(*state);
	assert_success(anchor_find(fake_memory_memory(*state), more, 4, 0, &layout, &found));
	assert_int_equal(found, MODULEDATA);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_is_found_with_and_without_section_headers, setup,
						teardown),
		cmocka_unit_test_setup_teardown(every_magic_is_known, setup, teardown),
		cmocka_unit_test_setup_teardown(a_pointer_to_the_table_alone_is_no_moduledata,
						setup, teardown),
		cmocka_unit_test_setup_teardown(ranges_that_cannot_be_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(none_and_two_are_errors, setup, teardown),
		cmocka_unit_test_setup_teardown(tables_without_end_are_an_error, setup, teardown),
		cmocka_unit_test_setup_teardown(pages_that_are_not_there_are_passed_over, setup,
						teardown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
