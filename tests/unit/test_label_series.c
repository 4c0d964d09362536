#include "daemon/label_series.h"

#include "daemon/metric_writer.h"
#include "daemon/render.h"
#include "tests/support/assertions.h"

enum { SETS_MAX = 32, PAIRS_MAX = 3 };

static Goheapd__LabelPair pairs[SETS_MAX][PAIRS_MAX];
static Goheapd__LabelPair *pair_pointers[SETS_MAX][PAIRS_MAX];
static Goheapd__LabelUsage usages[SETS_MAX];
static Goheapd__LabelSet sets[SETS_MAX];
static Goheapd__LabelSet *set_pointers[SETS_MAX];
static Goheapd__LabelReport report;

static const struct metric_label_key keys[] = {
	{ (char *)(uintptr_t) "tenant", (char *)(uintptr_t) "label_tenant" },
	{ (char *)(uintptr_t) "job", (char *)(uintptr_t) "label_job" },
};

static ProtobufCBinaryData bytes(const char *text)
{
	return (ProtobufCBinaryData){ .len = strlen(text), .data = (uint8_t *)(uintptr_t)text };
}

static int reset(void **state)
{
	(void)state;
	report = (Goheapd__LabelReport)GOHEAPD__LABEL_REPORT__INIT;
	report.sets = set_pointers;
	return 0;
}

/* A set of labels, given as key, value, key, value... */
static void add_set(uint64_t share, const char *const (*labels)[2], size_t count)
{
	size_t index = report.n_sets++;
	Goheapd__LabelUsage *usage = &usages[index];

	*usage = (Goheapd__LabelUsage)GOHEAPD__LABEL_USAGE__INIT;
	usage->goroutines = index + 1;
	usage->stack_bytes = 1000 * (index + 1);
	usage->has_share_bytes = usage->has_exclusive_bytes = true;
	usage->share_bytes = share;
	usage->exclusive_bytes = share / 2;
	sets[index] = (Goheapd__LabelSet)GOHEAPD__LABEL_SET__INIT;
	sets[index].usage = usage;
	sets[index].labels = pair_pointers[index];
	sets[index].n_labels = count;
	for (size_t i = 0; i < count; i++) {
		pairs[index][i] = (Goheapd__LabelPair)GOHEAPD__LABEL_PAIR__INIT;
		pairs[index][i].key = bytes(labels[i][0]);
		pairs[index][i].value = bytes(labels[i][1]);
		pair_pointers[index][i] = &pairs[index][i];
	}
	set_pointers[index] = &sets[index];
}

#define ADD_SET(share, ...)                                                                        \
	do {                                                                                       \
		static const char *const labels_[][2] = { __VA_ARGS__ };                           \
		add_set(share, labels_, sizeof(labels_) / sizeof(*labels_));                       \
	} while (0)

static struct label_series_list series(size_t key_count, size_t max)
{
	const struct metric_settings settings = { keys, key_count, max };
	struct label_series_list list;

	assert_success(label_series_init(&list, &report, &settings));
	return list;
}

static void assert_labels(const struct label_series *actual, const char *expected)
{
	assert_int_equal(actual->labels_size, strlen(expected));
	assert_memory_equal(actual->labels, expected, actual->labels_size);
}

static void the_largest_stay_and_the_rest_is_summed_up(void **state)
{
	struct label_series_list list;

	(void)state;
	ADD_SET(10, { "tenant", "small" });
	ADD_SET(300, { "tenant", "large" });
	ADD_SET(20, { "tenant", "middle" });
	ADD_SET(1, { "tenant", "tiny" });
	list = series(1, 2);
	assert_int_equal(list.count, 2);
	assert_labels(&list.series[0], "label_tenant=\"large\"");
	assert_labels(&list.series[1], "label_tenant=\"middle\"");
	assert_int_equal(list.folded, 2);
	assert_int_equal(list.other.share_bytes, 11);
	assert_int_equal(list.other.exclusive_bytes, 5);
	assert_int_equal(list.other.goroutines, 1 + 4);
	assert_int_equal(list.other.stack_bytes, 5000);
	label_series_fini(&list);
}

static void sets_that_agree_in_the_allowed_keys_are_one_series(void **state)
{
	struct label_series_list list;

	(void)state;
	ADD_SET(10, { "request", "1" }, { "tenant", "acme" });
	ADD_SET(20, { "request", "2" }, { "tenant", "acme" });
	ADD_SET(25, { "request", "3" }, { "tenant", "zeta" });
	ADD_SET(3, { "request", "4" });
	ADD_SET(4, { "request", "5" }, { "tenant", "" });
	list = series(1, 10);
	assert_int_equal(list.count, 3);
	assert_labels(&list.series[0], "label_tenant=\"acme\"");
	assert_int_equal(list.series[0].sum.share_bytes, 30);
	assert_int_equal(list.series[0].sum.goroutines, 3);
	assert_labels(&list.series[1], "label_tenant=\"zeta\"");
	/* an empty label is none */
	assert_labels(&list.series[2], "");
	assert_int_equal(list.series[2].sum.share_bytes, 7);
	assert_int_equal(list.folded, 0);
	label_series_fini(&list);
}

static void keys_come_in_the_order_of_the_configuration(void **state)
{
	struct label_series_list list;

	(void)state;
	ADD_SET(1, { "job", "7" }, { "tenant", "acme" });
	list = series(2, 1);
	assert_labels(&list.series[0], "label_tenant=\"acme\",label_job=\"7\"");
	label_series_fini(&list);
}

static void no_allowed_key_is_one_series_for_all(void **state)
{
	struct label_series_list list;

	(void)state;
	ADD_SET(1, { "tenant", "acme" });
	ADD_SET(2, { "tenant", "zeta" });
	list = series(0, 5);
	assert_int_equal(list.count, 1);
	assert_labels(&list.series[0], "");
	assert_int_equal(list.series[0].sum.share_bytes, 3);
	label_series_fini(&list);
	reset(NULL);
	list = series(2, 5);
	assert_int_equal(list.count, 0);
	label_series_fini(&list);
}

/* What becomes the same when it is written must not be there twice. */
static void values_that_are_written_alike_are_one_series(void **state)
{
	static char first[400], second[400];
	struct label_series_list list;

	(void)state;
	memset(first, 'a', sizeof(first) - 1);
	memset(second, 'a', sizeof(second) - 1);
	second[300] = 'b';
	ADD_SET(1, { "tenant", "\xff" });
	ADD_SET(2, { "tenant", "\xfe" });
	add_set(4, (const char *const[][2]){ { "tenant", first } }, 1);
	add_set(8, (const char *const[][2]){ { "tenant", second } }, 1);
	list = series(1, 10);
	assert_int_equal(list.count, 2);
	assert_int_equal(list.series[0].sum.share_bytes, 12);
	assert_labels(&list.series[1], "label_tenant=\"\xef\xbf\xbd\"");
	assert_int_equal(list.series[1].sum.share_bytes, 3);
	label_series_fini(&list);
}

static void a_value_cannot_leave_its_quotes(void **state)
{
	static const struct {
		ProtobufCBinaryData value;
		const char *written;
	} cases[] = {
		{ { 4, (uint8_t *)"acme" }, "k=\"acme\"" },
		{ { 7, (uint8_t *)"a\"} 1\nb" }, "k=\"a\\\"} 1\\nb\"" },
		{ { 2, (uint8_t *)"\\n" }, "k=\"\\\\n\"" },
		{ { 3, (uint8_t *)"a\0b" },
		  "k=\"a\xef\xbf\xbd"
		  "b\"" },
		{ { 1, (uint8_t *)"\xe2" }, "k=\"\xef\xbf\xbd\"" },
		{ { 3, (uint8_t *)"\xe2\x82\xac" }, "k=\"\xe2\x82\xac\"" },
		{ { 0, NULL }, "k=\"\"" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct text text;

		text_init(&text);
		metric_write_label(&text, "k", cases[i].value);
		assert_int_equal(text.bytes.size, strlen(cases[i].written));
		assert_memory_equal(text.bytes.data, cases[i].written, text.bytes.size);
		text_fini(&text);
	}
}

static void long_values_are_cut_at_a_character(void **state)
{
	char value[400], expected[400];
	struct text text;

	(void)state;
	memset(value, 'a', sizeof(value));
	memcpy(value + 254, "\xe2\x82\xac", 3); /* would end at 257 */
	snprintf(expected, sizeof(expected), "k=\"%.254s\xe2\x80\xa6\"", value);
	text_init(&text);
	metric_write_label(&text, "k", (ProtobufCBinaryData){ sizeof(value), (uint8_t *)value });
	text_append(&text, "", 1);
	assert_string_equal((const char *)text.bytes.data, expected);
	text_fini(&text);
}

static void names_are_legal(void **state)
{
	static const char *const cases[][2] = { { "tenant", "label_tenant" },
						{ "a.b-c", "label_a_b_c" },
						{ "9", "label_9" },
						{ "\xc3\xa9", "label___" } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *name;

		assert_success(label_series_name(cases[i][0], &name));
		assert_string_equal(name, cases[i][1]);
		free(name);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_largest_stay_and_the_rest_is_summed_up, reset),
		cmocka_unit_test_setup(sets_that_agree_in_the_allowed_keys_are_one_series, reset),
		cmocka_unit_test_setup(keys_come_in_the_order_of_the_configuration, reset),
		cmocka_unit_test_setup(no_allowed_key_is_one_series_for_all, reset),
		cmocka_unit_test_setup(values_that_are_written_alike_are_one_series, reset),
		cmocka_unit_test(a_value_cannot_leave_its_quotes),
		cmocka_unit_test(long_values_are_cut_at_a_character),
		cmocka_unit_test(names_are_legal),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("label series", tests, NULL, NULL);
}
