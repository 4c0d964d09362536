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
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct uri uri;

		assert_error(uri_parse(bad[i], &uri), ERROR_BAD_REQUEST);
		uri_fini(&uri);
	}
}

/* A target with count parameters, each with a name of its own or all called label. */
static struct error *parse_many(unsigned count, bool labels)
{
	static char target[4096];
	size_t used = (size_t)snprintf(target, sizeof(target), "/p?");
	struct uri uri;
	struct error *err;

	for (unsigned i = 0; i < count; i++)
		used += (size_t)snprintf(target + used, sizeof(target) - used,
					 labels ? "label=a=%u&" : "p%u=1&", i);
	assert_true(used < sizeof(target));
	err = uri_parse(target, &uri);
	if (!err)
		assert_int_equal(uri.param_count, count);
	uri_fini(&uri);
	return err;
}

static void only_labels_may_be_many(void **state)
{
	struct uri uri;

	(void)state;
	assert_success(parse_many(URI_PARAMS_MAX, false));
	assert_error(parse_many(URI_PARAMS_MAX + 1, false), ERROR_BAD_REQUEST);
	assert_success(parse_many(URI_PARAMS_MAX, true));
	assert_error(parse_many(URI_PARAMS_MAX + 1, true), ERROR_TOO_MANY_LABELS);
	assert_success(uri_parse("/pid/1/label=a=b/m?label=a=b&label=%00", &uri));
	assert_int_equal(uri.param_count, 3);
	assert_int_equal(uri.params[2].value_size, 1);
	uri_fini(&uri);
}

static void labels_do_not_reach_the_log(void **state)
{
	static const struct {
		const char *target, *quiet;
	} cases[] = {
		{ "/pid/1/memusage?label=a=b&mode=stop", "/pid/1/memusage?label=&mode=stop" },
		{ "/pid/1/label=a=b%2Fc/memusage/mode=stop", "/pid/1/label=/memusage/mode=stop" },
		{ "/x?%6Cabel=secret&label=&label", "/x?%6Cabel=&label=&label" },
		{ "/x?%6label=secret", "/x?%6label=" },
		{ "/x?labels=a&alabel=b", "/x?labels=a&alabel=b" },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *quiet;

		assert_success(uri_without_labels(cases[i].target, &quiet));
		assert_string_equal(quiet, cases[i].quiet);
		free(quiet);
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
		cmocka_unit_test(only_labels_may_be_many),
		cmocka_unit_test(labels_do_not_reach_the_log),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("uri", tests, NULL, NULL);
}
