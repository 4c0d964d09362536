/* The walk of page tables, over pagemap files made by hand and over our own process. */
#include "tests/support/assertions.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/report/pagemap.h"
#include "agent/report/resident.h"
#include "agent/target/maps.h"

enum { PAGE = 4096 };

static const uint64_t present = UINT64_C(1) << 63, swapped = UINT64_C(1) << 62;

/* A pagemap in which the pages from addr on have these entries. */
static void write_entries(int fd, taddr addr, const uint64_t *entries, size_t count)
{
	assert_int_equal(
	    pwrite(fd, entries, count * sizeof(*entries), (off_t)(addr / PAGE * sizeof(*entries))),
	    count * sizeof(*entries));
}

static int pagemap_file(void)
{
	char path[] = "/tmp/goheapd-pagemap-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	unlink(path);
	return fd;
}

static struct maps *parse_maps(const char *text)
{
	struct maps *maps;

	assert_success(maps_parse(text, strlen(text), &maps));
	return maps;
}

static struct resident *read_resident(int fd, const char *text)
{
	struct maps *maps = parse_maps(text);
	struct resident *resident;

	assert_success(resident_read(fd, maps, &resident));
	maps_free(maps);
	return resident;
}

static void assert_count(const struct resident *resident, taddr start, taddr end, uint64_t in_ram,
			 uint64_t touched)
{
	struct resident_bytes bytes = resident_count(resident, start, end);

	assert_int_equal(bytes.resident, in_ram);
	assert_int_equal(bytes.touched, touched);
}

static void pages_count_by_their_entries(void **state)
{
	const uint64_t entries[] = { present, 0, swapped, present, present };
	int fd = pagemap_file();
	struct resident *resident;

	(void)state;
	write_entries(fd, 0x400000, entries, 5);
	resident = read_resident(fd, "400000-405000 rw-p 00000000 00:00 0 \n");
	assert_count(resident, 0x400000, 0x405000, 3 * PAGE, 4 * PAGE);
	assert_count(resident, 0x401000, 0x403000, 0, PAGE);
	assert_count(resident, 0, UINT64_MAX, 3 * PAGE, 4 * PAGE);
	assert_count(resident, 0x405000, UINT64_MAX, 0, 0);
	assert_count(resident, 0x404000, 0x404000, 0, 0);
	resident_free(resident);
	close(fd);
}

static void parts_of_pages_count_by_bytes(void **state)
{
	const uint64_t entries[] = { present, 0, present };
	int fd = pagemap_file();
	struct resident *resident;

	(void)state;
	write_entries(fd, 0x400000, entries, 3);
	resident = read_resident(fd, "400000-403000 rw-p 00000000 00:00 0 \n");
	assert_count(resident, 0x400010, 0x400020, 16, 16);
	assert_count(resident, 0x400ff0, 0x402010, 32, 32);
	assert_count(resident, 0x401001, 0x401fff, 0, 0);
	assert_count(resident, 0x3fffff, 0x400001, 1, 1);
	resident_free(resident);
	close(fd);
}

static void what_cannot_be_accessed_is_not_walked(void **state)
{
	const uint64_t entries[] = { present, present, present };
	int fd = pagemap_file();
	struct resident *resident;

	(void)state;
	write_entries(fd, 0x400000, entries, 3);
	resident = read_resident(fd, "400000-401000 ---p 00000000 00:00 0 \n"
				     "401000-402000 --xp 00000000 00:00 0 \n"
				     "402000-403000 ---p 00000000 00:00 0 \n"
				     "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 "
				     "                 [vsyscall]\n");
	assert_count(resident, 0x400000, 0x403000, PAGE, PAGE);
	resident_free(resident);
	close(fd);
}

static void mappings_beyond_measure_are_left_out_and_counted(void **state)
{
	const uint64_t entries[] = { present };
	int fd = pagemap_file();
	struct resident *resident;

	(void)state;
	write_entries(fd, 0x400000, entries, 1);
	resident = read_resident(fd, "400000-401000 rw-p 00000000 00:00 0 \n"
				     "100000000000-180000000000 rw-p 00000000 00:00 0 \n");
	assert_count(resident, 0, UINT64_MAX, PAGE, PAGE);
	assert_int_equal(resident_skipped_bytes(resident), UINT64_C(0x80000000000));
	resident_free(resident);
	close(fd);
}

static void a_pagemap_that_ends_early_is_an_error(void **state)
{
	int fd = pagemap_file();
	struct maps *maps = parse_maps("400000-401000 rw-p 00000000 00:00 0 \n");
	struct resident *resident = NULL;

	(void)state;
	assert_error(resident_read(fd, maps, &resident), ERROR_GONE);
	assert_null(resident);
	maps_free(maps);
	close(fd);
}

static void without_a_pagemap_nothing_is_resident(void **state)
{
	struct resident *resident = read_resident(-1, "400000-401000 rw-p 00000000 00:00 0 \n");

	(void)state;
	assert_count(resident, 0, UINT64_MAX, 0, 0);
	resident_free(resident);
}

/* Many runs in many 2 MiB chunks, against a plain array of flags. */
static void random_pages_count_as_an_array_of_flags_does(void **state)
{
	enum { PAGES = 5000 };
	const taddr start = 0x7fff00000;
	static uint8_t in_ram[PAGES], touched[PAGES];
	struct resident *resident;

	(void)state;
	assert_success(resident_new(&resident));
	srand(1);
	for (int page = 0; page < PAGES;) {
		int run = 1 + rand() % 700, ram = rand() % 2, skip = rand() % 50;

		for (int i = 0; i < run && page + i < PAGES; i++) {
			touched[page + i] = 1;
			in_ram[page + i] = (uint8_t)ram;
		}
		if (page + run > PAGES)
			run = PAGES - page;
		assert_success(resident_add(resident, start + (taddr)page * PAGE,
					    start + (taddr)(page + run) * PAGE, ram));
		page += run + skip;
	}
	for (int round = 0; round < 2000; round++) {
		int first = rand() % PAGES, last = first + rand() % (PAGES - first);
		uint64_t expected_ram = 0, expected_touched = 0;

		for (int page = first; page < last; page++) {
			expected_ram += in_ram[page] * PAGE;
			expected_touched += touched[page] * PAGE;
		}
		assert_count(resident, start + (taddr)first * PAGE, start + (taddr)last * PAGE,
			     expected_ram, expected_touched);
	}
	resident_free(resident);
}

struct own_pages {
	unsigned char seen[8];
	taddr start;
};

static struct error *note_own(void *arg, taddr start, taddr end, bool in_ram)
{
	struct own_pages *own = arg;

	for (taddr at = start; at < end; at += PAGE)
		own->seen[(at - own->start) / PAGE] = in_ram ? 'r' : 's';
	return NULL;
}

/* By PAGEMAP_SCAN where this kernel has it, and entry by entry. */
static void both_ways_see_our_own_pages(void **state)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	unsigned char *map =
	    mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(map, MAP_FAILED);
	assert_true(fd >= 0);
	assert_int_equal(madvise(map, 8 * PAGE, MADV_NOHUGEPAGE), 0);
	map[1 * PAGE] = 1;
	map[2 * PAGE] = 1;
	map[7 * PAGE] = 1;
	for (int scan = 0; scan < 2; scan++) {
		bool may_scan = scan;
		struct own_pages own = { .start = (uintptr_t)map };

		assert_success(
		    pagemap_walk(fd, own.start, own.start + 8 * PAGE, &may_scan, note_own, &own));
		assert_memory_equal(own.seen, "\0rr\0\0\0\0r", 8);
	}
	munmap(map, 8 * PAGE);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_count_by_their_entries),
		cmocka_unit_test(parts_of_pages_count_by_bytes),
		cmocka_unit_test(what_cannot_be_accessed_is_not_walked),
		cmocka_unit_test(mappings_beyond_measure_are_left_out_and_counted),
		cmocka_unit_test(a_pagemap_that_ends_early_is_an_error),
		cmocka_unit_test(without_a_pagemap_nothing_is_resident),
		cmocka_unit_test(random_pages_count_as_an_array_of_flags_does),
		cmocka_unit_test(both_ways_see_our_own_pages),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
