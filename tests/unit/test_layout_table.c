#include "agent/goruntime/layout_table.h"

#include "agent/goruntime/global_find.h"
#include "agent/goruntime/layout.h"
#include "tests/support/assertions.h"

static void assert_found(const char *version, const char *expected, enum layout_match match)
{
	const struct layout_table_entry *entry = NULL;

	assert_int_equal(layout_table_find("amd64", version, &entry), match);
	if (match != LAYOUT_MATCH_NONE)
		assert_string_equal(entry->version, expected);
}

static void every_entry_is_found_by_its_own_version(void **state)
{
	size_t count;
	const struct layout_table_entry *entries = layout_table_entries("amd64", &count);

	(void)state;
	assert_true(count >= 9);
	for (size_t i = 0; i < count; i++)
		assert_found(entries[i].version, entries[i].version, LAYOUT_MATCH_EXACT);
}

static void other_architectures_have_tables_of_their_own(void **state)
{
	const struct layout_table_entry *amd64 = NULL, *arm64 = NULL;
	size_t count = 1;

	(void)state;
	assert_int_equal(layout_table_find("amd64", "go1.27.4", &amd64), LAYOUT_MATCH_EXACT);
	assert_int_equal(layout_table_find("arm64", "go1.27.4", &arm64), LAYOUT_MATCH_EXACT);
	/* runtime/malloc.go: addresses are offset on amd64 alone */
	assert_int_equal((uint64_t)amd64->layout->const_arena_base.value, 0xffff800000000000);
	assert_int_equal(arm64->layout->const_arena_base.value, 0);
	assert_null(layout_table_entries("riscv64", &count));
	assert_int_equal(count, 0);
	assert_int_equal(layout_table_find("riscv64", "go1.27.4", &arm64), LAYOUT_MATCH_NONE);
}

static void versions_are_known_as_older_toolchains_spell_them(void **state)
{
	(void)state;
	assert_found("go1.25.12 X:greenteagc", "go1.25.12-X:greenteagc", LAYOUT_MATCH_EXACT);
}

static void the_nearest_has_the_closest_version_and_no_experiment_of_its_own(void **state)
{
	(void)state;
	assert_found("go1.26.3", "go1.26.11", LAYOUT_MATCH_NEAREST);
	assert_found("go1.26rc1", "go1.26.11", LAYOUT_MATCH_NEAREST);
	assert_found("go1.20.1", "go1.21.13", LAYOUT_MATCH_NEAREST);
	assert_found("go1.18.9", "go1.19.8", LAYOUT_MATCH_NEAREST);
	assert_found("go1.99", "go1.27.4", LAYOUT_MATCH_NEAREST);
	assert_found("devel go1.28-3a8b1f Mon Jan 1", "go1.27.4", LAYOUT_MATCH_NEAREST);
	assert_found("go1.26.11-X:nogreenteagc,arenas", "go1.26.11-X:nogreenteagc",
		     LAYOUT_MATCH_NEAREST);
	assert_found("go1.26.11-X:arenas", "go1.26.11", LAYOUT_MATCH_NEAREST);
}

static void what_is_no_version_matches_nothing(void **state)
{
	static const char *const texts[] = { "", "go", "go1.", "go2.1", "1.26", "go1.x", "devel" };

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_found(texts[i], NULL, LAYOUT_MATCH_NONE);
}

/* Without witnesses a global could never be found; the modules are found in another way. */
static void every_global_that_a_runtime_has_has_witnesses(void **state)
{
	size_t count;
	const struct layout_table_entry *entries = layout_table_entries("amd64", &count);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		bool seen[LAYOUT_GLOBAL_COUNT] = { false };
		struct layout *layout = NULL;

		assert_success(layout_copy(entries[i].layout, &layout));
		for (size_t j = 0; j < entries[i].ref_count; j++) {
			const struct global_ref *ref = &entries[i].refs[j];

			assert_true(ref->offset < layout_global(layout, ref->global)->size);
			seen[ref->global] = true;
		}
		for (enum layout_global_id id = 0; id < LAYOUT_GLOBAL_COUNT; id++)
			if (id != LAYOUT_GLOBAL_firstmoduledata &&
			    layout_global(layout, id)->size && !seen[id])
				fail_msg("%s: no witness of %s", entries[i].version,
					 layout_global_name(id));
		layout_free(layout);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_entry_is_found_by_its_own_version),
		cmocka_unit_test(other_architectures_have_tables_of_their_own),
		cmocka_unit_test(versions_are_known_as_older_toolchains_spell_them),
		cmocka_unit_test(the_nearest_has_the_closest_version_and_no_experiment_of_its_own),
		cmocka_unit_test(what_is_no_version_matches_nothing),
		cmocka_unit_test(every_global_that_a_runtime_has_has_witnesses),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
