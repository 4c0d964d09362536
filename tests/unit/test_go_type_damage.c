/* The table of Go types, over descriptors and itabs that go in circles or are none. */
#include "tests/support/assertions.h"

#include <string.h>

#include "agent/goruntime/go_type.h"
#include "tests/support/type_fixture.h"

/* ---- circles and what is no type ---- */

static void circles_end(void **state)
{
	struct type_fixture *f = *state;
	const struct layout *l = f->types.layout;
	taddr self = fake_types_pointer(&f->types, "*self", 0);
	taddr one = fake_types_pointer(&f->types, "*one", 0);
	taddr two = fake_types_pointer(&f->types, "**cart.Item", one);
	taddr array = type_fixture_add(
	    f, (struct fake_descriptor){
		   .name = "[1][1]x", .size = 8, .length = 1, .kind = GO_KIND_ARRAY });

	fake_types_set(&f->types, self, l->pointer_type_elem, self);
	fake_types_set(&f->types, one, l->pointer_type_elem, two);
	fake_types_set(&f->types, array, l->array_type_elem, array);
	assert_int_equal(type_fixture_type(f, self)->elem, type_fixture_find(f, self));
	assert_string_equal(type_fixture_name(f, self), "*self");
	assert_int_equal(type_fixture_type(f, one)->elem, type_fixture_find(f, two));
	assert_int_equal(type_fixture_type(f, two)->elem, type_fixture_find(f, one));
	assert_string_equal(type_fixture_name(f, array), "[1][1]x");
}

/* A circle through a type that has a name is an ordinary thing. */
static void a_list_of_pointers_to_itself_has_its_whole_name(void **state)
{
	struct type_fixture *f = *state;
	taddr pointer = fake_types_pointer(&f->types, "*cart.List", 0);
	const struct fake_type_field fields[] = { { .name = "next", .type = pointer } };
	taddr list = type_fixture_add(
	    f, (struct fake_descriptor){ .name = "cart.List",
					 .package = "shop/cart",
					 .size = 8,
					 .ptr_bytes = 8,
					 .kind = GO_KIND_STRUCT,
					 .tflag = FAKE_TFLAG_NAMED | FAKE_TFLAG_UNCOMMON,
					 .fields = fields,
					 .count = 1 });

	fake_types_set(&f->types, pointer, f->types.layout->pointer_type_elem, list);
	assert_string_equal(type_fixture_name(f, pointer), "*shop/cart.List");
	assert_string_equal(type_fixture_name(f, list), "shop/cart.List");
	assert_int_equal(type_fixture_type(f, list)->fields[0].type, type_fixture_find(f, pointer));
}

static void what_is_no_descriptor_is_not_known(void **state)
{
	struct type_fixture *f = *state;
	const struct layout *l = f->types.layout;
	taddr number = fake_types_int(&f->types);
	taddr room = fake_types_room(&f->types, 128, false);

	type_fixture_assert_unknown(f, 0);
	type_fixture_assert_unknown(f, number + 4);
	type_fixture_assert_unknown(f, number + 8);
	type_fixture_assert_unknown(f, room);
	type_fixture_assert_unknown(f, 0x123456789000);
	type_fixture_assert_unknown(f, UINT64_MAX - 7);
	number = fake_types_int(&f->types);
	fake_types_set(&f->types, number, l->type_kind, 27);
	type_fixture_assert_unknown(f, number);
	number = fake_types_int(&f->types);
	fake_types_set(&f->types, number, l->type_size, 9);
	type_fixture_assert_unknown(f, number);
	number = fake_types_int(&f->types);
	fake_types_set(&f->types, number, l->type_ptr_bytes, 16);
	type_fixture_assert_unknown(f, number);
	number = fake_types_int(&f->types);
	fake_types_set(&f->types, number, l->type_name, 0);
	type_fixture_assert_unknown(f, number);
	number = fake_types_int(&f->types);
	fake_types_set(&f->types, number, l->type_name, FAKE_TYPES_SIZE);
	type_fixture_assert_unknown(f, number);
	type_fixture_assert_unknown(
	    f, type_fixture_add(
		   f, (struct fake_descriptor){ .name = "in\tt", .size = 8, .kind = GO_KIND_INT }));
}

static void parts_that_would_not_fit_are_cut_off(void **state)
{
	struct type_fixture *f = *state;
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

	assert_int_equal(type_fixture_type(f, type_fixture_add(f, record))->field_count,
			 2); /* not in order */
	fields[1].offset = 17;
	assert_int_equal(type_fixture_type(f, type_fixture_add(f, record))->field_count, 1);
	fields[1].offset = UINT64_MAX;
	assert_int_equal(type_fixture_type(f, type_fixture_add(f, record))->field_count, 1);
	fields[1] = (struct fake_type_field){ .name = "b", .offset = 8 };
	fields[2].offset = 16;
	assert_int_equal(type_fixture_type(f, type_fixture_add(f, record))->field_count, 3);
	assert_int_equal(type_fixture_type(f, type_fixture_add(f, record))->fields[1].type,
			 TYPE_UNKNOWN);
	huge = type_fixture_add(f, record);
	fake_types_set(&f->types, huge,
		       (struct layout_field){ l->struct_type_fields.offset + 8, 8 }, 1 << 30);
	type_fixture_assert_unknown(f, huge);
	huge = type_fixture_add(
	    f,
	    (struct fake_descriptor){
		.name = "[5]int", .size = 40, .length = 6, .kind = GO_KIND_ARRAY, .elem = number });
	assert_int_equal(type_fixture_type(f, huge)->elem, TYPE_UNKNOWN);
	assert_int_equal(type_fixture_type(f, huge)->length, 0);
	huge = type_fixture_add(f, (struct fake_descriptor){ .name = "[x]int",
							     .size = 8,
							     .length = UINT64_MAX / 8 + 2,
							     .kind = GO_KIND_ARRAY,
							     .elem = number });
	assert_int_equal(type_fixture_type(f, huge)->elem, TYPE_UNKNOWN);
}

/* Each is twice as long as the one before: such names end somewhere. */
static void names_that_grow_without_bound_are_given_up(void **state)
{
	struct type_fixture *f = *state;
	taddr type = type_fixture_item(f);

	for (int i = 0; i < 40; i++) {
		const struct fake_type_field fields[] = {
			{ .name = "a", .type = type },
			{ .name = "b", .type = type },
		};

		type = type_fixture_add(f, (struct fake_descriptor){ .name = "struct { a, b }",
								     .size = 16,
								     .kind = GO_KIND_STRUCT,
								     .fields = fields,
								     .count = 2 });
		fake_types_set(&f->types, type, f->types.layout->type_size, 16);
	}
	assert_string_equal(type_fixture_name(f, type), "struct { a, b }");
}

static void every_byte_of_a_descriptor_may_be_damaged(void **state)
{
	struct type_fixture *f = *state;
	taddr thing = type_fixture_item(f);
	const struct fake_type_field fields[] = {
		{ .name = "a", .tag = "b", .type = fake_types_pointer(&f->types, "*x", thing) },
		{ .name = "c", .type = thing, .offset = 8 },
	};
	taddr end, start = f->types.next;
	taddr type = type_fixture_add(f, (struct fake_descriptor){ .name = "struct { a *x; c x }",
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
			type_fixture_open(f, NULL);
			type_fixture_find(f, type);
		}
		*byte = was;
	}
}

/* ---- itabs ---- */

static void itabs_tell_the_type_they_are_of(void **state)
{
	struct type_fixture *f = *state;
	taddr number = fake_types_int(&f->types);
	taddr signature = type_fixture_add(
	    f, (struct fake_descriptor){
		   .name = "func()", .size = 8, .ptr_bytes = 8, .kind = GO_KIND_FUNC });
	const struct fake_type_method methods[] = { { "Weigh", signature } };
	taddr with = type_fixture_add(f, (struct fake_descriptor){ .name = "interface { Weigh() }",
								   .size = 16,
								   .ptr_bytes = 16,
								   .kind = GO_KIND_INTERFACE,
								   .methods = methods,
								   .count = 1 });
	taddr without = type_fixture_add(f, (struct fake_descriptor){ .name = "interface {}",
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

	type_fixture_open(f, NULL);
	for (size_t i = 0; i < sizeof(itabs) / sizeof(itabs[0]); i++) {
		type_id id = 77;

		assert_success(go_types_by_itab(f->table, itabs[i].itab, &id));
		assert_int_equal(id, itabs[i].good ? type_fixture_find(f, number) : TYPE_UNKNOWN);
	}
}

#define TEST(name)                                                                                 \
	cmocka_unit_test_setup_teardown(name, type_fixture_set_up, type_fixture_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(circles_end),
		TEST(a_list_of_pointers_to_itself_has_its_whole_name),
		TEST(what_is_no_descriptor_is_not_known),
		TEST(parts_that_would_not_fit_are_cut_off),
		TEST(names_that_grow_without_bound_are_given_up),
		TEST(every_byte_of_a_descriptor_may_be_damaged),
		TEST(itabs_tell_the_type_they_are_of),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("damaged go types", tests, NULL, NULL);
}
