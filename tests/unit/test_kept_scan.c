/*
 * Kept scans with decoders of the test's own: this program, started anew in that role, does what
 * the limit of the question says. Who may ask, how they go, and what becomes of decoders that
 * misbehave.
 */
#include "agent/kept_scan.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/child.h"
#include "agent/helper.h"
#include "proto/wire/frame.h"
#include "tests/support/assertions.h"
#include "tests/support/tree.h"

enum { TARGET = 4242, ANSWER_MAX_MS = 300, LOOK_MS = 20 };

/* What a question has the decoder do. */
enum behaviour {
	BEHAVE_ANSWER = 1,
	BEHAVE_FAIL,
	BEHAVE_DIE,
	BEHAVE_HANG,
	BEHAVE_OTHER_PROCESS, /* it speaks of another target */
	BEHAVE_TWICE,         /* it says more than it was asked */
	BEHAVE_INDEX,         /* what belongs to a scan that runs */
	BEHAVE_GARBAGE,
	BEHAVE_TOO_LARGE,
	BEHAVE_SLOW, /* it answers after a while */
};

/* ---- the decoder ---- */

static void tell(Goheapd__DecoderEvent *event)
{
	if (frame_send(CHILD_AGENT_SOCKET, &frame_decoder_event, &event->base, NULL, 0))
		_exit(1);
}

static void tell_result(uint32_t pid)
{
	Goheapd__DecoderEvent event = GOHEAPD__DECODER_EVENT__INIT;
	Goheapd__ScanResult result = GOHEAPD__SCAN_RESULT__INIT;
	Goheapd__Identity identity = GOHEAPD__IDENTITY__INIT;
	Goheapd__Build build = GOHEAPD__BUILD__INIT;
	Goheapd__ScanInfo scan = GOHEAPD__SCAN_INFO__INIT;
	Goheapd__Detail detail = GOHEAPD__DETAIL__INIT;
	Goheapd__Trust trust = GOHEAPD__TRUST__INIT;
	char text[] = "x";

	identity.pid = pid;
	identity.arch = text;
	identity.build = &build;
	detail.layouts = detail.names = detail.types = text;
	scan.detail = &detail;
	scan.trust = &trust;
	result.identity = &identity;
	result.scan = &scan;
	event.body_case = GOHEAPD__DECODER_EVENT__BODY_SCAN;
	event.scan = &result;
	tell(&event);
}

static void tell_failure(void)
{
	Goheapd__DecoderEvent event = GOHEAPD__DECODER_EVENT__INIT;
	Goheapd__Failure failure = GOHEAPD__FAILURE__INIT;

	failure.code = GOHEAPD__FAILURE_CODE__FAILURE_NOT_FOUND;
	failure.message.data = (uint8_t *)(uintptr_t) "there is no such object";
	failure.message.len = strlen("there is no such object");
	event.body_case = GOHEAPD__DECODER_EVENT__BODY_FAILURE;
	event.failure = &failure;
	tell(&event);
}

static void tell_index(void)
{
	Goheapd__DecoderEvent event = GOHEAPD__DECODER_EVENT__INIT;
	Goheapd__IndexContent index = GOHEAPD__INDEX_CONTENT__INIT;

	event.body_case = GOHEAPD__DECODER_EVENT__BODY_INDEX;
	event.index = &index;
	tell(&event);
}

static void send_bytes(const char *bytes, size_t size)
{
	if (write(CHILD_AGENT_SOCKET, bytes, size) < 0)
		_exit(1);
}

static void behave(enum behaviour behaviour)
{
	switch (behaviour) {
	case BEHAVE_SLOW:
		usleep(100000);
		tell_result(TARGET);
		break;
	case BEHAVE_TWICE:
		tell_result(TARGET);
		tell_result(TARGET);
		break;
	case BEHAVE_FAIL:
		tell_failure();
		break;
	case BEHAVE_DIE:
		_exit(7);
	case BEHAVE_HANG:
		pause();
		break;
	case BEHAVE_INDEX:
		tell_index();
		break;
	case BEHAVE_GARBAGE:
		send_bytes("\4\0\0\0\xff\xff\xff\xff", 8);
		break;
	case BEHAVE_TOO_LARGE:
		send_bytes("\xff\xff\xff\x7f", 4);
		break;
	default:
		tell_result(behaviour == BEHAVE_ANSWER ? TARGET : TARGET + 1);
	}
}

static int be_decoder(void)
{
	struct frame_reader reader;

	frame_reader_init(&reader, CHILD_AGENT_SOCKET, &frame_decoder_order);
	for (;;) {
		struct frame frame;
		enum frame_state state;
		const Goheapd__DecoderOrder *order;

		if (frame_read(&reader, &frame, &state) || state == FRAME_END)
			break;
		order = (const Goheapd__DecoderOrder *)frame.message;
		behave((enum behaviour)order->ask->analysis->objects->limit);
		frame_fini(&frame);
	}
	frame_reader_fini(&reader);
	return 0;
}

/* ---- the agent's side ---- */

struct fixture {
	struct event_loop loop;
	struct event_timer guard;
	struct tree proc;
	struct procfs procfs;
	struct kept_table table;
	int asker, other; /* addresses of these are askers */
	unsigned turns;
};

/* Somebody who waits for an answer. */
struct asked {
	struct reply reply;
	struct fixture *fixture;
	struct job *job;
	bool answered, is_result;
	unsigned turn; /* among all that were answered */
	Goheapd__FailureCode code;
	char message[256];
};

static void no_message(struct helper *helper, int status)
{
	(void)helper, (void)status;
	fail_msg("the first owner hears of it");
}

static struct error *no_event(struct helper *helper, struct frame *frame)
{
	(void)helper, (void)frame;
	fail_msg("the first owner hears it");
	return NULL;
}

static const struct helper_kind first_kind = {
	"decoder", &frame_decoder_order, &frame_decoder_event, { no_event, no_message }
};

static void time_is_up(struct event_timer *timer)
{
	event_loop_stop(timer->loop);
}

static void init_table(struct fixture *fixture, unsigned count_max, uint64_t memory_max)
{
	const struct kept_limits limits = { .count_max = count_max,
					    .memory_max = memory_max,
					    .answer_max_ms = ANSWER_MAX_MS,
					    .look_ms = LOOK_MS };

	kept_table_fini(&fixture->table);
	assert_success(kept_table_init(&fixture->table, &fixture->loop, &fixture->procfs, &limits));
}

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	tree_init(&fixture->proc);
	tree_write(&fixture->proc, "stat", "btime 1700000000\n");
	assert_success(procfs_init(&fixture->procfs, fixture->proc.root, fixture->proc.root));
	assert_success(event_loop_init(&fixture->loop));
	assert_success(event_timer_init(&fixture->guard, &fixture->loop, time_is_up));
	init_table(fixture, 3, 1 << 30);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	kept_table_fini(&fixture->table);
	event_timer_fini(&fixture->guard);
	event_loop_fini(&fixture->loop);
	tree_fini(&fixture->proc);
	free(fixture);
	return 0;
}

/* Runs the loop for a while, or until an answer ends it. */
static void run_for(struct fixture *fixture, uint64_t ms)
{
	fixture->loop.stopped = false;
	event_timer_set(&fixture->guard, ms);
	assert_success(event_loop_run(&fixture->loop));
}

static struct helper *start_decoder(struct fixture *fixture)
{
	struct helper *helper = calloc(1, sizeof(*helper));

	assert_non_null(helper);
	assert_success(helper_start(helper, &first_kind, &fixture->loop, -1, 0));
	return helper;
}

static void set_memory(struct fixture *fixture, const struct helper *decoder, unsigned mib)
{
	char name[64], text[128];

	snprintf(name, sizeof(name), "%d/status", (int)decoder->child.pid);
	snprintf(text, sizeof(text), "VmRSS:\t%u kB\nVmSwap:\t1024 kB\n", (mib - 1) << 10);
	tree_write(&fixture->proc, name, text);
}

static ProtobufCBinaryData id_of(const char *id)
{
	return (ProtobufCBinaryData){ strlen(id), (uint8_t *)(uintptr_t)id };
}

static struct error *offer(struct fixture *fixture, const char *id, struct helper *decoder,
			   uint64_t ms)
{
	const struct kept_offer offer = {
		.asker = &fixture->asker, .id = id_of(id), .ms = ms, .pid = TARGET
	};
	uint64_t until_ns = 0;
	struct error *err = kept_table_add(&fixture->table, &offer, decoder, &until_ns);

	if (!err)
		assert_true(until_ns > 1700000000ull * 1000000000);
	return err;
}

static struct helper *keep(struct fixture *fixture, const char *id)
{
	struct helper *decoder = start_decoder(fixture);

	assert_success(offer(fixture, id, decoder, 60000));
	return decoder;
}

static void forget(struct helper *decoder)
{
	helper_fini(decoder);
	free(decoder);
}

/* How many the asker keeps, as it would be told. */
static size_t kept_by(struct fixture *fixture, const void *asker)
{
	Goheapd__KeptScans *list;
	size_t count;

	assert_success(kept_table_list(&fixture->table, asker, &list));
	count = list->n_scans;
	goheapd__kept_scans__free_unpacked(list, NULL);
	return count;
}

static size_t kept_count(struct fixture *fixture)
{
	return kept_by(fixture, &fixture->asker);
}

static void take_answer(struct reply *reply, Goheapd__Answer *answer)
{
	struct asked *asked = (struct asked *)reply;

	assert_false(asked->answered);
	asked->answered = true;
	asked->turn = ++asked->fixture->turns;
	asked->is_result = answer->body_case == GOHEAPD__ANSWER__BODY_SCAN;
	if (asked->is_result) {
		assert_int_equal(answer->scan->identity->pid, TARGET);
		assert_true(answer->scan->has_kept_until_ns);
	} else {
		assert_int_equal(answer->body_case, GOHEAPD__ANSWER__BODY_FAILURE);
		asked->code = answer->failure->code;
		snprintf(asked->message, sizeof(asked->message), "%.*s",
			 (int)answer->failure->message.len,
			 (const char *)answer->failure->message.data);
	}
	event_loop_stop(&asked->fixture->loop);
}

static struct error *try_ask(struct fixture *fixture, struct asked *asked, const char *id,
			     enum behaviour behaviour, uint64_t timeout_ms)
{
	Goheapd__Ask ask = GOHEAPD__ASK__INIT;
	Goheapd__Analysis analysis = GOHEAPD__ANALYSIS__INIT;
	Goheapd__ObjectsQuery objects = GOHEAPD__OBJECTS_QUERY__INIT;

	*asked = (struct asked){ .reply = { take_answer, &fixture->asker }, .fixture = fixture };
	objects.limit = behaviour;
	analysis.objects = &objects;
	ask.id = id_of(id);
	ask.analysis = &analysis;
	ask.timeout_ms = timeout_ms;
	return kept_table_ask(&fixture->table, &fixture->asker, &ask, &asked->reply, &asked->job);
}

static void ask(struct fixture *fixture, struct asked *asked, const char *id,
		enum behaviour behaviour)
{
	assert_success(try_ask(fixture, asked, id, behaviour, 5000));
}

static void wait_for(struct fixture *fixture, struct asked *asked)
{
	if (!asked->answered)
		run_for(fixture, 5000);
	assert_true(asked->answered);
}

/* ---- tests ---- */

static void questions_are_answered_in_turn(void **state)
{
	struct fixture *fixture = *state;
	struct asked first, second, third;

	keep(fixture, "a");
	ask(fixture, &first, "a", BEHAVE_SLOW);
	ask(fixture, &second, "a", BEHAVE_FAIL);
	ask(fixture, &third, "a", BEHAVE_ANSWER);
	wait_for(fixture, &first);
	assert_true(first.is_result);
	wait_for(fixture, &second);
	assert_int_equal(second.code, GOHEAPD__FAILURE_CODE__FAILURE_NOT_FOUND);
	assert_string_equal(second.message, "there is no such object");
	wait_for(fixture, &third);
	assert_true(third.is_result);
	assert_true(first.turn < second.turn && second.turn < third.turn);
	assert_int_equal(kept_count(fixture), 1);
}

static void only_who_keeps_it_may_ask(void **state)
{
	struct fixture *fixture = *state;
	Goheapd__Ask request = GOHEAPD__ASK__INIT;
	Goheapd__Analysis analysis = GOHEAPD__ANALYSIS__INIT;
	struct reply reply = { take_answer, &fixture->other };
	struct asked asked;
	struct job *job;

	keep(fixture, "a");
	request.id = id_of("a");
	request.analysis = &analysis;
	assert_error(kept_table_ask(&fixture->table, &fixture->other, &request, &reply, &job),
		     ERROR_NOT_FOUND);
	request.has_drop = request.drop = true;
	assert_error(kept_table_change(&fixture->table, &fixture->other, &request),
		     ERROR_NOT_FOUND);
	assert_int_equal(kept_by(fixture, &fixture->other), 0);
	assert_error(try_ask(fixture, &asked, "b", BEHAVE_ANSWER, 1000), ERROR_NOT_FOUND);
	kept_table_drop_all(&fixture->table, &fixture->other, "a test");
	assert_int_equal(kept_count(fixture), 1);
}

static void what_is_dropped_is_gone_at_once(void **state)
{
	struct fixture *fixture = *state;
	struct helper *decoder = keep(fixture, "a");
	pid_t pid = decoder->child.pid;
	Goheapd__Ask request = GOHEAPD__ASK__INIT;
	struct asked asked;

	request.id = id_of("a");
	request.has_drop = request.drop = true;
	assert_success(kept_table_change(&fixture->table, &fixture->asker, &request));
	assert_error(try_ask(fixture, &asked, "a", BEHAVE_ANSWER, 1000), ERROR_NOT_FOUND);
	assert_int_equal(kept_count(fixture), 0);
	run_for(fixture, 200);
	assert_null(fixture->table.oldest);
	assert_int_equal(kill(pid, 0), -1); /* reaped */
}

static void its_time_ends_it(void **state)
{
	struct fixture *fixture = *state;
	struct asked asked;

	assert_success(offer(fixture, "a", start_decoder(fixture), 50));
	ask(fixture, &asked, "a", BEHAVE_ANSWER);
	wait_for(fixture, &asked);
	run_for(fixture, 300);
	assert_error(try_ask(fixture, &asked, "a", BEHAVE_ANSWER, 1000), ERROR_NOT_FOUND);
	assert_null(fixture->table.oldest);
}

static void its_time_does_not_cut_an_answer_off(void **state)
{
	struct fixture *fixture = *state;
	struct asked asked;

	assert_success(offer(fixture, "a", start_decoder(fixture), 20));
	ask(fixture, &asked, "a", BEHAVE_SLOW);
	wait_for(fixture, &asked);
	assert_true(asked.is_result);
	assert_int_equal(kept_count(fixture), 0);
}

static void its_time_can_be_prolonged(void **state)
{
	struct fixture *fixture = *state;
	Goheapd__Ask request = GOHEAPD__ASK__INIT;

	assert_success(offer(fixture, "a", start_decoder(fixture), 100));
	request.id = id_of("a");
	request.has_keep_ms = true;
	request.keep_ms = 60000;
	assert_success(kept_table_change(&fixture->table, &fixture->asker, &request));
	run_for(fixture, 250);
	assert_int_equal(kept_count(fixture), 1);
}

static void beyond_the_number_the_oldest_goes(void **state)
{
	struct fixture *fixture = *state;
	struct asked asked;

	keep(fixture, "a");
	keep(fixture, "b");
	keep(fixture, "c");
	assert_int_equal(kept_count(fixture), 3);
	keep(fixture, "d");
	assert_int_equal(kept_count(fixture), 3);
	assert_error(try_ask(fixture, &asked, "a", BEHAVE_ANSWER, 1000), ERROR_NOT_FOUND);
	ask(fixture, &asked, "d", BEHAVE_ANSWER);
	wait_for(fixture, &asked);
	assert_true(asked.is_result);
}

static void keep_implied(struct fixture *fixture, const char *id, uint64_t ms)
{
	const struct kept_offer offer = {
		.asker = &fixture->asker, .id = id_of(id), .ms = ms, .implied = true, .pid = TARGET
	};
	uint64_t until_ns;

	assert_success(kept_table_add(&fixture->table, &offer, start_decoder(fixture), &until_ns));
}

static void assert_gone(struct fixture *fixture, const char *id)
{
	struct asked asked;

	assert_error(try_ask(fixture, &asked, id, BEHAVE_ANSWER, 1000), ERROR_NOT_FOUND);
}

static void the_one_whose_time_is_over_soonest_makes_room(void **state)
{
	struct fixture *fixture = *state;

	keep(fixture, "a");
	assert_success(offer(fixture, "b", start_decoder(fixture), 50000));
	keep(fixture, "c");
	keep(fixture, "d");
	assert_int_equal(kept_count(fixture), 3);
	assert_gone(fixture, "b");
}

static void one_that_nobody_asked_for_goes_first(void **state)
{
	struct fixture *fixture = *state;

	assert_success(offer(fixture, "a", start_decoder(fixture), 10000));
	keep_implied(fixture, "late", 60000);
	keep_implied(fixture, "soon", 50000);
	keep(fixture, "b");
	assert_gone(fixture, "soon");
	keep(fixture, "c");
	assert_gone(fixture, "late");
	keep(fixture, "d");
	assert_gone(fixture, "a");
	assert_int_equal(kept_count(fixture), 3);
}

static void one_that_nobody_asked_for_takes_no_place_of_those_that_were(void **state)
{
	struct fixture *fixture = *state;
	const struct kept_offer implied = { .asker = &fixture->asker,
					    .id = id_of("e"),
					    .ms = 60000,
					    .implied = true,
					    .pid = TARGET };
	struct helper *decoder = start_decoder(fixture);
	uint64_t until_ns;

	keep(fixture, "a");
	keep(fixture, "b");
	keep_implied(fixture, "page", 60000);
	keep_implied(fixture, "other", 60000);
	assert_gone(fixture, "page");
	keep(fixture, "c");
	assert_gone(fixture, "other");
	assert_error(kept_table_add(&fixture->table, &implied, decoder, &until_ns), ERROR_LIMIT);
	assert_int_equal(kept_count(fixture), 3);
	assert_error(try_ask(fixture, &(struct asked){ 0 }, "e", BEHAVE_ANSWER, 1000),
		     ERROR_NOT_FOUND);
	forget(decoder);
}

static void one_that_is_asked_for_later_is_as_those_that_were(void **state)
{
	struct fixture *fixture = *state;
	Goheapd__Analysis nothing = GOHEAPD__ANALYSIS__INIT;
	Goheapd__Ask request = GOHEAPD__ASK__INIT;

	keep_implied(fixture, "page", 60000);
	keep_implied(fixture, "other", 50000);
	request.id = id_of("page");
	request.analysis = &nothing;
	request.has_keep_ms = request.has_keep_implied = request.keep_implied = true;
	request.keep_ms = 40000;
	assert_success(kept_table_change(&fixture->table, &fixture->asker, &request));
	request.id = id_of("other");
	request.keep_implied = false;
	assert_success(kept_table_change(&fixture->table, &fixture->asker, &request));
	request.keep_implied = true; /* what was asked for stays so */
	assert_success(kept_table_change(&fixture->table, &fixture->asker, &request));
	keep(fixture, "a");
	keep(fixture, "b");
	assert_gone(fixture, "page");
	assert_int_equal(kept_count(fixture), 3);
}

static void beyond_the_memory_the_oldest_goes(void **state)
{
	struct fixture *fixture = *state;
	struct helper *decoders[3], *large;
	const char *const ids[] = { "a", "b", "c" };

	init_table(fixture, 8, 100 << 20);
	for (unsigned i = 0; i < 3; i++) {
		decoders[i] = start_decoder(fixture);
		set_memory(fixture, decoders[i], 30);
		assert_success(offer(fixture, ids[i], decoders[i], 60000));
	}
	assert_int_equal(kept_count(fixture), 3);
	large = start_decoder(fixture);
	set_memory(fixture, large, 70);
	assert_success(offer(fixture, "large", large, 60000));
	assert_int_equal(kept_count(fixture), 2); /* c and it */
	/* one that has grown */
	set_memory(fixture, decoders[2], 31);
	run_for(fixture, 10 * LOOK_MS);
	assert_int_equal(kept_count(fixture), 1);
}

static void what_can_never_fit_is_not_kept(void **state)
{
	struct fixture *fixture = *state;
	struct helper *decoder = start_decoder(fixture);

	init_table(fixture, 8, 100 << 20);
	keep(fixture, "a");
	set_memory(fixture, decoder, 101);
	assert_error(offer(fixture, "b", decoder, 60000), ERROR_LIMIT);
	assert_int_equal(kept_count(fixture), 1);
	assert_error(offer(fixture, "", decoder, 60000), ERROR_BAD_REQUEST);
	set_memory(fixture, decoder, 1);
	assert_error(offer(fixture, "a", decoder, 60000), ERROR_BAD_REQUEST);
	init_table(fixture, 0, 100 << 20);
	assert_error(offer(fixture, "b", decoder, 60000), ERROR_LIMIT);
	assert_error(offer(fixture, "b", NULL, 60000), ERROR_LIMIT);
	forget(decoder);
}

static void pressure_takes_the_oldest_until_it_is_over(void **state)
{
	struct fixture *fixture = *state;
	struct helper *decoder = start_decoder(fixture);
	struct asked asked;

	keep(fixture, "a");
	keep(fixture, "b");
	ask(fixture, &asked, "a", BEHAVE_HANG);
	tree_write(&fixture->proc, "meminfo", "MemTotal: 1000 kB\nMemAvailable: 49 kB\n");
	assert_error(offer(fixture, "c", decoder, 60000), ERROR_OUT_OF_MEMORY);
	wait_for(fixture, &asked);
	assert_int_equal(asked.code, GOHEAPD__FAILURE_CODE__FAILURE_OUT_OF_MEMORY);
	tree_write(&fixture->proc, "meminfo", "MemTotal: 1000 kB\nMemAvailable: 50 kB\n");
	run_for(fixture, 5 * LOOK_MS);
	assert_int_equal(kept_count(fixture), 1);
	tree_write(&fixture->proc, "meminfo", "MemTotal: 1000 kB\nMemAvailable: 49 kB\n");
	run_for(fixture, 5 * LOOK_MS);
	assert_int_equal(kept_count(fixture), 0);
	forget(decoder);
}

static void a_decoder_that_misbehaves_is_ended(void **state)
{
	static const enum behaviour kinds[] = { BEHAVE_DIE, BEHAVE_OTHER_PROCESS, BEHAVE_INDEX,
						BEHAVE_GARBAGE, BEHAVE_TOO_LARGE };
	struct fixture *fixture = *state;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		struct asked asked, waits, later;
		struct helper *decoder = keep(fixture, "a");
		pid_t pid = decoder->child.pid;

		ask(fixture, &asked, "a", kinds[i]);
		ask(fixture, &waits, "a", BEHAVE_ANSWER);
		wait_for(fixture, &asked);
		wait_for(fixture, &waits);
		assert_false(asked.is_result);
		assert_int_equal(asked.code, GOHEAPD__FAILURE_CODE__FAILURE_INTERNAL);
		assert_false(waits.is_result);
		assert_int_equal(waits.code, GOHEAPD__FAILURE_CODE__FAILURE_NOT_FOUND);
		assert_error(try_ask(fixture, &later, "a", BEHAVE_ANSWER, 1000), ERROR_NOT_FOUND);
		assert_int_equal(kill(pid, 0), -1);
		assert_null(fixture->table.oldest);
	}
}

static void one_that_speaks_unasked_is_ended(void **state)
{
	struct fixture *fixture = *state;
	struct asked asked;

	keep(fixture, "a");
	ask(fixture, &asked, "a", BEHAVE_TWICE);
	wait_for(fixture, &asked);
	assert_true(asked.is_result);
	run_for(fixture, 200);
	assert_int_equal(kept_count(fixture), 0);
	assert_null(fixture->table.oldest);
}

static void one_that_does_not_answer_is_ended(void **state)
{
	struct fixture *fixture = *state;
	struct asked asked;

	keep(fixture, "a");
	ask(fixture, &asked, "a", BEHAVE_HANG);
	wait_for(fixture, &asked);
	assert_int_equal(asked.code, GOHEAPD__FAILURE_CODE__FAILURE_TIMEOUT);
	run_for(fixture, 100);
	assert_null(fixture->table.oldest);
}

static void a_question_has_its_own_time(void **state)
{
	struct fixture *fixture = *state;
	struct asked hurried, waits, later;

	keep(fixture, "a");
	assert_success(try_ask(fixture, &hurried, "a", BEHAVE_SLOW, 10));
	assert_success(try_ask(fixture, &waits, "a", BEHAVE_ANSWER, 20));
	wait_for(fixture, &hurried);
	assert_int_equal(hurried.code, GOHEAPD__FAILURE_CODE__FAILURE_TIMEOUT);
	wait_for(fixture, &waits);
	assert_int_equal(waits.code, GOHEAPD__FAILURE_CODE__FAILURE_TIMEOUT);
	/* what it was slow with is nobody's answer */
	ask(fixture, &later, "a", BEHAVE_FAIL);
	wait_for(fixture, &later);
	assert_int_equal(later.code, GOHEAPD__FAILURE_CODE__FAILURE_NOT_FOUND);
	assert_int_equal(kept_count(fixture), 1);
}

static void a_question_can_be_given_up(void **state)
{
	struct fixture *fixture = *state;
	struct asked first, second, third;

	keep(fixture, "a");
	ask(fixture, &first, "a", BEHAVE_SLOW);
	ask(fixture, &second, "a", BEHAVE_DIE);
	ask(fixture, &third, "a", BEHAVE_FAIL);
	job_abandon(first.job);
	job_abandon(second.job);
	wait_for(fixture, &third);
	assert_int_equal(third.code, GOHEAPD__FAILURE_CODE__FAILURE_NOT_FOUND);
	assert_false(first.answered);
	assert_false(second.answered);
}

static void too_many_questions_are_busy(void **state)
{
	struct fixture *fixture = *state;
	struct asked asked[KEPT_QUESTIONS_MAX + 1];

	keep(fixture, "a");
	for (unsigned i = 0; i < KEPT_QUESTIONS_MAX; i++)
		ask(fixture, &asked[i], "a", BEHAVE_HANG);
	assert_error(try_ask(fixture, &asked[KEPT_QUESTIONS_MAX], "a", BEHAVE_ANSWER, 1000),
		     ERROR_BUSY);
	kept_table_drop_all(&fixture->table, &fixture->asker, "a test");
	for (unsigned i = 0; i < KEPT_QUESTIONS_MAX; i++)
		assert_int_equal(asked[i].code, GOHEAPD__FAILURE_CODE__FAILURE_AGENT_UNAVAILABLE);
}

static unsigned open_descriptors(void)
{
	unsigned count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void nothing_is_left_of_two_hundred(void **state)
{
	struct fixture *fixture = *state;
	unsigned before = open_descriptors();
	char id[16];

	for (unsigned i = 0; i < 200; i++) {
		struct asked asked;

		snprintf(id, sizeof(id), "%u", i);
		keep(fixture, id);
		ask(fixture, &asked, id, BEHAVE_ANSWER);
		wait_for(fixture, &asked);
	}
	kept_table_drop_all(&fixture->table, NULL, "a test");
	while (fixture->table.oldest)
		run_for(fixture, 20);
	assert_int_equal(open_descriptors(), before);
}

#define KEPT_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		KEPT_TEST(questions_are_answered_in_turn),
		KEPT_TEST(only_who_keeps_it_may_ask),
		KEPT_TEST(what_is_dropped_is_gone_at_once),
		KEPT_TEST(its_time_ends_it),
		KEPT_TEST(its_time_does_not_cut_an_answer_off),
		KEPT_TEST(its_time_can_be_prolonged),
		KEPT_TEST(beyond_the_number_the_oldest_goes),
		KEPT_TEST(the_one_whose_time_is_over_soonest_makes_room),
		KEPT_TEST(one_that_nobody_asked_for_goes_first),
		KEPT_TEST(one_that_nobody_asked_for_takes_no_place_of_those_that_were),
		KEPT_TEST(one_that_is_asked_for_later_is_as_those_that_were),
		KEPT_TEST(beyond_the_memory_the_oldest_goes),
		KEPT_TEST(what_can_never_fit_is_not_kept),
		KEPT_TEST(pressure_takes_the_oldest_until_it_is_over),
		KEPT_TEST(a_decoder_that_misbehaves_is_ended),
		KEPT_TEST(one_that_speaks_unasked_is_ended),
		KEPT_TEST(one_that_does_not_answer_is_ended),
		KEPT_TEST(a_question_has_its_own_time),
		KEPT_TEST(a_question_can_be_given_up),
		KEPT_TEST(too_many_questions_are_busy),
		KEPT_TEST(nothing_is_left_of_two_hundred),
	};

	if (argc > 1 && strcmp(argv[1], "--role=decoder") == 0)
		return be_decoder();
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("kept_scan", tests, NULL, NULL);
}
