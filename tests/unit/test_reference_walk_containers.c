/* What leads where through channels, maps, and what the library has in unsafe pointers. */
#include "agent/analysis/reference_walk.h"

#include "tests/support/walk_world.h"

/* ---- channels ---- */

static void what_waits_in_a_channel_is_in_its_buffer(void **state)
{
	struct world *world = world_new();
	type_id channel = fake_type_channel(world->w.types, "chan *main.Node", world->node_pointer);

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
	type_id channel = fake_type_channel(world->w.types, "chan main.Pair", world->pair);

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

int main(void)
{
	const struct CMUnitTest tests[] = {
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
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("reference_walk_containers", tests, NULL, NULL);
}
