/*
 * The session's table of requests, over a socketpair and a supervisor made up here: which request
 * may come when, which answer belongs to which, and what becomes of those that are still open.
 */
#include "agent/session.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/event.h"
#include "agent/supervise.h"
#include "proto/wire/failure.h"
#include "proto/wire/frame.h"
#include "tests/support/assertions.h"

/* ---- a supervisor whose jobs answer when the test says so ---- */

enum { JOBS_MAX = 8 };

static struct made_up_job {
	struct job job;
	bool abandoned;
} jobs[JOBS_MAX];
static unsigned job_count;
static struct error *next_refusal; /* of the next job that is to start */
static uint64_t next_retry_after_ms;

static void job_stopped(struct job *job)
{
	((struct made_up_job *)job)->abandoned = true;
}

static const struct job_ops made_up_ops = { .name = "made-up job", .stop = job_stopped };

static struct error *start(struct reply *reply, struct job **ret)
{
	struct made_up_job *made_up = &jobs[job_count];

	if (next_refusal)
		return take(next_refusal);
	assert_true(job_count < JOBS_MAX);
	*made_up = (struct made_up_job){ .job = { .ops = &made_up_ops, .reply = reply } };
	job_count++;
	*ret = &made_up->job;
	return NULL;
}

struct error *supervise_list(struct supervisor *supervisor, struct reply *reply, struct job **ret)
{
	(void)supervisor;
	return start(reply, ret);
}

struct error *supervise_overview(struct supervisor *supervisor, const Goheapd__Overview *request,
				 struct reply *reply, struct job **ret)
{
	(void)supervisor;
	(void)request;
	return start(reply, ret);
}

struct error *supervise_scan(struct supervisor *supervisor, const Goheapd__Scan *request,
			     struct reply *reply, struct job **ret, uint64_t *ret_retry_after_ms)
{
	(void)supervisor;
	(void)request;
	*ret_retry_after_ms = next_retry_after_ms;
	return start(reply, ret);
}

struct error *supervise_ask(struct supervisor *supervisor, const Goheapd__Ask *request,
			    struct reply *reply, struct job **ret)
{
	(void)supervisor;
	(void)request;
	return start(reply, ret);
}

struct error *supervise_change_kept(struct supervisor *supervisor, const void *asker,
				    const Goheapd__Ask *request)
{
	(void)supervisor;
	assert_non_null(asker);
	return request->drop ? NULL : error_new(ERROR_NOT_FOUND, "it is kept no more");
}

struct error *supervise_list_kept(struct supervisor *supervisor, const void *asker,
				  Goheapd__KeptScans **ret)
{
	Goheapd__KeptScans *list = malloc(sizeof(*list));

	(void)supervisor;
	assert_non_null(asker);
	assert_non_null(list);
	goheapd__kept_scans__init(list);
	*ret = list;
	return NULL;
}

static unsigned forgotten; /* sessions that have gone */

void supervise_forget(struct supervisor *supervisor, const void *asker)
{
	(void)supervisor;
	assert_non_null(asker);
	forgotten++;
}

struct error *supervise_look(struct supervisor *supervisor, pid_t pid, Goheapd__Process **ret)
{
	Goheapd__Process *process = malloc(sizeof(*process));

	(void)supervisor;
	assert_non_null(process);
	goheapd__process__init(process);
	process->access = malloc(sizeof(*process->access));
	assert_non_null(process->access);
	goheapd__access__init(process->access);
	process->pid = (uint32_t)pid;
	*ret = process;
	return NULL;
}

static void answer_list(unsigned index)
{
	Goheapd__Answer answer = GOHEAPD__ANSWER__INIT;
	Goheapd__ProcessList list = GOHEAPD__PROCESS_LIST__INIT;

	answer.body_case = GOHEAPD__ANSWER__BODY_PROCESS_LIST;
	answer.process_list = &list;
	job_answer(&jobs[index].job, &answer);
}

/* ---- the other end ---- */

struct other_end {
	struct event_loop loop;
	struct supervisor supervisor;
	int socket;
	unsigned ended;
};

static void session_ended(void *arg)
{
	struct other_end *end = arg;

	end->ended++;
}

static int setup(void **state)
{
	struct other_end *end = calloc(1, sizeof(*end));
	int sockets[2];

	assert_non_null(end);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
	assert_success(event_loop_init(&end->loop));
	end->supervisor.loop = &end->loop;
	end->socket = sockets[0];
	job_count = 0;
	next_retry_after_ms = 0;
	assert_success(session_start(&end->supervisor, sockets[1], session_ended, end));
	*state = end;
	return 0;
}

static int teardown(void **state)
{
	struct other_end *end = *state;

	session_end_all(&end->supervisor);
	event_loop_fini(&end->loop);
	closep(&end->socket);
	free(end);
	return 0;
}

/* Lets the session take in whatever has been sent to it. */
static void run_session(struct other_end *end)
{
	struct epoll_event event;

	while (epoll_wait(end->loop.epoll_fd, &event, 1, 0) == 1) {
		struct event_source *source = event.data.ptr;

		source->ready(source, event.events);
	}
}

static void send_request(struct other_end *end, const Goheapd__Request *request)
{
	assert_success(frame_send(end->socket, &frame_request, &request->base, NULL, 0));
	run_session(end);
}

static void send_hello(struct other_end *end, uint32_t protocol)
{
	Goheapd__Request request = GOHEAPD__REQUEST__INIT;
	Goheapd__Hello hello = GOHEAPD__HELLO__INIT;

	hello.protocol = protocol;
	request.body_case = GOHEAPD__REQUEST__BODY_HELLO;
	request.hello = &hello;
	send_request(end, &request);
}

static void send_list(struct other_end *end, uint32_t id)
{
	Goheapd__Request request = GOHEAPD__REQUEST__INIT;
	Goheapd__ListProcesses list = GOHEAPD__LIST_PROCESSES__INIT;

	request.id = id;
	request.body_case = GOHEAPD__REQUEST__BODY_LIST_PROCESSES;
	request.list_processes = &list;
	send_request(end, &request);
}

static void send_cancel(struct other_end *end, uint32_t id)
{
	Goheapd__Request request = GOHEAPD__REQUEST__INIT;
	Goheapd__Cancel cancel = GOHEAPD__CANCEL__INIT;

	cancel.request = id;
	request.id = 99;
	request.body_case = GOHEAPD__REQUEST__BODY_CANCEL;
	request.cancel = &cancel;
	send_request(end, &request);
}

/* A question to a kept scan, or with drop or keep_ms what becomes of it. */
static void send_ask(struct other_end *end, uint32_t id, bool drop, uint64_t keep_ms)
{
	Goheapd__Request request = GOHEAPD__REQUEST__INIT;
	Goheapd__Analysis analysis = GOHEAPD__ANALYSIS__INIT;
	Goheapd__Ask ask = GOHEAPD__ASK__INIT;

	ask.id.data = (uint8_t *)(uintptr_t) "kept";
	ask.id.len = strlen("kept");
	ask.analysis = &analysis;
	ask.has_drop = ask.drop = drop;
	ask.has_keep_ms = keep_ms != 0;
	ask.keep_ms = keep_ms;
	request.id = id;
	request.body_case = GOHEAPD__REQUEST__BODY_ASK;
	request.ask = &ask;
	send_request(end, &request);
}

static void send_list_kept(struct other_end *end, uint32_t id)
{
	Goheapd__Request request = GOHEAPD__REQUEST__INIT;
	Goheapd__ListKept list = GOHEAPD__LIST_KEPT__INIT;

	request.id = id;
	request.body_case = GOHEAPD__REQUEST__BODY_LIST_KEPT;
	request.list_kept = &list;
	send_request(end, &request);
}

/* The next answer, which the caller frees; it must be there. */
static Goheapd__Answer *receive(struct other_end *end)
{
	struct frame_reader reader;
	struct frame frame;
	enum frame_state state;

	frame_reader_init(&reader, end->socket, &frame_answer);
	assert_success(frame_read(&reader, &frame, &state));
	frame_reader_fini(&reader);
	assert_int_equal(state, FRAME_COMPLETE);
	return (Goheapd__Answer *)frame.message;
}

static void expect_answer(struct other_end *end, uint32_t id, Goheapd__Answer__BodyCase body)
{
	Goheapd__Answer *answer = receive(end);

	assert_int_equal(answer->id, id);
	assert_int_equal(answer->body_case, body);
	goheapd__answer__free_unpacked(answer, NULL);
}

static void expect_failure(struct other_end *end, uint32_t id, Goheapd__FailureCode code,
			   uint64_t retry_after_ms)
{
	Goheapd__Answer *answer = receive(end);

	assert_int_equal(answer->id, id);
	assert_int_equal(answer->body_case, GOHEAPD__ANSWER__BODY_FAILURE);
	assert_int_equal(answer->failure->code, code);
	assert_int_equal(answer->failure->retry_after_ms, retry_after_ms);
	goheapd__answer__free_unpacked(answer, NULL);
}

static void greet(struct other_end *end)
{
	send_hello(end, WIRE_PROTOCOL);
	expect_answer(end, 0, GOHEAPD__ANSWER__BODY_HELLO);
}

/* ---- tests ---- */

static void a_session_begins_with_hello(void **state)
{
	struct other_end *end = *state;

	send_list(end, 1);
	assert_int_equal(end->ended, 1);
	assert_int_equal(job_count, 0);
}

static void hello_comes_once(void **state)
{
	struct other_end *end = *state;

	greet(end);
	assert_int_equal(end->ended, 0);
	send_hello(end, WIRE_PROTOCOL);
	assert_int_equal(end->ended, 1);
}

static void another_protocol_ends_the_session(void **state)
{
	struct other_end *end = *state;

	send_hello(end, WIRE_PROTOCOL + 1);
	assert_int_equal(end->ended, 1);
}

static void a_request_without_a_body_ends_the_session(void **state)
{
	struct other_end *end = *state;
	Goheapd__Request request = GOHEAPD__REQUEST__INIT;

	greet(end);
	send_request(end, &request);
	assert_int_equal(end->ended, 1);
}

static void answers_carry_the_id_of_their_request(void **state)
{
	struct other_end *end = *state;

	greet(end);
	send_list(end, 7);
	send_list(end, 5);
	assert_int_equal(job_count, 2);
	answer_list(1);
	answer_list(0);
	expect_answer(end, 5, GOHEAPD__ANSWER__BODY_PROCESS_LIST);
	expect_answer(end, 7, GOHEAPD__ANSWER__BODY_PROCESS_LIST);
	assert_int_equal(end->ended, 0);
}

static void an_id_that_is_open_ends_the_session(void **state)
{
	struct other_end *end = *state;

	greet(end);
	send_list(end, 7);
	send_list(end, 7);
	assert_int_equal(end->ended, 1);
	assert_true(jobs[0].abandoned);
}

static void an_id_may_come_again_after_its_answer(void **state)
{
	struct other_end *end = *state;

	greet(end);
	send_list(end, 7);
	answer_list(0);
	expect_answer(end, 7, GOHEAPD__ANSWER__BODY_PROCESS_LIST);
	send_list(end, 7);
	answer_list(1);
	expect_answer(end, 7, GOHEAPD__ANSWER__BODY_PROCESS_LIST);
}

static void a_refusal_is_answered_and_the_session_goes_on(void **state)
{
	struct other_end *end = *state;

	greet(end);
	next_refusal = error_new(ERROR_NO_PROCESS, "there is none");
	send_list(end, 3);
	expect_failure(end, 3, GOHEAPD__FAILURE_CODE__FAILURE_NO_SUCH_PROCESS, 0);
	send_list(end, 3);
	assert_int_equal(job_count, 1);
	assert_int_equal(end->ended, 0);
}

static void a_busy_agent_says_when_to_come_again(void **state)
{
	struct other_end *end = *state;
	Goheapd__Request request = GOHEAPD__REQUEST__INIT;
	Goheapd__Scan scan = GOHEAPD__SCAN__INIT;

	greet(end);
	next_refusal = error_new(ERROR_BUSY, "too early");
	next_retry_after_ms = 1234;
	request.id = 4;
	request.body_case = GOHEAPD__REQUEST__BODY_SCAN;
	request.scan = &scan;
	send_request(end, &request);
	expect_failure(end, 4, GOHEAPD__FAILURE_CODE__FAILURE_BUSY, 1234);
}

static void a_cancelled_request_is_abandoned_and_answered(void **state)
{
	struct other_end *end = *state;

	greet(end);
	send_list(end, 8);
	send_cancel(end, 8);
	assert_true(jobs[0].abandoned);
	assert_null(jobs[0].job.reply);
	expect_failure(end, 8, GOHEAPD__FAILURE_CODE__FAILURE_TIMEOUT, 0);
	/* what was answered meanwhile may be cancelled, too */
	send_cancel(end, 8);
	assert_int_equal(end->ended, 0);
}

static void an_asker_that_goes_away_abandons_its_requests(void **state)
{
	struct other_end *end = *state;

	greet(end);
	send_list(end, 1);
	send_list(end, 2);
	answer_list(0);
	closep(&end->socket);
	end->socket = -1;
	run_session(end);
	assert_int_equal(end->ended, 1);
	assert_false(jobs[0].abandoned);
	assert_true(jobs[1].abandoned);
}

static void a_look_is_answered_at_once(void **state)
{
	struct other_end *end = *state;
	Goheapd__Request request = GOHEAPD__REQUEST__INIT;
	Goheapd__LookProcess look = GOHEAPD__LOOK_PROCESS__INIT;
	Goheapd__Answer *answer;

	greet(end);
	look.pid = 4711;
	request.id = 6;
	request.body_case = GOHEAPD__REQUEST__BODY_LOOK_PROCESS;
	request.look_process = &look;
	send_request(end, &request);
	answer = receive(end);
	assert_int_equal(answer->id, 6);
	assert_int_equal(answer->process->pid, 4711);
	goheapd__answer__free_unpacked(answer, NULL);
}

static void questions_wait_and_changes_do_not(void **state)
{
	struct other_end *end = *state;

	greet(end);
	send_ask(end, 1, false, 0);
	send_list_kept(end, 2);
	send_ask(end, 3, true, 0);
	send_ask(end, 4, false, 1000);
	run_session(end);
	expect_answer(end, 2, GOHEAPD__ANSWER__BODY_KEPT_SCANS);
	expect_answer(end, 3, GOHEAPD__ANSWER__BODY_KEPT_SCANS);
	expect_failure(end, 4, GOHEAPD__FAILURE_CODE__FAILURE_NOT_FOUND, 0);
	assert_int_equal(job_count, 1);
	assert_non_null(jobs[0].job.reply->asker);
	send_cancel(end, 1);
	run_session(end);
	expect_failure(end, 1, GOHEAPD__FAILURE_CODE__FAILURE_TIMEOUT, 0);
	assert_true(jobs[0].abandoned);
}

static void what_a_session_keeps_goes_with_it(void **state)
{
	struct other_end *end = *state;
	unsigned before = forgotten;

	greet(end);
	close(end->socket);
	end->socket = -1;
	run_session(end);
	assert_int_equal(end->ended, 1);
	assert_int_equal(forgotten, before + 1);
}

static void too_many_open_requests_end_the_session(void **state)
{
	struct other_end *end = *state;

	greet(end);
	for (uint32_t id = 0; id < LIMIT_OPEN_REQUESTS; id++) {
		/* all of them in one made-up job's place: only their number is asked for */
		job_count = 0;
		send_list(end, id);
	}
	assert_int_equal(end->ended, 0);
	job_count = 0;
	send_list(end, LIMIT_OPEN_REQUESTS);
	assert_int_equal(end->ended, 1);
}

int main(void)
{
#define SESSION_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		SESSION_TEST(a_session_begins_with_hello),
		SESSION_TEST(hello_comes_once),
		SESSION_TEST(another_protocol_ends_the_session),
		SESSION_TEST(a_request_without_a_body_ends_the_session),
		SESSION_TEST(answers_carry_the_id_of_their_request),
		SESSION_TEST(an_id_that_is_open_ends_the_session),
		SESSION_TEST(an_id_may_come_again_after_its_answer),
		SESSION_TEST(a_refusal_is_answered_and_the_session_goes_on),
		SESSION_TEST(a_busy_agent_says_when_to_come_again),
		SESSION_TEST(a_cancelled_request_is_abandoned_and_answered),
		SESSION_TEST(an_asker_that_goes_away_abandons_its_requests),
		SESSION_TEST(a_look_is_answered_at_once),
		SESSION_TEST(questions_wait_and_changes_do_not),
		SESSION_TEST(what_a_session_keeps_goes_with_it),
		SESSION_TEST(too_many_open_requests_end_the_session),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("session", tests, NULL, NULL);
}
