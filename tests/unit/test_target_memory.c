/* Live and snapshot memory, over files that stand in for those of a process. */
#include "tests/support/assertions.h"

#include <sys/sysmacros.h>

#include "agent/target/live_memory.h"
#include "agent/target/snapshot_memory.h"
#include "tests/support/tree.h"

enum { PAGE_BYTES = 4096, BASE = 0x10000, PAGES = 8 };

static struct tree tree;
static struct live_memory_files files;
static uint8_t content[BASE + PAGES * PAGE_BYTES];

/*
 * From BASE on: 0 present, 1 absent and 2 swapped pages of anonymous memory; 3 absent and 4
 * present pages of the executable; an absent one of another file (5), an absent shared one (6),
 * an absent special one (7).
 */
static void write_maps(const struct stat *exe)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "10000-13000 rw-p 00000000 00:00 0 \n"
		 "13000-15000 r-xp 00001000 %02x:%02x %lu    /srv/shop\n"
		 "15000-16000 r--p 00000000 00:99 1    /srv/other\n"
		 "16000-17000 rw-s 00000000 00:01 2    /dev/zero (deleted)\n"
		 "17000-18000 r--p 00000000 00:00 0    [vvar]\n",
		 major(exe->st_dev), minor(exe->st_dev), (unsigned long)exe->st_ino);
	tree_write(&tree, "maps", text);
}

static int set_up(void **state)
{
	static const uint64_t present = UINT64_C(1) << 63, swapped = UINT64_C(1) << 62;
	static uint64_t pagemap[BASE / PAGE_BYTES + PAGES];
	uint64_t *entries = pagemap + BASE / PAGE_BYTES;
	struct stat exe;

	(void)state;
	tree_init(&tree);
	for (size_t i = 0; i < sizeof(content); i++)
		content[i] = (uint8_t)(i * 11 + i / PAGE_BYTES + 1);
	entries[0] = entries[4] = present;
	entries[2] = swapped;
	tree_write_bytes(&tree, "mem", content, sizeof(content));
	tree_write_bytes(&tree, "pagemap", pagemap, sizeof(pagemap));
	/* the executable ends in the middle of its second page */
	tree_write_bytes(&tree, "exe", content, PAGE_BYTES + 100);
	files.mem = tree_open(&tree, "mem");
	files.pagemap = tree_open(&tree, "pagemap");
	files.exe = tree_open(&tree, "exe");
	if (fstat(files.exe, &exe))
		return 1;
	write_maps(&exe);
	files.maps = tree_open(&tree, "maps");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(files.mem);
	close(files.pagemap);
	close(files.maps);
	close(files.exe);
	tree_fini(&tree);
	return 0;
}

static struct memory *open_live(void)
{
	struct memory *memory = NULL;

	assert_success(live_memory_open(&files, &memory));
	return memory;
}

static void pages_that_are_there_are_read(void **state)
{
	struct memory *memory = open_live();
	uint8_t got[PAGE_BYTES];

	(void)state;
	assert_success(memory_read_bulk(memory, BASE + 5, got, 100));
	assert_memory_equal(got, content + BASE + 5, 100);
	assert_success(memory_read_bulk(memory, BASE + 2 * PAGE_BYTES, got, PAGE_BYTES));
	assert_memory_equal(got, content + BASE + 2 * PAGE_BYTES, PAGE_BYTES);
	memory_free(memory);
}

static void absent_anonymous_pages_are_zeros(void **state)
{
	struct memory *memory = open_live();
	uint8_t got[PAGE_BYTES + 20], expected[PAGE_BYTES + 20] = { 0 };

	(void)state;
	/* the end of page 0, all of page 1, the beginning of page 2 */
	memcpy(expected, content + BASE + PAGE_BYTES - 10, 10);
	memcpy(expected + 10 + PAGE_BYTES, content + BASE + 2 * PAGE_BYTES, 10);
	assert_success(memory_read_bulk(memory, BASE + PAGE_BYTES - 10, got, sizeof(got)));
	assert_memory_equal(got, expected, sizeof(got));
	memory_free(memory);
}

static void absent_pages_of_the_executable_come_from_its_file(void **state)
{
	struct memory *memory = open_live();
	uint8_t got[PAGE_BYTES], expected[PAGE_BYTES] = { 0 };

	(void)state;
	memcpy(expected, content + PAGE_BYTES, 100);
	assert_success(memory_read_bulk(memory, BASE + 3 * PAGE_BYTES, got, PAGE_BYTES));
	assert_memory_equal(got, expected, PAGE_BYTES);
	assert_success(memory_read_bulk(memory, BASE + 4 * PAGE_BYTES, got, PAGE_BYTES));
	assert_memory_equal(got, content + BASE + 4 * PAGE_BYTES, PAGE_BYTES);
	memory_free(memory);
}

static void what_would_have_to_be_touched_is_a_fault(void **state)
{
	struct memory *memory = open_live();
	uint8_t byte;

	(void)state;
	for (int page = 5; page < 8; page++)
		assert_error(memory_read_bulk(memory, BASE + (taddr)page * PAGE_BYTES, &byte, 1),
			     ERROR_FAULT);
	assert_error(memory_read_bulk(memory, BASE - 1, &byte, 1), ERROR_FAULT);
	assert_error(memory_read_bulk(memory, BASE + PAGES * PAGE_BYTES, &byte, 1), ERROR_FAULT);
	assert_error(memory_read_bulk(memory, UINT64_C(1) << 63, &byte, 1), ERROR_FAULT);
	memory_free(memory);
}

static void without_the_executable_its_absent_pages_are_faults(void **state)
{
	struct live_memory_files without = files;
	struct memory *memory = NULL;
	uint8_t byte;

	(void)state;
	without.exe = -1;
	assert_success(live_memory_open(&without, &memory));
	assert_error(memory_read_bulk(memory, BASE + 3 * PAGE_BYTES, &byte, 1), ERROR_FAULT);
	memory_free(memory);
	without.exe = files.mem; /* another file */
	assert_success(live_memory_open(&without, &memory));
	assert_error(memory_read_bulk(memory, BASE + 3 * PAGE_BYTES, &byte, 1), ERROR_FAULT);
	memory_free(memory);
}

/* overlayfs and btrfs: maps has a file that no stat shows. */
static void where_maps_has_another_device_the_name_tells_the_executable(void **state)
{
	struct live_memory_files elsewhere = files;
	struct memory *memory = NULL;
	struct stat exe;
	uint8_t got[PAGE_BYTES], expected[PAGE_BYTES] = { 0 };
	const char *const others[] = { "/srv/shop (deleted)", "/srv/shopping", "/srv/sho", "" };

	(void)state;
	assert_false(fstat(files.exe, &exe));
	exe.st_dev += makedev(0, 7);
	write_maps(&exe);
	elsewhere.exe_name = "/srv/shop";
	assert_success(live_memory_open(&elsewhere, &memory));
	memcpy(expected, content + PAGE_BYTES, 100);
	assert_success(memory_read_bulk(memory, BASE + 3 * PAGE_BYTES, got, PAGE_BYTES));
	assert_memory_equal(got, expected, PAGE_BYTES);
	assert_error(memory_read_bulk(memory, BASE + 5 * PAGE_BYTES, got, 1), ERROR_FAULT);
	memory_free(memory);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		elsewhere.exe_name = others[i];
		assert_success(live_memory_open(&elsewhere, &memory));
		assert_error(memory_read_bulk(memory, BASE + 3 * PAGE_BYTES, got, 1), ERROR_FAULT);
		memory_free(memory);
	}
}

static void absent_pages_of_plugins_come_from_their_files(void **state)
{
	struct live_memory_file plugins[] = { { -1, "/srv/lost" }, { files.exe, "/srv/shop" } };
	struct live_memory_files with = files;
	struct memory *memory = NULL;
	struct stat plugin;
	uint8_t got[PAGE_BYTES];

	(void)state;
	with.exe = -1;
	with.plugins = plugins;
	with.plugin_count = 2;
	for (uint64_t other_device = 0; other_device < 2; other_device++) {
		assert_false(fstat(files.exe, &plugin));
		plugin.st_dev += makedev(0, 7) * other_device;
		write_maps(&plugin);
		assert_success(live_memory_open(&with, &memory));
		assert_success(memory_read_bulk(memory, BASE + 3 * PAGE_BYTES, got, 100));
		assert_memory_equal(got, content + PAGE_BYTES, 100);
		assert_error(memory_read_bulk(memory, BASE + 5 * PAGE_BYTES, got, 1), ERROR_FAULT);
		memory_free(memory);
	}
}

static void a_snapshot_is_read_through_its_descriptor(void **state)
{
	struct memory *memory = NULL;
	uint8_t got[PAGE_BYTES];

	(void)state;
	assert_success(snapshot_memory_open(files.mem, &memory));
	assert_success(memory_read_bulk(memory, BASE + 1, got, PAGE_BYTES));
	assert_memory_equal(got, content + BASE + 1, PAGE_BYTES);
	/* a file that ends is what a dead process's mem looks like */
	assert_error(memory_read_bulk(memory, sizeof(content) - 1, got, 2), ERROR_GONE);
	assert_error(memory_read_bulk(memory, UINT64_C(1) << 63, got, 1), ERROR_FAULT);
	memory_free(memory);
}

static void our_own_memory_has_faults(void **state)
{
	struct memory *memory = NULL;
	int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	uint64_t value = 42, got;

	(void)state;
	assert_true(fd >= 0);
	assert_success(snapshot_memory_open(fd, &memory));
	assert_success(memory_read_bulk(memory, (taddr)(uintptr_t)&value, &got, sizeof(got)));
	assert_int_equal(got, 42);
	assert_error(memory_read_bulk(memory, 8, &got, sizeof(got)), ERROR_FAULT);
	memory_free(memory);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(pages_that_are_there_are_read, set_up, tear_down),
		cmocka_unit_test_setup_teardown(absent_anonymous_pages_are_zeros, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(absent_pages_of_the_executable_come_from_its_file,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_would_have_to_be_touched_is_a_fault, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(without_the_executable_its_absent_pages_are_faults,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
		    where_maps_has_another_device_the_name_tells_the_executable, set_up, tear_down),
		cmocka_unit_test_setup_teardown(absent_pages_of_plugins_come_from_their_files,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_snapshot_is_read_through_its_descriptor, set_up,
						tear_down),
		cmocka_unit_test(our_own_memory_has_faults),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
