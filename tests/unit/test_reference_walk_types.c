/* What leads where, as the types tell, and what objects are. */
#include "agent/analysis/reference_walk.h"

#include "tests/support/assertions.h"
#include "tests/support/walked_heap.h"

/*
 * Objects of all tests: first those that hold pointers, from A on and of 64 bytes, then some
 * without, then larger ones, which have a header, then a large one, which has none.
 */
enum {
	COUNT = 128,
	A = 1, /* and its neighbours */
	B,
	C,
	D,
	E,
	F,
	G,
	SMALL_SIZE = 64,
	PLAIN = COUNT + 1,
	PLAIN_2,
	WIDE = 2 * COUNT + 1, /* 512 bytes, just too small for a header */
	WIDE_2,
	BIG = 2 * COUNT + 16 + 1, /* 1024 bytes with the header */
	BIG_SIZE = 1024,
	LARGE = BIG + 8,
	LARGE_SIZE = 40 << 10,
	/* of descriptors, itabs and code */
	NODE_POINTER = 0x601000,
	PAIR = 0x601100,
	NODE = 0x601200,
	SHAPE_ITAB = 0x602000,
	CODE = 0x401000,
};

struct world {
	struct walked_heap w;
	type_id integer, bytes, string, any, shape; /* shape: an interface with methods */
	type_id node, node_pointer, nodes;          /* node: left, right, text, items, any */
	type_id pair, pair_pointer;                 /* 16 bytes: first *Node, number int */
	struct go_field node_fields[5], pair_fields[2];
};

static void make_types(struct world *world)
{
	struct go_types *types = world->w.types;

	world->integer = fake_type_plain(types, "int", GO_KIND_INT, 8);
	world->bytes =
	    fake_type_slice(types, "[]uint8", fake_type_plain(types, "uint8", GO_KIND_UINT8, 1));
	world->string = fake_type_string(types);
	world->any = fake_type_interface(types, "interface {}", false);
	world->shape = fake_type_interface(types, "main.Shape", true);
	world->node_pointer = fake_type_pointer(types, "*main.Node", TYPE_UNKNOWN);
	world->nodes = fake_type_slice(types, "[]*main.Node", world->node_pointer);
	world->node_fields[0] = (struct go_field){ "left", 0, world->node_pointer };
	world->node_fields[1] = (struct go_field){ "right", 8, world->node_pointer };
	world->node_fields[2] = (struct go_field){ "text", 16, world->string };
	world->node_fields[3] = (struct go_field){ "items", 32, world->nodes };
	world->node_fields[4] = (struct go_field){ "count", 56, world->integer };
	world->node = fake_type_struct(types, "main.Node", SMALL_SIZE, world->node_fields, 5);
	fake_types_at(types, world->node_pointer)->elem = world->node;
	fake_types_at(types, world->node_pointer)->descriptor = NODE_POINTER;
	fake_types_at(types, world->node)->descriptor = NODE;
	world->pair_fields[0] = (struct go_field){ "first", 0, world->node_pointer };
	world->pair_fields[1] = (struct go_field){ "number", 8, world->integer };
	world->pair = fake_type_struct(types, "main.Pair", 16, world->pair_fields, 2);
	fake_types_at(types, world->pair)->descriptor = PAIR;
	world->pair_pointer = fake_type_pointer(types, "*main.Pair", world->pair);
	fake_types_add_itab(types, SHAPE_ITAB, world->pair);
}

static struct world *world_new(void)
{
	struct world *world = calloc(1, sizeof(*world));
	struct fake_heap *heap;

	assert_non_null(world);
	walked_heap_init(&world->w);
	make_types(world);
	heap = world->w.heap;
	fake_heap_add(heap, SMALL_SIZE, COUNT, false);
	fake_heap_add(heap, SMALL_SIZE, COUNT, true);
	fake_heap_add(heap, 512, 16, false);
	fake_heap_add(heap, BIG_SIZE, 8, false);
	fake_heap_span(heap, fake_heap_add(heap, LARGE_SIZE, 1, false))->large_type = NODE;
	walked_heap_finish(&world->w);
	return world;
}

static void world_free(struct world *world)
{
	walked_heap_fini(&world->w);
	free(world);
}

static void global(struct world *world, type_id type, uint32_t object)
{
	walked_heap_global(&world->w, "main.g", type, object);
}

/* A global of several words. */
static void words(struct world *world, type_id type, uint64_t first, uint64_t second,
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

static void store(struct world *world, uint32_t object, uint64_t word, uint64_t value)
{
	walked_heap_store(&world->w, object, word, value);
}

/* Into an object. */
static void point_inside(struct world *world, uint32_t from, uint64_t word, uint32_t to,
			 uint64_t offset)
{
	fake_heap_point(world->w.heap, from, word, address(world, to) + offset);
}

static void run(struct world *world)
{
	walked_heap_run_both(&world->w);
}

#define chain(object, text) assert_chain(&world->w, object, text)
#define type(object, text)  assert_type(&world->w, object, text)
#define used(object, bytes) assert_used(&world->w, object, bytes)

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

static type_id unsafe_pointer(struct world *world)
{
	return fake_types_add(world->w.types, &(struct go_type){ .name = "unsafe.Pointer",
								 .kind = GO_KIND_UNSAFE_POINTER,
								 .size = 8,
								 .ptr_bytes = 8 });
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

/* ---- channels ---- */

static void what_waits_in_a_channel_is_in_its_buffer(void **state)
{
	struct world *world = world_new();
	type_id channel =
	    fake_types_add(world->w.types, &(struct go_type){ .name = "chan *main.Node",
							      .kind = GO_KIND_CHAN,
							      .size = 8,
							      .ptr_bytes = 8,
							      .elem = world->node_pointer });

	(void)state;
	world->w.layout.hchan.size = 48;
	world->w.layout.hchan_buffer = (struct layout_field){ .offset = 16, .size = 8 };
	global(world, channel, A);
	point(world, A, 2, WIDE);
	point(world, WIDE, 0, B);
	point(world, WIDE, 63, C);
	point(world, A, 5, D);
	run(world);
	type(A, "chan *main.Node");
	type(WIDE, "[]*main.Node");
	chain(WIDE, "main.g");
	chain(B, "main.g / $chan. (*main.Node)");
	chain(C, "main.g / $chan. (*main.Node)");
	type(C, "main.Node");
	chain(D, "main.g / $sub_objects$");
	world_free(world);
}

/* The channel says of what type the value is that waits. */
static void who_waits_at_a_channel_leads_to_its_element(void **state)
{
	struct world *world = world_new();
	const struct go_field fields[] = { { "elem", 8, unsafe_pointer(world) },
					   { "c", 24, unsafe_pointer(world) } };
	type_id sudog = fake_type_struct(world->w.types, "runtime.sudog", 32, fields, 2);
	type_id pointer = fake_type_pointer(world->w.types, "*runtime.sudog", sudog);

	(void)state;
	world->w.layout.sudog_channel = (struct layout_field){ .offset = 24, .size = 8 };
	world->w.layout.hchan_elem_type = (struct layout_field){ .offset = 40, .size = 8 };
	global(world, pointer, A);
	point(world, A, 1, B);
	point(world, A, 3, C);
	store(world, C, 5, PAIR);
	/* A semaphore's has none. */
	walked_heap_global(&world->w, "main.other", pointer, D);
	point(world, D, 1, E);
	run(world);
	type(A, "runtime.sudog");
	type(B, "main.Pair");
	chain(B, "main.g / elem. (*main.Pair)");
	type(D, "runtime.sudog");
	type(E, "?");
	chain(E, "main.other / $sub_objects$");
	world_free(world);
}

/* The same since go1.26; and what waits at a channel that is not in a copy of the heap. */
static void a_channel_that_was_met_tells_of_its_element(void **state)
{
	struct world *world = world_new();
	const struct go_field traceable[] = { { "vp", 0, unsafe_pointer(world) },
					      { "vu", 8, world->integer } };
	const struct go_field fields[] = {
		{ "elem", 8,
		  fake_type_struct(world->w.types, "runtime.maybeTraceablePtr", 16, traceable, 2) },
		{ "c", 24, world->integer }
	};
	type_id sudog = fake_type_struct(world->w.types, "runtime.sudog", 32, fields, 2);
	type_id channel =
	    fake_types_add(world->w.types, &(struct go_type){ .name = "chan main.Pair",
							      .kind = GO_KIND_CHAN,
							      .size = 8,
							      .ptr_bytes = 8,
							      .elem = world->pair });

	(void)state;
	world->w.layout.hchan.size = 48;
	world->w.layout.sudog_channel = (struct layout_field){ .offset = 24, .size = 8 };
	world->w.layout.hchan_elem_type = (struct layout_field){ .offset = 40, .size = 8 };
	walked_heap_global(&world->w, "main.channel", channel, PLAIN);
	global(world, fake_type_pointer(world->w.types, "*runtime.sudog", sudog), A);
	point(world, A, 1, B);
	store(world, A, 3, address(world, PLAIN));
	run(world);
	chain(B, "main.g / elem. (runtime.maybeTraceablePtr) / vp. (*main.Pair)");
	type(B, "main.Pair");
	world_free(world);
}

/* ---- what the library has in unsafe pointers, and generic ones ---- */

static void an_atomic_pointer_tells_what_it_points_to(void **state)
{
	struct world *world = world_new();
	const struct go_field fields[] = {
		{ "_", 0,
		  fake_type_array(world->w.types, "[0]*main.Node", world->node_pointer, 0) },
		{ "v", 0, unsafe_pointer(world) },
	};
	type_id atomic =
	    fake_type_struct(world->w.types, "sync/atomic.Pointer[main.Node]", 8, fields, 2);
	const struct go_field holder_fields[] = { { "number", 0, world->integer },
						  { "current", 8, atomic } };
	type_id holder = fake_type_struct(world->w.types, "main.Holder", 48, holder_fields, 2);

	(void)state;
	global(world, fake_type_pointer(world->w.types, "*main.Holder", holder), A);
	point(world, A, 1, B);
	run(world);
	chain(B, "main.g / current. (sync/atomic.Pointer[main.Node]) / v. (*main.Node)");
	type(B, "main.Node");
	world_free(world);
}

static void a_pool_leads_to_what_each_processor_has(void **state)
{
	struct world *world = world_new();
	const struct go_field local_fields[] = { { "private", 0, world->any } };
	const struct go_field fields[] = { { "local", 0, unsafe_pointer(world) },
					   { "localSize", 8, world->integer } };
	type_id pool;

	(void)state;
	fake_type_struct(world->w.types, "sync.poolLocal", 128, local_fields, 1);
	pool = fake_type_struct(world->w.types, "sync.Pool", 48, fields, 2);
	global(world, fake_type_pointer(world->w.types, "*sync.Pool", pool), A);
	point(world, A, 0, WIDE);
	store(world, WIDE, 16, NODE_POINTER);
	point(world, WIDE, 17, B);
	run(world);
	type(WIDE, "[]sync.poolLocal");
	chain(B, "main.g / local. (unsafe.Pointer) / [1]. (sync.poolLocal) / "
		 "private. (interface {}) / $iface. (*main.Node)");
	world_free(world);
}

/* Of a generic function: what it is of is not in its type. */
static void a_pointer_of_a_shape_tells_nothing(void **state)
{
	struct world *world = world_new();

	(void)state;
	global(world, fake_type_pointer(world->w.types, "go.shape.*uint8", world->integer), A);
	point(world, A, 0, B);
	run(world);
	type(A, "?");
	chain(B, "main.g / $sub_objects$");
	world_free(world);
}

/* Inner nodes, whose first byte is 0, are no step; entries are none either, what they hold is. */
static void a_trie_leads_to_its_entries(void **state)
{
	static const char node_name[] = "internal/sync.node[interface {},interface {}]";
	struct world *world = world_new();
	const struct go_field fields[] = { { "isEntry", 0, world->integer } };
	type_id node = fake_type_struct(world->w.types, node_name, 8, fields, 1);

	(void)state;
	global(world, fake_type_pointer(world->w.types, "*node", node), WIDE);
	point(world, WIDE, 3 + 5, A);
	store(world, A, 0, 1);
	store(world, A, 2, PAIR);
	point(world, A, 3, B);
	store(world, A, 4, NODE_POINTER);
	point(world, A, 5, C);
	point(world, A, 1, D); /* another one of the same hash */
	store(world, D, 0, 1);
	store(world, D, 4, NODE_POINTER);
	point(world, D, 5, E);
	run(world);
	chain(A, "main.g");
	chain(D, "main.g");
	chain(B, "main.g / key. (interface {}) / $box. (main.Pair)");
	chain(C, "main.g / value. (interface {}) / $iface. (*main.Node)");
	chain(E, "main.g / value. (interface {}) / $iface. (*main.Node)");
	type(A, node_name);
	world_free(world);
}

/* ---- maps ---- */

/* map[string]*main.Node, whose blocks of entries are of a type of these fields. */
static type_id make_map(struct world *world, const char *block, const struct go_field *fields,
			uint32_t count, uint64_t size)
{
	return fake_types_add(world->w.types,
			      &(struct go_type){ .name = "map[string]*main.Node",
						 .kind = GO_KIND_MAP,
						 .size = 8,
						 .ptr_bytes = 8,
						 .key = world->string,
						 .elem = world->node_pointer,
						 .bucket = fake_type_struct(world->w.types, block,
									    size, fields, count) });
}

static void a_map_of_buckets_has_keys_and_values(void **state)
{
	struct world *world = world_new();
	struct go_types *types = world->w.types;
	const struct go_field fields[] = {
		{ "topbits", 0, world->integer },
		{ "keys", 8, fake_type_array(types, "[8]string", world->string, 8) },
		{ "elems", 136, fake_type_array(types, "[8]*main.Node", world->node_pointer, 8) },
		{ "overflow", 200, world->node_pointer },
	};
	type_id map = make_map(world, "map.bucket[string]*main.Node", fields, 4, 208);
	struct layout *layout = &world->w.layout;

	(void)state;
	layout->hmap.size = 48;
	layout->hmap_buckets = (struct layout_field){ .offset = 16, .size = 8 };
	layout->hmap_old_buckets = (struct layout_field){ .offset = 24, .size = 8 };
	layout->hmap_extra = (struct layout_field){ .offset = 40, .size = 8 };
	layout->map_extra.size = 24;
	layout->map_extra_overflow = (struct layout_field){ .offset = 0, .size = 8 };
	layout->map_extra_next_overflow = (struct layout_field){ .offset = 16, .size = 8 };
	global(world, map, A);
	/* two buckets in a block, and an overflow bucket that extra has, too */
	point(world, A, 2, WIDE);
	point(world, A, 5, B);
	point(world, B, 0, C); /* a pointer to a slice of pointers to buckets */
	point(world, C, 0, D);
	point(world, D, 0, WIDE_2);
	point(world, WIDE, 1, PLAIN);
	store(world, WIDE, 2, 3);
	point(world, WIDE, 17, E);
	point(world, WIDE, 26 + 24, F);
	point(world, WIDE, 26 + 25, WIDE_2);
	point(world, WIDE_2, 17 + 7, G);
	run(world);
	type(A, "map[string]*main.Node");
	type(WIDE, "[]map.bucket[string]*main.Node");
	chain(WIDE, "main.g");
	chain(WIDE_2, "main.g");
	chain(PLAIN, "main.g / $mapkey. (string)");
	used(PLAIN, 3);
	chain(E, "main.g / $mapval. (*main.Node)");
	chain(F, "main.g / $mapval. (*main.Node)");
	chain(G, "main.g / $mapval. (*main.Node)");
	type(G, "main.Node");
	chain(D, "main.g");
	world_free(world);
}

static void use_swiss_maps(struct layout *layout)
{
	layout->swiss_map.size = 48;
	layout->swiss_map_directory = (struct layout_field){ .offset = 16, .size = 8 };
	layout->swiss_map_directory_length = (struct layout_field){ .offset = 24, .size = 8 };
	layout->swiss_table.size = 32;
	layout->swiss_table_groups = (struct layout_field){ .offset = 16, .size = 8 };
}

/* group { ctrl; slots [8]{ key string; elem *main.Node } }, 200 bytes. */
static type_id make_swiss_map(struct world *world, struct go_field group[2],
			      struct go_field slot[2])
{
	struct go_types *types = world->w.types;
	type_id pair;

	slot[0] = (struct go_field){ "key", 0, world->string };
	slot[1] = (struct go_field){ "elem", 16, world->node_pointer };
	pair = fake_type_struct(types, "slot", 24, slot, 2);
	group[0] = (struct go_field){ "ctrl", 0, world->integer };
	group[1] = (struct go_field){ "slots", 8, fake_type_array(types, "[8]slot", pair, 8) };
	use_swiss_maps(&world->w.layout);
	return make_map(world, "map.group[string]*main.Node", group, 2, 200);
}

static void a_small_swiss_map_is_one_group(void **state)
{
	struct world *world = world_new();
	struct go_field group[2], slot[2];

	(void)state;
	global(world, make_swiss_map(world, group, slot), A);
	point(world, A, 2, WIDE);
	point(world, WIDE, 1, PLAIN);
	store(world, WIDE, 2, 64);
	point(world, WIDE, 3, B);
	point(world, WIDE, 1 + 7 * 3 + 2, C);
	run(world);
	type(A, "map[string]*main.Node");
	type(WIDE, "[]map.group[string]*main.Node");
	chain(PLAIN, "main.g / $mapkey. (string)");
	used(PLAIN, 64);
	chain(B, "main.g / $mapval. (*main.Node)");
	chain(C, "main.g / $mapval. (*main.Node)");
	world_free(world);
}

static void a_large_swiss_map_has_a_directory_of_tables(void **state)
{
	struct world *world = world_new();
	struct go_field group[2], slot[2];

	(void)state;
	global(world, make_swiss_map(world, group, slot), A);
	point(world, A, 2, B);
	store(world, A, 3, 2);
	point(world, B, 0, C);
	point(world, B, 1, D);
	point(world, C, 2, WIDE);
	point(world, D, 2, WIDE_2);
	point(world, WIDE, 3, E);
	point(world, WIDE, 25 + 3, F); /* of the second group */
	point(world, WIDE_2, 3, G);
	run(world);
	type(B, "map[string]*main.Node");
	type(C, "map[string]*main.Node");
	type(WIDE, "[]map.group[string]*main.Node");
	chain(D, "main.g");
	chain(E, "main.g / $mapval. (*main.Node)");
	chain(F, "main.g / $mapval. (*main.Node)");
	chain(G, "main.g / $mapval. (*main.Node)");
	world_free(world);
}

static void large_keys_and_values_of_maps_lie_elsewhere(void **state)
{
	struct world *world = world_new();
	const struct go_field fields[] = {
		{ "topbits", 0, world->integer },
		{ "keys", 8,
		  fake_type_array(world->w.types, "[8]*main.Node", world->node_pointer, 8) },
		{ "elems", 72,
		  fake_type_array(world->w.types, "[8]*main.Node", world->node_pointer, 8) },
	};
	type_id map = make_map(world, "map.bucket", fields, 3, 144);
	struct go_type *changed = fake_types_at(world->w.types, map);

	(void)state;
	changed->key = changed->elem = world->node;
	changed->indirect_key = changed->indirect_elem = true;
	world->w.layout.hmap.size = 48;
	world->w.layout.hmap_buckets = (struct layout_field){ .offset = 16, .size = 8 };
	global(world, map, A);
	point(world, A, 2, WIDE);
	point(world, WIDE, 1, B);
	point(world, WIDE, 9, C);
	point(world, C, 0, D);
	run(world);
	type(B, "main.Node");
	chain(B, "main.g / $mapkey. (main.Node)");
	chain(C, "main.g / $mapval. (main.Node)");
	chain(D, "main.g / $mapval. (main.Node) / left. (*main.Node)");
	world_free(world);
}

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
	static const struct CMUnitTest tests[] = {
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
		cmocka_unit_test(what_waits_in_a_channel_is_in_its_buffer),
		cmocka_unit_test(who_waits_at_a_channel_leads_to_its_element),
		cmocka_unit_test(a_channel_that_was_met_tells_of_its_element),
		cmocka_unit_test(an_atomic_pointer_tells_what_it_points_to),
		cmocka_unit_test(a_pool_leads_to_what_each_processor_has),
		cmocka_unit_test(a_pointer_of_a_shape_tells_nothing),
		cmocka_unit_test(a_trie_leads_to_its_entries),
		cmocka_unit_test(a_map_of_buckets_has_keys_and_values),
		cmocka_unit_test(a_small_swiss_map_is_one_group),
		cmocka_unit_test(a_large_swiss_map_has_a_directory_of_tables),
		cmocka_unit_test(large_keys_and_values_of_maps_lie_elsewhere),
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
	return cmocka_run_group_tests_name("reference_walk_types", tests, NULL, NULL);
}
