/* What leads where, as the types of a program tell: pointers, slices, structs, interfaces,
 * closures. */
#include "agent/analysis/reference_walk.h"

#include "tests/support/walk_world.h"

/* ---- pointers ---- */

static void a_pointer_tells_what_it_points_to(void **state)
{
	struct world *world = world_new();

	(void)state;
	global(world, world->node_pointer, A);
	point(world, A, 1, B);
	run(world);
	type(A, "main.Node");
	used(A, SMALL_SIZE);
	chain(B, "main.g / right. (*main.Node)");
	world_free(world);
}

static void a_pointer_into_an_object_tells_of_that_part(void **state)
{
	struct world *world = world_new();

	(void)state;
	/* a pair in the middle; nothing tells of the word before it and of the last one */
	words(world, world->pair_pointer, address(world, A) + 24, 0, 0);
	point(world, A, 3, B);
	point(world, A, 2, C);
	point(world, A, 7, D);
	run(world);
	type(A, "main.Pair");
	chain(B, "main.g / first. (*main.Node)");
	type(B, "main.Node");
	chain(C, "main.g / $sub_objects$");
	chain(D, "main.g / $sub_objects$");
	type(C, "?");
	used(A, SMALL_SIZE);
	world_free(world);
}

static void a_pointer_to_a_pointer_has_a_frame(void **state)
{
	struct world *world = world_new();
	type_id to = fake_type_pointer(world->w.types, "**main.Node", world->node_pointer);

	(void)state;
	global(world, to, A);
	point(world, A, 0, B);
	run(world);
	type(A, "*main.Node");
	chain(B, "main.g / *. (*main.Node)");
	world_free(world);
}

static void an_unsafe_pointer_tells_nothing(void **state)
{
	struct world *world = world_new();

	(void)state;
	global(world, unsafe_pointer(world), A);
	point(world, A, 0, B);
	run(world);
	type(A, "?");
	chain(A, "main.g");
	chain(B, "main.g / $sub_objects$");
	world_free(world);
}

/* ---- strings and slices ---- */

static void a_string_uses_its_length(void **state)
{
	struct world *world = world_new();

	(void)state;
	global(world, world->node_pointer, A);
	point(world, A, 2, PLAIN);
	store(world, A, 3, 5);
	point(world, A, 0, B);
	/* a part of a string: what is before and behind it is kept, too */
	point_inside(world, B, 2, PLAIN_2, 16);
	store(world, B, 3, 10);
	run(world);
	type(PLAIN, "string");
	chain(PLAIN, "main.g / text. (string)");
	used(PLAIN, 5);
	used(PLAIN_2, 10);
	world_free(world);
}

static void an_empty_string_uses_nothing(void **state)
{
	struct world *world = world_new();

	(void)state;
	words(world, world->string, address(world, PLAIN) + 8, 0, 0);
	run(world);
	used(PLAIN, 0);
	chain(PLAIN, "main.g");
	world_free(world);
}

static void bytes_of_a_slice_are_in_use_up_to_its_length(void **state)
{
	struct world *world = world_new();

	(void)state;
	words(world, world->bytes, address(world, PLAIN), 40, 64);
	run(world);
	type(PLAIN, "[]uint8");
	used(PLAIN, 40);
	world_free(world);
}

static void elements_beyond_the_length_are_told_apart(void **state)
{
	struct world *world = world_new();

	(void)state;
	words(world, world->nodes, address(world, A), 2, 4);
	for (uint32_t i = 0; i < 5; i++)
		point(world, A, i, B + i);
	run(world);
	type(A, "[]*main.Node");
	used(A, 16);
	chain(A, "main.g");
	chain(B, "main.g / [0]. (*main.Node)");
	chain(C, "main.g / [1]. (*main.Node)");
	chain(D, "main.g / [len+]. (*main.Node)");
	chain(E, "main.g / [len+]. (*main.Node)");
	/* behind the capacity, where the slice says nothing */
	chain(F, "main.g / $sub_objects$");
	type(F, "?");
	world_free(world);
}

static void from_the_eleventh_on_elements_are_alike(void **state)
{
	struct world *world = world_new();

	(void)state;
	words(world, world->nodes, address(world, WIDE), 12, 13);
	for (uint32_t i = 0; i < 13; i++)
		point(world, WIDE, i, B + i);
	run(world);
	chain(B + 9, "main.g / [9]. (*main.Node)");
	chain(B + 10, "main.g / [10+]. (*main.Node)");
	chain(B + 11, "main.g / [10+]. (*main.Node)");
	chain(B + 12, "main.g / [len+]. (*main.Node)");
	used(WIDE, 96);
	world_free(world);
}

static void a_slice_of_length_zero_keeps_its_capacity(void **state)
{
	struct world *world = world_new();

	(void)state;
	words(world, world->nodes, address(world, A), 0, 4);
	point(world, A, 0, B);
	point(world, A, 3, C);
	run(world);
	used(A, 0);
	chain(B, "main.g / [len+]. (*main.Node)");
	chain(C, "main.g / [len+]. (*main.Node)");
	world_free(world);
}

static void a_slice_without_capacity_keeps_its_block(void **state)
{
	struct world *world = world_new();

	(void)state;
	words(world, world->nodes, address(world, A) + 16, 0, 0);
	point(world, A, 0, B);
	point(world, A, 2, C);
	run(world);
	used(A, 0);
	type(A, "[]*main.Node");
	chain(B, "main.g / $sub_objects$");
	chain(C, "main.g / $sub_objects$");
	world_free(world);
}

static void a_slice_of_the_middle_counts_from_there(void **state)
{
	struct world *world = world_new();

	(void)state;
	words(world, world->nodes, address(world, A) + 16, 1, 2);
	for (uint32_t i = 0; i < 4; i++)
		point(world, A, i, B + i);
	run(world);
	used(A, 8);
	chain(B, "main.g / $sub_objects$");
	chain(D, "main.g / [0]. (*main.Node)");
	chain(E, "main.g / [len+]. (*main.Node)");
	world_free(world);
}

static void elements_that_are_structs_have_their_fields_behind_them(void **state)
{
	struct world *world = world_new();
	type_id pairs = fake_type_slice(world->w.types, "[]main.Pair", world->pair);

	(void)state;
	words(world, pairs, address(world, A), 2, 3);
	point(world, A, 0, B);
	point(world, A, 2, C);
	point(world, A, 4, D);
	run(world);
	type(A, "[]main.Pair");
	used(A, 32);
	chain(C, "main.g / [1]. (main.Pair) / first. (*main.Node)");
	chain(D, "main.g / [len+]. (main.Pair) / first. (*main.Node)");
	world_free(world);
}

/* ---- arrays and structs ---- */

static void arrays_lie_in_what_they_are_part_of(void **state)
{
	struct world *world = world_new();
	type_id three = fake_type_array(world->w.types, "[3]*main.Node", world->node_pointer, 3);
	const struct go_field fields[] = { { "count", 0, world->integer },
					   { "three", 8, three },
					   { "pair", 32, world->pair } };
	type_id holder = fake_type_struct(world->w.types, "main.Holder", 48, fields, 3);

	(void)state;
	global(world, fake_type_pointer(world->w.types, "*main.Holder", holder), A);
	point(world, A, 1, B);
	point(world, A, 3, C);
	point(world, A, 4, D);
	run(world);
	type(A, "main.Holder");
	chain(B, "main.g / three. ([3]*main.Node) / [0]. (*main.Node)");
	chain(C, "main.g / three. ([3]*main.Node) / [2]. (*main.Node)");
	chain(D, "main.g / pair. (main.Pair) / first. (*main.Node)");
	world_free(world);
}

static void long_arrays_are_like_short_ones(void **state)
{
	struct world *world = world_new();
	type_id many = fake_type_array(world->w.types, "[50]*main.Node", world->node_pointer, 50);
	const struct go_field fields[] = { { "count", 0, world->integer }, { "many", 8, many } };
	type_id holder = fake_type_struct(world->w.types, "main.Holder", 408, fields, 2);

	(void)state;
	global(world, fake_type_pointer(world->w.types, "*main.Holder", holder), WIDE);
	point(world, WIDE, 1 + 9, B);
	point(world, WIDE, 1 + 10, C);
	point(world, WIDE, 1 + 49, D);
	run(world);
	chain(B, "main.g / many. ([50]*main.Node) / [9]. (*main.Node)");
	chain(C, "main.g / many. ([50]*main.Node) / [10+]. (*main.Node)");
	chain(D, "main.g / many. ([50]*main.Node) / [10+]. (*main.Node)");
	world_free(world);
}

static void a_pointer_to_an_array_leads_to_its_elements(void **state)
{
	struct world *world = world_new();
	type_id many = fake_type_array(world->w.types, "[50]*main.Node", world->node_pointer, 50);

	(void)state;
	global(world, fake_type_pointer(world->w.types, "*[50]*main.Node", many), WIDE);
	point(world, WIDE, 3, B);
	point(world, WIDE, 49, C);
	run(world);
	type(WIDE, "[50]*main.Node");
	chain(B, "main.g / [3]. (*main.Node)");
	chain(C, "main.g / [10+]. (*main.Node)");
	world_free(world);
}

static void the_word_of_a_variable_has_its_place_in_it(void **state)
{
	struct world *world = world_new();
	type_id pairs = fake_type_array(world->w.types, "[20]main.Pair", world->pair, 20);
	uint64_t values[40] = { 0 };

	(void)state;
	values[0] = address(world, A);
	values[6] = address(world, B);
	values[38] = address(world, C);
	walked_heap_variable(&world->w, ROOT_DATA, ROOT_NO_GOROUTINE, "main.g", pairs, values, 40);
	run(world);
	chain(A, "main.g / [0]. (main.Pair) / first. (*main.Node)");
	chain(B, "main.g / [3]. (main.Pair) / first. (*main.Node)");
	chain(C, "main.g / [10+]. (main.Pair) / first. (*main.Node)");
	type(C, "main.Node");
	world_free(world);
}

/* ---- interfaces ---- */

static void an_interface_holds_a_pointer_or_a_copy(void **state)
{
	struct world *world = world_new();
	const struct go_field fields[] = { { "one", 0, world->any },
					   { "other", 16, world->any },
					   { "shape", 32, world->shape } };
	type_id holder = fake_type_struct(world->w.types, "main.Holder", 48, fields, 3);

	(void)state;
	global(world, fake_type_pointer(world->w.types, "*main.Holder", holder), A);
	store(world, A, 0, NODE_POINTER);
	point(world, A, 1, B);
	store(world, A, 2, PAIR);
	point(world, A, 3, C);
	store(world, A, 4, SHAPE_ITAB);
	point(world, A, 5, D);
	point(world, D, 0, E);
	run(world);
	type(B, "main.Node");
	chain(B, "main.g / one. (interface {}) / $iface. (*main.Node)");
	type(C, "main.Pair");
	chain(C, "main.g / other. (interface {}) / $box. (main.Pair)");
	type(D, "main.Pair");
	chain(D, "main.g / shape. (main.Shape) / $box. (main.Pair)");
	chain(E, "main.g / shape. (main.Shape) / $box. (main.Pair) / first. (*main.Node)");
	world_free(world);
}

static void an_interface_of_an_unknown_type_leads_on_all_the_same(void **state)
{
	struct world *world = world_new();

	(void)state;
	global(world, fake_type_pointer(world->w.types, "*interface {}", world->any), A);
	store(world, A, 0, 0x666000);
	point(world, A, 1, B);
	run(world);
	type(A, "interface {}");
	type(B, "?");
	chain(B, "main.g / $sub_objects$");
	world_free(world);
}

static void a_variable_may_be_an_interface(void **state)
{
	struct world *world = world_new();

	(void)state;
	words(world, world->any, PAIR, address(world, A), 0);
	words(world, world->shape, SHAPE_ITAB, address(world, B), 0);
	run(world);
	chain(A, "main.g / $box. (main.Pair)");
	type(B, "main.Pair");
	world_free(world);
}

static void words_that_look_like_an_interface_are_taken_for_one(void **state)
{
	struct world *world = world_new();
	const uint64_t values[] = { NODE_POINTER, address(world, A) };

	(void)state;
	walked_heap_variable(&world->w, ROOT_DATA, ROOT_NO_GOROUTINE, "main.u", TYPE_UNKNOWN,
			     values, 2);
	point(world, A, 0, B);
	run(world);
	chain(A, "main.u / $iface. (*main.Node)");
	chain(B, "main.u / $iface. (*main.Node) / left. (*main.Node)");
	world_free(world);
}

/* A, which has an interface, has to be read; B, behind it, has not. */
static void what_is_read_and_what_is_noted_have_one_order(void **state)
{
	struct world *world = world_new();
	type_id any_pointer = fake_type_pointer(world->w.types, "*interface {}", world->any);

	(void)state;
	walked_heap_global(&world->w, "main.any", any_pointer, A);
	global(world, world->node_pointer, B);
	store(world, A, 0, NODE_POINTER);
	point(world, A, 1, C);
	point(world, B, 0, C);
	run(world);
	chain(C, "main.any / *. (interface {}) / $iface. (*main.Node)");
	world_free(world);
}

/* ---- closures ---- */

static void a_closure_leads_to_what_it_has_captured(void **state)
{
	struct world *world = world_new();
	type_id function = fake_types_add(
	    world->w.types,
	    &(struct go_type){ .name = "func()", .kind = GO_KIND_FUNC, .size = 8, .ptr_bytes = 8 });
	const struct go_field fields[] = { { "F", 0, world->integer },
					   { "node", 8, world->node_pointer },
					   { "text", 16, world->string } };
	type_id closure = fake_type_struct(world->w.types, "main.f.func1", 32, fields, 3);

	(void)state;
	fake_types_add_closure(world->w.types, CODE, closure);
	global(world, function, A);
	store(world, A, 0, CODE);
	point(world, A, 1, B);
	point(world, A, 2, PLAIN);
	store(world, A, 3, 7);
	walked_heap_global(&world->w, "main.other", function, C);
	store(world, C, 0, CODE + 0x100);
	point(world, C, 1, D);
	run(world);
	type(A, "main.f.func1");
	chain(B, "main.g / $closure.node. (*main.Node)");
	chain(PLAIN, "main.g / $closure.text. (string)");
	used(PLAIN, 7);
	/* nobody knows that function */
	type(C, "?");
	chain(D, "main.other / $sub_objects$");
	world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pointer_tells_what_it_points_to),
		cmocka_unit_test(a_pointer_into_an_object_tells_of_that_part),
		cmocka_unit_test(a_pointer_to_a_pointer_has_a_frame),
		cmocka_unit_test(an_unsafe_pointer_tells_nothing),
		cmocka_unit_test(a_string_uses_its_length),
		cmocka_unit_test(an_empty_string_uses_nothing),
		cmocka_unit_test(bytes_of_a_slice_are_in_use_up_to_its_length),
		cmocka_unit_test(elements_beyond_the_length_are_told_apart),
		cmocka_unit_test(from_the_eleventh_on_elements_are_alike),
		cmocka_unit_test(a_slice_of_length_zero_keeps_its_capacity),
		cmocka_unit_test(a_slice_without_capacity_keeps_its_block),
		cmocka_unit_test(a_slice_of_the_middle_counts_from_there),
		cmocka_unit_test(elements_that_are_structs_have_their_fields_behind_them),
		cmocka_unit_test(arrays_lie_in_what_they_are_part_of),
		cmocka_unit_test(long_arrays_are_like_short_ones),
		cmocka_unit_test(a_pointer_to_an_array_leads_to_its_elements),
		cmocka_unit_test(the_word_of_a_variable_has_its_place_in_it),
		cmocka_unit_test(an_interface_holds_a_pointer_or_a_copy),
		cmocka_unit_test(an_interface_of_an_unknown_type_leads_on_all_the_same),
		cmocka_unit_test(a_variable_may_be_an_interface),
		cmocka_unit_test(words_that_look_like_an_interface_are_taken_for_one),
		cmocka_unit_test(what_is_read_and_what_is_noted_have_one_order),
		cmocka_unit_test(a_closure_leads_to_what_it_has_captured),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("reference_walk_types", tests, NULL, NULL);
}
