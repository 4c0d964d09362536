#include "daemon/params.h"

#include "daemon/quantity.h"
#include "daemon/rfc3339.h"
#include "daemon/uri.h"
#include "tests/support/assertions.h"

static struct error *read_target(const char *target, unsigned accepted, struct params *ret)
{
	struct uri uri;
	struct error *err = uri_parse(target, &uri);

	if (!err)
		err = params_read(&uri, accepted, ret);
	uri_fini(&uri); /* start and format are not looked at afterwards */
	return err;
}

static void without_parameters_there_are_defaults(void **state)
{
	struct params params;

	(void)state;
	assert_success(read_target("/x", PARAMS_SCAN, &params));
	assert_int_equal(params.timeout_us, 60000000);
	assert_int_equal(params.max_pause_us, 250000);
	assert_int_equal(params.max_age_us, 0);
	assert_int_equal(params.mode, GOHEAPD__MODE__MODE_AUTO);
	assert_int_equal(params.depth, GOHEAPD__DEPTH__DEPTH_FULL);
	assert_false(params.dead);
	assert_true(label_query_is_empty(&params.labels));
	assert_int_equal(params.max_depth, 256);
	assert_int_equal(params.max_samples, 16000);
	assert_int_equal(params.min_bytes, 0);
	assert_false(params.retained || params.with_labels);
	assert_null(params.start);
	assert_null(params.format);
}

static void every_parameter_is_read(void **state)
{
	struct params params;

	(void)state;
	assert_success(read_target("/x?mode=stop&depth=census&max_age=0.5&max_pause=0.0001&"
				   "timeout=600&start=2026-02-03T02:58:11.25Z&dead=1&format=json",
				   PARAMS_SCAN | PARAM_DEAD, &params));
	assert_int_equal(params.mode, GOHEAPD__MODE__MODE_STOP);
	assert_int_equal(params.depth, GOHEAPD__DEPTH__DEPTH_CENSUS);
	assert_int_equal(params.max_age_us, 500000);
	assert_int_equal(params.max_pause_us, 100);
	assert_int_equal(params.timeout_us, 600000000);
	assert_true(params.dead);
	assert_non_null(params.start);
	assert_non_null(params.format);
}

/* What is read of labels is looked at while the uri is there. */
static void labels_are_read_from_query_and_path(void **state)
{
	static const char target[] =
	    "/pid/1/m/label=path=a%2Fb?label=tenant%3Dacme+x&label=a=%00%ff&by=%40entry&detail=1";
	struct params params;
	struct uri uri;

	(void)state;
	assert_success(uri_parse(target, &uri));
	assert_success(params_read(&uri, PARAMS_LABELS, &params));
	assert_int_equal(params.labels.select_count, 3);
	assert_int_equal(params.labels.select[0].value.len, 2);
	assert_memory_equal(params.labels.select[0].value.data, "\0\xff", 2);
	assert_memory_equal(params.labels.select[1].key.data, "path=a/b", 9);
	assert_memory_equal(params.labels.select[2].key.data, "tenant=acme x", 14);
	assert_int_equal(params.labels.by.len, 6);
	assert_true(params.labels.detail);
	uri_fini(&uri);
}

static void wrong_labels_have_errors_of_their_own(void **state)
{
	struct params params;
	char many[1024] = "/x?";

	(void)state;
	assert_error(read_target("/x?label=tenant", PARAMS_LABELS, &params), ERROR_BAD_REQUEST);
	assert_error(read_target("/x?label==a", PARAMS_LABELS, &params), ERROR_EMPTY_LABEL_KEY);
	assert_error(read_target("/x?label", PARAMS_LABELS, &params), ERROR_EMPTY_LABEL_KEY);
	assert_error(read_target("/x?by=", PARAMS_LABELS, &params), ERROR_EMPTY_LABEL_KEY);
	assert_error(read_target("/x?by=@x", PARAMS_LABELS, &params), ERROR_BAD_REQUEST);
	assert_error(read_target("/x?by=a&by=b", PARAMS_LABELS, &params), ERROR_BAD_REQUEST);
	assert_error(read_target("/x?detail=2", PARAMS_LABELS, &params), ERROR_BAD_REQUEST);
	assert_error(read_target("/x?detail=1%00", PARAMS_LABELS, &params), ERROR_BAD_REQUEST);
	assert_error(read_target("/x?label=a=b", PARAMS_SCAN, &params), ERROR_BAD_REQUEST);
	for (int i = 0; i < 65; i++)
		snprintf(many + strlen(many), sizeof(many) - strlen(many), "label=a=%d&", i);
	assert_error(read_target(many, PARAMS_LABELS, &params), ERROR_TOO_MANY_LABELS);
}

static void what_a_profile_takes_is_read_and_bounded(void **state)
{
	static const char *const bad[] = {
		"max_depth=0",
		"max_depth=1025",
		"max_depth=",
		"max_depth=-1",
		"max_samples=0",
		"max_samples=x",
		"max_samples=200001",
		"min_bytes=-1",
		"min_bytes=1KiB",
		"sample=all",
		"sample=",
		"labels=2",
		"by=@x",
		"min_bytes=9223372036854775808",
	};
	struct params params;

	(void)state;
	assert_success(read_target("/x/max_depth=1024?max_samples=1&min_bytes=4096&"
				   "sample=retained&labels=1&by=@module",
				   PARAMS_PROFILE, &params));
	assert_int_equal(params.max_depth, 1024);
	assert_int_equal(params.max_samples, 1);
	assert_int_equal(params.min_bytes, 4096);
	assert_true(params.retained && params.with_labels && params.labels.has_by);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		char target[128], name[32];
		struct error *err;

		snprintf(target, sizeof(target), "/x?%s", bad[i]);
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(bad[i], "="), bad[i]);
		err = read_target(target, PARAMS_PROFILE, &params);
		assert_non_null(err);
		assert_int_equal(error_code(err), ERROR_BAD_REQUEST);
		assert_memory_equal(error_message(err), name, strlen(name));
		error_free(err);
	}
}

static void what_is_asked_of_objects_is_read_and_bounded(void **state)
{
	static const char *const wrong[] = {
		"/x?limit=0",      "/x?limit=10001", "/x?top=0",
		"/x?top=many",     "/x?retained=2",  "/x?garbage=yes",
		"/x?contents=x",   "/x?object=12",   "/x?object=0x",
		"/x?object=0xg",   "/x?type=",       "/x?object=0x1000000000000000f",
		"/x?min_bytes=-1",
	};
	enum {
		ALL = PARAM_TYPE | PARAM_MIN_BYTES | PARAM_LIMIT | PARAM_CURSOR | PARAM_TOP |
		      PARAM_RETAINED | PARAM_GARBAGE | PARAM_CONTENTS | PARAM_OBJECT
	};
	struct params params;
	struct uri uri;

	(void)state;
	assert_success(read_target("/x", ALL, &params));
	assert_int_equal(params.limit, PARAMS_LIMIT_DEFAULT);
	assert_false(params.has_type || params.has_object || params.garbage || params.contents);
	assert_int_equal(params.cursor.count, 0);
	assert_null(params_scan(&params));
	assert_int_equal(params.top, 0);
	assert_success(uri_parse("/x?type=main.%E4&min_bytes=4096&limit=10000&cursor=a.1&top=20&"
				 "retained=1&garbage=1&contents=1&object=0xC000123abc",
				 &uri));
	assert_success(params_read(&uri, ALL, &params));
	assert_true(params.has_type);
	assert_int_equal(params.type.len, 6);
	assert_memory_equal(params.type.data, "main.\xe4", 6);
	assert_int_equal(params.min_bytes, 4096);
	assert_int_equal(params.limit, 10000);
	assert_int_equal(params.cursor.count, 1);
	assert_string_equal(params_scan(&params), "a");
	assert_int_equal(params.top, 20);
	assert_true(params.retained && params.garbage && params.contents && params.has_object);
	assert_true(params.object == 0xc000123abc);
	uri_fini(&uri);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_error(read_target(wrong[i], ALL, &params), ERROR_BAD_REQUEST);
}

static void what_gos_paths_take_is_read(void **state)
{
	static const char *const bad[] = { "seconds=0",    "seconds=-1", "seconds=1.5", "seconds=x",
					   "seconds=3601", "debug=3",    "debug=",      "gc=yes" };
	struct params params;

	(void)state;
	assert_success(read_target("/x?debug=2&gc=1&seconds=30", PARAMS_GO_PPROF, &params));
	assert_int_equal(params.debug, 2);
	assert_int_equal(params.over_us, 30000000);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		char target[64];

		snprintf(target, sizeof(target), "/x?%s", bad[i]);
		assert_error(read_target(target, PARAMS_GO_PPROF, &params), ERROR_BAD_REQUEST);
	}
}

static void a_census_has_no_objects(void **state)
{
	struct params params;

	(void)state;
	params_init(&params);
	assert_success(params_check_depth(&params));
	params.depth = GOHEAPD__DEPTH__DEPTH_CENSUS;
	assert_error(params_check_depth(&params), ERROR_BAD_REQUEST);
}

static void unknown_parameters_are_named(void **state)
{
	struct params params;
	struct error *err = read_target("/x?mdoe=stop", PARAM_MODE | PARAM_TIMEOUT, &params);

	(void)state;
	assert_non_null(err);
	assert_int_equal(error_code(err), ERROR_BAD_REQUEST);
	assert_string_equal(error_message(err),
			    "unknown parameter \"mdoe\"; this path takes mode, timeout");
	error_free(err);
}

static void what_a_path_does_not_take_is_unknown_to_it(void **state)
{
	struct params params;

	(void)state;
	assert_error(read_target("/x?dead=1", PARAMS_SCAN, &params), ERROR_BAD_REQUEST);
	assert_error(read_target("/x?mode=stop", PARAM_FORMAT, &params), ERROR_BAD_REQUEST);
	assert_error(read_target("/x?a=1", 0, &params), ERROR_BAD_REQUEST);
}

static void values_out_of_range_are_refused(void **state)
{
	static const char *const bad[] = {
		"mode=",
		"mode=FORK",
		"depth=deep",
		"max_age=-1",
		"max_age=3601",
		"max_age=1e3",
		"max_age=nan",
		"max_age=",
		"max_age= 1",
		"max_pause=0",
		"max_pause=61",
		"max_pause=0.0000001",
		"timeout=0",
		"timeout=600.1",
		"timeout=inf",
		"timeout=0x10",
		"timeout=1s",
		"dead=yes",
		"dead=",
		"start=yesterday",
		"start=",
		"start=2026-02-03T02:58:11",
		"start=2026-02-03T02:58:11.Z",
		"timeout=99999999999999999999999999",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		char target[128];
		struct params params;

		snprintf(target, sizeof(target), "/x?%s", bad[i]);
		assert_error(read_target(target, PARAMS_SCAN | PARAM_DEAD, &params),
			     ERROR_BAD_REQUEST);
	}
}

static void seconds_have_microseconds(void **state)
{
	uint64_t us = 7;

	(void)state;
	assert_true(quantity_seconds("12.3456789", &us));
	assert_int_equal(us, 12345678);
	assert_true(quantity_seconds("3.", &us));
	assert_int_equal(us, 3000000);
	assert_false(quantity_seconds(".5", &us));
	assert_false(quantity_seconds("18446744073709551615", &us));
	assert_int_equal(us, 3000000);
	assert_true(quantity_duration("1.5", &us));
	assert_int_equal(us, 1500000);
	assert_true(quantity_duration("30s", &us));
	assert_int_equal(us, 30000000);
	assert_true(quantity_duration("1.5m", &us));
	assert_int_equal(us, 90000000);
	assert_true(quantity_duration("2d", &us));
	assert_int_equal(us, 172800000000);
	assert_false(quantity_duration("5x", &us));
	assert_false(quantity_duration("s", &us));
	assert_false(quantity_duration("", &us));
	assert_false(quantity_duration("1h30m", &us));
	assert_false(quantity_duration("300000000000000d", &us));
}

static void times_are_rfc_3339(void **state)
{
	char text[RFC3339_SIZE];
	uint64_t ns;

	(void)state;
	assert_string_equal(rfc3339_format(0, text), "1970-01-01T00:00:00Z");
	assert_string_equal(rfc3339_format(1770087491250000000, text), "2026-02-03T02:58:11.25Z");
	assert_string_equal(rfc3339_format(1770087491000000001, text),
			    "2026-02-03T02:58:11.000000001Z");
	assert_string_equal(rfc3339_format(UINT64_MAX, text), "2554-07-21T23:34:33.709551615Z");
	assert_true(rfc3339_is_valid("2026-02-03T02:58:11.25Z"));
	assert_true(rfc3339_parse("2026-02-03T02:58:11.25Z", &ns));
	assert_int_equal(ns, 1770087491250000000);
	assert_true(rfc3339_parse("2024-02-29T00:00:00.000000001Z", &ns));
	assert_int_equal(ns, 1709164800000000001);
	assert_true(rfc3339_parse("1970-01-01T00:00:00Z", &ns));
	assert_int_equal(ns, 0);
	assert_false(rfc3339_parse("1969-12-31T23:59:59Z", &ns));
	assert_false(rfc3339_parse("2555-01-01T00:00:00Z", &ns));
	assert_false(rfc3339_parse("2026-13-03T02:58:11Z", &ns));
	assert_false(rfc3339_parse("2026-02-03T02:58:11", &ns));
	assert_false(rfc3339_is_valid("2026-02-03T02:58:11.25+01:00"));
	assert_false(rfc3339_is_valid("2026-02-03T02:58:11.1234567890Z"));
	assert_false(rfc3339_is_valid("2026-02-03"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_parameters_there_are_defaults),
		cmocka_unit_test(every_parameter_is_read),
		cmocka_unit_test(labels_are_read_from_query_and_path),
		cmocka_unit_test(wrong_labels_have_errors_of_their_own),
		cmocka_unit_test(what_a_profile_takes_is_read_and_bounded),
		cmocka_unit_test(what_is_asked_of_objects_is_read_and_bounded),
		cmocka_unit_test(what_gos_paths_take_is_read),
		cmocka_unit_test(a_census_has_no_objects),
		cmocka_unit_test(unknown_parameters_are_named),
		cmocka_unit_test(what_a_path_does_not_take_is_unknown_to_it),
		cmocka_unit_test(values_out_of_range_are_refused),
		cmocka_unit_test(seconds_have_microseconds),
		cmocka_unit_test(times_are_rfc_3339),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("params", tests, NULL, NULL);
}
