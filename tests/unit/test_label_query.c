#include "daemon/label_query.h"

#include "tests/support/assertions.h"

static ProtobufCBinaryData bytes(const char *text)
{
	return (ProtobufCBinaryData){ .len = strlen(text), .data = (uint8_t *)(uintptr_t)text };
}

static void assert_bytes(ProtobufCBinaryData actual, const char *expected)
{
	assert_int_equal(actual.len, strlen(expected));
	assert_memory_equal(actual.data, expected, actual.len);
}

static struct error *select_text(struct label_query *query, const char *text)
{
	return label_query_select(query, bytes(text));
}

static void a_selector_is_split_at_its_first_equals_sign(void **state)
{
	static const struct {
		const char *text, *key, *value;
	} cases[] = {
		{ "tenant=acme", "tenant", "acme" },
		{ "tenant=", "tenant", "" },
		{ "a=b=c", "a", "b=c" },
		{ " = ", " ", " " },
		{ "\xff=\n,\"", "\xff", "\n,\"" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct label_query query = { 0 };

		assert_success(select_text(&query, cases[i].text));
		assert_int_equal(query.select_count, 1);
		assert_bytes(query.select[0].key, cases[i].key);
		assert_bytes(query.select[0].value, cases[i].value);
	}
}

static void what_is_no_selector_is_refused(void **state)
{
	struct label_query query = { 0 };

	(void)state;
	assert_error(select_text(&query, ""), ERROR_EMPTY_LABEL_KEY);
	assert_error(select_text(&query, "=acme"), ERROR_EMPTY_LABEL_KEY);
	assert_error(select_text(&query, "="), ERROR_EMPTY_LABEL_KEY);
	assert_error(select_text(&query, "tenant"), ERROR_BAD_REQUEST);
	assert_int_equal(query.select_count, 0);
	assert_true(label_query_is_empty(&query));
}

/* A selector with a key and a value of so many bytes. */
static struct error *select_sizes(size_t key_size, size_t value_size)
{
	struct label_query query = { 0 };
	size_t size = key_size + 1 + value_size;
	uint8_t *text = malloc(size);
	struct error *err;

	assert_non_null(text);
	memset(text, 'a', size);
	text[key_size] = '=';
	err = label_query_select(&query, (ProtobufCBinaryData){ .len = size, .data = text });
	if (!err)
		assert_int_equal(query.select[0].value.len, value_size);
	free(text);
	return err;
}

static void sizes_have_limits(void **state)
{
	(void)state;
	assert_success(select_sizes(1024, 1 << 20));
	assert_error(select_sizes(1025, 0), ERROR_LABEL_TOO_LONG);
	assert_error(select_sizes(1, (1 << 20) + 1), ERROR_LABEL_TOO_LONG);
}

static void sixty_four_selectors_are_the_most(void **state)
{
	struct label_query query = { 0 };
	char texts[65][16];

	(void)state;
	for (int i = 0; i < 64; i++) {
		snprintf(texts[i], sizeof(texts[i]), "key=%d", 63 - i);
		assert_success(select_text(&query, texts[i]));
	}
	assert_success(select_text(&query, "key=5")); /* is there already */
	assert_int_equal(query.select_count, 64);
	assert_error(select_text(&query, "key=64"), ERROR_TOO_MANY_LABELS);
	assert_bytes(query.select[0].value, "0");
	assert_bytes(query.select[63].value, "9");
}

static void order_and_repetition_mean_nothing(void **state)
{
	struct label_query a = { 0 }, b = { 0 };

	(void)state;
	assert_success(select_text(&a, "x=1"));
	assert_success(select_text(&a, "a=2"));
	assert_success(select_text(&a, "a=10"));
	assert_success(select_text(&b, "a=10"));
	assert_success(select_text(&b, "a=2"));
	assert_success(select_text(&b, "a=10"));
	assert_false(label_query_equal(&a, &b));
	assert_success(select_text(&b, "x=1"));
	assert_true(label_query_equal(&a, &b));
	b.detail = true;
	assert_false(label_query_equal(&a, &b));
	b.detail = false;
	assert_success(label_query_group(&b, bytes("a")));
	assert_false(label_query_equal(&a, &b));
	assert_success(label_query_group(&a, bytes("b")));
	assert_false(label_query_equal(&a, &b));
}

static void one_can_group_by_keys_and_three_other_things(void **state)
{
	static const char *const good[] = { "tenant", "@created_by", "@entry", "@module", "a@b" };
	static const char *const bad[] = { "@", "@x", "@modules", "@entr", "@created_by " };
	char long_key[1026] = "";

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		struct label_query query = { 0 };

		assert_success(label_query_group(&query, bytes(good[i])));
		assert_true(query.has_by);
		assert_bytes(query.by, good[i]);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct label_query query = { 0 };

		assert_error(label_query_group(&query, bytes(bad[i])), ERROR_BAD_REQUEST);
		assert_false(query.has_by);
	}
	memset(long_key, 'a', sizeof(long_key) - 1);
	assert_error(label_query_group(&(struct label_query){ 0 }, bytes(long_key)),
		     ERROR_LABEL_TOO_LONG);
	assert_error(label_query_group(&(struct label_query){ 0 }, bytes("")),
		     ERROR_EMPTY_LABEL_KEY);
}

static void a_copy_has_bytes_of_its_own(void **state)
{
	char first[] = "tenant=acme", second[] = "a=", by[] = "job";
	struct label_query query = { .detail = true }, *copy;
	size_t size;

	(void)state;
	assert_success(select_text(&query, first));
	assert_success(select_text(&query, second));
	assert_success(label_query_group(&query, bytes(by)));
	assert_success(label_query_copy(&query, &copy, &size));
	assert_true(size >= sizeof(*copy) + strlen("tenantacmeajob"));
	assert_true(label_query_equal(&query, copy));
	memset(first, 'x', strlen(first));
	memset(second, 'x', strlen(second));
	memset(by, 'x', strlen(by));
	assert_bytes(copy->select[0].key, "a");
	assert_bytes(copy->select[0].value, "");
	assert_bytes(copy->select[1].key, "tenant");
	assert_bytes(copy->select[1].value, "acme");
	assert_bytes(copy->by, "job");
	assert_true(copy->detail);
	free(copy);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_selector_is_split_at_its_first_equals_sign),
		cmocka_unit_test(what_is_no_selector_is_refused),
		cmocka_unit_test(sizes_have_limits),
		cmocka_unit_test(sixty_four_selectors_are_the_most),
		cmocka_unit_test(order_and_repetition_mean_nothing),
		cmocka_unit_test(one_can_group_by_keys_and_three_other_things),
		cmocka_unit_test(a_copy_has_bytes_of_its_own),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("label query", tests, NULL, NULL);
}
