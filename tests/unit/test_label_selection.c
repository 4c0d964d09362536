/* Which goroutines a selection takes, and when it must not answer; labels are made up here. */
#include "tests/support/assertions.h"

#include <string.h>

#include "agent/goruntime/goroutine.h"
#include "agent/report/label_selection.h"

enum { GOROUTINES_MAX = 4 };

/* What agent/goruntime would say. */
struct goroutine_table {
	struct goroutine goroutines[GOROUTINES_MAX];
	uint32_t count;
};

struct label_table {
	struct label_set sets[GOROUTINES_MAX];
	uint64_t unreadable;
};

uint32_t goroutine_table_count(const struct goroutine_table *table)
{
	return table->count;
}

const struct goroutine *goroutine_table_at(const struct goroutine_table *table, uint32_t index)
{
	return &table->goroutines[index];
}

bool goroutine_is_alive(const struct goroutine *g)
{
	return g->status != GOROUTINE_DEAD;
}

const struct label_set *label_table_of(const struct label_table *table, uint32_t goroutine)
{
	return &table->sets[goroutine];
}

uint64_t label_table_status(const struct label_table *table, enum label_status status)
{
	return status == LABEL_G_MISSING ? table->unreadable : 0;
}

/* Keys are letters here: a set might have what begins with a letter of its error. */
bool label_set_might_have(const struct label_set *set, const struct label *label)
{
	return strchr(set->error, label->key.bytes[0]) != NULL;
}

static struct label with_key(const char *key)
{
	return (struct label){ .key = { (const uint8_t *)key, 1 } };
}

static void all_labels_must_match(void **state)
{
	struct label labels[] = { with_key("a"), with_key("b") };
	struct label_selection selection = { labels, 2 };
	struct label_set set = { .status = LABEL_DECODED, .error = "ab" };

	(void)state;
	assert_true(label_selection_matches(&selection, &set));
	set.error = "a";
	assert_false(label_selection_matches(&selection, &set));
	set.error = "abc";
	set.status = LABEL_TEXT_MISSING;
	assert_false(label_selection_matches(&selection, &set));
	set.status = LABEL_DECODED;
	selection.count = 0;
	assert_false(label_selection_matches(&selection, &set));
}

static void assert_check(const struct label_selection *selection, struct label_set set,
			 struct goroutine g, enum error_code code)
{
	struct goroutine_table goroutines = { .count = 1 };
	struct label_table labels = { .unreadable = 0 };
	struct error *err;

	goroutines.goroutines[0] = g;
	labels.sets[0] = set;
	err = label_selection_check(selection, &goroutines, &labels);
	if (code)
		assert_error(err, code);
	else
		assert_success(err);
}

static void what_might_match_and_cannot_be_read_is_refused(void **state)
{
	struct label labels[] = { with_key("a") };
	const struct label_selection selection = { labels, 1 };
	const struct goroutine waiting = { .status = GOROUTINE_WAITING };
	const struct goroutine system = { .status = GOROUTINE_WAITING, .system = true };
	const struct goroutine dead = { .status = GOROUTINE_DEAD };
	static const struct {
		enum label_status status;
		enum error_code code; /* 0: none */
	} cases[] = {
		{ LABEL_DECODED, 0 },
		{ LABEL_NONE, 0 },
		{ LABEL_UNSUPPORTED, ERROR_UNSUPPORTED },
		{ LABEL_OBJECT_MISSING, ERROR_LABEL_RECOVERY_FAILED },
		{ LABEL_ARRAY_MISSING, ERROR_LABEL_RECOVERY_FAILED },
		{ LABEL_TEXT_MISSING, ERROR_STRING_MISSING },
		{ LABEL_MALFORMED, ERROR_LABEL_RECOVERY_FAILED },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct label_set set = { .status = cases[i].status, .error = "a" };

		assert_check(&selection, set, waiting, cases[i].code);
		assert_check(&selection, set, system, 0);
		assert_check(&selection, set, dead, 0);
		set.error = "b"; /* what is known of it rules it out */
		assert_check(&selection, set, waiting, 0);
	}
}

static void a_goroutine_that_cannot_be_read_might_be_any(void **state)
{
	struct label labels[] = { with_key("a") };
	struct label_selection selection = { labels, 1 };
	const struct goroutine_table goroutines = { .count = 0 };
	const struct label_table table = { .unreadable = 1 };

	(void)state;
	assert_error(label_selection_check(&selection, &goroutines, &table),
		     ERROR_LABEL_RECOVERY_FAILED);
	selection.count = 0;
	assert_success(label_selection_check(&selection, &goroutines, &table));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_labels_must_match),
		cmocka_unit_test(what_might_match_and_cannot_be_read_is_refused),
		cmocka_unit_test(a_goroutine_that_cannot_be_read_might_be_any),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
