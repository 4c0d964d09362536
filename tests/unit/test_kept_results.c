/*
 * What the daemon holds of kept scans: found by id, listed by process and by who may see it, for as
 * long as they are kept and as there is room.
 */
#include "daemon/kept_scan.h"

#include <string.h>
#include <unistd.h>

#include "daemon/clock.h"
#include "tests/support/assertions.h"

enum { SECOND_US = 1000000, USER = 1234 };

static Goheapd__Answer *make_answer(bool has_graph)
{
	Goheapd__Answer *answer = malloc(sizeof(*answer));
	Goheapd__ScanResult *result = malloc(sizeof(*result));

	assert_non_null(answer);
	assert_non_null(result);
	goheapd__answer__init(answer);
	goheapd__scan_result__init(result);
	answer->body_case = GOHEAPD__ANSWER__BODY_SCAN;
	answer->scan = result;
	result->scan = malloc(sizeof(*result->scan));
	assert_non_null(result->scan);
	goheapd__scan_info__init(result->scan);
	result->has_kept_until_ns = has_graph;
	return answer;
}

/* A scan that was made with goroutines, and with that of labels and objects. */
static struct scan *make_scan(const char *id, bool has_graph, const struct label_query *labels,
			      const Goheapd__Analysis *analysis)
{
	const struct scan_key key = { .parts = SCAN_GOROUTINES | SCAN_LABELS,
				      .labels = labels,
				      .analysis = analysis };
	struct scan *scan;

	assert_success(scan_new(&key, id, clock_now_us(), make_answer(has_graph), &scan));
	return scan;
}

static void add(struct kept_scans *kept, struct scan *scan, uint32_t pid, uint64_t keep_us)
{
	Goheapd__Process process = GOHEAPD__PROCESS__INIT;
	Goheapd__Access access = GOHEAPD__ACCESS__INIT;
	uint32_t uid = USER;

	access.uids = access.gids = &uid;
	access.n_uids = access.n_gids = 1;
	access.dumpable = access.same_user_namespace = true;
	process.pid = pid;
	process.start_ticks = pid * 10;
	process.access = &access;
	assert_success(kept_scans_add(kept, scan, &process, keep_us));
	scan_release(scan);
}

static int setup(void **state)
{
	struct kept_scans *kept;

	/* no graph is kept in these tests but those that are not asked: no agent is needed */
	assert_success(kept_scans_new(NULL, &kept));
	*state = kept;
	return 0;
}

static int teardown(void **state)
{
	kept_scans_free(*state);
	return 0;
}

static bool is_kept(struct kept_scans *kept, const char *id)
{
	struct kept_scan *scan scoped(kept_scan_releasep) = NULL;
	struct error *err scoped(error_freep) = kept_scans_find(kept, id, &scan);

	if (err)
		assert_int_equal(error_code(err), ERROR_NOT_FOUND);
	else
		assert_string_equal(scan->scan->id, id);
	return scan;
}

static void scans_are_found_until_their_time(void **state)
{
	struct kept_scans *kept = *state;

	add(kept, make_scan("a", false, NULL, NULL), 1, 60u * SECOND_US);
	add(kept, make_scan("b", false, NULL, NULL), 1, SECOND_US / 20);
	assert_true(is_kept(kept, "a"));
	assert_false(is_kept(kept, "c"));
	usleep(SECOND_US / 10);
	assert_false(is_kept(kept, "b"));
	assert_true(is_kept(kept, "a"));
}

static void nobody_need_ask_for_them_to_go(void **state)
{
	struct kept_scans *kept = *state;
	struct scan *scan = make_scan("a", false, NULL, NULL);

	scan_acquire(scan);
	add(kept, make_scan("b", false, NULL, NULL), 1, 60u * SECOND_US);
	add(kept, scan, 1, SECOND_US / 20);
	for (unsigned i = 0; i < 500 && atomic_load(&scan->references) > 1; i++)
		usleep(SECOND_US / 100);
	assert_int_equal(atomic_load(&scan->references), 1);
	scan_release(scan);
	assert_true(is_kept(kept, "b"));
}

static void a_reference_outlives_its_time(void **state)
{
	struct kept_scans *kept = *state;
	struct kept_scan *scan;

	add(kept, make_scan("a", false, NULL, NULL), 7, SECOND_US / 2);
	assert_success(kept_scans_find(kept, "a", &scan));
	usleep(SECOND_US * 6 / 10);
	assert_false(is_kept(kept, "a"));
	assert_int_equal(scan->process->pid, 7);
	kept_scan_release(scan);
}

static void expect_list(struct kept_scans *kept, const struct kept_filter *filter,
			const char *wanted)
{
	struct kept_list list;
	char ids[64] = "";

	assert_success(kept_scans_list(kept, filter, &list));
	for (size_t i = 0; i < list.count; i++)
		strcat(ids, list.scans[i]->scan->id);
	assert_string_equal(ids, wanted);
	kept_list_fini(&list);
}

static void the_newest_are_listed_first(void **state)
{
	struct kept_scans *kept = *state;
	const struct peer root = { .uid = 0 }, owner = { .uid = USER }, other = { .uid = USER + 1 };

	add(kept, make_scan("a", false, NULL, NULL), 1, 60u * SECOND_US);
	add(kept, make_scan("b", false, NULL, NULL), 2, 60u * SECOND_US);
	add(kept, make_scan("c", false, NULL, NULL), 1, 60u * SECOND_US);
	expect_list(kept, &(struct kept_filter){ 0 }, "cba");
	expect_list(kept, &(struct kept_filter){ .pid = 1 }, "ca");
	expect_list(kept, &(struct kept_filter){ .pid = 1, .start_ticks = 10 }, "ca");
	expect_list(kept, &(struct kept_filter){ .pid = 1, .start_ticks = 11 }, "");
	expect_list(kept, &(struct kept_filter){ .pid = 2, .peer = &root }, "b");
	expect_list(kept, &(struct kept_filter){ .peer = &owner }, "cba");
	expect_list(kept, &(struct kept_filter){ .peer = &other }, "");
}

static void the_oldest_makes_room(void **state)
{
	struct kept_scans *kept = *state;
	Goheapd__Process process = GOHEAPD__PROCESS__INIT;
	struct scan *huge = make_scan("huge", false, NULL, NULL);
	char id[] = "a";

	for (; id[0] <= 'd'; id[0]++) {
		struct scan *scan = make_scan(id, false, NULL, NULL);

		scan->bytes = 20 << 20;
		add(kept, scan, 1, 60u * SECOND_US);
	}
	expect_list(kept, &(struct kept_filter){ 0 }, "dcb");
	huge->bytes = (64 << 20) + 1;
	assert_error(kept_scans_add(kept, huge, &process, SECOND_US), ERROR_LIMIT);
	scan_release(huge);
	expect_list(kept, &(struct kept_filter){ 0 }, "dcb");
}

static void add_large(struct kept_scans *kept, const char *id, uint64_t keep_us, bool implied)
{
	struct scan *scan = make_scan(id, false, NULL, NULL);

	scan->bytes = 20 << 20;
	scan->key.keep_implied = implied;
	add(kept, scan, 1, keep_us);
}

static void what_nobody_asked_for_and_ends_soonest_makes_room(void **state)
{
	struct kept_scans *kept = *state;
	struct kept_scan *scan scoped(kept_scan_releasep) = NULL;

	add_large(kept, "a", 50u * SECOND_US, false);
	add_large(kept, "b", 90u * SECOND_US, true);
	add_large(kept, "c", 80u * SECOND_US, true);
	assert_success(kept_scans_find(kept, "c", &scan));
	assert_success(kept_scan_extend(kept, scan, SECOND_US, false, NULL)); /* now it is */
	add_large(kept, "d", 70u * SECOND_US, true);
	expect_list(kept, &(struct kept_filter){ 0 }, "dca");
	add_large(kept, "e", 60u * SECOND_US, false);
	expect_list(kept, &(struct kept_filter){ 0 }, "eca");
	add_large(kept, "f", 60u * SECOND_US, true); /* the newest stays */
	expect_list(kept, &(struct kept_filter){ 0 }, "fec");
}

static void its_time_is_prolonged_and_not_cut(void **state)
{
	struct kept_scans *kept = *state;
	struct kept_scan *scan scoped(kept_scan_releasep) = NULL;
	uint64_t until_us;

	add(kept, make_scan("a", false, NULL, NULL), 1, 60u * SECOND_US);
	assert_success(kept_scans_find(kept, "a", &scan));
	until_us = scan->until_us;
	assert_success(kept_scan_extend(kept, scan, SECOND_US, true, NULL));
	assert_int_equal(scan->until_us, until_us);
	assert_success(kept_scan_extend(kept, scan, 90u * SECOND_US, false, NULL));
	assert_true(scan->until_us >= until_us + 29u * SECOND_US);
	/* it is to be asked, and there is no graph */
	assert_error(kept_scans_extend(kept, "a", SECOND_US, false, NULL), ERROR_NOT_FOUND);
}

static void the_first_result_answers_what_it_has(void **state)
{
	struct kept_scans *kept = *state;
	struct kept_scan *scan scoped(kept_scan_releasep) = NULL;
	Goheapd__Analysis asked = GOHEAPD__ANALYSIS__INIT, other = GOHEAPD__ANALYSIS__INIT;
	Goheapd__HistogramQuery histogram = GOHEAPD__HISTOGRAM_QUERY__INIT;
	Goheapd__ObjectQuery object = GOHEAPD__OBJECT_QUERY__INIT;
	struct label_query labels = { .detail = true };
	struct scan *answer;

	asked.histogram = &histogram;
	other.object = &object;
	add(kept, make_scan("a", false, NULL, &asked), 1, 60u * SECOND_US);
	assert_success(kept_scans_find(kept, "a", &scan));
	assert_success(kept_scan_answer(kept, scan, SCAN_GOROUTINES, NULL, NULL, NULL, &answer));
	assert_ptr_equal(answer, scan->scan);
	scan_release(answer);
	assert_success(kept_scan_answer(kept, scan, 0, &labels, &asked, NULL, &answer));
	scan_release(answer);
	assert_error(kept_scan_answer(kept, scan, SCAN_MAPPINGS, NULL, NULL, NULL, &answer),
		     ERROR_BAD_REQUEST);
	assert_error(kept_scan_answer(kept, scan, SCAN_LABELS, &labels, NULL, NULL, &answer),
		     ERROR_BAD_REQUEST);
	assert_error(kept_scan_answer(kept, scan, 0, NULL, &other, NULL, &answer), ERROR_NOT_FOUND);
	other.object = NULL;
	other.has_goroutine_retained = other.goroutine_retained = true;
	assert_error(kept_scan_answer(kept, scan, SCAN_GOROUTINES, NULL, &other, NULL, &answer),
		     ERROR_BAD_REQUEST);
}

#define KEPT_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		KEPT_TEST(scans_are_found_until_their_time),
		KEPT_TEST(nobody_need_ask_for_them_to_go),
		KEPT_TEST(a_reference_outlives_its_time),
		KEPT_TEST(the_newest_are_listed_first),
		KEPT_TEST(the_oldest_makes_room),
		KEPT_TEST(what_nobody_asked_for_and_ends_soonest_makes_room),
		KEPT_TEST(its_time_is_prolonged_and_not_cut),
		KEPT_TEST(the_first_result_answers_what_it_has),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("kept_results", tests, NULL, NULL);
}
