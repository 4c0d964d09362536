/* The table of Go types, over made-up descriptors, a made-up index and a made-up program. */
#include "tests/support/assertions.h"

#include <pthread.h>
#include <stdlib.h>

#include "agent/goruntime/go_type.h"
#include "agent/goruntime/module.h"
#include "tests/support/fake_type_index.h"
#include "tests/support/fake_types.h"

enum { MAIN, CLOSURE, METHOD_VALUE, FUNCTIONS };

static const struct fake_function functions[FUNCTIONS] = {
	[MAIN] = { .name = "main.main", .frame = 16 },
	[CLOSURE] = { .name = "main.main.func1", .frame = 16 },
	[METHOD_VALUE] = { .name = "shop/cart.(*Item).Weigh-fm", .frame = 16 },
};

struct fixture {
	struct fake_program program;
	struct fake_types types;
	struct module_table *modules;
	const struct type_index *index;
	struct go_types *table;
	taddr seen, seen_made; /* up to where there were types when the table was opened */
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	fake_program_init(&f->program, functions, FUNCTIONS);
	fake_types_init(&f->types, &f->program);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	go_types_free(f->table);
	module_table_free(f->modules);
	fake_program_fini(&f->program);
	free(f);
	return 0;
}

/* Opens the table of what the test has made so far, anew if there is one. */
static void open_table(struct fixture *f, const struct type_index *index)
{
	struct memory *memory = fake_memory_memory(f->program.memory);

	go_types_free(f->table);
	module_table_free(f->modules);
	f->modules = NULL;
	f->index = index;
	f->seen = f->types.next;
	f->seen_made = f->types.next_made;
	assert_success(module_table_read(memory, &f->program.layout, &f->modules));
	assert_success(
	    go_types_new(memory, &f->program.layout, f->modules, index, 0x1000, &f->table));
}

static type_id by_descriptor(struct fixture *f, taddr descriptor)
{
	type_id id = 77;

	if (!f->table || f->seen != f->types.next || f->seen_made != f->types.next_made)
		open_table(f, f->index);
	assert_success(go_types_by_descriptor(f->table, descriptor, &id));
	return id;
}

static const struct go_type *read_type(struct fixture *f, taddr descriptor)
{
	return go_type_at(f->table, by_descriptor(f, descriptor));
}

static const char *name_of(struct fixture *f, taddr descriptor)
{
	return read_type(f, descriptor)->name;
}

static taddr add(struct fixture *f, struct fake_descriptor descriptor)
{
	return fake_types_add(&f->types, &descriptor);
}

static taddr item(struct fixture *f)
{
	return fake_types_named(&f->types, "cart.Item", "shop/cart");
}

/* ---- names ---- */

static void named_types_have_their_whole_path(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(name_of(f, item(f)), "shop/cart.Item");
	assert_string_equal(name_of(f, fake_types_int(&f->types)), "int");
	assert_string_equal(
	    name_of(f, fake_types_named(&f->types, "v3.Node[go.uber/x.Y]", "gopkg.in/yaml.v3")),
	    "gopkg.in/yaml.v3.Node[go.uber/x.Y]");
	assert_string_equal(name_of(f, fake_types_named(&f->types, "main.T", "main")), "main.T");
}

static void names_of_parts_make_names_of_the_whole(void **state)
{
	struct fixture *f = *state;
	taddr number = fake_types_int(&f->types), thing = item(f);
	taddr pointer = fake_types_pointer(&f->types, "*cart.Item", thing);
	taddr slice = add(f, (struct fake_descriptor){ .name = "[]*cart.Item",
						       .size = 24,
						       .ptr_bytes = 8,
						       .kind = GO_KIND_SLICE,
						       .elem = pointer });

	assert_string_equal(name_of(f, slice), "[]*shop/cart.Item");
	assert_string_equal(
	    name_of(f, add(f, (struct fake_descriptor){ .name = "map[int]*cart.Item",
							.size = 8,
							.ptr_bytes = 8,
							.kind = GO_KIND_MAP,
							.key = number,
							.elem = pointer })),
	    "map[int]*shop/cart.Item");
	assert_string_equal(name_of(f, add(f, (struct fake_descriptor){ .name = "[3]cart.Item",
									.size = 48,
									.length = 3,
									.kind = GO_KIND_ARRAY,
									.elem = thing })),
			    "[3]shop/cart.Item");
	assert_string_equal(
	    name_of(f, add(f,
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
	struct fixture *f = *state;
	taddr thing = item(f), receiving = 0;

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		taddr chan = add(f, (struct fake_descriptor){ .name = "chan cart.Item",
							      .size = 8,
							      .ptr_bytes = 8,
							      .kind = GO_KIND_CHAN,
							      .elem = thing,
							      .direction = ways[i].direction });

		assert_string_equal(name_of(f, chan), ways[i].name);
		receiving = ways[i].direction == 1 ? chan : receiving;
	}
	assert_string_equal(name_of(f, add(f, (struct fake_descriptor){ .name = "chan (x)",
									.size = 8,
									.ptr_bytes = 8,
									.kind = GO_KIND_CHAN,
									.elem = receiving,
									.direction = 3 })),
			    "chan (<-chan shop/cart.Item)");
}

static void structs_and_interfaces_are_spelled_out(void **state)
{
	struct fixture *f = *state;
	taddr number = fake_types_int(&f->types), thing = item(f);
	const struct fake_type_field fields[] = {
		{ .name = "A", .tag = "json:\"a\"", .type = number },
		{ .name = "Item", .type = thing, .offset = 8, .embedded = true },
	};
	taddr signature =
	    add(f, (struct fake_descriptor){ .name = "func(cart.Item) int",
					     .size = 8,
					     .ptr_bytes = 8,
					     .kind = GO_KIND_FUNC,
					     .parameters = (const taddr[]){ thing, number },
					     .count = 1,
					     .out_count = 1 });
	const struct fake_type_method methods[] = { { "Weigh", signature } };
	const struct go_type *type;

	assert_string_equal(name_of(f, add(f, (struct fake_descriptor){ .name = "struct { A int }",
									.size = 24,
									.kind = GO_KIND_STRUCT,
									.fields = fields,
									.count = 2 })),
			    "struct { A int \"json:\\\"a\\\"\"; shop/cart.Item }");
	type = read_type(f, add(f, (struct fake_descriptor){ .name = "interface { Weigh() }",
							     .size = 16,
							     .ptr_bytes = 16,
							     .kind = GO_KIND_INTERFACE,
							     .methods = methods,
							     .count = 1 }));
	assert_string_equal(type->name, "interface { Weigh(shop/cart.Item) int }");
	assert_true(type->has_methods);
	type = read_type(f, add(f, (struct fake_descriptor){ .name = "interface {}",
							     .size = 16,
							     .ptr_bytes = 16,
							     .kind = GO_KIND_INTERFACE }));
	assert_string_equal(type->name, "interface {}");
	assert_false(type->has_methods);
}

static void extra_stars_and_the_compilers_own_mark_are_left_out(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(
	    name_of(f, add(f, (struct fake_descriptor){ .name = "*noalg.[4]int",
							.size = 32,
							.length = 4,
							.kind = GO_KIND_ARRAY,
							.tflag = FAKE_TFLAG_EXTRA_STAR,
							.elem = fake_types_int(&f->types) })),
	    "[4]int");
}

static void lengths_of_names_are_read_in_both_ways(void **state)
{
	struct fixture *f = *state;
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
		const struct go_type *type =
		    read_type(f, add(f, (struct fake_descriptor){ .name = longer,
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
	struct fixture *f = *state;
	taddr thing = item(f);
	const struct go_type *type =
	    read_type(f, add(f, (struct fake_descriptor){ .name = "[7]cart.Item",
							  .size = 112,
							  .length = 7,
							  .kind = GO_KIND_ARRAY,
							  .elem = thing,
							  .made = true }));

	assert_string_equal(type->name, "[7]shop/cart.Item");
	assert_int_equal(type->length, 7);
	assert_int_equal(type->elem, by_descriptor(f, thing));
}

/* ---- facts ---- */

static void facts_are_those_of_the_descriptor(void **state)
{
	struct fixture *f = *state;
	taddr number = fake_types_int(&f->types);
	taddr pointer = fake_types_pointer(&f->types, "*int", number);
	const struct fake_type_field fields[] = {
		{ .name = "count", .type = number },
		{ .name = "next", .type = pointer, .offset = 8 },
	};
	taddr addr =
	    add(f, (struct fake_descriptor){ .name = "main.list",
					     .package = "main",
					     .size = 24,
					     .ptr_bytes = 16,
					     .kind = GO_KIND_STRUCT,
					     .tflag = FAKE_TFLAG_NAMED | FAKE_TFLAG_UNCOMMON,
					     .fields = fields,
					     .count = 2 });
	const struct go_type *type = read_type(f, addr);

	assert_int_equal(type->size, 24);
	assert_int_equal(type->ptr_bytes, 16);
	assert_int_equal(type->descriptor, addr);
	assert_int_equal(type->kind, GO_KIND_STRUCT);
	assert_int_equal(type->field_count, 2);
	assert_string_equal(type->fields[1].name, "next");
	assert_int_equal(type->fields[1].type, by_descriptor(f, pointer));
	assert_false(type->direct_interface);
	assert_true(read_type(f, pointer)->direct_interface);
	assert_int_equal(read_type(f, pointer)->elem, by_descriptor(f, number));
	assert_int_equal(by_descriptor(f, addr), by_descriptor(f, addr));
}

static void maps_say_what_lies_elsewhere(void **state)
{
	struct fixture *f = *state;
	taddr number = fake_types_int(&f->types), group = item(f);
	struct fake_descriptor map = { .name = "map[int]int",
				       .size = 8,
				       .ptr_bytes = 8,
				       .kind = GO_KIND_MAP,
				       .key = number,
				       .elem = number,
				       .bucket = group };
	const struct go_type *type = read_type(f, add(f, map));

	assert_false(type->indirect_key || type->indirect_elem);
	assert_int_equal(type->bucket, by_descriptor(f, group));
	map.map_flags = 4;
	type = read_type(f, add(f, map));
	assert_true(type->indirect_key && !type->indirect_elem);
	map.map_flags = 3; /* what else there is */
	type = read_type(f, add(f, map));
	assert_false(type->indirect_key || type->indirect_elem);
	map.map_flags = 8;
	type = read_type(f, add(f, map));
	assert_true(!type->indirect_key && type->indirect_elem);
}

static void maps_with_buckets_have_flags_of_their_own(void **state)
{
	struct fixture *f = *state;
	taddr number;
	struct fake_descriptor map = { .name = "map[int]int",
				       .size = 8,
				       .ptr_bytes = 8,
				       .kind = GO_KIND_MAP,
				       .map_flags = 1 };

	fake_types_use_buckets(&f->types);
	number = fake_types_int(&f->types);
	map.key = map.elem = number;
	assert_true(read_type(f, add(f, map))->indirect_key);
	map.map_flags = 2;
	assert_true(read_type(f, add(f, map))->indirect_elem);
	map.map_flags = 12;
	assert_false(read_type(f, add(f, map))->indirect_key);
}

/* What reflect says of its buckets is no struct: what lies behind is another object. */
static void buckets_that_reflect_makes_are_made_up(void **state)
{
	struct fixture *f = *state;
	taddr number, thing, bucket;
	const struct go_type *map, *type;

	fake_types_use_buckets(&f->types);
	number = fake_types_int(&f->types);
	thing = item(f);
	bucket = add(f, (struct fake_descriptor){ .name = "bucket(int,cart.Item)",
						  .size = 208,
						  .ptr_bytes = 208,
						  .kind = GO_KIND_STRUCT,
						  .made = true });
	fake_memory_store(f->program.memory, bucket + 56, 8, 0x1234);
	fake_memory_store(f->program.memory, bucket + 64, 8, UINT64_MAX);
	map = read_type(f, add(f, (struct fake_descriptor){ .name = "map[int]cart.Item",
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
	assert_int_equal(read_type(f, bucket)->size, 208);
	assert_int_equal(read_type(f, bucket)->field_count, 0);
}

/* ---- circles and what is no type ---- */

static void circles_end(void **state)
{
	struct fixture *f = *state;
	const struct layout *l = f->types.layout;
	taddr self = fake_types_pointer(&f->types, "*self", 0);
	taddr one = fake_types_pointer(&f->types, "*one", 0);
	taddr two = fake_types_pointer(&f->types, "**cart.Item", one);
	taddr array =
	    add(f, (struct fake_descriptor){
		       .name = "[1][1]x", .size = 8, .length = 1, .kind = GO_KIND_ARRAY });

	fake_types_set(&f->types, self, l->pointer_type_elem, self);
	fake_types_set(&f->types, one, l->pointer_type_elem, two);
	fake_types_set(&f->types, array, l->array_type_elem, array);
	assert_int_equal(read_type(f, self)->elem, by_descriptor(f, self));
	assert_string_equal(name_of(f, self), "*self");
	assert_int_equal(read_type(f, one)->elem, by_descriptor(f, two));
	assert_int_equal(read_type(f, two)->elem, by_descriptor(f, one));
	assert_string_equal(name_of(f, array), "[1][1]x");
}

/* A circle through a type that has a name is an ordinary thing. */
static void a_list_of_pointers_to_itself_has_its_whole_name(void **state)
{
	struct fixture *f = *state;
	taddr pointer = fake_types_pointer(&f->types, "*cart.List", 0);
	const struct fake_type_field fields[] = { { .name = "next", .type = pointer } };
	taddr list =
	    add(f, (struct fake_descriptor){ .name = "cart.List",
					     .package = "shop/cart",
					     .size = 8,
					     .ptr_bytes = 8,
					     .kind = GO_KIND_STRUCT,
					     .tflag = FAKE_TFLAG_NAMED | FAKE_TFLAG_UNCOMMON,
					     .fields = fields,
					     .count = 1 });

	fake_types_set(&f->types, pointer, f->types.layout->pointer_type_elem, list);
	assert_string_equal(name_of(f, pointer), "*shop/cart.List");
	assert_string_equal(name_of(f, list), "shop/cart.List");
	assert_int_equal(read_type(f, list)->fields[0].type, by_descriptor(f, pointer));
}

static void assert_unknown(struct fixture *f, taddr descriptor)
{
	const struct go_type *type = read_type(f, descriptor);

	assert_int_equal(by_descriptor(f, descriptor), TYPE_UNKNOWN);
	assert_int_equal(type->kind, GO_KIND_INVALID);
	assert_int_equal(type->size, 0);
	assert_string_equal(type->name, "?");
}

static void what_is_no_descriptor_is_not_known(void **state)
{
	struct fixture *f = *state;
	const struct layout *l = f->types.layout;
	taddr number = fake_types_int(&f->types);
	taddr room = fake_types_room(&f->types, 128, false);

	assert_unknown(f, 0);
	assert_unknown(f, number + 4);
	assert_unknown(f, number + 8);
	assert_unknown(f, room);
	assert_unknown(f, 0x123456789000);
	assert_unknown(f, UINT64_MAX - 7);
	number = fake_types_int(&f->types);
	fake_types_set(&f->types, number, l->type_kind, 27);
	assert_unknown(f, number);
	number = fake_types_int(&f->types);
	fake_types_set(&f->types, number, l->type_size, 9);
	assert_unknown(f, number);
	number = fake_types_int(&f->types);
	fake_types_set(&f->types, number, l->type_ptr_bytes, 16);
	assert_unknown(f, number);
	number = fake_types_int(&f->types);
	fake_types_set(&f->types, number, l->type_name, 0);
	assert_unknown(f, number);
	number = fake_types_int(&f->types);
	fake_types_set(&f->types, number, l->type_name, FAKE_TYPES_SIZE);
	assert_unknown(f, number);
	assert_unknown(
	    f, add(f, (struct fake_descriptor){ .name = "in\tt", .size = 8, .kind = GO_KIND_INT }));
}

static void parts_that_would_not_fit_are_cut_off(void **state)
{
	struct fixture *f = *state;
	const struct layout *l = f->types.layout;
	taddr number = fake_types_int(&f->types);
	struct fake_type_field fields[] = {
		{ .name = "a", .type = number },
		{ .name = "b", .type = number, .offset = 16 },
		{ .name = "c", .type = number, .offset = 8 },
	};
	struct fake_descriptor record = {
		.name = "struct", .size = 24, .kind = GO_KIND_STRUCT, .fields = fields, .count = 3
	};
	taddr huge;

	assert_int_equal(read_type(f, add(f, record))->field_count, 2); /* not in order */
	fields[1].offset = 17;
	assert_int_equal(read_type(f, add(f, record))->field_count, 1);
	fields[1].offset = UINT64_MAX;
	assert_int_equal(read_type(f, add(f, record))->field_count, 1);
	fields[1] = (struct fake_type_field){ .name = "b", .offset = 8 };
	fields[2].offset = 16;
	assert_int_equal(read_type(f, add(f, record))->field_count, 3);
	assert_int_equal(read_type(f, add(f, record))->fields[1].type, TYPE_UNKNOWN);
	huge = add(f, record);
	fake_types_set(&f->types, huge,
		       (struct layout_field){ l->struct_type_fields.offset + 8, 8 }, 1 << 30);
	assert_unknown(f, huge);
	huge = add(
	    f,
	    (struct fake_descriptor){
		.name = "[5]int", .size = 40, .length = 6, .kind = GO_KIND_ARRAY, .elem = number });
	assert_int_equal(read_type(f, huge)->elem, TYPE_UNKNOWN);
	assert_int_equal(read_type(f, huge)->length, 0);
	huge = add(f, (struct fake_descriptor){ .name = "[x]int",
						.size = 8,
						.length = UINT64_MAX / 8 + 2,
						.kind = GO_KIND_ARRAY,
						.elem = number });
	assert_int_equal(read_type(f, huge)->elem, TYPE_UNKNOWN);
}

/* Each is twice as long as the one before: such names end somewhere. */
static void names_that_grow_without_bound_are_given_up(void **state)
{
	struct fixture *f = *state;
	taddr type = item(f);

	for (int i = 0; i < 40; i++) {
		const struct fake_type_field fields[] = {
			{ .name = "a", .type = type },
			{ .name = "b", .type = type },
		};

		type = add(f, (struct fake_descriptor){ .name = "struct { a, b }",
							.size = 16,
							.kind = GO_KIND_STRUCT,
							.fields = fields,
							.count = 2 });
		fake_types_set(&f->types, type, f->types.layout->type_size, 16);
	}
	assert_string_equal(name_of(f, type), "struct { a, b }");
}

static void every_byte_of_a_descriptor_may_be_damaged(void **state)
{
	struct fixture *f = *state;
	taddr thing = item(f);
	const struct fake_type_field fields[] = {
		{ .name = "a", .tag = "b", .type = fake_types_pointer(&f->types, "*x", thing) },
		{ .name = "c", .type = thing, .offset = 8 },
	};
	taddr end, start = f->types.next;
	taddr type = add(f, (struct fake_descriptor){ .name = "struct { a *x; c x }",
						      .size = 24,
						      .ptr_bytes = 8,
						      .kind = GO_KIND_STRUCT,
						      .fields = fields,
						      .count = 2 });

	end = f->types.next;
	for (taddr at = start; at < end; at++) {
		uint8_t *byte = fake_memory_bytes(f->program.memory, at, 1), was = *byte;

		for (int value = 0; value < 256; value += 51) {
			*byte = (uint8_t)value;
			open_table(f, NULL);
			by_descriptor(f, type);
		}
		*byte = was;
	}
}

/* ---- itabs ---- */

static void itabs_tell_the_type_they_are_of(void **state)
{
	struct fixture *f = *state;
	taddr number = fake_types_int(&f->types);
	taddr signature =
	    add(f, (struct fake_descriptor){
		       .name = "func()", .size = 8, .ptr_bytes = 8, .kind = GO_KIND_FUNC });
	const struct fake_type_method methods[] = { { "Weigh", signature } };
	taddr with = add(f, (struct fake_descriptor){ .name = "interface { Weigh() }",
						      .size = 16,
						      .ptr_bytes = 16,
						      .kind = GO_KIND_INTERFACE,
						      .methods = methods,
						      .count = 1 });
	taddr without = add(f, (struct fake_descriptor){ .name = "interface {}",
							 .size = 16,
							 .ptr_bytes = 16,
							 .kind = GO_KIND_INTERFACE });
	const struct {
		taddr itab;
		bool good;
	} itabs[] = {
		{ fake_types_itab(&f->types, with, number, 0), true },
		{ fake_types_itab(&f->types, with, number, 9), false },
		{ fake_types_itab(&f->types, without, number, 0), false },
		{ fake_types_itab(&f->types, number, number, 0), false },
		{ fake_types_itab(&f->types, with, with, 0), false },
		{ fake_types_itab(&f->types, with, 0, 0), false },
		{ number, false },
		{ 0x123456789000, false },
	};

	open_table(f, NULL);
	for (size_t i = 0; i < sizeof(itabs) / sizeof(itabs[0]); i++) {
		type_id id = 77;

		assert_success(go_types_by_itab(f->table, itabs[i].itab, &id));
		assert_int_equal(id, itabs[i].good ? by_descriptor(f, number) : TYPE_UNKNOWN);
	}
}

/* ---- types that are made ---- */

static void pointers_are_those_that_exist_or_made(void **state)
{
	struct fixture *f = *state;
	taddr number = fake_types_int(&f->types), thing = item(f);
	taddr pointer = fake_types_pointer(&f->types, "*int", number);
	type_id known = by_descriptor(f, pointer), found, again;

	assert_success(go_types_pointer_to(f->table, by_descriptor(f, number), &found));
	assert_int_equal(found, known);
	assert_success(go_types_pointer_to(f->table, by_descriptor(f, thing), &found));
	assert_success(go_types_pointer_to(f->table, by_descriptor(f, thing), &again));
	assert_int_equal(found, again);
	assert_string_equal(go_type_at(f->table, found)->name, "*shop/cart.Item");
	assert_int_equal(go_type_at(f->table, found)->elem, by_descriptor(f, thing));
	assert_int_equal(go_type_at(f->table, found)->ptr_bytes, 8);
	assert_int_equal(go_type_at(f->table, found)->descriptor, 0);
	assert_success(go_types_pointer_to(f->table, TYPE_UNKNOWN, &found));
	assert_int_equal(go_type_at(f->table, found)->kind, GO_KIND_POINTER);
}

static void the_runtimes_structs_are_known_as_far_as_the_layout_goes(void **state)
{
	struct fixture *f = *state;
	type_id id, again;
	const struct go_type *type;

	f->types.layout->hchan.size = 96;
	f->types.layout->hchan_count = (struct layout_field){ 0, 8 };
	f->types.layout->hchan_buffer = (struct layout_field){ 16, 8 };
	f->types.layout->hchan_elem_size = (struct layout_field){ 24, 2 };
	open_table(f, NULL);
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

/* ---- DWARF ---- */

enum { INT = 1, LIST, LIST_POINTER, ARRAY, TEXT, ITEM, ITEM_POINTER, MAP, ONLY, TYPES };

static const struct indexed_field indexed_fields[] = {
	{ "text", 0, TEXT }, { "number", 16, INT },       { "next", 24, LIST_POINTER },
	{ "last", 32, INT }, { "only", 0, LIST_POINTER },
};

static struct indexed_type indexed_types[TYPES] = {
	[0] = { .name = "" },
	[INT] = { .name = "int", .size = 8, .kind = GO_KIND_INT },
	[LIST] = { .name = "main.list",
		   .size = 40,
		   .kind = GO_KIND_STRUCT,
		   .first_field = 0,
		   .field_count = 4 },
	[LIST_POINTER] = { .name = "*main.list", .size = 8, .kind = GO_KIND_POINTER, .elem = LIST },
	[ARRAY] = { .name = "noalg.[3]main.list",
		    .size = 120,
		    .length = 3,
		    .kind = GO_KIND_ARRAY,
		    .elem = LIST },
	[TEXT] = { .name = "string", .size = 16, .kind = GO_KIND_STRING },
	[ITEM] = { .name = "shop/cart.Item", .size = 16, .kind = GO_KIND_STRUCT },
	[ITEM_POINTER] = { .name = "*shop/cart.Item",
			   .size = 8,
			   .kind = GO_KIND_POINTER,
			   .elem = ITEM },
	[MAP] = { .name = "map[int]string",
		  .size = 8,
		  .kind = GO_KIND_MAP,
		  .key = INT,
		  .elem = TEXT },
	[ONLY] = { .name = "main.only",
		   .size = 8,
		   .kind = GO_KIND_STRUCT,
		   .first_field = 4,
		   .field_count = 1 },
};

static const struct indexed_field captures[] = { { "item", 8, ITEM_POINTER },
						 { "&sum", 16, ONLY } };

static const struct type_index made_up_index = {
	.types = indexed_types,
	.type_count = TYPES,
	.fields = indexed_fields,
	.field_count = sizeof(indexed_fields) / sizeof(indexed_fields[0]),
	.captures = captures,
	.capture_count = 2,
};

static const struct go_type *by_index(struct fixture *f, uint32_t number)
{
	type_id id = 77;

	if (!f->table)
		open_table(f, &made_up_index);
	assert_success(go_types_by_index(f->table, number, &id));
	return go_type_at(f->table, id);
}

static void types_that_dwarf_alone_knows_are_types(void **state)
{
	struct fixture *f = *state;
	const struct go_type *list = by_index(f, LIST);

	assert_string_equal(list->name, "main.list");
	assert_int_equal(list->size, 40);
	assert_int_equal(list->ptr_bytes, 32);
	assert_int_equal(list->descriptor, 0);
	assert_int_equal(list->field_count, 4);
	assert_string_equal(list->fields[2].name, "next");
	assert_ptr_equal(go_type_at(f->table, list->fields[2].type), by_index(f, LIST_POINTER));
	assert_ptr_equal(go_type_at(f->table, by_index(f, LIST_POINTER)->elem), list);
	assert_int_equal(by_index(f, ARRAY)->ptr_bytes, 112);
	assert_string_equal(by_index(f, ARRAY)->name, "[3]main.list");
	assert_int_equal(by_index(f, INT)->ptr_bytes, 0);
	assert_true(by_index(f, LIST_POINTER)->direct_interface);
	assert_true(by_index(f, ONLY)->direct_interface);
	assert_false(list->direct_interface);
	assert_int_equal(by_index(f, 0)->kind, GO_KIND_INVALID);
	assert_int_equal(by_index(f, TYPES)->kind, GO_KIND_INVALID);
}

static void types_that_have_a_descriptor_are_the_descriptors(void **state)
{
	struct fixture *f = *state;
	taddr thing = item(f);
	struct indexed_type types[TYPES];
	struct type_index index = made_up_index;
	type_id id;

	memcpy(types, indexed_types, sizeof(types));
	types[ITEM].descriptor = thing - 0x1000; /* link-time */
	types[ITEM].size = 24;                   /* which the descriptor knows better */
	types[INT].descriptor = 0x5000;          /* where there is none */
	index.types = types;
	open_table(f, &index);
	assert_success(go_types_by_index(f->table, ITEM, &id));
	assert_int_equal(id, by_descriptor(f, thing));
	assert_int_equal(go_type_at(f->table, id)->size, 16);
	assert_success(go_types_by_index(f->table, INT, &id));
	assert_string_equal(go_type_at(f->table, id)->name, "int");
	assert_success(go_types_by_name(f->table, "shop/cart.Item", &id));
	assert_int_equal(id, by_descriptor(f, thing));
}

static void an_index_that_is_damaged_gives_what_holds(void **state)
{
	struct fixture *f = *state;
	struct indexed_type types[TYPES];
	struct type_index index = made_up_index;
	type_id id;

	memcpy(types, indexed_types, sizeof(types));
	types[LIST].first_field = UINT32_MAX - 1;
	types[ITEM].field_count = UINT32_MAX;
	types[ITEM_POINTER].elem = TYPES + 5;
	types[ARRAY].length = UINT64_MAX;
	types[TEXT].kind = 200;
	index.types = types;
	open_table(f, &index);
	for (uint32_t i = 0; i < TYPES; i++) {
		assert_success(go_types_by_index(f->table, i, &id));
		assert_non_null(go_type_at(f->table, id)->name);
	}
	assert_success(go_types_by_index(f->table, LIST, &id));
	assert_int_equal(go_type_at(f->table, id)->field_count, 0);
	assert_success(go_types_by_index(f->table, ARRAY, &id));
	assert_int_equal(go_type_at(f->table, id)->length, 0);
}

static void closures_hold_what_dwarf_says(void **state)
{
	struct fixture *f = *state;
	taddr code = fake_program_pc(CLOSURE, 0);
	const struct fake_function_range ranges[] = { { code - 0x1000, 0, 2 } };
	struct type_index index = made_up_index;
	const struct go_type *type;
	type_id id;

	index.capture_ranges = ranges;
	index.capture_range_count = 1;
	open_table(f, &index);
	assert_success(go_types_by_closure(f->table, code, &id));
	type = go_type_at(f->table, id);
	assert_string_equal(type->name, "closure of main.main.func1");
	assert_int_equal(type->kind, GO_KIND_STRUCT);
	assert_int_equal(type->size, 24);
	assert_int_equal(type->ptr_bytes, 24);
	assert_int_equal(type->field_count, 3);
	assert_string_equal(type->fields[0].name, "F");
	assert_string_equal(go_type_at(f->table, type->fields[0].type)->name, "uintptr");
	assert_string_equal(type->fields[1].name, "item");
	assert_string_equal(go_type_at(f->table, type->fields[1].type)->name, "*shop/cart.Item");
	assert_string_equal(type->fields[2].name, "&sum");
	/* Not where a function begins. */
	assert_success(go_types_by_closure(f->table, code + 8, &id));
	assert_int_equal(id, TYPE_UNKNOWN);
	assert_success(go_types_by_closure(f->table, 0x123456789000, &id));
	assert_int_equal(id, TYPE_UNKNOWN);
}

static void method_values_hold_their_receiver(void **state)
{
	struct fixture *f = *state;
	const struct go_type *type;
	type_id id;

	open_table(f, &made_up_index);
	assert_success(go_types_by_closure(f->table, fake_program_pc(METHOD_VALUE, 0), &id));
	type = go_type_at(f->table, id);
	assert_int_equal(type->field_count, 2);
	assert_string_equal(type->fields[1].name, "R");
	assert_int_equal(type->fields[1].offset, 8);
	assert_string_equal(go_type_at(f->table, type->fields[1].type)->name, "*shop/cart.Item");
}

/* With -N DWARF tells of it, by another name. */
static void unoptimised_method_values_name_their_receiver_alike(void **state)
{
	static const struct indexed_field this = { ".this", 8, ITEM_POINTER };
	struct fixture *f = *state;
	taddr code = fake_program_pc(METHOD_VALUE, 0);
	const struct fake_function_range range = { code - 0x1000, 0, 1 };
	struct type_index index = made_up_index;
	const struct go_type *type;
	type_id id;

	index.captures = &this;
	index.capture_count = 1;
	index.capture_ranges = &range;
	index.capture_range_count = 1;
	open_table(f, &index);
	assert_success(go_types_by_closure(f->table, code, &id));
	type = go_type_at(f->table, id);
	assert_int_equal(type->field_count, 2);
	assert_string_equal(type->fields[1].name, "R");
	assert_string_equal(go_type_at(f->table, type->fields[1].type)->name, "*shop/cart.Item");
}

/* A generic function's closure, of which somebody else knows what it was made for. */
static void a_struct_can_have_another_type_for_a_field(void **state)
{
	struct fixture *f = *state;
	const struct go_type *refined;
	type_id list, item_pointer, id, again;

	open_table(f, &made_up_index);
	assert_success(go_types_by_index(f->table, LIST, &list));
	assert_success(go_types_by_index(f->table, ITEM_POINTER, &item_pointer));
	assert_success(go_types_refined(f->table, list, 2, item_pointer, &id));
	assert_success(go_types_refined(f->table, list, 2, item_pointer, &again));
	assert_int_equal(id, again);
	assert_int_not_equal(id, list);
	refined = go_type_at(f->table, id);
	assert_string_equal(refined->name, "main.list");
	assert_int_equal(refined->size, 40);
	assert_int_equal(refined->field_count, 4);
	assert_int_equal(refined->fields[2].type, item_pointer);
	assert_int_equal(refined->fields[1].type, go_type_at(f->table, list)->fields[1].type);
	assert_success(go_types_refined(f->table, list, UINT32_MAX, item_pointer, &id));
	assert_int_equal(id, TYPE_UNKNOWN);
}

static void first_parameters_are_told_by_dwarf(void **state)
{
	struct fixture *f = *state;
	taddr code = fake_program_pc(MAIN, 0);
	const struct fake_function_range params[] = {
		{ code - 0x1000, ITEM_POINTER, 1 },
		{ fake_program_pc(CLOSURE, 0) - 0x1000, ONLY, 1 },
	};
	struct indexed_type types[TYPES];
	struct type_index index = made_up_index;
	type_id id;

	memcpy(types, indexed_types, sizeof(types));
	types[ONLY].name = "go.shape.struct { a *int }";
	index.types = types;
	index.params = params;
	index.param_count = 2;
	open_table(f, &index);
	assert_success(go_types_first_param(f->table, code, &id));
	assert_string_equal(go_type_at(f->table, id)->name, "*shop/cart.Item");
	assert_success(go_types_first_param(f->table, fake_program_pc(CLOSURE, 0), &id));
	assert_int_equal(id, TYPE_UNKNOWN);
	assert_success(go_types_first_param(f->table, 0x1234, &id));
	assert_int_equal(id, TYPE_UNKNOWN);
	open_table(f, NULL);
	assert_success(go_types_first_param(f->table, code, &id));
	assert_int_equal(id, TYPE_UNKNOWN);
}

static void without_dwarf_a_closure_is_its_code(void **state)
{
	struct fixture *f = *state;
	type_id id;

	open_table(f, NULL);
	assert_success(go_types_by_closure(f->table, fake_program_pc(METHOD_VALUE, 0), &id));
	assert_int_equal(go_type_at(f->table, id)->field_count, 1);
	assert_int_equal(go_type_at(f->table, id)->size, 8);
	assert_int_equal(go_type_at(f->table, id)->ptr_bytes, 0);
}

/* ---- memory that goes ---- */

static void types_of_modules_are_met_when_memory_is_gone(void **state)
{
	struct fixture *f = *state;
	taddr thing = item(f), later = fake_types_pointer(&f->types, "*cart.Item", thing);
	taddr made = add(f, (struct fake_descriptor){ .name = "[1]cart.Item",
						      .size = 16,
						      .length = 1,
						      .kind = GO_KIND_ARRAY,
						      .elem = thing,
						      .made = true });

	by_descriptor(f, thing);
	assert_success(go_types_let_go(f->table, NULL));
	fake_memory_unmap(f->program.memory, FAKE_TYPES);
	fake_memory_unmap(f->program.memory, FAKE_MADE);
	assert_string_equal(name_of(f, later), "*shop/cart.Item");
	assert_unknown(f, 0x30000000);
	(void)made;
}

static void what_reflect_made_is_read_from_the_copy_of_the_heap(void **state)
{
	struct fixture *f = *state;
	taddr thing = item(f);
	taddr made = add(f, (struct fake_descriptor){ .name = "[1]cart.Item",
						      .size = 16,
						      .length = 1,
						      .kind = GO_KIND_ARRAY,
						      .elem = thing,
						      .made = true });
	struct fake_memory *copy = fake_memory_new();

	fake_memory_map(copy, FAKE_MADE, FAKE_MADE_SIZE);
	memcpy(fake_memory_bytes(copy, FAKE_MADE, FAKE_MADE_SIZE),
	       fake_memory_bytes(f->program.memory, FAKE_MADE, FAKE_MADE_SIZE), FAKE_MADE_SIZE);
	open_table(f, NULL);
	assert_success(go_types_let_go(f->table, fake_memory_memory(copy)));
	fake_memory_unmap(f->program.memory, FAKE_MADE);
	assert_string_equal(name_of(f, made), "[1]shop/cart.Item");
	fake_memory_free(copy);
}

/* ---- many threads ---- */

enum { ASKERS = 4, ASKED = 600 };

struct asker {
	struct fixture *f;
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
	struct fixture *f = *state;
	taddr thing = item(f), descriptors[ASKED];
	struct asker askers[ASKERS];

	for (unsigned i = 0; i < ASKED; i++)
		descriptors[i] = fake_types_pointer(&f->types, "*cart.Item", thing);
	open_table(f, NULL);
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

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
		TEST(circles_end),
		TEST(a_list_of_pointers_to_itself_has_its_whole_name),
		TEST(what_is_no_descriptor_is_not_known),
		TEST(parts_that_would_not_fit_are_cut_off),
		TEST(names_that_grow_without_bound_are_given_up),
		TEST(every_byte_of_a_descriptor_may_be_damaged),
		TEST(itabs_tell_the_type_they_are_of),
		TEST(pointers_are_those_that_exist_or_made),
		TEST(the_runtimes_structs_are_known_as_far_as_the_layout_goes),
		TEST(types_that_dwarf_alone_knows_are_types),
		TEST(types_that_have_a_descriptor_are_the_descriptors),
		TEST(an_index_that_is_damaged_gives_what_holds),
		TEST(closures_hold_what_dwarf_says),
		TEST(method_values_hold_their_receiver),
		TEST(unoptimised_method_values_name_their_receiver_alike),
		TEST(a_struct_can_have_another_type_for_a_field),
		TEST(first_parameters_are_told_by_dwarf),
		TEST(without_dwarf_a_closure_is_its_code),
		TEST(types_of_modules_are_met_when_memory_is_gone),
		TEST(what_reflect_made_is_read_from_the_copy_of_the_heap),
		TEST(threads_that_ask_for_one_type_get_one),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
