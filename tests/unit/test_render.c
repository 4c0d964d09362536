/*
 * The canned messages, rendered, against files that were read by a person before they were checked
 * in. Run with UPDATE_EXPECTED=1 to write them anew; then read them again.
 */
#include "daemon/render.h"

#include <jansson.h>

#include "daemon/label_query.h"
#include "daemon/label_text.h"
#include "daemon/render_text_common.h"
#include "daemon/scan_check.h"
#include "tests/support/assertions.h"
#include "tests/support/canned.h"
#include "tests/support/canned_labels.h"
#include "tests/support/canned_objects.h"
#include "tests/support/expected.h"

/* The canned scan is also what fuzzing the renderers begins with. */
static void write_seed(void)
{
	Goheapd__ScanResult *result = canned_scan();
	struct text packed;
	uint8_t *to;

	text_init(&packed);
	assert_success(
	    bytes_extend(&packed.bytes, goheapd__scan_result__get_packed_size(result), &to));
	goheapd__scan_result__pack(result, to);
	write_expected("../../fuzz/corpus/render/canned", &packed);
	text_fini(&packed);
}

static struct scan_view view_of(Goheapd__ScanResult *result)
{
	return (struct scan_view){ .result = result, .id = "0123456789abcdef" };
}

static void processes_read_well(void **state)
{
	Goheapd__Process first = canned_process(), second = first;
	Goheapd__Process *const list[] = { &first, &second };
	struct text text;

	(void)state;
	second.pid = CANNED_NAMESAKE;
	second.has_exe = second.has_go_version = second.has_cgroup = second.has_container_id =
	    second.has_rss_bytes = second.inspectable = false;
	second.has_reason = true;
	second.reason.data = (uint8_t *)(uintptr_t) "another tracer holds it";
	second.reason.len = 23;
	text_init(&text);
	render_json_pids(&text, list, 2);
	check_json(&text, "pids.json");
	text_init(&text);
	render_text_pids(&text, list, 2, 1770087491250000000);
	check_text(&text, "pids.txt");
}

static void no_process_is_said(void **state)
{
	struct text text;

	(void)state;
	text_init(&text);
	render_json_pids(&text, NULL, 0);
	check_json(&text, "pids_none.json");
	text_init(&text);
	render_text_pids(&text, NULL, 0, 0);
	check_text(&text, "pids_none.txt");
}

static void an_overview_reads_well(void **state)
{
	struct text text;

	(void)state;
	text_init(&text);
	render_json_overview(&text, canned_overview());
	check_json(&text, "overview.json");
	text_init(&text);
	render_text_overview(&text, canned_overview(), 1770087491250000000);
	check_text(&text, "overview.txt");
}

static void memusage_reads_well(void **state)
{
	struct scan_view view = view_of(canned_scan());
	struct text text;

	(void)state;
	if (getenv("UPDATE_EXPECTED"))
		write_seed();
	text_init(&text);
	render_json_memusage(&text, &view);
	check_json(&text, "memusage.json");
	text_init(&text);
	render_text_memusage(&text, &view);
	check_text(&text, "memusage.txt");
}

/* As of a small program with no limit, of which little is known, in a kept census. */
static void a_bare_memusage_reads_well(void **state)
{
	Goheapd__ScanResult *result = canned_scan();
	struct scan_view view = view_of(result);
	Goheapd__Build build = GOHEAPD__BUILD__INIT;
	struct text text;

	(void)state;
	view.cached = true;
	result->identity->build = &build;
	result->scan->depth = GOHEAPD__DEPTH__DEPTH_CENSUS;
	result->scan->mode = GOHEAPD__MODE__MODE_STOP;
	result->scan->n_warnings = 0;
	result->scan->trust->has_conservative_only_bytes = false;
	result->scan->trust->skipped_stacks = 0;
	result->scan->trust->skipped_bytes = 0;
	result->scan->trust->self_check.data = (uint8_t *)(uintptr_t) "spans say 3, mheap says 4";
	result->scan->trust->self_check.len = 25;
	result->memory->children[4]->children[0]->children[0]->n_children = 0;
	result->gc = NULL;
	result->cgroup = NULL;
	canned_label_census(result->labels);
	text_init(&text);
	render_json_memusage(&text, &view);
	check_json(&text, "memusage_bare.json");
	text_init(&text);
	render_text_memusage(&text, &view);
	check_text(&text, "memusage_bare.txt");
}

/* label=tenant=acme, label of an odd value, by=job, detail=1 */
static struct label_query asked_labels(void)
{
	struct label_query query = { .detail = true };

	assert_success(label_query_select(&query, text_bytes("tenant=acme")));
	assert_success(label_query_select(&query, text_bytes("a b=\xff\n")));
	assert_success(label_query_group(&query, text_bytes("job")));
	return query;
}

static void what_is_asked_of_labels_reads_well(void **state)
{
	Goheapd__ScanResult *result = canned_scan();
	struct label_query query = asked_labels();
	struct scan_view view = view_of(result);
	struct text text;

	(void)state;
	view.labels = &query;
	canned_select(view.result->labels, 212);
	canned_group(view.result->labels);
	canned_detail();
	canned_globals(result);
	text_init(&text);
	render_json_memusage(&text, &view);
	check_json(&text, "memusage_labels.json");
	text_init(&text);
	render_text_memusage(&text, &view);
	check_text(&text, "memusage_labels.txt");
}

static void check_keeps(Goheapd__ScanResult *result, const char *expected)
{
	struct scan_view view = view_of(result);
	struct text text;

	text_init(&text);
	render_text_memusage(&text, &view);
	text_append(&text, "", 1);
	assert_success(text_finish(&text));
	assert_non_null(strstr((const char *)text.bytes.data, expected));
	text_fini(&text);
}

/* A name is cut, and what does not fit on the line left out; five are enough. */
static void what_globals_keep_is_one_line(void **state)
{
	Goheapd__ScanResult *result = canned_scan();
	Goheapd__GlobalRow rows[7], *pointers[7];

	(void)state;
	for (unsigned i = 0; i < 7; i++) {
		rows[i] = (Goheapd__GlobalRow)GOHEAPD__GLOBAL_ROW__INIT;
		rows[i].name = text_bytes("m.v");
		rows[i].retained_bytes = (UINT64_C(7) - i) << 30;
		pointers[i] = &rows[i];
	}
	result->globals = pointers;
	result->n_globals = 7;
	check_keeps(result, "\nKEEPS  m.v 7.00   m.v 6.00   m.v 5.00   m.v 4.00   m.v 3.00\nTRUST");
	rows[1].name = text_bytes("example.com/a/package/of/a/long/path.variable");
	rows[2].name = text_bytes("another.variable.with.a.long.name.that.fits.no.more");
	check_keeps(result, "\nKEEPS  m.v 7.00   "
			    "example.com/a/package/of/a/long/path.va… 6.00\nTRUST");
	result->globals = NULL;
	result->n_globals = 0;
	canned_histogram(result);
	check_keeps(result, "\nKEEPS  main.sessions 4.00   shop/cart.cache 0.02\nTRUST");
}

static const struct metric_label_key allowed_keys[] = {
	{ (char *)(uintptr_t) "tenant", (char *)(uintptr_t) "label_tenant" },
	{ (char *)(uintptr_t) "job", (char *)(uintptr_t) "label_job" },
};

static void metrics_read_well(void **state)
{
	static const struct metric_settings settings = { allowed_keys, 2, 4 };
	struct label_query query = asked_labels();
	struct scan_view view = view_of(canned_scan());
	struct text text;

	(void)state;
	view.labels = &query;
	view.metrics = &settings;
	canned_select(view.result->labels, 212);
	text_init(&text);
	render_prometheus_memusage(&text, &view);
	check_text(&text, "memusage.prometheus");
	text_init(&text);
	render_openmetrics_memusage(&text, &view);
	check_text(&text, "memusage.openmetrics");
}

/* Nothing of labels is shown unless the configuration names a key, and a census has no bytes. */
static void metrics_of_little_are_few(void **state)
{
	static const struct metric_settings settings = { NULL, 0, 1 };
	Goheapd__ScanResult *result = canned_scan();
	struct scan_view view = view_of(result);
	struct text text;

	(void)state;
	view.metrics = &settings;
	result->memory = NULL;
	result->heap = NULL;
	result->stacks = NULL;
	result->has_rss_bytes = false;
	canned_label_census(result->labels);
	text_init(&text);
	render_prometheus_memusage(&text, &view);
	check_text(&text, "memusage_few.prometheus");
}

static char *written(void (*write)(struct text *text, const char *value), const char *value)
{
	struct text text;
	char *ret;

	text_init(&text);
	write(&text, value);
	assert_success(text_finish(&text));
	ret = strndup((const char *)text.bytes.data, text.bytes.size);
	assert_non_null(ret);
	text_fini(&text);
	return ret;
}

static void write_part(struct text *text, const char *value)
{
	text_label_part(text, text_bytes(value), 12);
}

static void labels_that_could_be_misread_are_quoted(void **state)
{
	static const struct {
		const char *part, *shown;
	} cases[] = {
		{ "acme", "acme" },
		{ "main.(*T).run", "main.(*T).r…" },
		{ "a-b:c/d_e.f@", "a-b:c/d_e.f@" },
		{ "", "\"\"" },
		{ "a b", "\"a b\"" },
		{ "a,b", "\"a,b\"" },
		{ "a=\"b\\", "\"a=\\\"b\\\\\"" },
		{ "\n\x1b", "\"\\x0a\\x1b\"" },
		{ "\xff{}", "\"\xef\xbf\xbd{}\"" },
		{ "a\xe2\x80\xae", "a\\u202e" },
		{ "12345678901 3", "\"1234567890…" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *shown = written(write_part, cases[i].part);

		assert_string_equal(shown, cases[i].shown);
		free(shown);
	}
}

/* A text page is no larger for it. */
static void long_labels_are_cut_in_text(void **state)
{
	Goheapd__ScanResult *result = canned_scan();
	Goheapd__LabelPair pairs[200], *pointers[200];
	struct scan_view view = view_of(result);
	size_t size = 64 << 10;
	uint8_t *long_value = malloc(size);
	struct text text;

	(void)state;
	assert_non_null(long_value);
	memset(long_value, '\n', size);
	for (size_t i = 0; i < 200; i++) {
		pairs[i] = (Goheapd__LabelPair)GOHEAPD__LABEL_PAIR__INIT;
		pairs[i].key = text_bytes("key");
		pairs[i].value = (ProtobufCBinaryData){ .len = size, .data = long_value };
		pointers[i] = &pairs[i];
	}
	result->labels->sets[0]->n_labels = result->goroutines[0]->n_labels = 200;
	result->labels->sets[0]->labels = result->goroutines[0]->labels = pointers;
	text_init(&text);
	render_text_memusage(&text, &view);
	assert_true(text.bytes.size < 4096);
	text_append(&text, "", 1);
	assert_non_null(strstr((const char *)text.bytes.data, "\n  key=\"\\x0a\\x0a\\x0a"));
	text_fini(&text);
	free(long_value);
}

static void goroutines_read_like_gos_own(void **state)
{
	struct scan_view view = view_of(canned_scan());
	struct text text;

	(void)state;
	text_init(&text);
	render_json_goroutines(&text, &view);
	check_json(&text, "goroutines.json");
	text_init(&text);
	render_text_goroutines(&text, &view);
	check_text(&text, "goroutines.txt");
}

/* Who renders an answer looks up what it names without asking. */
static void an_answer_that_names_what_is_not_there_is_refused(void **state)
{
	Goheapd__ScanResult result = *canned_scan();
	Goheapd__Goroutine g = GOHEAPD__GOROUTINE__INIT, *goroutines[] = { &g };
	Goheapd__StackTrace trace = GOHEAPD__STACK_TRACE__INIT, *traces[] = { &trace };
	uint32_t frames[] = { (uint32_t)result.n_frames - 1 };

	(void)state;
	assert_success(scan_check(&result));
	result.goroutines = goroutines;
	result.n_goroutines = 1;
	result.traces = traces;
	result.n_traces = 1;
	trace.frames = frames;
	trace.n_frames = 1;
	g.has_trace = g.has_created_by = true;
	g.created_by = frames[0];
	assert_success(scan_check(&result));
	g.trace++;
	assert_error(scan_check(&result), ERROR_FORMAT);
	g.trace--;
	g.created_by++;
	assert_error(scan_check(&result), ERROR_FORMAT);
	g.created_by--;
	frames[0]++;
	assert_error(scan_check(&result), ERROR_FORMAT);
}

static void dead_goroutines_are_listed_when_asked_for(void **state)
{
	struct scan_view view = view_of(canned_scan());
	struct text text;
	json_t *parsed;

	(void)state;
	view.dead = true;
	text_init(&text);
	render_json_goroutines(&text, &view);
	parsed = json_loadb((const char *)text.bytes.data, text.bytes.size, 0, NULL);
	assert_int_equal(json_array_size(json_object_get(parsed, "goroutines")), 3);
	json_decref(parsed);
	text_fini(&text);
}

static void mappings_read_well(void **state)
{
	struct scan_view view = view_of(canned_scan());
	struct text text;

	(void)state;
	text_init(&text);
	render_json_mappings(&text, &view);
	check_json(&text, "mappings.json");
	text_init(&text);
	render_text_mappings(&text, &view);
	check_text(&text, "mappings.txt");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(processes_read_well),
		cmocka_unit_test(no_process_is_said),
		cmocka_unit_test(an_overview_reads_well),
		cmocka_unit_test(memusage_reads_well),
		cmocka_unit_test(goroutines_read_like_gos_own),
		cmocka_unit_test(an_answer_that_names_what_is_not_there_is_refused),
		cmocka_unit_test(dead_goroutines_are_listed_when_asked_for),
		cmocka_unit_test(mappings_read_well),
		cmocka_unit_test(a_bare_memusage_reads_well),
		cmocka_unit_test(what_is_asked_of_labels_reads_well),
		cmocka_unit_test(what_globals_keep_is_one_line),
		cmocka_unit_test(metrics_read_well),
		cmocka_unit_test(metrics_of_little_are_few),
		cmocka_unit_test(labels_that_could_be_misread_are_quoted),
		cmocka_unit_test(long_labels_are_cut_in_text),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("render", tests, NULL, NULL);
}
