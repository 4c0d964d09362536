/* What the heap's pages are used for, and the memory tree made of it, over a made-up heap. */
#include "tests/support/assertions.h"

#include <stdlib.h>

#include "agent/analysis/graph.h"
#include "agent/analysis/mark.h"
#include "agent/analysis/root_set.h"
#include "agent/goruntime/page_alloc.h"
#include "agent/report/address_map.h"
#include "agent/report/heap_usage.h"
#include "agent/report/mapping_list.h"
#include "agent/report/memory_tree.h"
#include "agent/report/range_list.h"
#include "agent/report/resident.h"
#include "agent/target/maps.h"
#include "tests/support/fake_heap.h"

/* Stands in for agent/goruntime's. */
struct page_alloc {
	struct free_run runs[4];
	uint64_t count;
};

uint64_t page_alloc_count(const struct page_alloc *pages)
{
	return pages->count;
}

const struct free_run *page_alloc_at(const struct page_alloc *pages, uint64_t index)
{
	return &pages->runs[index];
}

/*
 * One span each of small objects, of a large one and of the runtime's own, and free pages. Of the
 * small objects one is live, one finalizable, one garbage, the others free.
 */
struct world {
	struct fake_heap *heap;
	uint32_t small, large, manual;
	struct graph *graph;
	struct root_set *roots;
	struct mark *mark;
	struct page_alloc pages;
	struct range_list stacks;
	struct resident *resident;
	taddr start, end; /* of all of it */
};

enum { SLOTS = 170, SLOT = 48, SPAN = 8192, LARGE = 5 * SPAN, MANUAL = 4 * SPAN, FREE = 3 * SPAN };

static void mark_world(struct world *w)
{
	const struct root root = {
		.kind = ROOT_DATA,
		.goroutine = ROOT_NO_GOROUTINE,
		.value = fake_heap_addr(w->heap, fake_heap_object(w->heap, w->small, 0)),
	};

	assert_success(
	    graph_read(fake_heap_memory(w->heap), NULL, fake_heap_spans(w->heap), 1, 0, &w->graph));
	assert_success(root_set_new(fake_heap_spans(w->heap), &w->roots));
	assert_success(root_set_sink(w->roots)->add(root_set_sink(w->roots), &root));
	assert_success(mark_run(w->graph, w->roots, fake_heap_specials(w->heap), 1, &w->mark));
}

static struct world world_init(void)
{
	struct world w = { .heap = fake_heap_new() };
	const struct span *manual;

	w.small = fake_heap_add(w.heap, SLOT, SLOTS, false);
	w.large = fake_heap_add(w.heap, 4 * SPAN + 100, 1, true);
	w.manual = fake_heap_add(w.heap, MANUAL, 1, true);
	fake_heap_span(w.heap, w.manual)->state = SPAN_MANUAL;
	fake_heap_span(w.heap, w.manual)->elem_count = 0;
	fake_heap_span(w.heap, w.manual)->elem_size = 0;
	fake_heap_finish(w.heap);
	for (uint32_t slot = 3; slot < SLOTS; slot++)
		fake_heap_set_slot(w.heap, fake_heap_object(w.heap, w.small, slot), FAKE_FREE);
	fake_heap_add_special(w.heap, fake_heap_object(w.heap, w.small, 1), SPECIAL_FINALIZER);
	mark_world(&w);

	manual = fake_heap_span(w.heap, w.manual);
	w.start = fake_heap_span(w.heap, w.small)->base;
	w.end = manual->base + MANUAL + 2 * FREE;
	w.pages = (struct page_alloc){
		.runs = { { manual->base + MANUAL, 3, false },
			  { manual->base + MANUAL + FREE, 3, true } },
		.count = 2,
	};
	assert_success(range_list_add(&w.stacks, manual->base, manual->base + 2048));
	assert_success(range_list_add(&w.stacks, manual->base + SPAN, manual->base + SPAN + 4096));
	range_list_join(&w.stacks);
	assert_success(resident_new(&w.resident));
	return w;
}

static void world_fini(struct world *w)
{
	resident_free(w->resident);
	range_list_fini(&w->stacks);
	mark_free(w->mark);
	root_set_free(w->roots);
	graph_free(w->graph);
	fake_heap_free(w->heap);
}

static struct heap_usage count_world(const struct world *w, bool marked)
{
	const struct heap_pages heap = {
		.spans = fake_heap_spans(w->heap),
		.mark = marked ? w->mark : NULL,
		.stacks = &w->stacks,
		.pages = &w->pages,
	};
	struct heap_usage usage;

	heap_usage_count(&heap, w->resident, &usage);
	return usage;
}

static void assert_usage(struct usage usage, uint64_t bytes, uint64_t resident)
{
	assert_int_equal(usage.bytes, bytes);
	assert_int_equal(usage.resident, resident);
}

static void every_byte_of_a_heap_in_ram_is_counted_once(void **state)
{
	struct world w = world_init();
	struct heap_usage usage;

	(void)state;
	assert_success(resident_add(w.resident, w.start, w.end, true));
	usage = count_world(&w, true);
	assert_usage(usage.live, SLOT, SLOT);
	assert_usage(usage.finalizable, SLOT, SLOT);
	assert_usage(usage.garbage, SLOT + LARGE, SLOT + LARGE);
	assert_usage(usage.unmarked, 0, 0);
	assert_usage(usage.free_slots, (SLOTS - 3) * SLOT, (SLOTS - 3) * SLOT);
	assert_usage(usage.round, SPAN - SLOTS * SLOT, SPAN - SLOTS * SLOT);
	assert_usage(usage.stacks, 2048 + 4096, 2048 + 4096);
	assert_usage(usage.manual, MANUAL - 2048 - 4096, MANUAL - 2048 - 4096);
	assert_usage(usage.kept, FREE, FREE);
	assert_usage(usage.released, FREE, FREE);
	world_fini(&w);
}

static void without_marking_allocated_slots_stay_together(void **state)
{
	struct world w = world_init();
	struct heap_usage usage;

	(void)state;
	assert_success(resident_add(w.resident, w.start, w.start + SPAN, true));
	usage = count_world(&w, false);
	assert_usage(usage.unmarked, 3 * SLOT + LARGE, 3 * SLOT);
	assert_usage(usage.live, 0, 0);
	assert_usage(usage.garbage, 0, 0);
	world_fini(&w);
}

/* The first OS page of the small span is in RAM, and the third one of the large object. */
static void pages_in_ram_are_shared_out_over_their_slots(void **state)
{
	struct world w = world_init();
	taddr large;
	struct heap_usage usage;

	(void)state;
	large = fake_heap_span(w.heap, w.large)->base;
	assert_success(resident_add(w.resident, w.start, w.start + 4096, true));
	assert_success(resident_add(w.resident, w.start + 4096, w.start + 8192, false));
	assert_success(resident_add(w.resident, large + 8192, large + 12288, true));
	usage = count_world(&w, true);
	assert_usage(usage.live, SLOT, SLOT);
	assert_usage(usage.finalizable, SLOT, SLOT);
	assert_usage(usage.garbage, SLOT + LARGE, SLOT + 4096);
	assert_usage(usage.free_slots, (SLOTS - 3) * SLOT, 4096 - 3 * SLOT);
	assert_usage(usage.round, SPAN - SLOTS * SLOT, 0);
	world_fini(&w);
}

/* Sums of children, all the way down; returns the number of nodes. */
static unsigned check_sums(const Goheapd__MemoryNode *node)
{
	uint64_t bytes = 0, resident = 0;
	unsigned count = 1;

	for (size_t i = 0; i < node->n_children; i++) {
		bytes += node->children[i]->bytes;
		resident += node->children[i]->resident_bytes;
		count += check_sums(node->children[i]);
	}
	if (node->n_children) {
		assert_int_equal(node->bytes, bytes);
		assert_int_equal(node->resident_bytes, resident);
	}
	assert_true(node->resident_bytes <= node->bytes);
	return count;
}

/* The node at a path of ids, which must be there. */
static const Goheapd__MemoryNode *node_at(const Goheapd__MemoryNode *node, const char *const *path)
{
	for (; *path; path++) {
		const Goheapd__MemoryNode *found = NULL;

		for (size_t i = 0; i < node->n_children; i++)
			if (strcmp(node->children[i]->id, *path) == 0)
				found = node->children[i];
		if (!found)
			fail_msg("no %s in %s", *path, node->id);
		node = found;
	}
	return node;
}

#define NODE(tree, ...) node_at(tree, (const char *const[]){ __VA_ARGS__, NULL })

static const char text_of_maps[] =
    "400000-401000 r-xp 00000000 08:01 5 /bin/app\n"
    "500000-503000 r--p 00000000 08:01 6 /lib/big.so\n"
    "503000-504000 r--p 00000000 08:01 7 /lib/small.so\n"
    "504000-505000 rw-p 00003000 08:01 6 /lib/big.so\n"
    "600000-640000 rw-p 00000000 00:00 0 [heap]\n"
    "c000000000-c000020000 rw-p 00000000 00:00 0 \n"
    "c000020000-c004000000 ---p 00000000 00:00 0 \n"
    "7f0000000000-7f0000010000 rw-p 00000000 00:00 0 \n"
    "7f0000020000-7f0000030000 rw-s 00000000 00:01 9 /dev/zero (deleted)\n";

struct report {
	struct maps *maps;
	struct address_map regions;
};

static struct report report_init(const struct world *w)
{
	struct report report;
	struct paint_layer layer = { 0 };

	assert_success(maps_parse(text_of_maps, strlen(text_of_maps), &report.maps));
	assert_success(address_map_init(report.maps, &report.regions));
	assert_success(paint_add(&layer, 0x400000, 0x401000, MEMORY_TEXT));
	assert_success(paint_add(&layer, w->start, w->end, MEMORY_HEAP));
	assert_success(paint_add(&layer, 0x7f0000000000, 0x7f0000004000, MEMORY_HEAP_METADATA));
	assert_success(address_map_paint(&report.regions, &layer));
	paint_fini(&layer);
	return report;
}

static void report_fini(struct report *report)
{
	address_map_fini(&report->regions);
	maps_free(report->maps);
}

static Goheapd__MemoryNode *make_tree(const struct world *w, const struct report *report,
				      const struct heap_usage *usage)
{
	const struct memory_tree_input input = {
		.maps = report->maps,
		.regions = &report->regions,
		.resident = w->resident,
		.heap = usage,
		.marked = true,
	};
	Goheapd__MemoryNode *tree;

	assert_success(memory_tree_make(&input, &tree));
	return tree;
}

static void assert_node(const Goheapd__MemoryNode *node, uint64_t bytes, uint64_t resident)
{
	assert_int_equal(node->bytes, bytes);
	assert_int_equal(node->resident_bytes, resident);
}

static void each_node_counts_by_its_rule(void **state)
{
	struct world w = world_init();
	struct report report = report_init(&w);
	struct heap_usage usage;
	Goheapd__MemoryNode *tree;

	(void)state;
	assert_success(resident_add(w.resident, 0x400000, 0x401000, true));
	assert_success(resident_add(w.resident, 0x501000, 0x504000, true));
	assert_success(resident_add(w.resident, 0x600000, 0x610000, true));
	assert_success(resident_add(w.resident, 0x610000, 0x618000, false));
	assert_success(resident_add(w.resident, w.start, w.end, true));
	assert_success(resident_add(w.resident, 0x7f0000003000, 0x7f0000005000, true));
	assert_success(resident_add(w.resident, 0x7f0000021000, 0x7f0000022000, true));
	usage = count_world(&w, true);
	tree = make_tree(&w, &report, &usage);

	assert_string_equal(tree->id, "process");
	assert_int_equal(tree->n_children, MEMORY_KIND_COUNT);
	check_sums(tree);
	assert_node(NODE(tree, "text"), 0x1000, 0x1000);
	assert_node(NODE(tree, "readonly"), 0, 0);
	assert_node(NODE(tree, "heap"), w.end - w.start, w.end - w.start);
	assert_node(NODE(tree, "heap", "in_use_spans", "alloc", "live"), SLOT, SLOT);
	assert_node(NODE(tree, "heap", "manual_spans", "stacks_used"), 6144, 6144);
	assert_node(NODE(tree, "heap", "free_spans", "released"), FREE, FREE);
	assert_node(NODE(tree, "heap_metadata"), 0x1000, 0x1000);
	assert_node(NODE(tree, "file_maps", "/lib/big.so"), 0x4000, 0x2000);
	assert_node(NODE(tree, "file_maps", "/lib/small.so"), 0x1000, 0x1000);
	assert_node(NODE(tree, "c_memory", "[heap]"), 0x18000, 0x10000);
	assert_node(NODE(tree, "c_memory", "anonymous"), 0x1000, 0x1000);
	assert_node(NODE(tree, "shared"), 0x10000, 0x1000);
	assert_node(NODE(tree, "unexplained"), 0, 0);
	assert_string_equal(NODE(tree, "file_maps")->children[0]->id, "/lib/big.so");
	goheapd__memory_node__free_unpacked(tree, NULL);
	report_fini(&report);
	world_fini(&w);
}

static void any_pages_in_ram_leave_the_sums_right(void **state)
{
	(void)state;
	srand(3);
	for (int round = 0; round < 100; round++) {
		struct world w = world_init();
		struct report report = report_init(&w);
		struct heap_usage usage;
		struct resident_bytes all;
		Goheapd__MemoryNode *tree;

		for (uint32_t i = 0; i < report.maps->count; i++) {
			const struct mapping *mapping = &report.maps->items[i];
			taddr at = mapping->start;

			while (mapping->read && at < mapping->end) {
				taddr end = at + (taddr)(1 + rand() % 7) * 4096;

				if (end > mapping->end)
					end = mapping->end;
				if (rand() % 2)
					assert_success(
					    resident_add(w.resident, at, end, rand() % 3));
				at = end;
			}
		}
		usage = count_world(&w, true);
		tree = make_tree(&w, &report, &usage);
		check_sums(tree);
		all = resident_count(w.resident, 0, UINT64_MAX);
		assert_int_equal(tree->resident_bytes, all.resident);
		goheapd__memory_node__free_unpacked(tree, NULL);
		report_fini(&report);
		world_fini(&w);
	}
}

static uint64_t held(const Goheapd__Mapping *mapping, const char *kind)
{
	for (size_t i = 0; i < mapping->n_holds; i++)
		if (strcmp(mapping->holds[i]->kind, kind) == 0)
			return mapping->holds[i]->bytes;
	return 0;
}

static void mappings_say_what_they_hold(void **state)
{
	struct world w = world_init();
	struct report report = report_init(&w);
	Goheapd__ScanResult result;
	const Goheapd__Mapping *mapping;

	(void)state;
	goheapd__scan_result__init(&result);
	assert_success(resident_add(w.resident, w.start, w.start + 8192, true));
	assert_success(resident_add(w.resident, 0x7f0000000000, 0x7f0000005000, true));
	assert_success(mapping_list_fill(report.maps, &report.regions, w.resident, &result));

	assert_int_equal(result.n_mappings, 9);
	mapping = result.mappings[0];
	assert_int_equal(mapping->start, 0x400000);
	assert_int_equal(mapping->end, 0x401000);
	assert_string_equal(mapping->perms, "r-xp");
	assert_true(mapping->has_file);
	assert_memory_equal(mapping->file.data, "/bin/app", 8);
	assert_string_equal(mapping->kind, "text");
	assert_int_equal(held(mapping, "text"), 0x1000);
	mapping = result.mappings[5];
	assert_string_equal(mapping->kind, "heap");
	assert_false(mapping->has_file);
	assert_int_equal(mapping->resident_bytes, 8192);
	assert_int_equal(held(mapping, "heap"), w.end - w.start);
	mapping = result.mappings[7];
	assert_string_equal(mapping->kind, "heap_metadata");
	assert_int_equal(held(mapping, "heap_metadata"), 0x4000);
	assert_int_equal(held(mapping, "c_memory"), 0x1000);
	assert_int_equal(mapping->n_holds, 2);
	for (size_t i = 0; i < result.n_mappings; i++)
		goheapd__mapping__free_unpacked(result.mappings[i], NULL);
	free(result.mappings);
	report_fini(&report);
	world_fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_byte_of_a_heap_in_ram_is_counted_once),
		cmocka_unit_test(without_marking_allocated_slots_stay_together),
		cmocka_unit_test(pages_in_ram_are_shared_out_over_their_slots),
		cmocka_unit_test(each_node_counts_by_its_rule),
		cmocka_unit_test(any_pages_in_ram_leave_the_sums_right),
		cmocka_unit_test(mappings_say_what_they_hold),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
