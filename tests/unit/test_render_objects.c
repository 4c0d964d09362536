/* Answers about objects, rendered, and those that do not hold together, refused. */
#include "daemon/render.h"

#include <stdlib.h>

#include "daemon/analysis_check.h"
#include "daemon/page_cursor.h"
#include "tests/support/assertions.h"
#include "tests/support/canned.h"
#include "tests/support/canned_objects.h"
#include "tests/support/expected.h"

typedef void renderer(struct text *text, const struct scan_view *view);

static struct scan_view view_of(Goheapd__ScanResult *result, const Goheapd__Analysis *analysis)
{
	return (struct scan_view){
		.result = result, .id = "0123456789abcdef", .analysis = analysis, .goes_on = true
	};
}

static void check_both(const struct scan_view *view, renderer *json, renderer *words,
		       const char *json_name, const char *text_name)
{
	struct text text;

	text_init(&text);
	json(&text, view);
	check_json(&text, json_name);
	text_init(&text);
	words(&text, view);
	check_text(&text, text_name);
}

/* What fuzzing the renderers begins with. */
static void write_seed(void)
{
	Goheapd__ScanResult *result = canned_scan();
	struct text packed;
	uint8_t *to;

	canned_histogram(result);
	canned_objects(result);
	canned_object(result);
	canned_dominators(result);
	text_init(&packed);
	assert_success(
	    bytes_extend(&packed.bytes, goheapd__scan_result__get_packed_size(result), &to));
	goheapd__scan_result__pack(result, to);
	write_expected("../../fuzz/corpus/render/canned_objects", &packed);
	text_fini(&packed);
}

static void a_histogram_reads_well(void **state)
{
	Goheapd__ScanResult *result = canned_scan();
	const struct scan_view view = view_of(result, canned_histogram(result));

	(void)state;
	if (getenv("UPDATE_EXPECTED"))
		write_seed();
	assert_success(analysis_check(result, view.analysis));
	check_both(&view, render_json_histogram, render_text_histogram, "histogram.json",
		   "histogram.txt");
}

/* top=2, and nothing more is asked. */
static void a_histogram_has_as_many_rows_as_are_wanted(void **state)
{
	Goheapd__ScanResult *result = canned_scan();
	struct scan_view view = view_of(result, canned_histogram(result));

	(void)state;
	view.top = 2;
	view.analysis->histogram->garbage = view.analysis->histogram->retained = false;
	result->histogram->n_globals = 0;
	for (size_t i = 0; i < result->histogram->n_types; i++)
		result->histogram->types[i]->has_retained_bytes = false;
	check_both(&view, render_json_histogram, render_text_histogram, "histogram_top.json",
		   "histogram_top.txt");
}

static void pages_read_well(void **state)
{
	Goheapd__ScanResult *result = canned_scan();
	struct scan_view view = view_of(result, canned_objects(result));

	(void)state;
	assert_success(analysis_check(result, view.analysis));
	check_both(&view, render_json_objects, render_text_objects, "objects.json", "objects.txt");
	view.analysis = canned_dominators(result);
	assert_success(analysis_check(result, view.analysis));
	check_both(&view, render_json_dominators, render_text_dominators, "dominators.json",
		   "dominators.txt");
}

/* Where nothing is kept a page cannot go on. */
static void a_page_of_a_scan_that_is_gone_has_no_cursor(void **state)
{
	Goheapd__ScanResult *result = canned_scan();
	struct scan_view view = view_of(result, canned_objects(result));
	struct text text;

	(void)state;
	view.goes_on = false;
	text_init(&text);
	render_json_objects(&text, &view);
	text_append(&text, "", 1);
	assert_non_null(
	    strstr((const char *)text.bytes.data, "\"more\":true,\"next_cursor\":null"));
	text_fini(&text);
}

static void an_object_reads_well(void **state)
{
	Goheapd__ScanResult *result = canned_scan();
	const struct scan_view view = view_of(result, canned_object(result));

	(void)state;
	assert_success(analysis_check(result, view.analysis));
	check_both(&view, render_json_object, render_text_object, "object.json", "object.txt");
}

static void cursors_come_back_as_they_were(void **state)
{
	Goheapd__ScanResult *result = canned_scan();
	Goheapd__ObjectsQuery objects = GOHEAPD__OBJECTS_QUERY__INIT;
	Goheapd__DominatorsQuery dominators = GOHEAPD__DOMINATORS_QUERY__INIT;
	struct page_cursor cursor;
	char text[PAGE_CURSOR_SIZE];

	(void)state;
	canned_objects(result);
	canned_dominators(result);
	assert_true(page_cursor_of_objects("abc", result->objects, &cursor));
	assert_string_equal(page_cursor_format(&cursor, text), "abc.c000125000");
	assert_success(page_cursor_parse(text, &cursor));
	assert_string_equal(cursor.id, "abc");
	assert_success(page_cursor_to_objects(&cursor, &objects));
	assert_true(objects.has_after && objects.after == 0xc000125000);
	assert_error(page_cursor_to_dominators(&cursor, &dominators), ERROR_BAD_REQUEST);
	assert_true(page_cursor_of_dominators("abc", result->dominators, &cursor));
	assert_success(page_cursor_parse(page_cursor_format(&cursor, text), &cursor));
	assert_success(page_cursor_to_dominators(&cursor, &dominators));
	assert_true(dominators.after_retained == UINT64_C(123456789012) >> 16);
	assert_int_equal(dominators.after_node, 77);
	assert_error(page_cursor_to_objects(&cursor, &objects), ERROR_BAD_REQUEST);
}

static void what_is_no_cursor_is_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"abc",
		".1",
		"abc.",
		"abc.g",
		"abc.1.",
		"abc.1.2.3",
		"abc.1x",
		"abc.11112222333344445",
		"0123456789abcdef0123456789abcdef.1",
		"abc.1 ",
	};
	struct page_cursor cursor;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		assert_error(page_cursor_parse(texts[i], &cursor), ERROR_BAD_REQUEST);
}

/* ---- what does not hold together ---- */

static void refuse(Goheapd__ScanResult *result, const Goheapd__Analysis *analysis)
{
	assert_error(analysis_check(result, analysis), ERROR_FORMAT);
}

static void a_histogram_that_does_not_add_up_is_refused(void **state)
{
	Goheapd__ScanResult *result = canned_scan();
	const Goheapd__Analysis *analysis = canned_histogram(result);
	Goheapd__Histogram *h = result->histogram;

	(void)state;
	h->typed_bytes++;
	refuse(result, analysis);
	h->typed_bytes--;
	h->unknown_objects++;
	refuse(result, analysis);
	h->unknown_objects--;
	h->types[1]->bytes += UINT64_C(4) << 30;
	refuse(result, analysis);
	h->types[1]->bytes = UINT64_MAX;
	refuse(result, analysis);
	analysis = canned_histogram(result);
	h->garbage_unknown_bytes--;
	refuse(result, analysis);
	h->garbage_unknown_bytes++;
	h->finalizable_unknown_objects++;
	refuse(result, analysis);
	h->finalizable_unknown_objects--;
	h->globals[1]->retained_bytes = UINT64_C(5) << 30;
	refuse(result, analysis);
	result->histogram = NULL;
	assert_error(analysis_check(result, analysis), ERROR_SYSTEM);
}

static void pages_out_of_order_are_refused(void **state)
{
	Goheapd__ScanResult *result = canned_scan();
	const Goheapd__Analysis *analysis = canned_objects(result);

	(void)state;
	analysis->objects->limit = 2;
	refuse(result, analysis);
	analysis = canned_objects(result);
	result->objects->objects[1]->address = result->objects->objects[0]->address;
	refuse(result, analysis);
	analysis = canned_objects(result);
	result->objects->objects[0]->bytes = 95;
	refuse(result, analysis);
	analysis = canned_objects(result);
	result->objects->next_after++;
	refuse(result, analysis);
	analysis = canned_objects(result);
	analysis->objects->has_after = true;
	analysis->objects->after = 0xc000123000;
	refuse(result, analysis);
	analysis = canned_dominators(result);
	result->dominators->nodes[1]->retained_bytes = UINT64_MAX;
	refuse(result, analysis);
	analysis = canned_dominators(result);
	result->dominators->nodes[2]->bytes = result->dominators->nodes[2]->retained_bytes + 1;
	refuse(result, analysis);
	analysis = canned_dominators(result);
	result->dominators->n_nodes = 0;
	refuse(result, analysis);
	result->dominators = NULL;
	assert_error(analysis_check(result, analysis), ERROR_SYSTEM);
}

static void an_object_that_was_not_asked_for_is_refused(void **state)
{
	static char gone[] = "gone";
	Goheapd__ScanResult *result = canned_scan();
	const Goheapd__Analysis *analysis = canned_object(result);

	(void)state;
	analysis->object->contents = false;
	refuse(result, analysis);
	analysis = canned_object(result);
	result->object->address += 4096;
	refuse(result, analysis);
	analysis = canned_object(result);
	result->object->address -= 4096;
	refuse(result, analysis);
	analysis = canned_object(result);
	result->object->state = gone;
	refuse(result, analysis);
	analysis = canned_object(result);
	result->object->fields[0]->offset = 145;
	refuse(result, analysis);
	result->object = NULL;
	assert_error(analysis_check(result, analysis), ERROR_SYSTEM);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_histogram_reads_well),
		cmocka_unit_test(a_histogram_has_as_many_rows_as_are_wanted),
		cmocka_unit_test(pages_read_well),
		cmocka_unit_test(a_page_of_a_scan_that_is_gone_has_no_cursor),
		cmocka_unit_test(an_object_reads_well),
		cmocka_unit_test(cursors_come_back_as_they_were),
		cmocka_unit_test(what_is_no_cursor_is_refused),
		cmocka_unit_test(a_histogram_that_does_not_add_up_is_refused),
		cmocka_unit_test(pages_out_of_order_are_refused),
		cmocka_unit_test(an_object_that_was_not_asked_for_is_refused),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("render objects", tests, NULL, NULL);
}
