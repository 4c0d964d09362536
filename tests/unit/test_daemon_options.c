#include "daemon/options.h"

#include "tests/support/assertions.h"

enum { ARGS_MAX = 40 };

/* Parses a line of words that spaces separate. */
static struct error *parse(const char *line, struct options *ret)
{
	static char copy[1024];
	char *argv[ARGS_MAX] = { "goheapd" };
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	return options_parse(argc, argv, ret);
}

static void every_option_is_taken(void **state)
{
	struct options options;

	(void)state;
	assert_success(parse("--listen 127.0.0.1:1 --listen [::1]:2 --socket /s --config /c "
			     "--run-dir /r --cache-dir /k --state-dir /t --agent /a "
			     "--max-scan-memory 1000000",
			     &options));
	assert_int_equal(options.action, OPTIONS_RUN);
	assert_int_equal(options.listen_count, 2);
	assert_string_equal(options.listen[1], "[::1]:2");
	assert_string_equal(options.socket, "/s");
	assert_string_equal(options.config, "/c");
	assert_string_equal(options.run_dir, "/r");
	assert_string_equal(options.cache_dir, "/k");
	assert_string_equal(options.state_dir, "/t");
	assert_string_equal(options.agent, "/a");
	assert_null(options.agent_socket);
	assert_int_equal(options.max_scan_memory, 1000000);
}

static void help_and_version_go_first(void **state)
{
	struct options options;

	(void)state;
	assert_success(parse("--help", &options));
	assert_int_equal(options.action, OPTIONS_HELP);
	assert_success(parse("--version", &options));
	assert_int_equal(options.action, OPTIONS_VERSION);
}

static void wrong_lines_are_refused(void **state)
{
	static const char *const wrong[] = {
		"extra",
		"--agent /a --agent-socket /b",
		"--max-scan-memory 0",
		"--max-scan-memory -1",
		"--max-scan-memory 1G",
		"--listen a --listen a --listen a --listen a --listen a --listen a --listen a "
		"--listen a --listen a --listen a --listen a --listen a --listen a --listen a "
		"--listen a --listen a --listen a",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct options options;

		assert_error(parse(wrong[i], &options), ERROR_BAD_REQUEST);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_option_is_taken),
		cmocka_unit_test(help_and_version_go_first),
		cmocka_unit_test(wrong_lines_are_refused),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("daemon options", tests, NULL, NULL);
}
