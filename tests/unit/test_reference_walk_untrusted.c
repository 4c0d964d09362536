/*
 * What is in the target's memory may be anything: unreadable, not what the graph was made of, or
 * lengths and types that contradict each other. No object may be lost by that.
 */
#include "agent/analysis/reference_walk.h"

#include <stdlib.h>

#include "tests/support/assertions.h"
#include "tests/support/walked_heap.h"

enum { COUNT = 128, SIZE = 64, PLAIN = COUNT + 1, BIG = 2 * COUNT + 1, BIG_SIZE = 1024 };

struct world {
	struct walked_heap w;
	type_id string, bytes, node, pointer, nodes;
	struct go_field fields[2];
};

static struct world *world_new(void)
{
	struct world *world = calloc(1, sizeof(*world));
	struct walked_heap *w = &world->w;

	assert_non_null(world);
	walked_heap_init(w);
	world->string = fake_type_string(w->types);
	world->bytes = fake_type_slice(w->types, "[]uint8",
				       fake_type_plain(w->types, "uint8", GO_KIND_UINT8, 1));
	world->pointer = fake_type_pointer(w->types, "*main.Node", TYPE_UNKNOWN);
	world->nodes = fake_type_slice(w->types, "[]*main.Node", world->pointer);
	world->fields[0] = (struct go_field){ "left", 0, world->pointer };
	world->fields[1] = (struct go_field){ "right", 8, world->pointer };
	world->node = fake_type_struct(w->types, "main.Node", SIZE, world->fields, 2);
	fake_types_at(w->types, world->pointer)->elem = world->node;
	fake_heap_add(w->heap, SIZE, COUNT, false);
	fake_heap_add(w->heap, SIZE, COUNT, true);
	fake_heap_add(w->heap, BIG_SIZE, 8, false);
	walked_heap_finish(w);
	return world;
}

static void world_free(struct world *world)
{
	walked_heap_fini(&world->w);
	free(world);
}

static void global(struct world *world, type_id type, uint64_t first, uint64_t second,
		   uint64_t third)
{
	walked_heap_words(&world->w, "main.g", type, first, second, third);
}

static taddr address(const struct world *world, uint32_t object)
{
	return walked_heap_address(&world->w, object);
}

static void point(struct world *world, uint32_t from, uint64_t word, uint32_t to)
{
	walked_heap_point(&world->w, from, word, to);
}

#define run(world)               walked_heap_run_both(&(world)->w)
#define run_without_notes(world) walked_heap_run(&(world)->w)
#define chain(object, text)      assert_chain(&world->w, object, text)
#define type(object, text)       assert_type(&world->w, object, text)
#define used(object, bytes)      assert_used(&world->w, object, bytes)

/* ---- what cannot be read ---- */

/* main.g leads to 1, that to 10 and 20, and 10 to 30. */
static void make_small_tree(struct world *world)
{
	global(world, world->pointer, address(world, 1), 0, 0);
	point(world, 1, 0, 10);
	point(world, 1, 1, 20);
	point(world, 10, 0, 30);
	point(world, 30, 1, 40);
}

static void an_object_that_cannot_be_read_has_its_edges_still(void **state)
{
	struct world *world = world_new();

	(void)state;
	make_small_tree(world);
	world->w.way.hole = address(world, 10);
	world->w.way.hole_size = SIZE;
	run_without_notes(world);
	chain(10, "main.g / left. (*main.Node)");
	type(10, "main.Node");
	chain(20, "main.g / right. (*main.Node)");
	chain(30, "main.g / left. (*main.Node) / $sub_objects$");
	type(30, "?");
	chain(40, "main.g / left. (*main.Node) / $sub_objects$");
	world_free(world);
}

static void what_lies_between_objects_need_not_be_readable(void **state)
{
	struct world *world = world_new();

	(void)state;
	make_small_tree(world);
	world->w.way.hole = address(world, 11);
	world->w.way.hole_size = SIZE;
	run_without_notes(world);
	chain(30, "main.g / left. (*main.Node) / left. (*main.Node)");
	chain(40, "main.g / left. (*main.Node) / left. (*main.Node) / right. (*main.Node)");
	world_free(world);
}

static void wherever_memory_ends_nothing_is_lost(void **state)
{
	struct world *world = world_new();
	taddr start, end;

	(void)state;
	make_small_tree(world);
	global(world, world->pointer, address(world, BIG), 0, 0);
	point(world, BIG, 0, 50);
	start = address(world, 1) - 8;
	end = address(world, BIG) + BIG_SIZE;
	for (taddr hole = start; hole < end; hole += hole < start + 45 * SIZE ? 8 : 1024) {
		world->w.way.hole = hole;
		world->w.way.hole_size = 8;
		run_without_notes(world);
		world->w.way.hole_size = end - hole;
		run_without_notes(world);
	}
	world_free(world);
}

static void without_any_memory_all_have_their_places(void **state)
{
	struct world *world = world_new();

	(void)state;
	make_small_tree(world);
	world->w.way.hole_size = UINT64_MAX;
	run_without_notes(world);
	assert_int_equal(reference_walk_count(world->w.walk), 5);
	chain(1, "main.g");
	chain(20, "main.g / $sub_objects$");
	chain(40, "main.g / $sub_objects$");
	world_free(world);
}

/* A variable that lies where nothing can be read. */
static void a_root_that_cannot_be_read_keeps_its_object(void **state)
{
	struct world *world = world_new();
	const struct variable variable = { .name = "main.g",
					   .package = "main",
					   .kind = VARIABLE_GLOBAL,
					   .addr = 0x700000,
					   .size = 8,
					   .type = world->pointer };

	(void)state;
	fake_variables_add(world->w.variables, &variable);
	walked_heap_root_at(&world->w, ROOT_DATA, ROOT_NO_GOROUTINE, 0x700000, address(world, 1));
	point(world, 1, 0, 2);
	run(world);
	chain(1, "main.g");
	chain(2, "main.g / $sub_objects$");
	world_free(world);
}

/* ---- lengths ---- */

static void lengths_end_with_the_object(void **state)
{
	static const uint64_t lengths[] = { SIZE - 16 + 1,           UINT64_C(1) << 32,
					    UINT64_C(1) << 60,       UINT64_C(1) << 63,
					    (UINT64_C(1) << 63) - 1, UINT64_MAX };

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct world *world = world_new();

		global(world, world->string, address(world, PLAIN) + 16, lengths[i], 0);
		global(world, world->bytes, address(world, PLAIN + 1) + 60, lengths[i], lengths[i]);
		global(world, world->nodes, address(world, 1) + 32, lengths[i], lengths[i]);
		point(world, 1, 4, 2);
		point(world, 1, 7, 3);
		run(world);
		used(PLAIN, SIZE - 16);
		used(PLAIN + 1, 4);
		used(1, 32);
		chain(2, "main.g / [0]. (*main.Node)");
		chain(3, "main.g / [3]. (*main.Node)");
		world_free(world);
	}
}

static void a_capacity_below_the_length_is_the_length(void **state)
{
	struct world *world = world_new();

	(void)state;
	global(world, world->nodes, address(world, 1), 5, 2);
	for (uint32_t i = 0; i < 4; i++)
		point(world, 1, i, 2 + i);
	run(world);
	used(1, 16);
	chain(3, "main.g / [1]. (*main.Node)");
	chain(4, "main.g / $sub_objects$");
	world_free(world);
}

/* The same of slices and strings that lie in objects. */
static void lengths_in_objects_end_with_the_block(void **state)
{
	static const struct {
		uint64_t length, capacity, used;
	} slices[] = {
		{ 5, 2, 16 },   { 2, 0, 0 },           { 3, 8, 24 },
		{ 9, 9, SIZE }, { 200, 200, SIZE },    { 300, 2, 16 },
		{ 2, 300, 16 }, { UINT64_MAX, 3, 24 }, { UINT64_MAX, UINT64_MAX, SIZE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(slices) / sizeof(slices[0]); i++) {
		struct world *world = world_new();
		struct go_types *types = world->w.types;

		global(world, fake_type_pointer(types, "*[]*main.Node", world->nodes),
		       address(world, 1), 0, 0);
		point(world, 1, 0, 2);
		walked_heap_store(&world->w, 1, 1, slices[i].length);
		walked_heap_store(&world->w, 1, 2, slices[i].capacity);
		global(world, fake_type_pointer(types, "*string", world->string), address(world, 3),
		       0, 0);
		point(world, 3, 0, PLAIN);
		walked_heap_store(&world->w, 3, 1, slices[i].length);
		for (unsigned noted = 0; noted < 2; noted++) {
			world->w.way.noted = noted;
			walked_heap_run(&world->w);
			used(2, slices[i].used);
			used(PLAIN, slices[i].length < SIZE ? slices[i].length : SIZE);
		}
		world_free(world);
	}
}

static void a_slice_that_begins_within_a_word_leads_nowhere_wrong(void **state)
{
	struct world *world = world_new();

	(void)state;
	for (uint64_t offset = 1; offset < SIZE; offset++)
		global(world, world->nodes, address(world, (uint32_t)offset) + offset, 8, 8);
	for (uint32_t object = 1; object < SIZE; object++)
		for (uint64_t word = 0; word < 8; word++)
			point(world, object, word, 64 + object);
	run(world);
	for (uint32_t object = 1; object < SIZE; object++)
		assert_int_equal(walked_heap_parent(&world->w, 64 + object), object);
	world_free(world);
}

/* ---- types ---- */

static void a_type_larger_than_what_is_left_explains_nothing(void **state)
{
	struct world *world = world_new();

	(void)state;
	global(world, world->pointer, address(world, 1) + 8, 0, 0);
	point(world, 1, 1, 2);
	run(world);
	chain(1, "main.g");
	chain(2, "main.g / $sub_objects$");
	world_free(world);
}

static void an_interface_holds_nothing_larger_than_the_object(void **state)
{
	struct world *world = world_new();
	type_id any = fake_type_interface(world->w.types, "interface {}", false);
	type_id huge = fake_type_plain(world->w.types, "main.Huge", GO_KIND_STRUCT, SIZE + 8);

	(void)state;
	fake_types_at(world->w.types, huge)->descriptor = 0x601000;
	global(world, any, 0x601000, address(world, PLAIN), 0);
	run(world);
	type(PLAIN, "?");
	chain(PLAIN, "main.g");
	world_free(world);
}

/* Arrays of any length and elements of any size, in objects that are small. */
static void arrays_end_with_the_object(void **state)
{
	static const uint64_t counts[] = { 0,         1, 17, UINT64_C(1) << 32, UINT64_C(1) << 59,
					   UINT64_MAX };
	static const uint64_t sizes[] = { 0, 1, 4, 8, 12, 64, UINT64_C(1) << 40, UINT64_MAX - 7 };

	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
			struct world *world = world_new();
			struct go_types *types = world->w.types;
			type_id elem =
			    fake_type_struct(types, "main.Elem", sizes[k], world->fields, 2);
			type_id array = fake_type_array(types, "main.Array", elem, 2);
			type_id pointer = fake_type_pointer(types, "*main.Array", array);
			type_id slice = fake_type_slice(types, "[]main.Elem", elem);

			fake_types_at(types, array)->length = counts[i];
			fake_types_at(types, array)->size = counts[i] * sizes[k];
			global(world, pointer, address(world, 1), 0, 0);
			global(world, slice, address(world, 2), counts[i], counts[i]);
			global(world, pointer, address(world, BIG), 0, 0);
			for (uint64_t word = 0; word < 8; word++) {
				point(world, 1, word, 10 + (uint32_t)word);
				point(world, 2, word, 20 + (uint32_t)word);
				point(world, BIG, word, 30 + (uint32_t)word);
			}
			run(world);
			assert_int_equal(reference_walk_count(world->w.walk), 27);
			world_free(world);
		}
	}
}

/* A header or a span names a type that fits nowhere. */
static void what_an_object_says_of_itself_is_checked(void **state)
{
	static const uint64_t sizes[] = { 0, 1, 8, 1016, 1017, UINT64_MAX };

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct world *world = world_new();
		type_id odd =
		    fake_type_struct(world->w.types, "main.Odd", sizes[i], world->fields, 2);

		fake_types_at(world->w.types, odd)->descriptor = 0x601000;
		fake_heap_store(world->w.heap, BIG, 0, 0x601000);
		global(world, world->pointer, address(world, BIG), 0, 0);
		point(world, BIG, 0, 2);
		point(world, BIG, 1, 3);
		point(world, BIG, 126, 4);
		run(world);
		type(BIG, sizes[i] == 1016                 ? "main.Odd"
			  : sizes[i] == 1 || sizes[i] == 8 ? "[]main.Odd"
							   : "main.Node");
		assert_int_equal(walked_heap_parent(&world->w, 4), BIG);
		world_free(world);
	}
}

/* The runtime has one size for each class; a target need not. */
static void sizes_are_those_of_the_span_whatever_its_class_says(void **state)
{
	struct world *world = world_new();

	(void)state;
	fake_heap_span(world->w.heap, 2)->span_class = fake_heap_span(world->w.heap, 0)->span_class;
	fake_heap_span(world->w.heap, 1)->span_class = 0;
	global(world, world->pointer, address(world, 1), 0, 0);
	global(world, world->pointer, address(world, BIG), 0, 0);
	global(world, world->string, address(world, PLAIN), 5, 0);
	run(world);
	used(1, SIZE);
	used(BIG, BIG_SIZE);
	used(PLAIN, 5);
	world_free(world);
}

/* Containers of the runtime whose parts are not what they should be. */
static void a_map_whose_blocks_are_unknown_leads_on(void **state)
{
	struct world *world = world_new();
	type_id map = fake_types_add(
	    world->w.types,
	    &(struct go_type){ .name = "map[?]?", .kind = GO_KIND_MAP, .size = 8, .ptr_bytes = 8 });

	(void)state;
	world->w.layout.swiss_map.size = 48;
	world->w.layout.swiss_map_directory = (struct layout_field){ .offset = 16, .size = 8 };
	world->w.layout.swiss_map_directory_length =
	    (struct layout_field){ .offset = 24, .size = 8 };
	global(world, map, address(world, 1), 0, 0);
	point(world, 1, 2, 2);
	point(world, 2, 0, 3);
	run(world);
	type(1, "map[?]?");
	chain(3, "main.g / $sub_objects$");
	world_free(world);
}

static void a_container_larger_than_its_object_leads_on(void **state)
{
	struct world *world = world_new();
	type_id channel = fake_type_channel(world->w.types, "chan *main.Node", world->pointer);

	(void)state;
	world->w.layout.hchan.size = SIZE + 8;
	world->w.layout.hchan_buffer = (struct layout_field){ .offset = 16, .size = 8 };
	global(world, channel, address(world, 1), 0, 0);
	point(world, 1, 2, 2);
	run(world);
	chain(2, "main.g / $sub_objects$");
	world_free(world);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_object_that_cannot_be_read_has_its_edges_still),
		cmocka_unit_test(what_lies_between_objects_need_not_be_readable),
		cmocka_unit_test(wherever_memory_ends_nothing_is_lost),
		cmocka_unit_test(without_any_memory_all_have_their_places),
		cmocka_unit_test(a_root_that_cannot_be_read_keeps_its_object),
		cmocka_unit_test(lengths_end_with_the_object),
		cmocka_unit_test(a_capacity_below_the_length_is_the_length),
		cmocka_unit_test(lengths_in_objects_end_with_the_block),
		cmocka_unit_test(a_slice_that_begins_within_a_word_leads_nowhere_wrong),
		cmocka_unit_test(a_type_larger_than_what_is_left_explains_nothing),
		cmocka_unit_test(an_interface_holds_nothing_larger_than_the_object),
		cmocka_unit_test(arrays_end_with_the_object),
		cmocka_unit_test(what_an_object_says_of_itself_is_checked),
		cmocka_unit_test(sizes_are_those_of_the_span_whatever_its_class_says),
		cmocka_unit_test(a_map_whose_blocks_are_unknown_leads_on),
		cmocka_unit_test(a_container_larger_than_its_object_leads_on),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("reference_walk_untrusted", tests, NULL, NULL);
}
