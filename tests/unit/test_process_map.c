/* The address space of a process, told from made-up mappings, modules, threads and tables. */
#include "tests/support/assertions.h"

#include "agent/goruntime/arena.h"
#include "agent/goruntime/goroutine.h"
#include "agent/goruntime/machine.h"
#include "agent/goruntime/module.h"
#include "agent/goruntime/page_alloc.h"
#include "agent/goruntime/span.h"
#include "agent/report/process_map.h"
#include "agent/report/range_list.h"
#include "agent/target/maps.h"

enum { ARENA_BYTES = 64 << 20, PAGE = 8192 };

static const taddr arena_start = 0xc000000000;

/* Stand in for agent/goruntime's. */
struct module_table {
	struct module modules[2];
	uint32_t count;
};

uint32_t module_table_count(const struct module_table *table)
{
	return table->count;
}

const struct module *module_table_at(const struct module_table *table, uint32_t index)
{
	return &table->modules[index];
}

struct goroutine_table {
	struct machine_table machines;
};

const struct machine_table *goroutine_table_machines(const struct goroutine_table *table)
{
	return &table->machines;
}

struct page_alloc {
	struct free_run runs[2];
};

uint64_t page_alloc_count(const struct page_alloc *pages)
{
	(void)pages;
	return 2;
}

const struct free_run *page_alloc_at(const struct page_alloc *pages, uint64_t index)
{
	return &pages->runs[index];
}

struct span_table {
	struct span spans[2];
};

uint32_t span_table_count(const struct span_table *table)
{
	(void)table;
	return 2;
}

const struct span *span_table_at(const struct span_table *table, uint32_t index)
{
	return &table->spans[index];
}

const struct arena_table *span_table_arenas(const struct span_table *table)
{
	(void)table;
	return NULL;
}

uint32_t arena_table_count(const struct arena_table *table)
{
	(void)table;
	return 1;
}

const struct arena *arena_table_at(const struct arena_table *table, uint32_t index)
{
	static const struct arena arena = { .start = 0xc000000000 };

	(void)table, (void)index;
	return &arena;
}

uint64_t arena_table_arena_bytes(const struct arena_table *table)
{
	(void)table;
	return ARENA_BYTES;
}

/* A program with C in it and a plugin: threads of both, and the runtime's tables amid C's memory.
 */
static const char text_of_maps[] =
    "400000-480000 r-xp 00000000 08:01 5 /bin/app\n"
    "480000-500000 r--p 00080000 08:01 5 /bin/app\n"
    "500000-510000 rw-p 00100000 08:01 5 /bin/app\n"
    "510000-520000 rw-p 00000000 00:00 0 \n"
    "530000-540000 rw-p 00000000 00:00 0 [heap]\n"
    "c000000000-c000400000 rw-p 00000000 00:00 0 \n"
    "c000400000-c004000000 ---p 00000000 00:00 0 \n"
    "7f0000000000-7f0000010000 r-xp 00000000 08:01 6 /lib/plugin.so\n"
    "7f0000010000-7f0000020000 r--p 00010000 08:01 6 /lib/plugin.so\n"
    "7f0000020000-7f0000030000 rw-p 00020000 08:01 6 /lib/plugin.so\n"
    "7f0000030000-7f0000040000 rw-p 00000000 00:00 0 \n"
    "7f0000050000-7f0000060000 r-xp 00000000 08:01 7 /lib/libc.so.6\n"
    "7f0000060000-7f0000070000 rw-p 00010000 08:01 7 /lib/libc.so.6\n"
    "7f0000070000-7f0000080000 rw-p 00000000 00:00 0 \n"
    "7f0000100000-7f0000a00000 rw-p 00000000 00:00 0 \n"
    "7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0 [stack]\n";

struct fixture {
	struct maps *maps;
	struct module_table modules;
	struct goroutine_table goroutines;
	struct machine machines[2];
	struct stopped_thread threads[2];
	struct range_list metadata;
	struct span_table spans;
	struct page_alloc pages;
	struct address_map map;
};

static int setup(void **state)
{
	static struct fixture f;

	f = (struct fixture){
		.modules = {
			.modules = {
				{ .text = 0x400000, .noptrdata = 0x500000, .data = 0x504000,
				  .bss = 0x50f000, .ebss = 0x512000,
				  .noptrbss = 0x512000, .enoptrbss = 0x51f010 },
				{ .text = 0x7f0000000000, .bss = 0x7f000002f800,
				  .ebss = 0x7f0000031000, .noptrbss = 0x7f0000031000,
				  .enoptrbss = 0x7f0000032000 },
			},
			.count = 2,
		},
		/* Stacks of 8 MiB that C made; the kernel joined the mapping with another. */
		.threads = {
			{ .tid = 1, .sp = 0x7ffd00020000, .tls = 0x7f0000070100 },
			{ .tid = 2, .sp = arena_start + 0x1000, .tls = 0x7f00008ff6c0 },
		},
		.spans.spans = {
			{ .base = arena_start, .page_count = 2, .state = SPAN_MANUAL },
			{ .base = arena_start + 2 * PAGE, .page_count = 8, .state = SPAN_IN_USE },
		},
		.pages.runs = { { arena_start + 10 * PAGE, 4, true },
				{ arena_start + 20 * PAGE, 4, false } },
	};
	f.machines[0] = (struct machine){ .g0_stack = { 0x7ffd0001f000, 0x7ffd00021000 },
					  .thread = &f.threads[0] };
	f.machines[1] = (struct machine){ .g0_stack = { 0x7f0000101000, 0x7f00008ff000 },
					  .thread = &f.threads[1] };
	f.goroutines.machines = (struct machine_table){ f.machines, 2, 2 };
	assert_success(maps_parse(text_of_maps, strlen(text_of_maps), &f.maps));
	assert_success(range_list_add(&f.metadata, 0x7f0000980000, 0x7f00009c0000));
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	address_map_fini(&f->map);
	range_list_fini(&f->metadata);
	maps_free(f->maps);
	return 0;
}

static void read_map(struct fixture *f)
{
	const struct process_map_input input = {
		.maps = f->maps,
		.exe = "/bin/app",
		.modules = &f->modules,
		.goroutines = &f->goroutines,
		.threads = f->threads,
		.thread_count = 2,
		.metadata = &f->metadata,
		.spans = &f->spans,
		.pages = &f->pages,
	};

	assert_success(process_map_init(&input, &f->map));
}

/* All of [start, end) is one kind, and what borders on it is another. */
static void assert_kind(const struct fixture *f, taddr start, taddr end, enum memory_kind kind)
{
	taddr at = start;

	while (at < end) {
		const struct region *region = address_map_find(&f->map, at);

		if (!region)
			fail_msg("nothing at 0x%llx", (long long)at);
		assert_string_equal(memory_kind_id(region->kind), memory_kind_id(kind));
		at = region->end;
	}
	assert_int_equal(at, end);
	assert_int_equal(address_map_find(&f->map, start)->start, start);
}

static void programs_are_told_by_their_sections(void **state)
{
	struct fixture *f = *state;

	read_map(f);
	assert_kind(f, 0x400000, 0x480000, MEMORY_TEXT);
	assert_kind(f, 0x480000, 0x500000, MEMORY_READONLY);
	assert_kind(f, 0x500000, 0x50f000, MEMORY_DATA);
	assert_kind(f, 0x510000, 0x520000, MEMORY_BSS); /* what lies behind Go's is C's */
	assert_int_equal(address_map_find(&f->map, 0x50f000)->kind, MEMORY_BSS);
	assert_kind(f, 0x530000, 0x540000, MEMORY_C_MEMORY);
}

static void plugins_are_programs_and_libraries_are_files(void **state)
{
	struct fixture *f = *state;

	read_map(f);
	assert_kind(f, 0x7f0000000000, 0x7f0000010000, MEMORY_TEXT);
	assert_kind(f, 0x7f0000010000, 0x7f0000020000, MEMORY_READONLY);
	assert_kind(f, 0x7f0000020000, 0x7f000002f800, MEMORY_DATA);
	assert_int_equal(address_map_find(&f->map, 0x7f000002f800)->kind, MEMORY_BSS);
	assert_kind(f, 0x7f0000050000, 0x7f0000070000, MEMORY_FILE_MAPS);
}

/* The thread pointer of the second thread is 0x940 bytes below the end of its stack. */
static void stacks_end_where_their_thread_block_does(void **state)
{
	struct fixture *f = *state;

	read_map(f);
	assert_kind(f, 0x7ffd00000000, 0x7ffd00021000, MEMORY_THREAD_STACKS);
	assert_kind(f, 0x7f0000100000, 0x7f0000900000, MEMORY_THREAD_STACKS);
	assert_kind(f, 0x7f0000900000, 0x7f0000980000, MEMORY_C_MEMORY);
	/* The first thread's pointer is not on its stack: that mapping is no stack. */
	assert_kind(f, 0x7f0000070000, 0x7f0000080000, MEMORY_C_MEMORY);
}

static void the_runtimes_tables_are_taken_out_of_what_surrounds_them(void **state)
{
	struct fixture *f = *state;

	read_map(f);
	assert_kind(f, 0x7f0000980000, 0x7f00009c0000, MEMORY_HEAP_METADATA);
	assert_kind(f, 0x7f00009c0000, 0x7f0000a00000, MEMORY_C_MEMORY);
}

static void an_arena_is_heap_where_spans_or_free_pages_are(void **state)
{
	struct fixture *f = *state;

	read_map(f);
	assert_kind(f, arena_start, arena_start + 14 * PAGE, MEMORY_HEAP);
	assert_kind(f, arena_start + 14 * PAGE, arena_start + 20 * PAGE, MEMORY_UNEXPLAINED);
	assert_kind(f, arena_start + 20 * PAGE, arena_start + 24 * PAGE, MEMORY_HEAP);
	assert_kind(f, arena_start + 24 * PAGE, 0xc000400000, MEMORY_UNEXPLAINED);
	assert_kind(f, 0xc000400000, 0xc004000000, MEMORY_HEAP); /* reserved */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(programs_are_told_by_their_sections),
		TEST(plugins_are_programs_and_libraries_are_files),
		TEST(stacks_end_where_their_thread_block_does),
		TEST(the_runtimes_tables_are_taken_out_of_what_surrounds_them),
		TEST(an_arena_is_heap_where_spans_or_free_pages_are),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
