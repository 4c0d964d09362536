/*
 * The table of Go types, over made-up descriptors: names, facts, types that are made, memory that
 * goes, and threads.
 */
#include "tests/support/assertions.h"

#include <pthread.h>
#include <string.h>

#include "agent/goruntime/go_type.h"
#include "tests/support/type_fixture.h"

/* ---- names ---- */

static void named_types_have_their_whole_path(void **state)
{
	struct type_fixture *f = *state;

	assert_string_equal(type_fixture_name(f, type_fixture_item(f)), "shop/cart.Item");
	assert_string_equal(type_fixture_name(f, fake_types_int(&f->types)), "int");
	assert_string_equal(type_fixture_name(f, fake_types_named(&f->types, "v3.Node[go.uber/x.Y]",
								  "gopkg.in/yaml.v3")),
			    "gopkg.in/yaml.v3.Node[go.uber/x.Y]");
	assert_string_equal(type_fixture_name(f, fake_types_named(&f->types, "main.T", "main")),
			    "main.T");
}

static void names_of_parts_make_names_of_the_whole(void **state)
{
	struct type_fixture *f = *state;
	taddr number = fake_types_int(&f->types), thing = type_fixture_item(f);
	taddr pointer = fake_types_pointer(&f->types, "*cart.Item", thing);
	taddr slice = type_fixture_add(f, (struct fake_descriptor){ .name = "[]*cart.Item",
								    .size = 24,
								    .ptr_bytes = 8,
								    .kind = GO_KIND_SLICE,
								    .elem = pointer });

	assert_string_equal(type_fixture_name(f, slice), "[]*shop/cart.Item");
	assert_string_equal(
	    type_fixture_name(
		f, type_fixture_add(f, (struct fake_descriptor){ .name = "map[int]*cart.Item",
								 .size = 8,
								 .ptr_bytes = 8,
								 .kind = GO_KIND_MAP,
								 .key = number,
								 .elem = pointer })),
	    "map[int]*shop/cart.Item");
	assert_string_equal(
	    type_fixture_name(f,
			      type_fixture_add(f, (struct fake_descriptor){ .name = "[3]cart.Item",
									    .size = 48,
									    .length = 3,
									    .kind = GO_KIND_ARRAY,
									    .elem = thing })),
	    "[3]shop/cart.Item");
	assert_string_equal(
	    type_fixture_name(
		f,
		type_fixture_add(f,
				 (struct fake_descriptor){
				     .name = "func(int, ...*cart.Item) (cart.Item, int)",
				     .size = 8,
				     .ptr_bytes = 8,
				     .kind = GO_KIND_FUNC,
				     .parameters = (const taddr[]){ number, slice, thing, number },
				     .count = 2,
				     .out_count = 0x8002 })),
	    "func(int, ...*shop/cart.Item) (shop/cart.Item, int)");
}

static void channels_say_which_way_they_go(void **state)
{
	static const struct {
		uint8_t direction;
		const char *name;
	} ways[] = { { 1, "<-chan shop/cart.Item" },
		     { 2, "chan<- shop/cart.Item" },
		     { 3, "chan shop/cart.Item" } };
	struct type_fixture *f = *state;
	taddr thing = type_fixture_item(f), receiving = 0;

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		taddr chan =
		    type_fixture_add(f, (struct fake_descriptor){ .name = "chan cart.Item",
								  .size = 8,
								  .ptr_bytes = 8,
								  .kind = GO_KIND_CHAN,
								  .elem = thing,
								  .direction = ways[i].direction });

		assert_string_equal(type_fixture_name(f, chan), ways[i].name);
		receiving = ways[i].direction == 1 ? chan : receiving;
	}
	assert_string_equal(
	    type_fixture_name(f, type_fixture_add(f, (struct fake_descriptor){ .name = "chan (x)",
									       .size = 8,
									       .ptr_bytes = 8,
									       .kind = GO_KIND_CHAN,
									       .elem = receiving,
									       .direction = 3 })),
	    "chan (<-chan shop/cart.Item)");
}

static void structs_and_interfaces_are_spelled_out(void **state)
{
	struct type_fixture *f = *state;
	taddr number = fake_types_int(&f->types), thing = type_fixture_item(f);
	const struct fake_type_field fields[] = {
		{ .name = "A", .tag = "json:\"a\"", .type = number },
		{ .name = "Item", .type = thing, .offset = 8, .embedded = true },
	};
	taddr signature = type_fixture_add(
	    f, (struct fake_descriptor){ .name = "func(cart.Item) int",
					 .size = 8,
					 .ptr_bytes = 8,
					 .kind = GO_KIND_FUNC,
					 .parameters = (const taddr[]){ thing, number },
					 .count = 1,
					 .out_count = 1 });
	const struct fake_type_method methods[] = { { "Weigh", signature } };
	const struct go_type *type;

	assert_string_equal(
	    type_fixture_name(
		f, type_fixture_add(f, (struct fake_descriptor){ .name = "struct { A int }",
								 .size = 24,
								 .kind = GO_KIND_STRUCT,
								 .fields = fields,
								 .count = 2 })),
	    "struct { A int \"json:\\\"a\\\"\"; shop/cart.Item }");
	type = type_fixture_type(
	    f, type_fixture_add(f, (struct fake_descriptor){ .name = "interface { Weigh() }",
							     .size = 16,
							     .ptr_bytes = 16,
							     .kind = GO_KIND_INTERFACE,
							     .methods = methods,
							     .count = 1 }));
	assert_string_equal(type->name, "interface { Weigh(shop/cart.Item) int }");
	assert_true(type->has_methods);
	type = type_fixture_type(
	    f, type_fixture_add(f, (struct fake_descriptor){ .name = "interface {}",
							     .size = 16,
							     .ptr_bytes = 16,
							     .kind = GO_KIND_INTERFACE }));
	assert_string_equal(type->name, "interface {}");
	assert_false(type->has_methods);
}

static void extra_stars_and_the_compilers_own_mark_are_left_out(void **state)
{
	struct type_fixture *f = *state;

	assert_string_equal(
	    type_fixture_name(
		f,
		type_fixture_add(f, (struct fake_descriptor){ .name = "*noalg.[4]int",
							      .size = 32,
							      .length = 4,
							      .kind = GO_KIND_ARRAY,
							      .tflag = FAKE_TFLAG_EXTRA_STAR,
							      .elem = fake_types_int(&f->types) })),
	    "[4]int");
}

static void lengths_of_names_are_read_in_both_ways(void **state)
{
	struct type_fixture *f = *state;
	char longer[400] = "cart.T";

	memset(longer + 6, 'x', 300);
	f->types.layout->struct_field_offset = (struct layout_field){ 0 };
	f->types.layout->struct_field_offset_and_embedded = (struct layout_field){ 16, 8 };
	f->types.two_byte_lengths = true;
	for (int i = 0; i < 2; i++) {
		taddr number = fake_types_int(&f->types);
		const struct fake_type_field fields[] = {
			{ .name = "a", .type = number },
			{ .name = "b", .tag = "tag", .type = number, .offset = 8 },
		};
		const struct go_type *type = type_fixture_type(
		    f, type_fixture_add(f, (struct fake_descriptor){ .name = longer,
								     .package = "shop/cart",
								     .size = 16,
								     .kind = GO_KIND_STRUCT,
								     .tflag = FAKE_TFLAG_NAMED |
									      FAKE_TFLAG_UNCOMMON,
								     .fields = fields,
								     .count = 2 }));

		assert_int_equal(strlen(type->name), strlen(longer) + 5);
		assert_int_equal(type->field_count, 2);
		assert_string_equal(type->fields[0].name, "a");
		assert_string_equal(type->fields[1].name, "b");
		assert_int_equal(type->fields[1].offset, 8);
		f->types.two_byte_lengths = false; /* the same layout; go1.17 */
	}
}

static void names_that_reflect_made_are_found_by_number(void **state)
{
	struct type_fixture *f = *state;
	taddr thing = type_fixture_item(f);
	const struct go_type *type = type_fixture_type(
	    f, type_fixture_add(f, (struct fake_descriptor){ .name = "[7]cart.Item",
							     .size = 112,
							     .length = 7,
							     .kind = GO_KIND_ARRAY,
							     .elem = thing,
							     .made = true }));

	assert_string_equal(type->name, "[7]shop/cart.Item");
	assert_int_equal(type->length, 7);
	assert_int_equal(type->elem, type_fixture_find(f, thing));
}

/* ---- facts ---- */

static void facts_are_those_of_the_descriptor(void **state)
{
	struct type_fixture *f = *state;
	taddr number = fake_types_int(&f->types);
	taddr pointer = fake_types_pointer(&f->types, "*int", number);
	const struct fake_type_field fields[] = {
		{ .name = "count", .type = number },
		{ .name = "next", .type = pointer, .offset = 8 },
	};
	taddr addr = type_fixture_add(
	    f, (struct fake_descriptor){ .name = "main.list",
					 .package = "main",
					 .size = 24,
					 .ptr_bytes = 16,
					 .kind = GO_KIND_STRUCT,
					 .tflag = FAKE_TFLAG_NAMED | FAKE_TFLAG_UNCOMMON,
					 .fields = fields,
					 .count = 2 });
	const struct go_type *type = type_fixture_type(f, addr);

	assert_int_equal(type->size, 24);
	assert_int_equal(type->ptr_bytes, 16);
	assert_int_equal(type->descriptor, addr);
	assert_int_equal(type->kind, GO_KIND_STRUCT);
	assert_int_equal(type->field_count, 2);
	assert_string_equal(type->fields[1].name, "next");
	assert_int_equal(type->fields[1].type, type_fixture_find(f, pointer));
	assert_false(type->direct_interface);
	assert_true(type_fixture_type(f, pointer)->direct_interface);
	assert_int_equal(type_fixture_type(f, pointer)->elem, type_fixture_find(f, number));
	assert_int_equal(type_fixture_find(f, addr), type_fixture_find(f, addr));
}

static void maps_say_what_lies_elsewhere(void **state)
{
	struct type_fixture *f = *state;
	taddr number = fake_types_int(&f->types), group = type_fixture_item(f);
	struct fake_descriptor map = { .name = "map[int]int",
				       .size = 8,
				       .ptr_bytes = 8,
				       .kind = GO_KIND_MAP,
				       .key = number,
				       .elem = number,
				       .bucket = group };
	const struct go_type *type = type_fixture_type(f, type_fixture_add(f, map));

	assert_false(type->indirect_key || type->indirect_elem);
	assert_int_equal(type->bucket, type_fixture_find(f, group));
	map.map_flags = 4;
	type = type_fixture_type(f, type_fixture_add(f, map));
	assert_true(type->indirect_key && !type->indirect_elem);
	map.map_flags = 3; /* what else there is */
	type = type_fixture_type(f, type_fixture_add(f, map));
	assert_false(type->indirect_key || type->indirect_elem);
	map.map_flags = 8;
	type = type_fixture_type(f, type_fixture_add(f, map));
	assert_true(!type->indirect_key && type->indirect_elem);
}

static void maps_with_buckets_have_flags_of_their_own(void **state)
{
	struct type_fixture *f = *state;
	taddr number;
	struct fake_descriptor map = { .name = "map[int]int",
				       .size = 8,
				       .ptr_bytes = 8,
				       .kind = GO_KIND_MAP,
				       .map_flags = 1 };

	fake_types_use_buckets(&f->types);
	number = fake_types_int(&f->types);
	map.key = map.elem = number;
	assert_true(type_fixture_type(f, type_fixture_add(f, map))->indirect_key);
	map.map_flags = 2;
	assert_true(type_fixture_type(f, type_fixture_add(f, map))->indirect_elem);
	map.map_flags = 12;
	assert_false(type_fixture_type(f, type_fixture_add(f, map))->indirect_key);
}

/* What reflect says of its buckets is no struct: what lies behind is another object. */
static void buckets_that_reflect_makes_are_made_up(void **state)
{
	struct type_fixture *f = *state;
	taddr number, thing, bucket;
	const struct go_type *map, *type;

	fake_types_use_buckets(&f->types);
	number = fake_types_int(&f->types);
	thing = type_fixture_item(f);
	bucket = type_fixture_add(f, (struct fake_descriptor){ .name = "bucket(int,cart.Item)",
							       .size = 208,
							       .ptr_bytes = 208,
							       .kind = GO_KIND_STRUCT,
							       .made = true });
	fake_memory_store(f->program.memory, bucket + 56, 8, 0x1234);
	fake_memory_store(f->program.memory, bucket + 64, 8, UINT64_MAX);
	map = type_fixture_type(
	    f, type_fixture_add(f, (struct fake_descriptor){ .name = "map[int]cart.Item",
							     .size = 8,
							     .ptr_bytes = 8,
							     .kind = GO_KIND_MAP,
							     .key = number,
							     .elem = thing,
							     .bucket = bucket,
							     .map_flags = 2,
							     .made = true }));
	type = go_type_at(f->table, map->bucket);
	assert_string_equal(type->name, "map.bucket[int]shop/cart.Item");
	assert_int_equal(type->field_count, 4);
	assert_string_equal(type->fields[1].name, "keys");
	assert_int_equal(type->fields[1].offset, 8);
	assert_string_equal(go_type_at(f->table, type->fields[1].type)->name, "[8]int");
	assert_int_equal(type->fields[2].offset, 72);
	assert_string_equal(go_type_at(f->table, type->fields[2].type)->name, "[8]unsafe.Pointer");
	assert_int_equal(type->fields[3].offset, 136);
	assert_int_equal(type->size, 144);
	assert_int_equal(type->ptr_bytes, 144);
	/* Its own descriptor is one of something without fields. */
	assert_int_equal(type_fixture_type(f, bucket)->size, 208);
	assert_int_equal(type_fixture_type(f, bucket)->field_count, 0);
}

/* ---- types that are made ---- */

static void pointers_are_those_that_exist_or_made(void **state)
{
	struct type_fixture *f = *state;
	taddr number = fake_types_int(&f->types), thing = type_fixture_item(f);
	taddr pointer = fake_types_pointer(&f->types, "*int", number);
	type_id known = type_fixture_find(f, pointer), found, again;

	assert_success(go_types_pointer_to(f->table, type_fixture_find(f, number), &found));
	assert_int_equal(found, known);
	assert_success(go_types_pointer_to(f->table, type_fixture_find(f, thing), &found));
	assert_success(go_types_pointer_to(f->table, type_fixture_find(f, thing), &again));
	assert_int_equal(found, again);
	assert_string_equal(go_type_at(f->table, found)->name, "*shop/cart.Item");
	assert_int_equal(go_type_at(f->table, found)->elem, type_fixture_find(f, thing));
	assert_int_equal(go_type_at(f->table, found)->ptr_bytes, 8);
	assert_int_equal(go_type_at(f->table, found)->descriptor, 0);
	assert_success(go_types_pointer_to(f->table, TYPE_UNKNOWN, &found));
	assert_int_equal(go_type_at(f->table, found)->kind, GO_KIND_POINTER);
}

static void the_runtimes_structs_are_known_as_far_as_the_layout_goes(void **state)
{
	struct type_fixture *f = *state;
	type_id id, again;
	const struct go_type *type;

	f->types.layout->hchan.size = 96;
	f->types.layout->hchan_count = (struct layout_field){ 0, 8 };
	f->types.layout->hchan_buffer = (struct layout_field){ 16, 8 };
	f->types.layout->hchan_elem_size = (struct layout_field){ 24, 2 };
	type_fixture_open(f, NULL);
	assert_success(go_types_by_name(f->table, "runtime.hchan", &id));
	assert_success(go_types_by_name(f->table, "runtime.hchan", &again));
	assert_int_equal(id, again);
	type = go_type_at(f->table, id);
	assert_int_equal(type->size, 96);
	assert_int_equal(type->field_count, 3);
	assert_string_equal(type->fields[1].name, "buf");
	assert_string_equal(go_type_at(f->table, type->fields[1].type)->name, "unsafe.Pointer");
	assert_string_equal(go_type_at(f->table, type->fields[2].type)->name, "uint16");
	assert_int_equal(type->ptr_bytes, 24);
	assert_success(go_types_by_name(f->table, "runtime.hmap", &id));
	assert_int_equal(id, TYPE_UNKNOWN);
	assert_success(go_types_by_name(f->table, "runtime.g", &id));
	assert_int_equal(id, TYPE_UNKNOWN);
}

/* ---- memory that goes ---- */

static void types_of_modules_are_met_when_memory_is_gone(void **state)
{
	struct type_fixture *f = *state;
	taddr thing = type_fixture_item(f),
	      later = fake_types_pointer(&f->types, "*cart.Item", thing);
	taddr made = type_fixture_add(f, (struct fake_descriptor){ .name = "[1]cart.Item",
								   .size = 16,
								   .length = 1,
								   .kind = GO_KIND_ARRAY,
								   .elem = thing,
								   .made = true });

	type_fixture_find(f, thing);
	assert_success(go_types_let_go(f->table, NULL));
	fake_memory_unmap(f->program.memory, FAKE_TYPES);
	fake_memory_unmap(f->program.memory, FAKE_MADE);
	assert_string_equal(type_fixture_name(f, later), "*shop/cart.Item");
	type_fixture_assert_unknown(f, 0x30000000);
	(void)made;
}

static void what_reflect_made_is_read_from_the_copy_of_the_heap(void **state)
{
	struct type_fixture *f = *state;
	taddr thing = type_fixture_item(f);
	taddr made = type_fixture_add(f, (struct fake_descriptor){ .name = "[1]cart.Item",
								   .size = 16,
								   .length = 1,
								   .kind = GO_KIND_ARRAY,
								   .elem = thing,
								   .made = true });
	struct fake_memory *copy = fake_memory_new();

	fake_memory_map(copy, FAKE_MADE, FAKE_MADE_SIZE);
	memcpy(fake_memory_bytes(copy, FAKE_MADE, FAKE_MADE_SIZE),
	       fake_memory_bytes(f->program.memory, FAKE_MADE, FAKE_MADE_SIZE), FAKE_MADE_SIZE);
	type_fixture_open(f, NULL);
	assert_success(go_types_let_go(f->table, fake_memory_memory(copy)));
	fake_memory_unmap(f->program.memory, FAKE_MADE);
	assert_string_equal(type_fixture_name(f, made), "[1]shop/cart.Item");
	fake_memory_free(copy);
}

/* ---- many threads ---- */

enum { ASKERS = 4, ASKED = 600 };

struct asker {
	struct type_fixture *f;
	const taddr *descriptors;
	type_id ids[ASKED];
	pthread_t thread;
	bool failed;
};

static void *ask(void *arg)
{
	struct asker *asker = arg;

	for (unsigned i = 0; i < ASKED; i++) {
		struct error *err =
		    go_types_by_descriptor(asker->f->table, asker->descriptors[i], &asker->ids[i]);

		asker->failed |=
		    err != NULL || strcmp(go_type_at(asker->f->table, asker->ids[i])->name,
					  "*shop/cart.Item") != 0;
		error_free(err);
	}
	return NULL;
}

static void threads_that_ask_for_one_type_get_one(void **state)
{
	struct type_fixture *f = *state;
	taddr thing = type_fixture_item(f), descriptors[ASKED];
	struct asker askers[ASKERS];

	for (unsigned i = 0; i < ASKED; i++)
		descriptors[i] = fake_types_pointer(&f->types, "*cart.Item", thing);
	type_fixture_open(f, NULL);
	for (unsigned i = 0; i < ASKERS; i++) {
		askers[i] = (struct asker){ .f = f, .descriptors = descriptors };
		assert_int_equal(pthread_create(&askers[i].thread, NULL, ask, &askers[i]), 0);
	}
	for (unsigned i = 0; i < ASKERS; i++) {
		pthread_join(askers[i].thread, NULL);
		assert_false(askers[i].failed);
		assert_memory_equal(askers[i].ids, askers[0].ids, sizeof(askers[0].ids));
	}
}

#define TEST(name)                                                                                 \
	cmocka_unit_test_setup_teardown(name, type_fixture_set_up, type_fixture_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(named_types_have_their_whole_path),
		TEST(names_of_parts_make_names_of_the_whole),
		TEST(channels_say_which_way_they_go),
		TEST(structs_and_interfaces_are_spelled_out),
		TEST(extra_stars_and_the_compilers_own_mark_are_left_out),
		TEST(lengths_of_names_are_read_in_both_ways),
		TEST(names_that_reflect_made_are_found_by_number),
		TEST(facts_are_those_of_the_descriptor),
		TEST(maps_say_what_lies_elsewhere),
		TEST(maps_with_buckets_have_flags_of_their_own),
		TEST(buckets_that_reflect_makes_are_made_up),
		TEST(pointers_are_those_that_exist_or_made),
		TEST(the_runtimes_structs_are_known_as_far_as_the_layout_goes),
		TEST(types_of_modules_are_met_when_memory_is_gone),
		TEST(what_reflect_made_is_read_from_the_copy_of_the_heap),
		TEST(threads_that_ask_for_one_type_get_one),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("go types", tests, NULL, NULL);
}
