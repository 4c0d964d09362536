/*
 * The keeper's side of its connections: the plan of a decoder that may have been taken over, and
 * the waiting for everything at once, in which no peer can hold the keeper up.
 */
#include "agent/keeper_plan.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/keeper_watch.h"
#include "agent/target/process.h"
#include "agent/target/tracee.h"
#include "tests/support/assertions.h"

/* ---- the plan ---- */

enum { RANGES_MAX = 3 };

struct made_up_plan {
	Goheapd__Plan message;
	Goheapd__PcRange ranges[RANGES_MAX];
	Goheapd__PcRange *pointers[RANGES_MAX];
};

static void make_plan(struct made_up_plan *plan, const uint64_t (*ranges)[2], size_t count)
{
	goheapd__plan__init(&plan->message);
	for (size_t i = 0; i < count; i++) {
		goheapd__pc_range__init(&plan->ranges[i]);
		plan->ranges[i].start = ranges[i][0];
		plan->ranges[i].end = ranges[i][1];
		plan->pointers[i] = &plan->ranges[i];
	}
	plan->message.unwalkable = plan->pointers;
	plan->message.n_unwalkable = count;
}

static void ranges_in_order_are_taken(void **state)
{
	static const uint64_t ranges[][2] = { { 10, 20 }, { 20, 30 }, { 40, 41 } };
	struct made_up_plan message;
	struct keeper_plan plan = { 0 };

	(void)state;
	make_plan(&message, ranges, 3);
	assert_success(keeper_plan_take(&plan, &message.message));
	assert_int_equal(plan.unwalkable_count, 3);
	assert_int_equal(plan.unwalkable[1].start, 20);
	assert_int_equal(plan.unwalkable[1].end, 30);
	assert_false(plan.has_injection);
	keeper_plan_fini(&plan);
}

static void ranges_out_of_order_are_refused(void **state)
{
	static const uint64_t cases[][2][2] = {
		{ { 10, 20 }, { 19, 30 } }, /* overlapping */
		{ { 10, 20 }, { 5, 7 } },   /* backwards */
		{ { 10, 20 }, { 30, 30 } }, /* empty */
		{ { 10, 20 }, { 30, 25 } }, /* ends before it begins */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct made_up_plan message;
		struct keeper_plan plan = { 0 };

		make_plan(&message, cases[i], 2);
		assert_error(keeper_plan_take(&plan, &message.message), ERROR_FORMAT);
		keeper_plan_fini(&plan);
	}
}

static void candidates_beyond_the_room_are_left_out(void **state)
{
	uint64_t entries[INJECT_CANDIDATES + 2];
	Goheapd__Injection injection = GOHEAPD__INJECTION__INIT;
	struct inject_plan plan;

	(void)state;
	for (size_t i = 0; i < INJECT_CANDIDATES + 2; i++)
		entries[i] = 100 + i;
	injection.osyield = entries;
	injection.n_osyield = INJECT_CANDIDATES + 2;
	injection.exit = entries;
	injection.n_exit = 1;
	injection.allm = 7;
	injection.has_entry = true;
	injection.entry = 9;
	injection.g_stack_hi = 8;
	keeper_plan_injection(&injection, &plan);
	assert_int_equal(plan.osyield.entry[INJECT_CANDIDATES - 1], 100 + INJECT_CANDIDATES - 1);
	assert_int_equal(plan.exit.entry[0], 100);
	assert_int_equal(plan.exit.entry[1], 0);
	assert_int_equal(plan.sigreturn.entry[0], 0);
	assert_int_equal(plan.allm, 7);
	assert_int_equal(plan.entry, 9);
	assert_int_equal(plan.g_stack_hi, 8);
}

static void the_reason_for_no_injection_is_cut(void **state)
{
	Goheapd__Plan message = GOHEAPD__PLAN__INIT;
	struct keeper_plan plan = { 0 };
	uint8_t reason[1000];

	(void)state;
	memset(reason, 'x', sizeof(reason));
	message.has_no_injection = true;
	message.no_injection = (ProtobufCBinaryData){ sizeof(reason), reason };
	assert_success(keeper_plan_take(&plan, &message));
	assert_int_equal(strlen(plan.no_injection), sizeof(plan.no_injection) - 1);
	keeper_plan_fini(&plan);
}

/* ---- waiting ---- */

struct wait_state {
	struct keeper keeper;
	struct keeper_watch watch;
	int agent, decoder; /* the other ends */
};

static int setup_wait(void **state)
{
	struct wait_state *wait = calloc(1, sizeof(*wait));
	int sockets[2];

	assert_non_null(wait);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
	wait->keeper.agent = sockets[0];
	wait->agent = sockets[1];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
	wait->keeper.decoder = sockets[0];
	wait->decoder = sockets[1];
	fcntl(wait->keeper.decoder, F_SETFL, O_NONBLOCK);
	frame_reader_init(&wait->keeper.plans, wait->keeper.decoder, &frame_plan_event);
	frame_queue_init(&wait->keeper.to_decoder, wait->keeper.decoder, &frame_target_event,
			 LIMIT_TARGET_EVENT_BYTES);
	wait->watch = (struct keeper_watch){ .keeper = &wait->keeper,
					     .target_pidfd = -1,
					     .target_mem_fd = -1,
					     .snapshot_pidfd = -1,
					     .deadline_ns = UINT64_MAX };
	*state = wait;
	return 0;
}

static int teardown_wait(void **state)
{
	struct wait_state *wait = *state;

	frame_queue_fini(&wait->keeper.to_decoder);
	frame_reader_fini(&wait->keeper.plans);
	closep(&wait->keeper.agent);
	closep(&wait->keeper.decoder);
	closep(&wait->agent);
	closep(&wait->decoder);
	free(wait);
	return 0;
}

static void expect_wake(struct wait_state *wait, enum keeper_wake expected)
{
	struct frame frame = { 0 };
	enum keeper_wake wake;

	assert_success(keeper_wait(&wait->watch, &frame, &wake));
	assert_int_equal(wake, expected);
	frame_fini(&frame);
}

static void in_a_moment(struct wait_state *wait)
{
	wait->watch.deadline_ns = tracee_now_ns() + 20000000;
}

static void a_message_wakes(void **state)
{
	struct wait_state *wait = *state;
	Goheapd__PlanEvent event = GOHEAPD__PLAN_EVENT__INIT;
	Goheapd__Release release = GOHEAPD__RELEASE__INIT;

	event.body_case = GOHEAPD__PLAN_EVENT__BODY_RELEASE;
	event.release = &release;
	assert_success(frame_send(wait->decoder, &frame_plan_event, &event.base, NULL, 0));
	expect_wake(wait, KEEPER_MESSAGE);
}

static void an_agent_that_hangs_up_wakes(void **state)
{
	struct wait_state *wait = *state;

	assert_int_equal(shutdown(wait->agent, SHUT_WR), 0);
	expect_wake(wait, KEEPER_LET_GO);
}

static void a_decoder_that_ends_wakes(void **state)
{
	struct wait_state *wait = *state;

	closep(&wait->decoder);
	wait->decoder = -1;
	expect_wake(wait, KEEPER_LET_GO);
}

static void a_decoder_that_ends_with_messages_unread_wakes(void **state)
{
	struct wait_state *wait = *state;
	Goheapd__TargetEvent event = GOHEAPD__TARGET_EVENT__INIT;
	Goheapd__TargetStopped stopped = GOHEAPD__TARGET_STOPPED__INIT;

	event.body_case = GOHEAPD__TARGET_EVENT__BODY_STOPPED;
	event.stopped = &stopped;
	closep(&wait->decoder);
	wait->decoder = -1;
	assert_success(frame_queue_add(&wait->keeper.to_decoder, &event.base, NULL, 0));
	expect_wake(wait, KEEPER_LET_GO);
}

static void half_a_message_holds_nobody_up(void **state)
{
	struct wait_state *wait = *state;

	assert_int_equal(write(wait->decoder, "\x09\0\0\0\x0a", 5), 5);
	in_a_moment(wait);
	expect_wake(wait, KEEPER_DEADLINE);
}

static void a_decoder_that_does_not_read_holds_nobody_up(void **state)
{
	enum { LARGE = 4 << 20 };
	struct wait_state *wait = *state;
	Goheapd__TargetEvent event = GOHEAPD__TARGET_EVENT__INIT;
	Goheapd__TargetOpened opened = GOHEAPD__TARGET_OPENED__INIT;

	opened.exe.len = LARGE;
	opened.exe.data = calloc(1, LARGE);
	assert_non_null(opened.exe.data);
	event.body_case = GOHEAPD__TARGET_EVENT__BODY_OPENED;
	event.opened = &opened;
	assert_success(frame_queue_add(&wait->keeper.to_decoder, &event.base, NULL, 0));
	in_a_moment(wait);
	expect_wake(wait, KEEPER_DEADLINE);
	assert_false(frame_queue_is_empty(&wait->keeper.to_decoder));
	free(opened.exe.data);
}

static void what_is_no_message_is_an_error(void **state)
{
	struct wait_state *wait = *state;
	struct frame frame;
	enum keeper_wake wake;

	assert_int_equal(write(wait->decoder, "\x02\0\0\0\x7a\0", 6), 6);
	assert_error(keeper_wait(&wait->watch, &frame, &wake), ERROR_FORMAT);
}

static void the_end_of_the_target_is_gone(void **state)
{
	struct wait_state *wait = *state;
	struct frame frame;
	enum keeper_wake wake;
	pid_t pid = fork();

	if (pid == 0) {
		pause();
		_exit(0);
	}
	assert_success(process_open_pidfd(pid, &wait->watch.target_pidfd));
	in_a_moment(wait);
	expect_wake(wait, KEEPER_DEADLINE);
	wait->watch.deadline_ns = UINT64_MAX;
	kill(pid, SIGKILL);
	assert_error(keeper_wait(&wait->watch, &frame, &wake), ERROR_GONE);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	closep(&wait->watch.target_pidfd);
}

static void an_exec_of_the_target_is_gone(void **state)
{
	struct wait_state *wait = *state;
	struct frame frame;
	enum keeper_wake wake;
	char path[64];
	int go[2];
	pid_t pid;

	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		char byte;

		if (read(go[0], &byte, 1) == 1)
			execlp("sleep", "sleep", "100", NULL);
		_exit(1);
	}
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	wait->watch.target_mem_fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(wait->watch.target_mem_fd >= 0);
	in_a_moment(wait);
	expect_wake(wait, KEEPER_DEADLINE);
	wait->watch.deadline_ns = UINT64_MAX;
	assert_int_equal(write(go[1], "x", 1), 1);
	assert_error(keeper_wait(&wait->watch, &frame, &wake), ERROR_GONE);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	closep(&wait->watch.target_mem_fd);
	close(go[0]);
	close(go[1]);
}

static void a_snapshot_that_somebody_kills_is_an_error(void **state)
{
	struct wait_state *wait = *state;
	struct frame frame;
	enum keeper_wake wake;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	assert_success(process_open_pidfd(pid, &wait->watch.snapshot_pidfd));
	assert_error(keeper_wait(&wait->watch, &frame, &wake), ERROR_SYSTEM);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	closep(&wait->watch.snapshot_pidfd);
}

int main(void)
{
#define WAIT_TEST(test) cmocka_unit_test_setup_teardown(test, setup_wait, teardown_wait)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_in_order_are_taken),
		cmocka_unit_test(ranges_out_of_order_are_refused),
		cmocka_unit_test(candidates_beyond_the_room_are_left_out),
		cmocka_unit_test(the_reason_for_no_injection_is_cut),
		WAIT_TEST(a_message_wakes),
		WAIT_TEST(an_agent_that_hangs_up_wakes),
		WAIT_TEST(a_decoder_that_ends_wakes),
		WAIT_TEST(a_decoder_that_ends_with_messages_unread_wakes),
		WAIT_TEST(half_a_message_holds_nobody_up),
		WAIT_TEST(a_decoder_that_does_not_read_holds_nobody_up),
		WAIT_TEST(what_is_no_message_is_an_error),
		WAIT_TEST(the_end_of_the_target_is_gone),
		WAIT_TEST(an_exec_of_the_target_is_gone),
		WAIT_TEST(a_snapshot_that_somebody_kills_is_an_error),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("keeper", tests, NULL, NULL);
}
