/* Pairs of parties and types, and the names they are put together by. */
#include "agent/report/party_types.h"

#include <stdlib.h>

#include "tests/support/assertions.h"
#include "tests/support/fake_analysis.h"

enum { PARTIES = 3000 };

struct fixture {
	struct go_types *go_types;
	struct party_types types;
	Goheapd__TypeRow **rows;
	size_t row_count;
	struct party_type *list;
	size_t count;
};

static void fixture_init(struct fixture *f)
{
	static const char *const names[] = { "main.A", "main.B", "main.A", "main.C" };

	*f = (struct fixture){ .go_types = fake_types_new() };
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const struct go_type type = { .name = names[i], .size = 8 };

		fake_types_add(f->go_types, &type);
	}
}

static void add(struct fixture *f, uint32_t party, type_id type, bool is_array, uint64_t bytes)
{
	const struct object_type of = { .type = type, .is_array = is_array };

	assert_success(party_types_add(&f->types, party, of, bytes));
}

static void list(struct fixture *f)
{
	assert_success(type_tally_rows(&f->types.all, f->go_types, &f->rows, &f->row_count));
	assert_success(
	    party_types_list(&f->types, f->go_types, f->rows, f->row_count, &f->list, &f->count));
}

static void fixture_fini(struct fixture *f)
{
	for (size_t i = 0; i < f->row_count; i++)
		goheapd__type_row__free_unpacked(f->rows[i], NULL);
	free(f->rows);
	free(f->list);
	party_types_fini(&f->types);
	go_types_free(f->go_types);
}

static void assert_pair(const struct fixture *f, size_t i, uint32_t party, const char *name,
			uint64_t objects, uint64_t bytes)
{
	ProtobufCBinaryData type = f->rows[f->list[i].row]->type;

	assert_int_equal(f->list[i].party, party);
	assert_int_equal(type.len, strlen(name));
	assert_memory_equal(type.data, name, type.len);
	assert_int_equal(f->list[i].count.objects, objects);
	assert_int_equal(f->list[i].count.bytes, bytes);
}

static void types_of_one_name_are_one_and_the_largest_comes_first(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f);
	add(&f, 7, 1, false, 10);
	add(&f, 7, 2, false, 25);
	add(&f, 7, 3, false, 16);
	add(&f, 7, 4, true, 1);
	add(&f, 7, 4, false, 2);
	add(&f, 2, 2, false, 5);
	add(&f, 2, TYPE_UNKNOWN, false, 1000);
	list(&f);
	assert_int_equal(f.count, 5);
	assert_pair(&f, 0, 2, "main.B", 1, 5);
	assert_pair(&f, 1, 7, "main.A", 2, 26);
	assert_pair(&f, 2, 7, "main.B", 1, 25);
	assert_pair(&f, 3, 7, "main.C", 1, 2);
	assert_pair(&f, 4, 7, "[]main.C", 1, 1);
	fixture_fini(&f);
}

static void there_may_be_many_parties(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f);
	for (uint32_t round = 0; round < 2; round++)
		for (uint32_t i = 0; i < PARTIES; i++)
			add(&f, i, 1 + i % 4, false, i + 1);
	list(&f);
	assert_int_equal(f.count, PARTIES);
	for (uint32_t i = 0; i < PARTIES; i++) {
		assert_int_equal(f.list[i].party, i);
		assert_int_equal(f.list[i].count.objects, 2);
		assert_int_equal(f.list[i].count.bytes, 2 * (i + 1));
	}
	fixture_fini(&f);
}

static void nothing_is_an_empty_list(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f);
	list(&f);
	assert_int_equal(f.count, 0);
	fixture_fini(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(types_of_one_name_are_one_and_the_largest_comes_first),
		cmocka_unit_test(there_may_be_many_parties),
		cmocka_unit_test(nothing_is_an_empty_list),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("party types", tests, NULL, NULL);
}
