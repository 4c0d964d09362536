/* What is known of an object: by what leads to it, by itself, by its finalizer, or not at all. */
#include "agent/analysis/reference_walk.h"

#include "tests/support/walk_world.h"

/* ---- what is unknown, and what tells more of it ---- */

static void below_the_unknown_there_is_one_frame(void **state)
{
	struct world *world = world_new();

	(void)state;
	global(world, TYPE_UNKNOWN, A);
	point(world, A, 5, B);
	point(world, B, 6, C);
	point(world, C, 7, PLAIN);
	run(world);
	chain(A, "main.g");
	chain(B, "main.g / $sub_objects$");
	chain(C, "main.g / $sub_objects$");
	chain(PLAIN, "main.g / $sub_objects$");
	type(PLAIN, "?");
	used(PLAIN, SMALL_SIZE);
	world_free(world);
}

static void an_edge_without_a_word_of_the_type_leads_on(void **state)
{
	struct world *world = world_new();

	(void)state;
	global(world, world->node_pointer, A);
	point(world, A, 0, B);
	point(world, A, 7, C); /* the integer: what the collector followed counts */
	point(world, A, 1, D);
	run(world);
	chain(B, "main.g / left. (*main.Node)");
	chain(C, "main.g / $sub_objects$");
	chain(D, "main.g / right. (*main.Node)");
	world_free(world);
}

static void a_word_that_the_collector_did_not_follow_leads_nowhere(void **state)
{
	struct world *world = world_new();

	(void)state;
	global(world, world->node_pointer, A);
	store(world, A, 0, address(world, B));
	point(world, A, 1, C);
	run(world);
	chain(C, "main.g / right. (*main.Node)");
	assert_int_equal(reference_walk_count(world->w.walk), 2);
	world_free(world);
}

static void a_larger_type_that_is_met_later_is_taken(void **state)
{
	struct world *world = world_new();

	(void)state;
	/* first the pair at its start, then, over another node, all of it */
	walked_heap_global(&world->w, "main.pair", world->pair_pointer, C);
	global(world, world->node_pointer, A);
	point(world, A, 0, C);
	point(world, C, 0, D);
	point(world, C, 1, E);
	run(world);
	chain(C, "main.pair");
	type(C, "main.Node");
	chain(D, "main.pair / first. (*main.Node)");
	chain(E, "main.pair / right. (*main.Node)");
	world_free(world);
}

static void a_smaller_type_that_is_met_later_is_not(void **state)
{
	struct world *world = world_new();

	(void)state;
	walked_heap_global(&world->w, "main.node", world->node_pointer, C);
	global(world, world->pair_pointer, C);
	point(world, C, 0, D);
	run(world);
	type(C, "main.Node");
	chain(D, "main.node / left. (*main.Node)");
	world_free(world);
}

static void what_was_unknown_gets_the_type_that_is_met_later(void **state)
{
	struct world *world = world_new();

	(void)state;
	/* A, unknown, leads to B and C. Only C, in an interface, tells what B is. */
	global(world, TYPE_UNKNOWN, A);
	point(world, A, 0, B);
	store(world, A, 3, NODE_POINTER);
	point(world, A, 4, C);
	point(world, C, 0, B);
	point(world, B, 1, D);
	run(world);
	chain(B, "main.g / $sub_objects$");
	type(B, "main.Node");
	chain(D, "main.g / $sub_objects$ / right. (*main.Node)");
	world_free(world);
}

static void a_block_without_pointers_is_the_largest_of_what_points_to_it(void **state)
{
	struct world *world = world_new();
	type_id large = fake_type_plain(world->w.types, "main.Plain", GO_KIND_STRUCT, 48);
	type_id to_large = fake_type_pointer(world->w.types, "*main.Plain", large);
	type_id to_int = fake_type_pointer(world->w.types, "*int", world->integer);

	(void)state;
	walked_heap_global(&world->w, "main.number", to_int, PLAIN);
	walked_heap_global(&world->w, "main.plain", to_large, PLAIN);
	walked_heap_global(&world->w, "main.plain2", to_large, PLAIN_2);
	walked_heap_global(&world->w, "main.number2", to_int, PLAIN_2);
	run(world);
	type(PLAIN, "main.Plain");
	chain(PLAIN, "main.number");
	type(PLAIN_2, "main.Plain");
	chain(PLAIN_2, "main.plain2");
	world_free(world);
}

/* ---- what objects say themselves ---- */

static void a_header_tells_the_type_of_its_object(void **state)
{
	struct world *world = world_new();
	type_id big = fake_type_struct(world->w.types, "main.Big", 1000, world->pair_fields, 1);

	(void)state;
	fake_types_at(world->w.types, big)->descriptor = 0x603000;
	global(world, TYPE_UNKNOWN, BIG);
	fake_heap_store(world->w.heap, BIG, 0, 0x603000);
	point(world, BIG, 0, B);
	run(world);
	type(BIG, "main.Big");
	used(BIG, BIG_SIZE);
	chain(B, "main.g / first. (*main.Node)");
	world_free(world);
}

static void a_header_of_a_smaller_type_makes_it_an_array(void **state)
{
	struct world *world = world_new();

	(void)state;
	global(world, TYPE_UNKNOWN, BIG);
	fake_heap_store(world->w.heap, BIG, 0, PAIR);
	point(world, BIG, 2, B);
	point(world, BIG, 2 * 62, C); /* the last of 63 that 1016 bytes have room for */
	run(world);
	type(BIG, "[]main.Pair");
	chain(B, "main.g / [1]. (main.Pair) / first. (*main.Node)");
	chain(C, "main.g / [10+]. (main.Pair) / first. (*main.Node)");
	world_free(world);
}

static void what_an_object_says_goes_before_what_leads_to_it(void **state)
{
	struct world *world = world_new();
	type_id big = fake_type_struct(world->w.types, "main.Big", 1000, world->pair_fields, 1);

	(void)state;
	fake_types_at(world->w.types, big)->descriptor = 0x603000;
	global(world, world->node_pointer, BIG);
	fake_heap_store(world->w.heap, BIG, 0, 0x603000);
	point(world, BIG, 0, B);
	point(world, BIG, 1, C);
	run(world);
	type(BIG, "main.Big");
	chain(B, "main.g / first. (*main.Node)");
	chain(C, "main.g / $sub_objects$");
	world_free(world);
}

static void a_header_that_tells_nothing_leaves_what_leads_to_it(void **state)
{
	struct world *world = world_new();

	(void)state;
	global(world, world->node_pointer, BIG);
	fake_heap_store(world->w.heap, BIG, 0, 0x666000);
	point(world, BIG, 1, B);
	run(world);
	type(BIG, "main.Node");
	chain(B, "main.g / right. (*main.Node)");
	world_free(world);
}

static void a_slice_of_a_large_block_knows_its_length_the_block_its_size(void **state)
{
	struct world *world = world_new();
	type_id pairs = fake_type_slice(world->w.types, "[]main.Pair", world->pair);

	(void)state;
	words(world, pairs, address(world, BIG), 2, 3);
	fake_heap_store(world->w.heap, BIG, 0, PAIR);
	point(world, BIG, 0, B);
	point(world, BIG, 4, C);
	point(world, BIG, 6, D); /* behind the slice's capacity, but of the block */
	run(world);
	type(BIG, "[]main.Pair");
	used(BIG, 32);
	chain(B, "main.g / [0]. (main.Pair) / first. (*main.Node)");
	chain(C, "main.g / [len+]. (main.Pair) / first. (*main.Node)");
	chain(D, "main.g / [len+]. (main.Pair) / first. (*main.Node)");
	world_free(world);
}

static void the_type_of_a_large_object_is_with_its_span(void **state)
{
	struct world *world = world_new();

	(void)state;
	global(world, TYPE_UNKNOWN, LARGE);
	point(world, LARGE, 0, B);
	point(world, LARGE, 8 * 639 + 1, C);
	run(world);
	type(LARGE, "[]main.Node");
	used(LARGE, LARGE_SIZE);
	chain(B, "main.g / [0]. (main.Node) / left. (*main.Node)");
	chain(C, "main.g / [10+]. (main.Node) / right. (*main.Node)");
	world_free(world);
}

/* ---- finalizers, timers ---- */

static void what_a_finalizer_needs_is_kept_by_it(void **state)
{
	struct world *world = world_new();
	taddr record = walked_heap_finalizer(&world->w, NODE_POINTER, NODE_POINTER);

	(void)state;
	fake_heap_add_record(world->w.heap, A, SPECIAL_FINALIZER, record);
	point(world, A, 0, B);
	point(world, B, 1, C);
	run(world);
	chain(B, "finalizer of (*main.Node) / left. (*main.Node)");
	chain(C, "finalizer of (*main.Node) / left. (*main.Node) / right. (*main.Node)");
	/* the object itself is not live */
	assert_int_equal(reference_walk_count(world->w.walk), 2);
	type(A, "?");
	world_free(world);
}

static void a_finalizers_function_is_named_after_its_object(void **state)
{
	struct world *world = world_new();
	taddr record = walked_heap_finalizer(&world->w, NODE_POINTER, NODE_POINTER);
	taddr function = record + world->w.layout.special_finalizer_fn.offset;
	const struct go_field fields[] = { { "F", 0, world->integer },
					   { "node", 8, world->node_pointer } };
	type_id closure = fake_type_struct(world->w.types, "main.f.func1", 16, fields, 2);

	(void)state;
	fake_types_add_closure(world->w.types, CODE, closure);
	fake_memory_store(world->w.data, function, 8, address(world, A));
	walked_heap_root_at(&world->w, ROOT_FINALIZER, ROOT_NO_GOROUTINE, function,
			    address(world, A));
	store(world, A, 0, CODE);
	point(world, A, 1, B);
	run(world);
	chain(A, "finalizer of (*main.Node)");
	type(A, "main.f.func1");
	chain(B, "finalizer of (*main.Node) / $closure.node. (*main.Node)");
	world_free(world);
}

static void what_waits_for_its_finalizer_has_its_type(void **state)
{
	struct world *world = world_new();
	const struct layout *layout = &world->w.layout;
	taddr entry = WALKED_RECORDS + 1024, waits = entry + layout->finalizer_arg.offset;

	(void)state;
	fake_memory_store(world->w.data, waits, 8, address(world, A));
	fake_memory_store(world->w.data, entry + layout->finalizer_fint.offset, 8, NODE_POINTER);
	fake_memory_store(world->w.data, entry + layout->finalizer_ot.offset, 8, NODE_POINTER);
	walked_heap_root_at(&world->w, ROOT_FINALIZER_QUEUE, ROOT_NO_GOROUTINE, waits,
			    address(world, A));
	point(world, A, 1, B);
	run(world);
	type(A, "main.Node");
	chain(B, "(nameless data) / right. (*main.Node)");
	world_free(world);
}

static void the_finalizer_of_a_live_object_is_no_root(void **state)
{
	struct world *world = world_new();
	taddr record = walked_heap_finalizer(&world->w, NODE_POINTER, NODE_POINTER);

	(void)state;
	fake_heap_add_record(world->w.heap, B, SPECIAL_FINALIZER, record);
	global(world, world->node_pointer, A);
	point(world, A, 0, B);
	point(world, B, 1, C);
	run(world);
	chain(C, "main.g / left. (*main.Node) / right. (*main.Node)");
	world_free(world);
}

static void an_unknown_finalizer_is_one_all_the_same(void **state)
{
	struct world *world = world_new();

	(void)state;
	fake_heap_add_record(world->w.heap, A, SPECIAL_FINALIZER,
			     walked_heap_finalizer(&world->w, 0, 0));
	point(world, A, 0, B);
	run(world);
	chain(B, "finalizer / $sub_objects$");
	world_free(world);
}

static void exact_roots_come_before_finalizers_and_these_before_conservative_ones(void **state)
{
	struct world *world = world_new();
	taddr record = walked_heap_finalizer(&world->w, NODE_POINTER, NODE_POINTER);

	(void)state;
	fake_heap_add_record(world->w.heap, A, SPECIAL_FINALIZER, record);
	point(world, A, 0, B);
	point(world, A, 1, C);
	point(world, C, 0, D);
	global(world, TYPE_UNKNOWN, B);
	walked_heap_root(&world->w, ROOT_STACK_CONSERVATIVE, 1, "main.f.x", world->node_pointer, D);
	run(world);
	chain(B, "main.g");
	chain(D, "finalizer of (*main.Node) / right. (*main.Node) / left. (*main.Node)");
	world_free(world);
}

static void who_waits_for_time_is_no_part_of_a_chain(void **state)
{
	struct world *world = world_new();
	const struct go_field fields[] = { { "arg", 0, world->node_pointer } };
	type_id timer = fake_type_struct(world->w.types, "runtime.timer", 48, fields, 1);
	type_id pointer = fake_type_pointer(world->w.types, "*runtime.timer", timer);
	const struct go_field holder_fields[] = { { "timer", 0, pointer } };
	type_id holder = fake_type_struct(world->w.types, "main.Holder", 48, holder_fields, 1);

	(void)state;
	global(world, fake_type_pointer(world->w.types, "*main.Holder", holder), A);
	point(world, A, 0, B);
	point(world, B, 0, C);
	run(world);
	chain(B, "timer");
	type(B, "runtime.timer");
	chain(C, "timer / arg. (*main.Node)");
	world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(below_the_unknown_there_is_one_frame),
		cmocka_unit_test(an_edge_without_a_word_of_the_type_leads_on),
		cmocka_unit_test(a_word_that_the_collector_did_not_follow_leads_nowhere),
		cmocka_unit_test(a_larger_type_that_is_met_later_is_taken),
		cmocka_unit_test(a_smaller_type_that_is_met_later_is_not),
		cmocka_unit_test(what_was_unknown_gets_the_type_that_is_met_later),
		cmocka_unit_test(a_block_without_pointers_is_the_largest_of_what_points_to_it),
		cmocka_unit_test(a_header_tells_the_type_of_its_object),
		cmocka_unit_test(a_header_of_a_smaller_type_makes_it_an_array),
		cmocka_unit_test(what_an_object_says_goes_before_what_leads_to_it),
		cmocka_unit_test(a_header_that_tells_nothing_leaves_what_leads_to_it),
		cmocka_unit_test(a_slice_of_a_large_block_knows_its_length_the_block_its_size),
		cmocka_unit_test(the_type_of_a_large_object_is_with_its_span),
		cmocka_unit_test(what_a_finalizer_needs_is_kept_by_it),
		cmocka_unit_test(a_finalizers_function_is_named_after_its_object),
		cmocka_unit_test(what_waits_for_its_finalizer_has_its_type),
		cmocka_unit_test(the_finalizer_of_a_live_object_is_no_root),
		cmocka_unit_test(an_unknown_finalizer_is_one_all_the_same),
		cmocka_unit_test(
		    exact_roots_come_before_finalizers_and_these_before_conservative_ones),
		cmocka_unit_test(who_waits_for_time_is_no_part_of_a_chain),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("reference_walk_knowledge", tests, NULL, NULL);
}
