#include "daemon/route.h"

#include "daemon/answer.h"
#include "daemon/answer_objects.h"
#include "daemon/answer_profile.h"
#include "daemon/exchange.h"
#include "tests/support/assertions.h"

static const struct route *find(const char *target, const char **ret_absence, bool *ret_for_pprof)
{
	const struct route *route;
	struct uri uri;

	assert_success(uri_parse(target, &uri));
	route = route_find(&uri);
	*ret_absence = route_absence(&uri);
	*ret_for_pprof = route_is_for_pprof(&uri);
	uri_fini(&uri);
	return route;
}

static void paths_lead_to_their_handlers(void **state)
{
	static const struct {
		const char *target;
		struct error *(*answer)(struct exchange *exchange);
	} cases[] = {
		{ "/healthz", answer_healthz },
		{ "/readyz/", answer_readyz },
		{ "/pids", answer_pids },
		{ "/pids/format=text", answer_pids },
		{ "/pid/1", answer_overview },
		{ "/pid/1/memusage/mode=stop/max_age=5", answer_memusage },
		{ "/comm/some%20name/memusage", answer_memusage },
		{ "/comm/name", answer_overview },
		{ "/pid/1/goroutines", answer_goroutines },
		{ "/pid/1/mappings?format=json", answer_mappings },
		{ "/comm/x/histogram/top=5", answer_histogram },
		{ "/pid/1/objects?type=main.T", answer_objects },
		{ "/pid/1/object/0xc000123000?contents=1", answer_object },
		{ "/pid/1/dominators/object=0xc000", answer_dominators },
		{ "/pid/1/profile/max_depth=10", answer_profile },
		{ "/comm/x/debug/pprof/", answer_pprof_index },
		{ "/pid/1/debug/pprof/heap/seconds=5", answer_pprof_heap },
		{ "/pid/1/debug/pprof/goroutine?debug=2", answer_pprof_goroutine },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const char *absence;
		bool for_pprof;
		const struct route *route = find(cases[i].target, &absence, &for_pprof);

		assert_non_null(route);
		assert_ptr_equal(route->answer, cases[i].answer);
		assert_int_equal(for_pprof, strstr(cases[i].target, "pprof") ||
						strstr(cases[i].target, "profile"));
	}
}

static void other_paths_lead_nowhere(void **state)
{
	static const char *const targets[] = {
		"/pid",      "/pid/",           "/comm",   "/pid//memusage", "/pid/1/memusage/x",
		"/memusage", "/healthz/x",      "/pidx/1", "/pid/1/x",       "/comm/pids",
		"/Pids",     "/pid/1/Memusage",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(targets) / sizeof(*targets); i++) {
		const char *absence;
		bool for_pprof;
		const struct route *route = find(targets[i], &absence, &for_pprof);

		if (strcmp(targets[i], "/comm/pids") == 0)
			assert_ptr_equal(route->answer, answer_overview);
		else
			assert_null(route);
	}
}

static void planned_paths_say_so(void **state)
{
	static const char *const planned[] = {
		"/", "/metrics", "/sd", "/history?exe=x", "/pid/1/core",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(planned) / sizeof(*planned); i++) {
		const char *absence;
		bool for_pprof;

		assert_null(find(planned[i], &absence, &for_pprof));
		assert_non_null(strstr(absence, "not available in this version"));
	}
}

static void gos_other_profiles_are_not_ours(void **state)
{
	static const char *const targets[] = {
		"/pid/1/debug/pprof/allocs",   "/pid/1/debug/pprof/profile",
		"/comm/x/debug/pprof/cmdline", "/pid/1/debug/pprof/heap/x",
		"/debug/pprof/heap",           "/debug/pprof/",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(targets) / sizeof(*targets); i++) {
		const char *absence;
		bool for_pprof;

		assert_null(find(targets[i], &absence, &for_pprof));
		assert_true(for_pprof);
		assert_null(strstr(absence, "not available in this version"));
		assert_non_null(strstr(absence, "heap"));
	}
}

static void errors_for_pprof_are_told_apart(void **state)
{
	static const char *const targets[] = {
		"/debug/pprof/profile",         "/debug/pprof",
		"/pid/1/debug/pprof/heap",      "/comm/x/profile",
		"/pid/1/memusage?format=pprof",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(targets) / sizeof(*targets); i++) {
		const char *absence;
		bool for_pprof;

		(void)find(targets[i], &absence, &for_pprof);
		assert_true(for_pprof);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_lead_to_their_handlers),
		cmocka_unit_test(other_paths_lead_nowhere),
		cmocka_unit_test(planned_paths_say_so),
		cmocka_unit_test(gos_other_profiles_are_not_ours),
		cmocka_unit_test(errors_for_pprof_are_told_apart),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("route", tests, NULL, NULL);
}
