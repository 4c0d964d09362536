#include "tests/support/type_fixture.h"

#include <stdlib.h>

#include "tests/support/assertions.h"

static const struct fake_function functions[FUNCTIONS] = {
	[MAIN] = { .name = "main.main", .frame = 16 },
	[CLOSURE] = { .name = "main.main.func1", .frame = 16 },
	[METHOD_VALUE] = { .name = "shop/cart.(*Item).Weigh-fm", .frame = 16 },
};

int type_fixture_set_up(void **state)
{
	struct type_fixture *f = calloc(1, sizeof(*f));

	fake_program_init(&f->program, functions, FUNCTIONS);
	fake_types_init(&f->types, &f->program);
	*state = f;
	return 0;
}

int type_fixture_tear_down(void **state)
{
	struct type_fixture *f = *state;

	go_types_free(f->table);
	module_table_free(f->modules);
	fake_program_fini(&f->program);
	free(f);
	return 0;
}

void type_fixture_open(struct type_fixture *f, const struct type_index *index)
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

type_id type_fixture_find(struct type_fixture *f, taddr descriptor)
{
	type_id id = 77;

	if (!f->table || f->seen != f->types.next || f->seen_made != f->types.next_made)
		type_fixture_open(f, f->index);
	assert_success(go_types_by_descriptor(f->table, descriptor, &id));
	return id;
}

const struct go_type *type_fixture_type(struct type_fixture *f, taddr descriptor)
{
	return go_type_at(f->table, type_fixture_find(f, descriptor));
}

const char *type_fixture_name(struct type_fixture *f, taddr descriptor)
{
	return type_fixture_type(f, descriptor)->name;
}

taddr type_fixture_add(struct type_fixture *f, struct fake_descriptor descriptor)
{
	return fake_types_add(&f->types, &descriptor);
}

taddr type_fixture_item(struct type_fixture *f)
{
	return fake_types_named(&f->types, "cart.Item", "shop/cart");
}

void type_fixture_assert_unknown(struct type_fixture *f, taddr descriptor)
{
	const struct go_type *type = type_fixture_type(f, descriptor);

	assert_int_equal(type_fixture_find(f, descriptor), TYPE_UNKNOWN);
	assert_int_equal(type->kind, GO_KIND_INVALID);
	assert_int_equal(type->size, 0);
	assert_string_equal(type->name, "?");
}
