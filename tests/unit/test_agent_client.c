/*
 * The connection to an agent and the sharing of scans, with the fake agent of tests/support as a
 * real process at the other end.
 */
#include "daemon/agent_client.h"

#include <pthread.h>
#include <sys/socket.h>

#include "daemon/agent_process.h"
#include "daemon/clock.h"
#include "daemon/process.h"
#include "daemon/scan_cache.h"
#include "proto/base/log.h"
#include "tests/support/assertions.h"
#include "tests/support/canned.h"

enum { PID_WAITS = 4290, PID_DIES = 4291, PID_SLOW = 4292, PID_NO_SUCH = 4000, SECOND = 1000000 };

static char program[512];
static const struct agent_spec spec = { .program = program };

static struct agent_client *connect_agent(void)
{
	const char *folder = getenv("abs_top_builddir");
	struct agent_source *source = NULL;
	struct agent_client *client = NULL;

	snprintf(program, sizeof(program), "%s/tests/support/fake_agent", folder ? folder : ".");
	assert_success(agent_source_process(&spec, &source));
	assert_success(agent_client_new(source, &client));
	assert_success(agent_client_wait_ready(client, 10 * SECOND));
	return client;
}

static struct patience patience_of(uint64_t us)
{
	return (struct patience){ .deadline_us = clock_now_us() + us, .client = -1, .stop = -1 };
}

/* ---- the client ---- */

static void questions_are_answered(void **state)
{
	struct agent_client *client = connect_agent();
	struct patience patience = patience_of(10 * SECOND);
	Goheapd__Answer *answer = NULL;

	(void)state;
	assert_true(agent_client_is_ready(client));
	assert_success(process_look(client, CANNED_PID, &patience, &answer));
	assert_int_equal(answer->process->start_ticks, CANNED_TICKS);
	goheapd__answer__free_unpacked(answer, NULL);
	assert_error(process_look(client, PID_NO_SUCH, &patience, &answer), ERROR_NO_PROCESS);
	agent_client_free(client);
}

static void a_call_ends_with_its_patience(void **state)
{
	const struct scan_question question = { .pid = PID_WAITS, .path = "/test" };
	struct agent_client *client = connect_agent();
	struct patience patience = patience_of(SECOND / 20);
	Goheapd__Answer *answer = NULL;

	(void)state;
	assert_error(scan_ask(client, &question, &patience, 0, &answer, NULL), ERROR_TIMEOUT);
	/* the connection is still good */
	patience = patience_of(10 * SECOND);
	assert_success(process_look(client, CANNED_PID, &patience, &answer));
	goheapd__answer__free_unpacked(answer, NULL);
	agent_client_free(client);
}

static void a_call_ends_when_its_client_leaves(void **state)
{
	const struct scan_question question = { .pid = PID_WAITS, .path = "/test" };
	struct agent_client *client = connect_agent();
	struct patience patience = patience_of(60 * SECOND);
	Goheapd__Answer *answer = NULL;
	int ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	close(ends[1]);
	patience.client = ends[0];
	assert_error(scan_ask(client, &question, &patience, 10 * SECOND, &answer, NULL),
		     ERROR_TIMEOUT);
	close(ends[0]);
	agent_client_free(client);
}

static void an_agent_that_dies_is_replaced(void **state)
{
	const struct scan_question question = { .pid = PID_DIES, .path = "/test" };
	struct agent_client *client = connect_agent();
	struct patience patience = patience_of(10 * SECOND);
	Goheapd__Answer *answer = NULL;

	(void)state;
	assert_error(scan_ask(client, &question, &patience, 0, &answer, NULL),
		     ERROR_AGENT_UNAVAILABLE);
	assert_success(agent_client_wait_ready(client, 10 * SECOND));
	assert_success(process_look(client, CANNED_PID, &patience, &answer));
	goheapd__answer__free_unpacked(answer, NULL);
	agent_client_free(client);
}

static void without_an_agent_calls_fail_at_once(void **state)
{
	struct agent_source *source = NULL;
	struct agent_client *client = NULL;
	struct patience patience = patience_of(60 * SECOND);
	Goheapd__Answer *answer = NULL;

	(void)state;
	assert_success(agent_source_socket("/nowhere/agent.sock", &source));
	assert_success(agent_client_new(source, &client));
	assert_error(agent_client_wait_ready(client, SECOND / 20), ERROR_AGENT_UNAVAILABLE);
	assert_error(process_look(client, CANNED_PID, &patience, &answer), ERROR_AGENT_UNAVAILABLE);
	agent_client_free(client);
}

struct waiting_call {
	struct agent_client *client;
	enum error_code code;
};

static void *call_and_wait(void *arg)
{
	const struct scan_question question = { .pid = PID_WAITS, .path = "/test" };
	struct waiting_call *call = arg;
	struct patience patience = patience_of(60 * SECOND);
	Goheapd__Answer *answer = NULL;
	struct error *err = scan_ask(call->client, &question, &patience, 0, &answer, NULL);

	call->code = err ? error_code(err) : 0;
	error_free(err);
	return NULL;
}

static void shutting_down_ends_every_call(void **state)
{
	struct waiting_call call = { .client = connect_agent() };
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, call_and_wait, &call), 0);
	usleep(SECOND / 20); /* whether the call is open by then or not, it must end */
	agent_client_shut_down(call.client);
	pthread_join(thread, NULL);
	assert_int_equal(call.code, ERROR_AGENT_UNAVAILABLE);
	agent_client_free(call.client);
}

/* ---- the cache ---- */

struct fixture {
	struct agent_client *client;
	struct scan_cache *cache;
};

static struct fixture make_cache(uint64_t interval_us, unsigned max_scans)
{
	const struct scan_limits limits = { .min_interval_us = interval_us,
					    .max_scans = max_scans };
	struct fixture fixture = { .client = connect_agent() };

	assert_success(scan_cache_new(fixture.client, NULL, &limits, &fixture.cache));
	return fixture;
}

static void end_cache(struct fixture *fixture)
{
	agent_client_shut_down(fixture->client);
	scan_cache_free(fixture->cache);
	agent_client_free(fixture->client);
}

/* One request in a thread of its own. */
struct getter {
	struct fixture *fixture;
	struct params params;
	uint32_t pid;
	uint64_t patience_us;
	pthread_t thread;

	struct error *err;
	char id[SCAN_ID_SIZE];
	bool cached;
	uint64_t retry_after_ms;
};

static void *get_scan(void *arg)
{
	struct getter *getter = arg;
	Goheapd__Process process = GOHEAPD__PROCESS__INIT; /* the canned one is no thread's own */
	const struct scan_request request = { .process = &process,
					      .params = &getter->params,
					      .parts = SCAN_MEMORY,
					      .path = "/test" };
	struct patience patience = patience_of(getter->patience_us);
	struct scan *scan = NULL;

	process.pid = getter->pid;
	process.start_ticks = CANNED_TICKS;
	getter->err = scan_cache_get(getter->fixture->cache, &request, &patience, &scan,
				     &getter->cached, &getter->retry_after_ms);
	if (!getter->err)
		strcpy(getter->id, scan->id);
	scan_release(scan);
	return NULL;
}

static struct getter make_getter(struct fixture *fixture, uint32_t pid)
{
	struct getter getter = { .fixture = fixture, .pid = pid, .patience_us = 20 * SECOND };

	params_init(&getter.params);
	return getter;
}

static void start(struct getter *getter)
{
	assert_int_equal(pthread_create(&getter->thread, NULL, get_scan, getter), 0);
}

static void requests_for_the_same_share_one_scan(void **state)
{
	struct fixture fixture = make_cache(0, 4);
	struct getter first = make_getter(&fixture, PID_SLOW), second = first;

	(void)state;
	start(&first);
	start(&second);
	pthread_join(first.thread, NULL);
	pthread_join(second.thread, NULL);
	assert_success(first.err);
	assert_success(second.err);
	assert_string_equal(first.id, second.id);
	assert_false(first.cached);
	assert_false(second.cached);
	end_cache(&fixture);
}

static void other_parameters_wait_for_their_turn(void **state)
{
	struct fixture fixture = make_cache(0, 1);
	struct getter first = make_getter(&fixture, PID_SLOW), second = first;

	(void)state;
	second.params.depth = GOHEAPD__DEPTH__DEPTH_CENSUS;
	start(&first);
	start(&second);
	pthread_join(first.thread, NULL);
	pthread_join(second.thread, NULL);
	assert_success(first.err);
	assert_success(second.err); /* a second scan at once would have been one too many */
	assert_string_not_equal(first.id, second.id);
	end_cache(&fixture);
}

static void too_many_targets_at_once_are_busy(void **state)
{
	struct fixture fixture = make_cache(0, 1);
	struct getter first = make_getter(&fixture, PID_WAITS);
	struct getter second = make_getter(&fixture, CANNED_PID);

	(void)state;
	first.patience_us = SECOND;
	start(&first);
	usleep(SECOND / 5);
	get_scan(&second);
	assert_error(second.err, ERROR_BUSY);
	assert_int_equal(second.retry_after_ms, 1000);
	pthread_join(first.thread, NULL);
	assert_error(first.err, ERROR_TIMEOUT);
	end_cache(&fixture);
}

static void a_kept_scan_answers_max_age(void **state)
{
	struct fixture fixture = make_cache(0, 4);
	struct getter first = make_getter(&fixture, CANNED_PID), second = first, third = first;

	(void)state;
	second.params.max_age_us = 60 * (uint64_t)SECOND;
	get_scan(&first);
	get_scan(&second);
	get_scan(&third);
	assert_success(first.err);
	assert_success(second.err);
	assert_success(third.err);
	assert_true(second.cached);
	assert_string_equal(first.id, second.id);
	assert_false(third.cached);
	assert_string_not_equal(first.id, third.id);
	end_cache(&fixture);
}

static void a_target_rests_between_two_scans(void **state)
{
	struct fixture fixture = make_cache(SECOND / 2, 4);
	struct getter first = make_getter(&fixture, CANNED_PID), second = first, third = first;
	uint64_t landed_us, waited_us;

	(void)state;
	get_scan(&first);
	landed_us = clock_now_us();
	assert_success(first.err);
	second.patience_us = SECOND / 10;
	get_scan(&second);
	assert_error(second.err, ERROR_BUSY);
	assert_in_range(second.retry_after_ms, 1, 500);
	get_scan(&third);
	waited_us = clock_now_us() - landed_us;
	assert_success(third.err);
	assert_true(waited_us >= SECOND / 2 - SECOND / 20); /* the rest began before landed_us */
	end_cache(&fixture);
}

static void a_scan_that_nobody_waits_for_is_cancelled(void **state)
{
	struct fixture fixture = make_cache(0, 1);
	struct getter first = make_getter(&fixture, PID_WAITS);
	struct getter second = make_getter(&fixture, CANNED_PID);

	(void)state;
	first.patience_us = SECOND / 10;
	get_scan(&first);
	assert_error(first.err, ERROR_TIMEOUT);
	/* the fake agent ends it only when told to, and until then there is no room */
	for (int i = 0; i < 100; i++) {
		get_scan(&second);
		if (!second.err || error_code(second.err) != ERROR_BUSY)
			break;
		error_free(second.err);
		usleep(SECOND / 20);
	}
	assert_success(second.err);
	end_cache(&fixture);
}

static void failures_reach_everybody(void **state)
{
	struct fixture fixture = make_cache(0, 4);
	struct getter getter =
	    make_getter(&fixture, 4250 + GOHEAPD__FAILURE_CODE__FAILURE_ALREADY_TRACED);
	struct getter busy = make_getter(&fixture, 4250 + GOHEAPD__FAILURE_CODE__FAILURE_BUSY);

	(void)state;
	get_scan(&getter);
	assert_error(getter.err, ERROR_ALREADY_TRACED);
	get_scan(&busy);
	assert_error(busy.err, ERROR_BUSY);
	assert_int_equal(busy.retry_after_ms, 2500);
	end_cache(&fixture);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(questions_are_answered),
		cmocka_unit_test(a_call_ends_with_its_patience),
		cmocka_unit_test(a_call_ends_when_its_client_leaves),
		cmocka_unit_test(an_agent_that_dies_is_replaced),
		cmocka_unit_test(without_an_agent_calls_fail_at_once),
		cmocka_unit_test(shutting_down_ends_every_call),
		cmocka_unit_test(requests_for_the_same_share_one_scan),
		cmocka_unit_test(other_parameters_wait_for_their_turn),
		cmocka_unit_test(too_many_targets_at_once_are_busy),
		cmocka_unit_test(a_kept_scan_answers_max_age),
		cmocka_unit_test(a_target_rests_between_two_scans),
		cmocka_unit_test(a_scan_that_nobody_waits_for_is_cancelled),
		cmocka_unit_test(failures_reach_everybody),
	};

	log_set_level(LOG_LEVEL_ERROR);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("agent client", tests, NULL, NULL);
}
