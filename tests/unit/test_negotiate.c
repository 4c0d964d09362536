#include "daemon/negotiate.h"

#include "tests/support/assertions.h"

static const enum format json_text[] = { FORMAT_JSON, FORMAT_TEXT, FORMAT_NONE };

static enum format choose(const char *parameter, const char *accept)
{
	enum format format = FORMAT_NONE;

	assert_success(negotiate(json_text, parameter, accept, &format));
	return format;
}

static void the_first_form_is_the_default(void **state)
{
	(void)state;
	assert_int_equal(choose(NULL, NULL), FORMAT_JSON);
	assert_int_equal(choose(NULL, "*/*"), FORMAT_JSON);
	assert_int_equal(choose(NULL, ""), FORMAT_JSON);
	assert_int_equal(choose(NULL, "image/png"), FORMAT_JSON);
	assert_int_equal(choose(NULL, "text/html,application/xhtml+xml,*/*;q=0.8"), FORMAT_JSON);
}

static void the_parameter_goes_before_the_header(void **state)
{
	(void)state;
	assert_int_equal(choose("text", "application/json"), FORMAT_TEXT);
	assert_int_equal(choose("json", "text/plain"), FORMAT_JSON);
}

static void the_header_chooses_by_quality(void **state)
{
	(void)state;
	assert_int_equal(choose(NULL, "text/plain"), FORMAT_TEXT);
	assert_int_equal(choose(NULL, "TEXT/Plain;charset=utf-8"), FORMAT_TEXT);
	assert_int_equal(choose(NULL, "text/*"), FORMAT_TEXT);
	assert_int_equal(choose(NULL, "text/plain;q=0.5, application/json;q=0.4"), FORMAT_TEXT);
	assert_int_equal(choose(NULL, "text/plain;q=0.5,application/json"), FORMAT_JSON);
	assert_int_equal(choose(NULL, "application/json;q=0, */*"), FORMAT_TEXT);
	assert_int_equal(choose(NULL, "*/*;q=0.1 , text/plain; q=0.2"), FORMAT_TEXT);
}

/* What Prometheus sends, by its versions and what it is told to scrape. */
static void scrapers_get_metrics(void **state)
{
	static const enum format offered[] = { FORMAT_JSON, FORMAT_TEXT, FORMAT_PROMETHEUS,
					       FORMAT_OPENMETRICS, FORMAT_NONE };
	static const struct {
		const char *accept;
		enum format format;
	} cases[] = {
		{ "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
		  "application/openmetrics-text;version=0.0.1;q=0.4,"
		  "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,"
		  "text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
		  FORMAT_OPENMETRICS },
		{ "text/plain;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.4,*/*;q=0.3",
		  FORMAT_PROMETHEUS },
		{ "text/plain;version=0.0.4;q=0.5,*/*;q=0.1", FORMAT_PROMETHEUS },
		{ "text/plain; version=0.0.4", FORMAT_PROMETHEUS },
		{ "application/openmetrics-text", FORMAT_OPENMETRICS },
		{ "application/openmetrics-text; version=0.0.1", FORMAT_JSON },
		{ "text/plain", FORMAT_TEXT },
		{ "text/plain;charset=utf-8", FORMAT_TEXT },
		{ "text/plain;version=0.0.5", FORMAT_JSON },
		{ "text/*", FORMAT_TEXT },
		{ "*/*", FORMAT_JSON },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		enum format format = FORMAT_NONE;

		assert_success(negotiate(offered, NULL, cases[i].accept, &format));
		assert_int_equal(format, cases[i].format);
	}
}

static void odd_headers_do_no_harm(void **state)
{
	static const char *const odd[] = { ",", ";;;q=", ",,;q=1", "text/plain;q=x", "/;q=1",
					   "*", "text/", ";",      " , ; ,",         "q=1" };

	(void)state;
	for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
		struct tail_copy copy = tail_copy(odd[i], strlen(odd[i]) + 1);

		assert_int_equal(choose(NULL, (const char *)copy.bytes), FORMAT_JSON);
		tail_copy_fini(&copy);
	}
}

static void a_form_that_is_not_offered_is_refused(void **state)
{
	enum format format = FORMAT_NONE;
	struct error *err = negotiate(json_text, "pprof", NULL, &format);

	(void)state;
	assert_non_null(err);
	assert_int_equal(error_code(err), ERROR_BAD_REQUEST);
	assert_string_equal(error_message(err),
			    "format \"pprof\" is not offered here; there is: json, text");
	error_free(err);
	assert_error(negotiate(json_text, "", NULL, &format), ERROR_BAD_REQUEST);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_form_is_the_default),
		cmocka_unit_test(the_parameter_goes_before_the_header),
		cmocka_unit_test(the_header_chooses_by_quality),
		cmocka_unit_test(scrapers_get_metrics),
		cmocka_unit_test(odd_headers_do_no_harm),
		cmocka_unit_test(a_form_that_is_not_offered_is_refused),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("negotiate", tests, NULL, NULL);
}
