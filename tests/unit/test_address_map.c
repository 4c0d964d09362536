/* Regions of an address space: what mappings are by themselves, and paint. */
#include "tests/support/assertions.h"

#include <stdlib.h>

#include "agent/report/address_map.h"
#include "agent/report/range_list.h"
#include "agent/target/maps.h"

static struct maps *parse_maps(const char *text)
{
	struct maps *maps;

	assert_success(maps_parse(text, strlen(text), &maps));
	return maps;
}

static void assert_region(const struct address_map *map, uint32_t i, taddr start, taddr end,
			  enum memory_kind kind)
{
	assert_true(i < map->count);
	assert_int_equal(map->items[i].start, start);
	assert_int_equal(map->items[i].end, end);
	assert_string_equal(memory_kind_id(map->items[i].kind), memory_kind_id(kind));
}

static void mappings_say_what_they_are_by_their_names(void **state)
{
	static const struct {
		const char *line;
		enum memory_kind kind;
	} cases[] = {
		{ "1000-2000 r--p 00000000 08:01 12 /usr/lib/libc.so.6", MEMORY_FILE_MAPS },
		{ "1000-2000 rw-p 00000000 00:00 0", MEMORY_C_MEMORY },
		{ "1000-2000 rw-p 00000000 00:00 0 [heap]", MEMORY_C_MEMORY },
		{ "1000-2000 rw-p 00000000 00:00 0 [stack]", MEMORY_THREAD_STACKS },
		{ "1000-2000 r-xp 00000000 00:00 0 [vdso]", MEMORY_FILE_MAPS },
		{ "1000-2000 rw-p 00000000 00:00 0 [anon: Go: heap index]", MEMORY_HEAP_METADATA },
		{ "1000-2000 rw-p 00000000 00:00 0 [anon:arrow]", MEMORY_C_MEMORY },
		{ "1000-2000 rw-s 00000000 00:01 99 /memfd:wl_shm (deleted)", MEMORY_SHARED },
		{ "1000-2000 rw-s 00000000 00:01 7 /SYSV00000000 (deleted)", MEMORY_SHARED },
		{ "1000-2000 rw-s 00000000 00:01 7 /dev/zero (deleted)", MEMORY_SHARED },
		{ "1000-2000 rw-s 00000000 00:19 7 /dev/shm/segment", MEMORY_FILE_MAPS },
		{ "1000-2000 rw-s 00000000 00:01 7 [anon_shmem:pool]", MEMORY_SHARED },
		{ "1000-2000 rw-p 00000000 00:0f 7 /anon_hugepage (deleted)", MEMORY_C_MEMORY },
		{ "1000-2000 rw-s 00000000 00:0f 7 /anon_hugepage (deleted)", MEMORY_SHARED },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[256];
		struct maps *maps;
		struct address_map map;

		snprintf(text, sizeof(text), "%s\n", cases[i].line);
		maps = parse_maps(text);
		assert_success(address_map_init(maps, &map));
		assert_int_equal(map.count, 1);
		assert_region(&map, 0, 0x1000, 0x2000, cases[i].kind);
		address_map_fini(&map);
		maps_free(maps);
	}
}

static void the_kernels_own_page_is_no_region(void **state)
{
	struct maps *maps = parse_maps("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 "
				       "[vsyscall]\n");
	struct address_map map;

	(void)state;
	assert_success(address_map_init(maps, &map));
	assert_int_equal(map.count, 0);
	assert_null(address_map_find(&map, 0xffffffffff600000));
	address_map_fini(&map);
	maps_free(maps);
}

static const char two_mappings[] = "10000-20000 rw-p 00000000 00:00 0 \n"
				   "30000-40000 rw-p 00000000 00:00 0 [heap]\n";

static void paint_stays_where_something_is_mapped(void **state)
{
	struct maps *maps = parse_maps(two_mappings);
	struct paint_layer layer = { 0 };
	struct address_map map;

	(void)state;
	assert_success(address_map_init(maps, &map));
	assert_success(paint_add(&layer, 0x1a000, 0x32000, MEMORY_HEAP));
	assert_success(paint_add(&layer, 0, 0x11000, MEMORY_HEAP_METADATA));
	assert_success(paint_add(&layer, 0x38000, 0x38000, MEMORY_TEXT)); /* empty */
	assert_success(paint_add(&layer, 0x50000, 0x60000, MEMORY_TEXT)); /* nowhere */
	assert_success(address_map_paint(&map, &layer));

	assert_int_equal(map.count, 5);
	assert_region(&map, 0, 0x10000, 0x11000, MEMORY_HEAP_METADATA);
	assert_region(&map, 1, 0x11000, 0x1a000, MEMORY_C_MEMORY);
	assert_region(&map, 2, 0x1a000, 0x20000, MEMORY_HEAP);
	assert_region(&map, 3, 0x30000, 0x32000, MEMORY_HEAP);
	assert_region(&map, 4, 0x32000, 0x40000, MEMORY_C_MEMORY);
	assert_int_equal(map.items[2].mapping, 0);
	assert_int_equal(map.items[3].mapping, 1);
	assert_ptr_equal(address_map_find(&map, 0x1ffff), &map.items[2]);
	assert_null(address_map_find(&map, 0x20000));
	assert_ptr_equal(address_map_find(&map, 0x30000), &map.items[3]);
	paint_fini(&layer);
	address_map_fini(&map);
	maps_free(maps);
}

static void a_later_layer_covers_an_earlier_one(void **state)
{
	struct maps *maps = parse_maps(two_mappings);
	struct paint_layer below = { 0 }, above = { 0 };
	struct address_map map;

	(void)state;
	assert_success(address_map_init(maps, &map));
	assert_success(paint_add(&below, 0x10000, 0x20000, MEMORY_UNEXPLAINED));
	assert_success(paint_add(&above, 0x14000, 0x15000, MEMORY_HEAP));
	assert_success(address_map_paint(&map, &below));
	assert_success(address_map_paint(&map, &above));
	assert_int_equal(map.count, 4);
	assert_region(&map, 0, 0x10000, 0x14000, MEMORY_UNEXPLAINED);
	assert_region(&map, 1, 0x14000, 0x15000, MEMORY_HEAP);
	assert_region(&map, 2, 0x15000, 0x20000, MEMORY_UNEXPLAINED);
	assert_region(&map, 3, 0x30000, 0x40000, MEMORY_C_MEMORY);
	paint_fini(&above);
	paint_fini(&below);
	address_map_fini(&map);
	maps_free(maps);
}

/* Within a layer the first keeps its place. */
static void paints_of_one_layer_do_not_overlap(void **state)
{
	struct maps *maps = parse_maps(two_mappings);
	struct paint_layer layer = { 0 };
	struct address_map map;

	(void)state;
	assert_success(address_map_init(maps, &map));
	assert_success(paint_add(&layer, 0x12000, 0x16000, MEMORY_TEXT));
	assert_success(paint_add(&layer, 0x11000, 0x14000, MEMORY_DATA));
	assert_success(paint_add(&layer, 0x11800, 0x13000, MEMORY_BSS));
	assert_success(address_map_paint(&map, &layer));
	assert_region(&map, 1, 0x11000, 0x14000, MEMORY_DATA);
	assert_region(&map, 2, 0x14000, 0x16000, MEMORY_TEXT);
	assert_region(&map, 3, 0x16000, 0x20000, MEMORY_C_MEMORY);
	paint_fini(&layer);
	address_map_fini(&map);
	maps_free(maps);
}

/* Whatever is painted, the regions tile the mappings, and each byte has the topmost kind. */
static void random_paint_tiles_the_mappings(void **state)
{
	enum { END = 0x400 };
	struct maps *maps = parse_maps(two_mappings);

	(void)state;
	srand(2);
	for (int round = 0; round < 200; round++) {
		enum memory_kind expected[END];
		struct address_map map;
		uint64_t total = 0;

		assert_success(address_map_init(maps, &map));
		for (int i = 0; i < END; i++)
			expected[i] = MEMORY_C_MEMORY;
		for (int depth = 0; depth < 3; depth++) {
			struct paint_layer layer = { 0 };
			int at = rand() % 100;

			while (at < END) {
				int end = at + rand() % 100;
				enum memory_kind kind = rand() % MEMORY_KIND_COUNT;

				assert_success(
				    paint_add(&layer, (taddr)at << 8, (taddr)end << 8, kind));
				for (int i = at; i < end && i < END; i++)
					expected[i] = kind;
				at = end + rand() % 60;
			}
			assert_success(address_map_paint(&map, &layer));
			paint_fini(&layer);
		}
		for (uint32_t i = 0; i < map.count; i++) {
			const struct region *r = &map.items[i];

			assert_true(r->start < r->end);
			assert_true(!i || map.items[i - 1].end <= r->start);
			assert_true(r->start >= maps->items[r->mapping].start);
			assert_true(r->end <= maps->items[r->mapping].end);
			total += r->end - r->start;
			for (taddr at = r->start; at < r->end; at += 1 << 8)
				assert_int_equal(r->kind, expected[at >> 8]);
		}
		assert_int_equal(total, 0x20000);
		address_map_fini(&map);
	}
	maps_free(maps);
}

static void ranges_are_joined_where_they_touch(void **state)
{
	struct range_list list = { 0 };

	(void)state;
	assert_success(range_list_add(&list, 50, 60));
	assert_success(range_list_add(&list, 10, 20));
	assert_success(range_list_add(&list, 20, 30));
	assert_success(range_list_add(&list, 12, 15));
	assert_success(range_list_add(&list, 70, 70));
	assert_success(range_list_add(&list, 55, 58));
	range_list_join(&list);
	assert_int_equal(list.count, 2);
	assert_int_equal(list.items[0].start, 10);
	assert_int_equal(list.items[0].end, 30);
	assert_int_equal(list.items[1].start, 50);
	assert_int_equal(list.items[1].end, 60);
	assert_int_equal(range_list_after(&list, 0), 0);
	assert_int_equal(range_list_after(&list, 29), 0);
	assert_int_equal(range_list_after(&list, 30), 1);
	assert_int_equal(range_list_after(&list, 60), 2);
	range_list_fini(&list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mappings_say_what_they_are_by_their_names),
		cmocka_unit_test(the_kernels_own_page_is_no_region),
		cmocka_unit_test(paint_stays_where_something_is_mapped),
		cmocka_unit_test(a_later_layer_covers_an_earlier_one),
		cmocka_unit_test(paints_of_one_layer_do_not_overlap),
		cmocka_unit_test(random_paint_tiles_the_mappings),
		cmocka_unit_test(ranges_are_joined_where_they_touch),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
