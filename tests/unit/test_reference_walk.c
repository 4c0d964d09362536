/* In which order the walk goes, and what it says of roots. What leads where: _types. */
#include "agent/analysis/reference_walk.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "agent/analysis/mark.h"
#include "agent/analysis/root_set.h"
#include "tests/support/assertions.h"
#include "tests/support/walked_heap.h"

enum { NODE_SIZE = 64, NODES_PER_SPAN = 128, LIST_NODES = 100000, LEFT = 0, RIGHT = 1 };

/* Nodes alone: { left, right *Node; ... }. */
struct world {
	struct walked_heap w;
	type_id node, pointer;
	struct go_field fields[2];
};

static void world_init(struct world *world, uint32_t nodes)
{
	struct walked_heap *w = &world->w;

	walked_heap_init(w);
	world->pointer = fake_type_pointer(w->types, "*main.Node", TYPE_UNKNOWN);
	world->fields[0] = (struct go_field){ .name = "left", .type = world->pointer };
	world->fields[1] =
	    (struct go_field){ .name = "right", .offset = 8, .type = world->pointer };
	world->node = fake_type_struct(w->types, "main.Node", NODE_SIZE, world->fields, 2);
	fake_types_at(w->types, world->pointer)->elem = world->node;
	for (uint32_t made = 0; made < nodes; made += NODES_PER_SPAN)
		fake_heap_add(w->heap, NODE_SIZE, NODES_PER_SPAN, false);
	walked_heap_finish(w);
}

/* Objects are numbered from 1, so are nodes here. */
static void point(struct world *world, uint32_t from, uint64_t word, uint32_t to)
{
	walked_heap_point(&world->w, from, word, to);
}

static void global(struct world *world, const char *name, uint32_t node)
{
	walked_heap_global(&world->w, name, world->pointer, node);
}

static void local(struct world *world, const char *name, uint32_t goroutine, uint32_t node)
{
	walked_heap_root(&world->w, ROOT_STACK, goroutine, name, world->pointer, node);
}

static void untyped(struct world *world, enum root_kind kind, const char *name, uint32_t node)
{
	walked_heap_root(&world->w, kind, ROOT_NO_GOROUTINE, name, TYPE_UNKNOWN, node);
}

static void conservative(struct world *world, const char *name, uint32_t node)
{
	walked_heap_root(&world->w, ROOT_STACK_CONSERVATIVE, 3, name, world->pointer, node);
}

/* ---- chains ---- */

static void the_chain_is_a_shortest_one(void **state)
{
	struct world world;

	(void)state;
	world_init(&world, 1);
	global(&world, "main.a", 1);
	point(&world, 1, LEFT, 2);
	point(&world, 2, LEFT, 3);
	point(&world, 3, LEFT, 4);
	point(&world, 4, LEFT, 5);
	point(&world, 1, RIGHT, 9);
	point(&world, 9, LEFT, 4);
	walked_heap_run_both(&world.w);
	assert_chain(&world.w, 1, "main.a");
	assert_chain(&world.w, 3, "main.a / left. (*main.Node) / left. (*main.Node)");
	assert_chain(&world.w, 4, "main.a / right. (*main.Node) / left. (*main.Node)");
	assert_chain(&world.w, 5,
		     "main.a / right. (*main.Node) / left. (*main.Node) / left. (*main.Node)");
	assert_int_equal(walked_heap_parent(&world.w, 4), 9);
	walked_heap_fini(&world.w);
}

static uint32_t place_of(const struct world *world, uint32_t node)
{
	return world->w.places[node] - 1;
}

static void a_level_comes_before_the_next(void **state)
{
	static const uint32_t levels[3][2] = { { 50, 20 }, { 60, 30 }, { 4, 10 } };
	struct world world;

	(void)state;
	world_init(&world, 1);
	for (uint32_t i = 0; i < 2; i++) {
		global(&world, i ? "main.b" : "main.a", levels[0][i]);
		point(&world, levels[0][i], LEFT, levels[1][i]);
		point(&world, levels[1][i], RIGHT, levels[2][i]);
	}
	walked_heap_run_both(&world.w);
	assert_int_equal(reference_walk_count(world.w.walk), 6);
	for (uint32_t place = 0; place < 6; place++) {
		uint32_t node = reference_walk_object(world.w.walk, place);

		assert_true(node == levels[place / 2][0] || node == levels[place / 2][1]);
		assert_int_equal(place_of(&world, node), place);
	}
	walked_heap_fini(&world.w);
}

static void of_two_chains_the_one_through_the_lower_address_wins(void **state)
{
	struct world world;

	(void)state;
	world_init(&world, 1);
	global(&world, "main.a", 1);
	point(&world, 1, LEFT, 50);
	point(&world, 1, RIGHT, 30);
	point(&world, 50, LEFT, 9);
	point(&world, 30, RIGHT, 9);
	walked_heap_run_both(&world.w);
	assert_chain(&world.w, 9, "main.a / right. (*main.Node) / right. (*main.Node)");
	walked_heap_fini(&world.w);
}

static void of_two_words_the_first_wins(void **state)
{
	struct world world;

	(void)state;
	world_init(&world, 1);
	global(&world, "main.a", 1);
	point(&world, 1, LEFT, 2);
	point(&world, 1, RIGHT, 2);
	walked_heap_run_both(&world.w);
	assert_chain(&world.w, 2, "main.a / left. (*main.Node)");
	walked_heap_fini(&world.w);
}

static void of_two_roots_the_first_wins(void **state)
{
	struct world world;

	(void)state;
	world_init(&world, 1);
	global(&world, "main.b", 2);
	global(&world, "main.a", 2);
	local(&world, "main.f.y", 9, 5);
	local(&world, "main.f.x", 2, 5);
	walked_heap_run_both(&world.w);
	assert_chain(&world.w, 2, "main.b");
	assert_chain(&world.w, 5, "main.f.y of 9");
	walked_heap_fini(&world.w);
}

static void circles_end(void **state)
{
	struct world world;

	(void)state;
	world_init(&world, 1);
	global(&world, "main.a", 1);
	point(&world, 1, LEFT, 1);
	point(&world, 1, RIGHT, 2);
	point(&world, 2, LEFT, 3);
	point(&world, 3, LEFT, 2);
	point(&world, 3, RIGHT, 1);
	walked_heap_run_both(&world.w);
	assert_chain(&world.w, 1, "main.a");
	assert_chain(&world.w, 3, "main.a / right. (*main.Node) / left. (*main.Node)");
	assert_int_equal(reference_walk_count(world.w.walk), 3);
	walked_heap_fini(&world.w);
}

/* ---- rounds ---- */

static void globals_come_before_locals_but_go_on_together(void **state)
{
	struct world world;

	(void)state;
	world_init(&world, 1);
	local(&world, "main.f.x", 7, 1);
	global(&world, "main.a", 1);
	/* a level further away from the global than from the local */
	global(&world, "main.b", 2);
	point(&world, 2, LEFT, 3);
	local(&world, "main.f.y", 7, 3);
	walked_heap_run_both(&world.w);
	assert_chain(&world.w, 1, "main.a");
	assert_chain(&world.w, 3, "main.f.y of 7");
	walked_heap_fini(&world.w);
}

/* In each of these a longer chain of an earlier round is taken. */
static void chain_of_three(struct world *world, uint32_t first)
{
	point(world, first, LEFT, first + 1);
	point(world, first + 1, LEFT, first + 2);
}

static void roots_with_types_come_before_those_without(void **state)
{
	struct world world;

	(void)state;
	world_init(&world, 1);
	untyped(&world, ROOT_DATA, "main.u", 3);
	local(&world, "main.f.x", 7, 1);
	chain_of_three(&world, 1);
	untyped(&world, ROOT_DATA, "main.v", 4);
	walked_heap_run_both(&world.w);
	assert_chain(&world.w, 3, "main.f.x of 7 / left. (*main.Node) / left. (*main.Node)");
	assert_chain(&world.w, 4, "main.v");
	walked_heap_fini(&world.w);
}

static void conservative_roots_come_after_exact_ones(void **state)
{
	struct world world;

	(void)state;
	world_init(&world, 1);
	conservative(&world, "main.f.x", 3);
	global(&world, "main.a", 1);
	chain_of_three(&world, 1);
	conservative(&world, "main.f.y", 10);
	untyped(&world, ROOT_DATA, "main.u", 10);
	walked_heap_run_both(&world.w);
	assert_chain(&world.w, 3, "main.a / left. (*main.Node) / left. (*main.Node)");
	assert_chain(&world.w, 10, "main.u");
	/* its type is known from the later one all the same */
	assert_type(&world.w, 10, "main.Node");
	walked_heap_fini(&world.w);
}

static void of_conservative_roots_those_without_a_type_come_last(void **state)
{
	struct world world;

	(void)state;
	world_init(&world, 1);
	untyped(&world, ROOT_STACK_CONSERVATIVE, "main.u", 3);
	untyped(&world, ROOT_REGISTER, "register", 5);
	conservative(&world, "main.f.x", 1);
	chain_of_three(&world, 1);
	walked_heap_run_both(&world.w);
	assert_chain(&world.w, 3, "main.f.x of 3 / left. (*main.Node) / left. (*main.Node)");
	assert_chain(&world.w, 5, "register");
	walked_heap_fini(&world.w);
}

static void system_stacks_come_after_all_other_roots(void **state)
{
	struct world world;

	(void)state;
	world_init(&world, 1);
	untyped(&world, ROOT_SYSTEM_STACK, "system stack", 5);
	untyped(&world, ROOT_STACK_CONSERVATIVE, "main.u", 5);
	untyped(&world, ROOT_SYSTEM_STACK, "system stack", 9);
	walked_heap_run_both(&world.w);
	assert_chain(&world.w, 5, "main.u");
	assert_chain(&world.w, 9, "system stack");
	walked_heap_fini(&world.w);
}

static void what_nothing_explains_comes_after_all_roots(void **state)
{
	struct world world;

	(void)state;
	world_init(&world, 1);
	untyped(&world, ROOT_DATA, "main.u", 1);
	point(&world, 1, LEFT, 2);
	untyped(&world, ROOT_SYSTEM_STACK, "system stack", 2);
	point(&world, 1, RIGHT, 3);
	walked_heap_run_both(&world.w);
	assert_chain(&world.w, 2, "system stack");
	assert_chain(&world.w, 3, "main.u / $sub_objects$");
	walked_heap_fini(&world.w);
}

static void what_is_below_the_unexplained_goes_as_far_as_types_lead_first(void **state)
{
	struct world world;

	(void)state;
	world_init(&world, 1);
	/* 1 and 2 are untyped, 3 has a type by another word of 1 */
	untyped(&world, ROOT_DATA, "main.u", 1);
	fake_types_at(world.w.types, world.pointer)->descriptor = 0x601000;
	point(&world, 1, 0, 2);
	walked_heap_store(&world.w, 1, 2, 0x601000);
	point(&world, 1, 3, 3);
	point(&world, 3, LEFT, 4);
	point(&world, 2, LEFT, 4);
	point(&world, 2, RIGHT, 5);
	walked_heap_run_both(&world.w);
	assert_chain(&world.w, 2, "main.u / $sub_objects$");
	assert_chain(&world.w, 3, "main.u / $sub_objects$ / $iface. (*main.Node)");
	assert_chain(&world.w, 4,
		     "main.u / $sub_objects$ / $iface. (*main.Node) / left. (*main.Node)");
	assert_chain(&world.w, 5, "main.u / $sub_objects$");
	assert_type(&world.w, 2, "?");
	assert_type(&world.w, 4, "main.Node");
	walked_heap_fini(&world.w);
}

/* ---- long ones ---- */

/* All nodes, in an order that goes to and fro: multiples of a number modulo a prime. */
static uint32_t *jumble(void)
{
	enum { PRIME = 100003, FACTOR = 48271 };
	uint32_t *order = malloc(LIST_NODES * sizeof(*order));
	uint32_t count = 0;

	assert_non_null(order);
	for (uint64_t k = 0; k < PRIME; k++)
		if (k * FACTOR % PRIME < LIST_NODES)
			order[count++] = (uint32_t)(k * FACTOR % PRIME) + 1;
	assert_int_equal(count, LIST_NODES);
	return order;
}

static void *run_on_small_stack(void *world)
{
	walked_heap_run_both(&((struct world *)world)->w);
	return NULL;
}

/* Ten bytes of stack for each node: whoever calls itself for each of them does not come back. */
static void run_in_small_thread(struct world *world)
{
	pthread_attr_t attributes;
	pthread_t thread;

	assert_int_equal(pthread_attr_init(&attributes), 0);
	assert_int_equal(pthread_attr_setstacksize(&attributes, 1 << 20), 0);
	assert_int_equal(pthread_create(&thread, &attributes, run_on_small_stack, world), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	pthread_attr_destroy(&attributes);
}

static void check_step(const struct world *world, uint32_t place, const char *expected)
{
	const char *const *frames;
	uint32_t step = reference_walk_at(world->w.walk, place).step;
	uint32_t count = reference_walk_step_frames(world->w.walk, step, &frames);

	assert_int_equal(count, expected != NULL);
	if (expected)
		assert_string_equal(frames[0], expected);
}

static void a_list_of_many_nodes_is_walked_to_its_end(void **state)
{
	struct world world;
	uint32_t *order = jumble();

	(void)state;
	world_init(&world, LIST_NODES);
	global(&world, "main.list", order[0]);
	for (uint32_t i = 0; i + 1 < LIST_NODES; i++)
		point(&world, order[i], RIGHT, order[i + 1]);
	run_in_small_thread(&world);
	assert_int_equal(reference_walk_count(world.w.walk), LIST_NODES);
	for (uint32_t place = 0; place < LIST_NODES; place++) {
		assert_int_equal(reference_walk_object(world.w.walk, place), order[place]);
		if (!place)
			continue;
		assert_int_equal(reference_walk_at(world.w.walk, place).parent, place - 1);
		check_step(&world, place, "right. (*main.Node)");
	}
	assert_int_equal(walked_heap_totals(&world.w).typed_bytes, LIST_NODES * NODE_SIZE);
	walked_heap_fini(&world.w);
	free(order);
}

static void so_is_one_whose_type_nothing_tells(void **state)
{
	struct world world;
	uint32_t *order = jumble();

	(void)state;
	world_init(&world, LIST_NODES);
	untyped(&world, ROOT_DATA, "main.list", order[0]);
	for (uint32_t i = 0; i + 1 < LIST_NODES; i++)
		point(&world, order[i], RIGHT, order[i + 1]);
	run_in_small_thread(&world);
	for (uint32_t place = 1; place < LIST_NODES; place++) {
		assert_int_equal(reference_walk_object(world.w.walk, place), order[place]);
		assert_int_equal(reference_walk_at(world.w.walk, place).parent, place - 1);
		check_step(&world, place, place == 1 ? "$sub_objects$" : NULL);
	}
	assert_int_equal(walked_heap_totals(&world.w).typed_objects, 0);
	walked_heap_fini(&world.w);
	free(order);
}

/* ---- roots ---- */

static struct reference_root root_of(const struct world *world, uint32_t node)
{
	struct reference reference = reference_walk_at(world->w.walk, place_of(world, node));

	assert_int_equal(reference.parent, REFERENCE_ROOT);
	return reference_walk_root(world->w.walk, reference.root);
}

static uint32_t count_roots(const struct world *world, const char *name)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < reference_walk_root_count(world->w.walk); i++)
		count += !strcmp(reference_walk_root(world->w.walk, i).name, name);
	return count;
}

static void a_root_is_a_variable_of_a_goroutine(void **state)
{
	static const char name[] = "main.f.x";
	const struct variable variable = { .name = name,
					   .package = "main",
					   .file = "main.go",
					   .line = 12,
					   .kind = VARIABLE_LOCAL,
					   .addr = WALKED_DATA + 16,
					   .size = 8 };
	struct world world;
	struct reference_root root;

	(void)state;
	world_init(&world, 1);
	local(&world, name, 5, 1);
	local(&world, name, 5, 2);
	local(&world, name, 6, 3);
	fake_variables_add(world.w.variables, &variable);
	walked_heap_root_at(&world.w, ROOT_STACK, 8, WALKED_DATA + 16,
			    walked_heap_address(&world.w, 4));
	walked_heap_run_both(&world.w);
	assert_int_equal(count_roots(&world, name), 3);
	assert_int_equal(root_of(&world, 1).goroutine, 5);
	assert_int_equal(root_of(&world, 2).goroutine, 5);
	assert_int_equal(root_of(&world, 3).goroutine, 6);
	root = root_of(&world, 4);
	assert_ptr_equal(root.name, name);
	assert_string_equal(root.package, "main");
	assert_string_equal(root.file, "main.go");
	assert_int_equal(root.line, 12);
	assert_int_equal(root.goroutine, 8);
	assert_int_equal(root.variable_kind, VARIABLE_LOCAL);
	walked_heap_fini(&world.w);
}

static void without_roots_there_is_nothing(void **state)
{
	struct world world;

	(void)state;
	world_init(&world, 1);
	walked_heap_run_both(&world.w);
	assert_int_equal(reference_walk_count(world.w.walk), 0);
	assert_int_equal(walked_heap_totals(&world.w).bytes, 0);
	walked_heap_fini(&world.w);
}

static void garbage_is_not_walked(void **state)
{
	struct world world;

	(void)state;
	world_init(&world, 1);
	global(&world, "main.a", 1);
	point(&world, 2, LEFT, 3);
	point(&world, 2, RIGHT, 1);
	walked_heap_run_both(&world.w);
	assert_int_equal(reference_walk_count(world.w.walk), 1);
	assert_type(&world.w, 3, "?");
	walked_heap_fini(&world.w);
}

/* ---- limits ---- */

static void types_alone_are_the_same_without_places(void **state)
{
	struct world world;

	(void)state;
	world_init(&world, 1);
	global(&world, "main.a", 1);
	chain_of_three(&world, 1);
	untyped(&world, ROOT_DATA, "main.u", 9);
	point(&world, 9, LEFT, 10);
	point(&world, 10, LEFT, 11);
	world.w.way.types_only = true;
	walked_heap_run(&world.w);
	assert_type(&world.w, 3, "main.Node");
	assert_type(&world.w, 11, "?");
	assert_int_equal(walked_heap_totals(&world.w).typed_objects, 3);
	assert_int_equal(walked_heap_totals(&world.w).objects, 6);
	walked_heap_fini(&world.w);
}

/* "needs more than 4 MiB, the limit is 3 MiB". */
static void check_need(struct error *err, uint64_t limit)
{
	uint64_t need, said;
	const char *text = strstr(error_message(err), "needs more than ");

	assert_int_equal(error_code(err), ERROR_OUT_OF_MEMORY);
	assert_non_null(text);
	assert_int_equal(
	    sscanf(text, "needs more than %" SCNu64 " MiB, the limit is %" SCNu64, &need, &said),
	    2);
	assert_int_equal(said, limit >> 20);
	assert_true(need >= said);
	error_free(err);
}

/* Wherever the memory ends: all is given back, and what is needed is said. */
static void a_memory_limit_is_kept_and_what_is_needed_is_said(void **state)
{
	enum { NODES = 20000, STEP = 8192 };
	struct world world;
	uint64_t limit = 1;
	struct error *err;
	struct walked_answer unlimited;

	(void)state;
	world_init(&world, NODES);
	for (uint32_t i = 1; i <= NODES / 2; i++)
		point(&world, i, LEFT, i + NODES / 2);
	for (uint32_t i = 1; 2 * i + 1 <= NODES / 2; i++) {
		point(&world, i, LEFT + 2, 2 * i);
		point(&world, i, RIGHT, 2 * i + 1);
	}
	global(&world, "main.a", 1);
	walked_heap_run_both(&world.w);
	unlimited = walked_heap_answer(&world.w);
	for (; limit < UINT64_C(64) << 20; limit += STEP) {
		world.w.way.memory_limit = limit;
		err = walked_heap_try(&world.w);
		if (!err)
			break;
		check_need(err, limit);
	}
	assert_in_range(limit, NODES * sizeof(uint32_t), UINT64_C(32) << 20);
	walked_heap_check_answer(&world.w, &unlimited);
	free(unlimited.text);
	walked_heap_fini(&world.w);
}

static void any_number_of_threads_will_do(void **state)
{
	static const unsigned counts[] = { 0, 1, 3, 1000, UINT32_MAX };
	struct world world;

	(void)state;
	world_init(&world, 1);
	global(&world, "main.a", 1);
	point(&world, 1, LEFT, 2);
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		world.w.way.threads = counts[i];
		walked_heap_run_both(&world.w);
		assert_chain(&world.w, 2, "main.a / left. (*main.Node)");
	}
	walked_heap_fini(&world.w);
}

/* ---- what does not go together ---- */

static void live_objects_that_are_not_met_are_an_error(void **state)
{
	struct world world;
	struct root_set *more = NULL;
	struct error *err;

	(void)state;
	world_init(&world, 1);
	global(&world, "main.a", 1);
	walked_heap_run_both(&world.w);
	/* marked with a root that the walk does not know */
	assert_success(root_set_new(fake_heap_spans(world.w.heap), &more));
	for (uint32_t node = 1; node < 20; node += 6)
		assert_success(root_set_sink(more)->add(
		    root_set_sink(more),
		    &(struct root){ .kind = ROOT_DATA,
				    .slot = WALKED_DATA,
				    .goroutine = ROOT_NO_GOROUTINE,
				    .value = walked_heap_address(&world.w, node) }));
	mark_free(world.w.mark);
	world.w.mark = NULL;
	assert_success(
	    mark_run(world.w.graph, more, fake_heap_specials(world.w.heap), 1, &world.w.mark));
	err = walked_heap_try(&world.w);
	assert_non_null(err);
	assert_int_equal(error_code(err), ERROR_CORRUPT_TARGET);
	assert_non_null(strstr(error_message(err), "1 of 4 live objects were met, the first other "
						   "one is object 7"));
	error_free(err);
	root_set_free(more);
	walked_heap_fini(&world.w);
}

static void more_objects_than_are_live_are_an_error(void **state)
{
	struct world world;

	(void)state;
	world_init(&world, 1);
	global(&world, "main.a", 1);
	walked_heap_run_both(&world.w);
	/* a root that was not there when it was marked */
	global(&world, "main.b", 2);
	assert_error(walked_heap_try(&world.w), ERROR_CORRUPT_TARGET);
	walked_heap_fini(&world.w);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_chain_is_a_shortest_one),
		cmocka_unit_test(a_level_comes_before_the_next),
		cmocka_unit_test(of_two_chains_the_one_through_the_lower_address_wins),
		cmocka_unit_test(of_two_words_the_first_wins),
		cmocka_unit_test(of_two_roots_the_first_wins),
		cmocka_unit_test(circles_end),
		cmocka_unit_test(globals_come_before_locals_but_go_on_together),
		cmocka_unit_test(roots_with_types_come_before_those_without),
		cmocka_unit_test(conservative_roots_come_after_exact_ones),
		cmocka_unit_test(of_conservative_roots_those_without_a_type_come_last),
		cmocka_unit_test(system_stacks_come_after_all_other_roots),
		cmocka_unit_test(what_nothing_explains_comes_after_all_roots),
		cmocka_unit_test(what_is_below_the_unexplained_goes_as_far_as_types_lead_first),
		cmocka_unit_test(a_list_of_many_nodes_is_walked_to_its_end),
		cmocka_unit_test(so_is_one_whose_type_nothing_tells),
		cmocka_unit_test(a_root_is_a_variable_of_a_goroutine),
		cmocka_unit_test(without_roots_there_is_nothing),
		cmocka_unit_test(garbage_is_not_walked),
		cmocka_unit_test(types_alone_are_the_same_without_places),
		cmocka_unit_test(a_memory_limit_is_kept_and_what_is_needed_is_said),
		cmocka_unit_test(any_number_of_threads_will_do),
		cmocka_unit_test(live_objects_that_are_not_met_are_an_error),
		cmocka_unit_test(more_objects_than_are_live_are_an_error),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("reference_walk", tests, NULL, NULL);
}
