#include "daemon/scan_store.h"

#include "tests/support/assertions.h"
#include "tests/support/canned.h"

enum { SECOND = 1000000 };

static const struct scan_key asked = {
	.pid = CANNED_PID,
	.start_ticks = CANNED_TICKS,
	.exe_hash = 5,
	.parts = SCAN_MEMORY | SCAN_GOROUTINES,
};

/* An answer of its own: packed and unpacked, since the canned one is static. */
static Goheapd__Answer *make_answer(Goheapd__Mode mode)
{
	Goheapd__Answer answer = GOHEAPD__ANSWER__INIT, *copy;
	size_t size;
	uint8_t *packed;

	answer.body_case = GOHEAPD__ANSWER__BODY_SCAN;
	answer.scan = canned_scan();
	answer.scan->scan->mode = mode;
	size = goheapd__answer__get_packed_size(&answer);
	packed = malloc(size);
	assert_non_null(packed);
	goheapd__answer__pack(&answer, packed);
	copy = goheapd__answer__unpack(NULL, size, packed);
	free(packed);
	assert_non_null(copy);
	return copy;
}

/* Adds a scan that began at a time and returns its size. */
static size_t add(struct scan_store *store, const struct scan_key *key, Goheapd__Mode mode,
		  uint64_t at_us)
{
	struct scan *scan = NULL;
	size_t bytes;

	assert_success(scan_new(key, NULL, at_us, make_answer(mode), &scan));
	bytes = scan->bytes;
	scan_store_add(store, scan, at_us);
	scan_release(scan);
	return bytes;
}

static bool finds(struct scan_store *store, const struct scan_key *key, uint64_t max_age_us,
		  uint64_t now_us)
{
	struct scan *scan = scan_store_find(store, key, max_age_us, now_us);
	bool found = scan != NULL;

	scan_release(scan);
	return found;
}

static void a_scan_answers_until_it_is_too_old(void **state)
{
	struct scan_store store;

	(void)state;
	scan_store_init(&store, 1 << 20, 100 * SECOND);
	add(&store, &asked, GOHEAPD__MODE__MODE_FORK, 10 * SECOND);
	assert_true(finds(&store, &asked, 5 * SECOND, 15 * SECOND));
	assert_false(finds(&store, &asked, 5 * SECOND, 15 * SECOND + 1));
	scan_store_fini(&store);
}

static void another_process_or_program_is_not_answered_for(void **state)
{
	struct scan_key other = asked;
	struct scan_store store;

	(void)state;
	scan_store_init(&store, 1 << 20, 100 * SECOND);
	add(&store, &asked, GOHEAPD__MODE__MODE_FORK, SECOND);
	other.pid++;
	assert_false(finds(&store, &other, SECOND, SECOND));
	other = asked;
	other.start_ticks++;
	assert_false(finds(&store, &other, SECOND, SECOND));
	other = asked;
	other.exe_hash++;
	assert_false(finds(&store, &other, SECOND, SECOND));
	scan_store_fini(&store);
}

static void mode_depth_and_parts_must_do(void **state)
{
	struct scan_key other = asked;
	struct scan_store store;

	(void)state;
	scan_store_init(&store, 1 << 20, 100 * SECOND);
	add(&store, &asked, GOHEAPD__MODE__MODE_FORK, SECOND);
	other.mode = GOHEAPD__MODE__MODE_FORK;
	assert_true(finds(&store, &other, SECOND, SECOND));
	other.mode = GOHEAPD__MODE__MODE_STOP;
	assert_false(finds(&store, &other, SECOND, SECOND));
	other = asked;
	other.depth = GOHEAPD__DEPTH__DEPTH_CENSUS;
	assert_false(finds(&store, &other, SECOND, SECOND));
	other = asked;
	other.parts = SCAN_MEMORY;
	assert_true(finds(&store, &other, SECOND, SECOND));
	other.parts = SCAN_MEMORY | SCAN_MAPPINGS;
	assert_false(finds(&store, &other, SECOND, SECOND));
	scan_store_fini(&store);
}

/* A kept selection holds everything but another selection. */
static void what_was_asked_of_labels_must_do(void **state)
{
	struct label_query acme = { 0 }, zeta = { 0 };
	struct scan_key selected = asked, other = asked;
	struct scan_store store;
	char text[] = "tenant=acme";

	(void)state;
	assert_success(label_query_select(
	    &acme, (ProtobufCBinaryData){ .len = strlen(text), .data = (uint8_t *)text }));
	assert_success(
	    label_query_group(&zeta, (ProtobufCBinaryData){ .len = 6, .data = (uint8_t *)text }));
	scan_store_init(&store, 1 << 20, 100 * SECOND);
	selected.labels = &acme;
	add(&store, &selected, GOHEAPD__MODE__MODE_FORK, SECOND);
	assert_true(finds(&store, &selected, SECOND, SECOND));
	assert_true(finds(&store, &asked, SECOND, SECOND));
	other.labels = &zeta;
	assert_false(finds(&store, &other, SECOND, SECOND));
	text[7] = 'x'; /* the store has its own copy */
	assert_false(finds(&store, &selected, SECOND, SECOND));
	scan_store_fini(&store);
	add(&store, &asked, GOHEAPD__MODE__MODE_FORK, SECOND);
	assert_false(finds(&store, &selected, SECOND, SECOND));
	scan_store_fini(&store);
}

/* What was made for one question about objects answers that, and what asks for less. */
static void what_was_asked_of_objects_must_do(void **state)
{
	Goheapd__ProfileQuery profile = GOHEAPD__PROFILE_QUERY__INIT, deeper;
	Goheapd__HistogramQuery histogram = GOHEAPD__HISTOGRAM_QUERY__INIT;
	Goheapd__Analysis both = GOHEAPD__ANALYSIS__INIT, one = GOHEAPD__ANALYSIS__INIT;
	struct scan_key analysed = asked, other = asked;
	struct scan_store store;

	(void)state;
	profile.max_depth = 5;
	both.profile = &profile;
	both.histogram = &histogram;
	one.profile = &profile;
	analysed.analysis = &both;
	other.analysis = &one;
	scan_store_init(&store, 1 << 20, 100 * SECOND);
	add(&store, &analysed, GOHEAPD__MODE__MODE_FORK, SECOND);
	assert_true(finds(&store, &analysed, SECOND, SECOND));
	assert_true(finds(&store, &asked, SECOND, SECOND));
	assert_true(finds(&store, &other, SECOND, SECOND));
	deeper = profile;
	deeper.max_depth++;
	one.profile = &deeper;
	assert_false(finds(&store, &other, SECOND, SECOND));
	profile.max_depth++; /* the store has its own copy */
	assert_false(finds(&store, &analysed, SECOND, SECOND));
	scan_store_fini(&store);
	add(&store, &asked, GOHEAPD__MODE__MODE_FORK, SECOND);
	assert_false(finds(&store, &other, SECOND, SECOND));
	scan_store_fini(&store);
}

static void the_newest_answers(void **state)
{
	struct scan_store store;
	struct scan *scan;

	(void)state;
	scan_store_init(&store, 1 << 20, 100 * SECOND);
	add(&store, &asked, GOHEAPD__MODE__MODE_FORK, 1 * SECOND);
	add(&store, &asked, GOHEAPD__MODE__MODE_FORK, 2 * SECOND);
	scan = scan_store_find(&store, &asked, 60 * SECOND, 3 * SECOND);
	assert_int_equal(scan->started_us, 2 * SECOND);
	scan_store_fini(&store);
	assert_int_equal(scan->answer->scan->identity->pid, CANNED_PID); /* still ours */
	scan_release(scan);
}

static void the_oldest_goes_when_there_is_no_room(void **state)
{
	struct scan_key keys[3] = { asked, asked, asked };
	struct scan_store store;
	size_t bytes;

	(void)state;
	scan_store_init(&store, 1 << 20, 100 * SECOND);
	bytes = add(&store, &asked, GOHEAPD__MODE__MODE_FORK, 0);
	scan_store_fini(&store);

	scan_store_init(&store, 2 * bytes, 100 * SECOND);
	for (uint32_t i = 0; i < 3; i++) {
		keys[i].pid = 100 + i;
		add(&store, &keys[i], GOHEAPD__MODE__MODE_FORK, i);
	}
	assert_false(finds(&store, &keys[0], SECOND, 3));
	assert_true(finds(&store, &keys[1], SECOND, 3));
	assert_true(finds(&store, &keys[2], SECOND, 3));
	assert_int_equal(store.bytes, 2 * bytes);
	scan_store_fini(&store);

	scan_store_init(&store, bytes - 1, 100 * SECOND);
	add(&store, &asked, GOHEAPD__MODE__MODE_FORK, 0);
	assert_false(finds(&store, &asked, SECOND, 0));
	scan_store_fini(&store);
}

static void what_nobody_may_ask_for_any_more_goes(void **state)
{
	struct scan_key other = asked;
	struct scan_store store;
	size_t bytes;

	(void)state;
	scan_store_init(&store, 1 << 20, 100 * SECOND);
	bytes = add(&store, &asked, GOHEAPD__MODE__MODE_FORK, 0);
	other.pid++;
	add(&store, &other, GOHEAPD__MODE__MODE_FORK, 101 * SECOND);
	assert_int_equal(store.bytes, bytes);
	scan_store_fini(&store);
	assert_int_equal(store.bytes, 0);
}

static void ids_differ(void **state)
{
	struct scan *first = NULL, *second = NULL;

	(void)state;
	assert_success(scan_new(&asked, NULL, 0, make_answer(GOHEAPD__MODE__MODE_FORK), &first));
	assert_success(scan_new(&asked, NULL, 0, make_answer(GOHEAPD__MODE__MODE_FORK), &second));
	assert_int_equal(strlen(first->id), 16);
	assert_string_not_equal(first->id, second->id);
	scan_release(first);
	scan_release(second);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_scan_answers_until_it_is_too_old),
		cmocka_unit_test(another_process_or_program_is_not_answered_for),
		cmocka_unit_test(mode_depth_and_parts_must_do),
		cmocka_unit_test(what_was_asked_of_labels_must_do),
		cmocka_unit_test(what_was_asked_of_objects_must_do),
		cmocka_unit_test(the_newest_answers),
		cmocka_unit_test(the_oldest_goes_when_there_is_no_room),
		cmocka_unit_test(what_nobody_may_ask_for_any_more_goes),
		cmocka_unit_test(ids_differ),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("scan store", tests, NULL, NULL);
}
