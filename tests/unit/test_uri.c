#include "daemon/uri.h"

#include "tests/support/assertions.h"

static void a_path_is_decoded_segment_by_segment(void **state)
{
	struct uri uri;

	(void)state;
	assert_success(uri_parse("/comm/a%2Fb%20c/memusage", &uri));
	assert_int_equal(uri.segment_count, 3);
	assert_string_equal(uri.segments[0], "comm");
	assert_string_equal(uri.segments[1], "a/b c");
	assert_string_equal(uri.segments[2], "memusage");
	assert_int_equal(uri.param_count, 0);
	uri_fini(&uri);
}

static void a_slash_at_the_end_changes_nothing(void **state)
{
	struct uri uri;

	(void)state;
	assert_success(uri_parse("/pid/1/", &uri));
	assert_int_equal(uri.segment_count, 2);
	uri_fini(&uri);
	assert_success(uri_parse("/", &uri));
	assert_int_equal(uri.segment_count, 0);
	uri_fini(&uri);
	assert_success(uri_parse("/pid//1", &uri));
	assert_int_equal(uri.segment_count, 3);
	assert_string_equal(uri.segments[1], "");
	uri_fini(&uri);
}

static void parameters_come_from_query_and_path(void **state)
{
	struct uri uri;

	(void)state;
	assert_success(
	    uri_parse("/pid/7/memusage/max_age=5/mode=stop?format=text&start=a%2Bb+c&&x", &uri));
	assert_int_equal(uri.segment_count, 3);
	assert_int_equal(uri.param_count, 5);
	assert_string_equal(uri_param(&uri, "max_age"), "5");
	assert_string_equal(uri_param(&uri, "mode"), "stop");
	assert_string_equal(uri_param(&uri, "format"), "text");
	assert_string_equal(uri_param(&uri, "start"), "a+b c");
	assert_string_equal(uri_param(&uri, "x"), "");
	assert_null(uri_param(&uri, "y"));
	uri_fini(&uri);
}

static void a_plus_in_the_path_stays_one(void **state)
{
	struct uri uri;

	(void)state;
	assert_success(uri_parse("/pid/7/memusage/start=a+b", &uri));
	assert_string_equal(uri_param(&uri, "start"), "a+b");
	uri_fini(&uri);
}

static void parameters_may_stand_before_the_endpoint(void **state)
{
	struct uri uri;

	(void)state;
	assert_success(uri_parse("/pid/7/mode=stop/memusage", &uri));
	assert_int_equal(uri.segment_count, 3);
	assert_string_equal(uri.segments[2], "memusage");
	assert_string_equal(uri_param(&uri, "mode"), "stop");
	uri_fini(&uri);
}

static void a_command_name_may_hold_an_equals_sign(void **state)
{
	struct uri uri;

	(void)state;
	assert_success(uri_parse("/comm/a=b/memusage", &uri));
	assert_int_equal(uri.segment_count, 3);
	assert_string_equal(uri.segments[1], "a=b");
	assert_int_equal(uri.param_count, 0);
	uri_fini(&uri);
	assert_success(uri_parse("/pids/format=text", &uri));
	assert_int_equal(uri.segment_count, 1);
	assert_string_equal(uri_param(&uri, "format"), "text");
	uri_fini(&uri);
}

static void what_a_proxy_would_get_is_understood(void **state)
{
	struct uri uri;

	(void)state;
	assert_success(uri_parse("HTTP://localhost:7070/pids?format=json", &uri));
	assert_int_equal(uri.segment_count, 1);
	assert_string_equal(uri_param(&uri, "format"), "json");
	uri_fini(&uri);
	assert_success(uri_parse("http://localhost", &uri));
	assert_int_equal(uri.segment_count, 0);
	uri_fini(&uri);
}

static void malformed_targets_are_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"*",
		"pids",
		"/a%",
		"/a%4",
		"/a%zz",
		"/a%00",
		"/p?a=1&a=2",
		"/p?a=%g0",
		"/pid/1/m/a=1?a=2",
		"/p?%61=1&a=2",
		"/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17",
		"/p?a&b&c&d&e&f&g&h&i&j&k&l&m&n&o&p&q&r&s&t&u&v&w&x&y&z&A&B&C&D&E&F&G",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct uri uri;

		assert_error(uri_parse(bad[i], &uri), ERROR_BAD_REQUEST);
		uri_fini(&uri);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_is_decoded_segment_by_segment),
		cmocka_unit_test(a_slash_at_the_end_changes_nothing),
		cmocka_unit_test(parameters_come_from_query_and_path),
		cmocka_unit_test(a_plus_in_the_path_stays_one),
		cmocka_unit_test(parameters_may_stand_before_the_endpoint),
		cmocka_unit_test(a_command_name_may_hold_an_equals_sign),
		cmocka_unit_test(what_a_proxy_would_get_is_understood),
		cmocka_unit_test(malformed_targets_are_refused),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("uri", tests, NULL, NULL);
}
