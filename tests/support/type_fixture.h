/*
 * For tests of the table of Go types: a made-up program in whose memory a test puts descriptors,
 * and the table over it.
 */
#ifndef TESTS_SUPPORT_TYPE_FIXTURE_H
#define TESTS_SUPPORT_TYPE_FIXTURE_H

#include "agent/goruntime/go_type.h"
#include "agent/goruntime/module.h"
#include "tests/support/fake_types.h"

struct type_index;

enum type_fixture_function { MAIN, CLOSURE, METHOD_VALUE, FUNCTIONS };

struct type_fixture {
	struct fake_program program;
	struct fake_types types;
	struct module_table *modules;
	const struct type_index *index;
	struct go_types *table;
	taddr seen, seen_made; /* up to where there were types when the table was opened */
};

/* For cmocka; the state is the fixture. */
int type_fixture_set_up(void **state);
int type_fixture_tear_down(void **state);

/* Opens the table of what the test has made so far, anew if there is one. */
void type_fixture_open(struct type_fixture *f, const struct type_index *index);

/* The type of a descriptor; the table is opened anew if there are more of them than it has seen. */
type_id type_fixture_find(struct type_fixture *f, taddr descriptor);
const struct go_type *type_fixture_type(struct type_fixture *f, taddr descriptor);
const char *type_fixture_name(struct type_fixture *f, taddr descriptor);
/* What lies there is no type. */
void type_fixture_assert_unknown(struct type_fixture *f, taddr descriptor);

taddr type_fixture_add(struct type_fixture *f, struct fake_descriptor descriptor);
/* One of the type shop/cart.Item. */
taddr type_fixture_item(struct type_fixture *f);

#endif
