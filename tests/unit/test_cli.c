#include "cli/options.h"
#include "cli/paint.h"
#include "daemon/scan_ask.h"

#include "tests/support/assertions.h"

enum { ARGS_MAX = 40 };

static struct error *parse(const char *line, struct options *ret)
{
	static char copy[1024];
	char *argv[ARGS_MAX] = { "goheap" };
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	return options_parse(argc, argv, ret);
}

static void a_command_and_its_options_are_taken(void **state)
{
	struct options options;

	(void)state;
	assert_success(parse("memusage 1234 --mode stop --max-pause 0.5 --format json", &options));
	assert_string_equal(options.command->name, "memusage");
	assert_int_equal(options.command->parts, SCAN_MEMORY);
	assert_string_equal(options.process, "1234");
	assert_true(options.json);
	assert_int_equal(options.params.mode, GOHEAPD__MODE__MODE_STOP);
	assert_int_equal(options.params.max_pause_us, 500000);
	assert_int_equal(options.given_count, 2);
	assert_string_equal(options.given[1].name, "max_pause");
	assert_string_equal(options.given[1].value, "0.5");
}

static void options_may_stand_anywhere(void **state)
{
	struct options options;

	(void)state;
	assert_success(parse("--dead goroutines --timeout 5 checkout", &options));
	assert_string_equal(options.command->name, "goroutines");
	assert_string_equal(options.process, "checkout");
	assert_true(options.params.dead);
	assert_success(parse("overview 1", &options));
	assert_string_equal(options.command->name, "show");
	assert_success(parse("pids", &options));
	assert_null(options.process);
}

static void help_needs_no_process(void **state)
{
	struct options options;

	(void)state;
	assert_success(parse("--help", &options));
	assert_int_equal(options.action, OPTIONS_HELP);
	assert_null(options.command);
	assert_success(parse("memusage --help", &options));
	assert_string_equal(options.command->name, "memusage");
	assert_success(parse("--version", &options));
	assert_int_equal(options.action, OPTIONS_VERSION);
}

static void wrong_lines_are_refused(void **state)
{
	static const char *const wrong[] = {
		"",
		"memusge 1",
		"memusage",
		"memusage 1 2",
		"pids 1",
		"memusage 1 --mode gently",
		"memusage 1 --timeout 0",
		"memusage 1 --dead",
		"show 1 --mode fork",
		"memusage 1 --format pdf",
		"memusage 1 --mode fork --mode fork",
		"memusage 1 --direct --socket /x",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct options options;

		assert_error(parse(wrong[i], &options), ERROR_BAD_REQUEST);
	}
}

static void painting_adds_colours_and_nothing_else(void **state)
{
	static const char page[] = "head\n!! alarm\nRSS 1 x\n     plain\nlast";
	char *painted = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&painted, &size);

	(void)state;
	assert_non_null(stream);
	assert_true(paint_text(stream, page, strlen(page)));
	fclose(stream);
	assert_string_equal(painted, "\033[1mhead\033[0m\n\033[1;31m!! alarm\033[0m\n"
				     "\033[1mRSS\033[0m 1 x\n     plain\nlast\n");
	free(painted);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_command_and_its_options_are_taken),
		cmocka_unit_test(options_may_stand_anywhere),
		cmocka_unit_test(help_needs_no_process),
		cmocka_unit_test(wrong_lines_are_refused),
		cmocka_unit_test(painting_adds_colours_and_nothing_else),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("goheap", tests, NULL, NULL);
}
