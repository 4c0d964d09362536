/* Labels of goroutines, in both forms, well and badly made. */
#include "tests/support/assertions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/goruntime/goroutine.h"
#include "agent/goruntime/label.h"
#include "agent/goruntime/module.h"
#include "proto/base/bytes.h"
#include "tests/support/fake_program.h"

enum { WORK, FUNCTIONS };

static const struct fake_function functions[FUNCTIONS] = { [WORK] = { "main.work", .frame = 8 } };

#define PLACE(at, bytes) ((struct layout_field){ .offset = (at), .size = (bytes) })

enum {
	BUCKET_SIZE = 8 + 2 * 8 * 16 + 8, /* of a map from string to string */
	NOWHERE = 0x10,
	OCCUPIED = 77,
	EVACUATED = 2,
	SAME_SIZE = 8,
};

struct fixture {
	struct fake_program program;
	struct module_table *modules;
	struct goroutine_table *goroutines;
	struct label_table *table;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	fake_program_init(&f->program, functions, FUNCTIONS);
	f->program.layout.g_labels = PLACE(232, 8);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	label_table_free(f->table);
	goroutine_table_free(f->goroutines);
	module_table_free(f->modules);
	fake_program_fini(&f->program);
	free(f);
	return 0;
}

static void use_lists(struct fixture *f)
{
	struct layout *l = &f->program.layout;

	l->label_map.size = 24;
	l->label_map_list = PLACE(0, 24);
	l->label.size = 32;
	l->label_key = PLACE(0, 16);
	l->label_value = PLACE(16, 16);
}

static void use_maps(struct fixture *f)
{
	struct layout *l = &f->program.layout;

	l->string_map.size = 48;
	l->string_map_count = PLACE(0, 8);
	l->string_map_flags = PLACE(8, 1);
	l->string_map_log_buckets = PLACE(9, 1);
	l->string_map_buckets = PLACE(16, 8);
	l->string_map_old_buckets = PLACE(24, 8);
	l->string_map_bucket.size = BUCKET_SIZE;
	l->string_map_bucket_top_hashes = PLACE(0, 8);
	l->string_map_bucket_keys = PLACE(8, 128);
	l->string_map_bucket_values = PLACE(136, 128);
	l->string_map_bucket_overflow = PLACE(264, 8);
}

static void store(struct fixture *f, taddr addr, uint64_t value)
{
	fake_memory_store(f->program.memory, addr, 8, value);
}

static void put_text(struct fixture *f, taddr header, const char *text)
{
	taddr bytes = fake_program_room(&f->program, strlen(text) + 1);

	memcpy(fake_memory_bytes(f->program.memory, bytes, strlen(text) + 1), text,
	       strlen(text) + 1);
	store(f, header, *text ? bytes : 0);
	store(f, header + 8, strlen(text));
}

/* Pairs of key and value, ended by NULL; returns what g.labels would point to. */
static taddr new_list(struct fixture *f, const char *const *texts)
{
	taddr set = fake_program_room(&f->program, 24), array;
	uint64_t count = 0;

	while (texts[2 * count])
		count++;
	array = fake_program_room(&f->program, 32 * count + 1);
	for (uint64_t i = 0; i < 2 * count; i++)
		put_text(f, array + 16 * i, texts[i]);
	store(f, set, array);
	store(f, set + 8, count);
	store(f, set + 16, count);
	return set;
}

static taddr array_of(struct fixture *f, taddr list)
{
	return load_u64le(fake_memory_bytes(f->program.memory, list, 8));
}

static void put_slot(struct fixture *f, taddr bucket, unsigned slot, const char *key,
		     const char *value)
{
	fake_memory_store(f->program.memory, bucket + slot, 1, OCCUPIED);
	put_text(f, bucket + 8 + 16 * slot, key);
	put_text(f, bucket + 136 + 16 * slot, value);
}

static taddr new_map(struct fixture *f, uint64_t count, uint8_t flags, uint8_t log_buckets,
		     taddr buckets, taddr old_buckets)
{
	taddr variable = fake_program_room(&f->program, 8);
	taddr map = fake_program_room(&f->program, 48);

	store(f, variable, map);
	store(f, map, count);
	fake_memory_store(f->program.memory, map + 8, 1, flags);
	fake_memory_store(f->program.memory, map + 9, 1, log_buckets);
	store(f, map + 16, buckets);
	store(f, map + 24, old_buckets);
	return variable;
}

static taddr new_buckets(struct fixture *f, unsigned count)
{
	return fake_program_room(&f->program, (size_t)count * BUCKET_SIZE);
}

static void add_goroutine(struct fixture *f, taddr labels)
{
	taddr g = fake_program_g(&f->program, fake_program_pc(WORK, 0x10), 64);

	fake_program_set(&f->program, g, f->program.layout.g_labels, labels);
}

static void read_labels(struct fixture *f)
{
	struct memory *memory = fake_memory_memory(f->program.memory);
	const struct layout *l = &f->program.layout;

	fake_memory_forget(f->program.memory);
	assert_success(module_table_read(memory, l, &f->modules));
	assert_success(goroutine_table_read(memory, l, f->modules, NULL, 0, &f->goroutines));
	assert_success(label_table_read(memory, l, f->goroutines, &f->table));
}

static void assert_text(struct label_text text, const char *expected)
{
	assert_int_equal(text.size, strlen(expected));
	assert_true(label_text_known(text));
	if (text.size)
		assert_memory_equal(text.bytes, expected, text.size);
}

/* The labels of goroutine i are these pairs. */
static void assert_labels(const struct fixture *f, uint32_t i, const char *const *texts)
{
	const struct label_set *set = label_table_of(f->table, i);

	assert_int_equal(set->status, LABEL_DECODED);
	for (uint32_t k = 0; k < set->count; k++) {
		assert_non_null(texts[2 * k]);
		assert_text(set->labels[k].key, texts[2 * k]);
		assert_text(set->labels[k].value, texts[2 * k + 1]);
	}
	assert_null(texts[2 * set->count]);
}

static void assert_status(const struct fixture *f, enum label_status status)
{
	assert_int_equal(label_table_of(f->table, 0)->status, status);
	assert_int_equal(label_table_of(f->table, 0)->set, LABEL_SET_NONE);
	assert_int_equal(label_table_status(f->table, status), 1);
	assert_int_equal(label_table_count(f->table), 0);
	if (status != LABEL_NONE)
		assert_non_null(label_table_of(f->table, 0)->error);
}

static void lists_are_read_and_sorted(void **state)
{
	struct fixture *f = *state;

	use_lists(f);
	add_goroutine(f, new_list(f, (const char *[]){ "tenant", "acme", "job", "", NULL }));
	read_labels(f);
	assert_labels(f, 0, (const char *[]){ "job", "", "tenant", "acme", NULL });
	assert_true(label_table_of(f->table, 0)->complete);
}

static void the_last_of_equal_keys_counts(void **state)
{
	struct fixture *f = *state;

	use_lists(f);
	add_goroutine(f, new_list(f, (const char *[]){ "b", "1", "a", "2", "b", "3", "a", "4", "b",
						       "5", NULL }));
	read_labels(f);
	assert_labels(f, 0, (const char *[]){ "a", "4", "b", "5", NULL });
}

static void sets_of_the_same_content_are_one(void **state)
{
	struct fixture *f = *state;
	taddr shared;

	use_lists(f);
	shared = new_list(f, (const char *[]){ "tenant", "zeta", NULL });
	add_goroutine(f, shared);
	add_goroutine(f, new_list(f, (const char *[]){ "tenant", "acme", NULL }));
	add_goroutine(f, new_list(f, (const char *[]){ "tenant", "zeta", NULL }));
	add_goroutine(f, shared);
	add_goroutine(f, 0);
	add_goroutine(f, new_list(f, (const char *[]){ NULL }));
	read_labels(f);
	assert_int_equal(label_table_count(f->table), 2);
	assert_text(label_table_at(f->table, 0)->labels[0].value, "acme");
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(label_table_of(f->table, i)->set, i != 1);
	assert_ptr_equal(label_table_of(f->table, 0), label_table_of(f->table, 3));
	assert_int_equal(label_table_status(f->table, LABEL_DECODED), 4);
	assert_int_equal(label_table_status(f->table, LABEL_NONE), 2);
}

static void what_cannot_be_read_has_a_name(void **state)
{
	static const struct {
		unsigned word; /* of the list or its array, to be replaced by value */
		bool in_array;
		uint64_t value;
		enum label_status status;
	} cases[] = {
		{ 0, false, NOWHERE, LABEL_ARRAY_MISSING },
		{ 1, false, 1025, LABEL_MALFORMED },
		{ 1, false, UINT64_MAX, LABEL_MALFORMED },
		{ 2, false, 0, LABEL_MALFORMED },
		{ 0, true, NOWHERE, LABEL_TEXT_MISSING },
		{ 2, true, NOWHERE, LABEL_TEXT_MISSING },
		{ 2, true, 0, LABEL_MALFORMED },
		{ 3, true, LABEL_TEXT_MAX + 1, LABEL_MALFORMED },
		{ 3, true, UINT64_MAX, LABEL_MALFORMED },
	};

	teardown(state);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture *f;
		taddr list;

		setup(state);
		f = *state;
		use_lists(f);
		list = new_list(f, (const char *[]){ "key", "value", NULL });
		store(f, (cases[i].in_array ? array_of(f, list) : list) + 8 * cases[i].word,
		      cases[i].value);
		add_goroutine(f, list);
		read_labels(f);
		assert_status(f, cases[i].status);
		teardown(state);
	}
	setup(state);
}

static void a_list_that_is_not_there(void **state)
{
	struct fixture *f = *state;

	use_lists(f);
	add_goroutine(f, NOWHERE);
	read_labels(f);
	assert_status(f, LABEL_OBJECT_MISSING);
}

static void an_unknown_form_is_unsupported(void **state)
{
	struct fixture *f = *state;

	add_goroutine(f, NOWHERE);
	read_labels(f);
	assert_status(f, LABEL_UNSUPPORTED);
}

static void a_map_is_read_with_what_overflows(void **state)
{
	struct fixture *f = *state;
	taddr bucket, overflow;

	use_maps(f);
	bucket = new_buckets(f, 1);
	overflow = new_buckets(f, 1);
	put_slot(f, bucket, 0, "tenant", "acme");
	put_slot(f, bucket, 7, "job", "42");
	put_slot(f, overflow, 3, "step", "");
	store(f, bucket + 264, overflow);
	add_goroutine(f, new_map(f, 3, 0, 0, bucket, 0));
	add_goroutine(f, new_map(f, 0, 0, 0, 0, 0));
	read_labels(f);
	assert_labels(f, 0, (const char *[]){ "job", "42", "step", "", "tenant", "acme", NULL });
	assert_int_equal(label_table_of(f->table, 1)->status, LABEL_NONE);
}

/* Two old buckets, one of which has moved to the new ones. */
static void a_map_in_growth_is_in_old_and_new_buckets(void **state)
{
	struct fixture *f = *state;
	taddr buckets, old;

	use_maps(f);
	buckets = new_buckets(f, 4);
	old = new_buckets(f, 2);
	put_slot(f, buckets, 1, "new", "1");
	put_slot(f, buckets + 2 * BUCKET_SIZE, 0, "newer", "2");
	put_slot(f, old, 1, "new", "moved");
	fake_memory_store(f->program.memory, old, 1, EVACUATED);
	put_slot(f, old + BUCKET_SIZE, 0, "old", "3");
	add_goroutine(f, new_map(f, 3, 0, 2, buckets, old));
	read_labels(f);
	assert_labels(f, 0, (const char *[]){ "new", "1", "newer", "2", "old", "3", NULL });
}

static void a_map_may_grow_to_its_own_size(void **state)
{
	struct fixture *f = *state;
	taddr buckets, old;

	use_maps(f);
	buckets = new_buckets(f, 2);
	old = new_buckets(f, 2);
	put_slot(f, old + BUCKET_SIZE, 0, "old", "3");
	add_goroutine(f, new_map(f, 1, SAME_SIZE, 1, buckets, old));
	read_labels(f);
	assert_labels(f, 0, (const char *[]){ "old", "3", NULL });
}

static void maps_that_contradict_themselves_are_malformed(void **state)
{
	struct fixture *f = *state;
	taddr bucket, cycle;

	use_maps(f);
	bucket = new_buckets(f, 1);
	cycle = new_buckets(f, 1);
	put_slot(f, bucket, 0, "one", "1");
	store(f, cycle + 264, cycle);
	add_goroutine(f, new_map(f, 2, 0, 0, bucket, 0));      /* one is missing */
	add_goroutine(f, new_map(f, 1025, 0, 0, bucket, 0));   /* too many */
	add_goroutine(f, new_map(f, 1, 0, 200, bucket, 0));    /* buckets beyond reason */
	add_goroutine(f, new_map(f, 1, 0, 0, bucket, bucket)); /* half a bucket before */
	add_goroutine(f, new_map(f, 1, 0, 0, cycle, 0));       /* overflows for ever */
	read_labels(f);
	assert_int_equal(label_table_status(f->table, LABEL_MALFORMED), 5);
}

static void parts_of_maps_may_be_missing(void **state)
{
	struct fixture *f = *state;
	taddr variable = fake_program_room(&f->program, 8);

	use_maps(f);
	store(f, variable, NOWHERE);
	add_goroutine(f, NOWHERE);
	add_goroutine(f, variable);
	add_goroutine(f, new_map(f, 1, 0, 0, NOWHERE, 0));
	read_labels(f);
	assert_int_equal(label_table_status(f->table, LABEL_OBJECT_MISSING), 2);
	assert_int_equal(label_table_status(f->table, LABEL_ARRAY_MISSING), 1);
}

static struct label pair(const char *key, const char *value)
{
	return (struct label){ { (const uint8_t *)key, strlen(key) },
			       { (const uint8_t *)value, strlen(value) } };
}

static bool might_have(const struct fixture *f, uint32_t i, const char *key, const char *value)
{
	const struct label label = pair(key, value);

	return label_set_might_have(label_table_of(f->table, i), &label);
}

static void what_is_known_of_a_set_says_what_it_cannot_have(void **state)
{
	struct fixture *f = *state;
	taddr no_value, no_key;

	use_lists(f);
	no_value = new_list(f, (const char *[]){ "job", "12345", "tenant", "acme", NULL });
	store(f, array_of(f, no_value) + 16, NOWHERE);
	no_key = new_list(f, (const char *[]){ "job", "12345", NULL });
	store(f, array_of(f, no_key), NOWHERE);
	add_goroutine(f, no_value);
	add_goroutine(f, no_key);
	add_goroutine(f, NOWHERE);
	read_labels(f);
	assert_true(might_have(f, 0, "tenant", "acme"));
	assert_false(might_have(f, 0, "tenant", "zeta"));
	assert_true(might_have(f, 0, "job", "54321"));
	assert_false(might_have(f, 0, "job", "4321")); /* not of that length */
	assert_false(might_have(f, 0, "other", "12345"));
	assert_true(might_have(f, 1, "any", "12345"));
	assert_false(might_have(f, 1, "any", "12346"));
	assert_false(might_have(f, 1, "other", "12345"));
	assert_true(might_have(f, 2, "anything", "at all"));
}

static void many_labels_are_sorted(void **state)
{
	struct fixture *f = *state;
	static char keys[LABELS_MAX][8];
	static const char *texts[2 * LABELS_MAX + 1];
	const struct label_set *set;

	use_lists(f);
	for (unsigned i = 0; i < LABELS_MAX; i++) {
		snprintf(keys[i], sizeof(keys[i]), "%04u", i * 389 % LABELS_MAX);
		texts[2 * i] = keys[i];
		texts[2 * i + 1] = "value";
	}
	add_goroutine(f, new_list(f, texts));
	read_labels(f);
	set = label_table_of(f->table, 0);
	assert_int_equal(set->count, LABELS_MAX);
	for (uint32_t i = 1; i < set->count; i++)
		assert_true(label_text_compare(set->labels[i - 1].key, set->labels[i].key) < 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(lists_are_read_and_sorted),
		TEST(the_last_of_equal_keys_counts),
		TEST(sets_of_the_same_content_are_one),
		TEST(what_cannot_be_read_has_a_name),
		TEST(a_list_that_is_not_there),
		TEST(an_unknown_form_is_unsupported),
		TEST(a_map_is_read_with_what_overflows),
		TEST(a_map_in_growth_is_in_old_and_new_buckets),
		TEST(a_map_may_grow_to_its_own_size),
		TEST(maps_that_contradict_themselves_are_malformed),
		TEST(parts_of_maps_may_be_missing),
		TEST(what_is_known_of_a_set_says_what_it_cannot_have),
		TEST(many_labels_are_sorted),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
