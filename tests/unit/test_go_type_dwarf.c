/* The table of Go types, over what DWARF tells of types, closures and parameters. */
#include "tests/support/assertions.h"

#include <string.h>

#include "agent/goruntime/go_type.h"
#include "tests/support/fake_type_index.h"
#include "tests/support/type_fixture.h"

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

static const struct go_type *by_index(struct type_fixture *f, uint32_t number)
{
	type_id id = 77;

	if (!f->table)
		type_fixture_open(f, &made_up_index);
	assert_success(go_types_by_index(f->table, number, &id));
	return go_type_at(f->table, id);
}

static void types_that_dwarf_alone_knows_are_types(void **state)
{
	struct type_fixture *f = *state;
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
	struct type_fixture *f = *state;
	taddr thing = type_fixture_item(f);
	struct indexed_type types[TYPES];
	struct type_index index = made_up_index;
	type_id id;

	memcpy(types, indexed_types, sizeof(types));
	types[ITEM].descriptor = thing - 0x1000; /* link-time */
	types[ITEM].size = 24;                   /* which the descriptor knows better */
	types[INT].descriptor = 0x5000;          /* where there is none */
	index.types = types;
	type_fixture_open(f, &index);
	assert_success(go_types_by_index(f->table, ITEM, &id));
	assert_int_equal(id, type_fixture_find(f, thing));
	assert_int_equal(go_type_at(f->table, id)->size, 16);
	assert_success(go_types_by_index(f->table, INT, &id));
	assert_string_equal(go_type_at(f->table, id)->name, "int");
	assert_success(go_types_by_name(f->table, "shop/cart.Item", &id));
	assert_int_equal(id, type_fixture_find(f, thing));
}

static void an_index_that_is_damaged_gives_what_holds(void **state)
{
	struct type_fixture *f = *state;
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
	type_fixture_open(f, &index);
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
	struct type_fixture *f = *state;
	taddr code = fake_program_pc(CLOSURE, 0);
	const struct fake_function_range ranges[] = { { code - 0x1000, 0, 2 } };
	struct type_index index = made_up_index;
	const struct go_type *type;
	type_id id;

	index.capture_ranges = ranges;
	index.capture_range_count = 1;
	type_fixture_open(f, &index);
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
	struct type_fixture *f = *state;
	const struct go_type *type;
	type_id id;

	type_fixture_open(f, &made_up_index);
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
	struct type_fixture *f = *state;
	taddr code = fake_program_pc(METHOD_VALUE, 0);
	const struct fake_function_range range = { code - 0x1000, 0, 1 };
	struct type_index index = made_up_index;
	const struct go_type *type;
	type_id id;

	index.captures = &this;
	index.capture_count = 1;
	index.capture_ranges = &range;
	index.capture_range_count = 1;
	type_fixture_open(f, &index);
	assert_success(go_types_by_closure(f->table, code, &id));
	type = go_type_at(f->table, id);
	assert_int_equal(type->field_count, 2);
	assert_string_equal(type->fields[1].name, "R");
	assert_string_equal(go_type_at(f->table, type->fields[1].type)->name, "*shop/cart.Item");
}

/* A generic function's closure, of which somebody else knows what it was made for. */
static void a_struct_can_have_another_type_for_a_field(void **state)
{
	struct type_fixture *f = *state;
	const struct go_type *refined;
	type_id list, item_pointer, id, again;

	type_fixture_open(f, &made_up_index);
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
	struct type_fixture *f = *state;
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
	type_fixture_open(f, &index);
	assert_success(go_types_first_param(f->table, code, &id));
	assert_string_equal(go_type_at(f->table, id)->name, "*shop/cart.Item");
	assert_success(go_types_first_param(f->table, fake_program_pc(CLOSURE, 0), &id));
	assert_int_equal(id, TYPE_UNKNOWN);
	assert_success(go_types_first_param(f->table, 0x1234, &id));
	assert_int_equal(id, TYPE_UNKNOWN);
	type_fixture_open(f, NULL);
	assert_success(go_types_first_param(f->table, code, &id));
	assert_int_equal(id, TYPE_UNKNOWN);
}

static void without_dwarf_a_closure_is_its_code(void **state)
{
	struct type_fixture *f = *state;
	type_id id;

	type_fixture_open(f, NULL);
	assert_success(go_types_by_closure(f->table, fake_program_pc(METHOD_VALUE, 0), &id));
	assert_int_equal(go_type_at(f->table, id)->field_count, 1);
	assert_int_equal(go_type_at(f->table, id)->size, 8);
	assert_int_equal(go_type_at(f->table, id)->ptr_bytes, 0);
}

#define TEST(name)                                                                                 \
	cmocka_unit_test_setup_teardown(name, type_fixture_set_up, type_fixture_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(types_that_dwarf_alone_knows_are_types),
		TEST(types_that_have_a_descriptor_are_the_descriptors),
		TEST(an_index_that_is_damaged_gives_what_holds),
		TEST(closures_hold_what_dwarf_says),
		TEST(method_values_hold_their_receiver),
		TEST(unoptimised_method_values_name_their_receiver_alike),
		TEST(a_struct_can_have_another_type_for_a_field),
		TEST(first_parameters_are_told_by_dwarf),
		TEST(without_dwarf_a_closure_is_its_code),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("go types of DWARF", tests, NULL, NULL);
}
