/*
 * The agent's configuration file and command line.
 */
#include "agent/agent_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/options.h"
#include "tests/support/assertions.h"

/* Reads a file of that text over the defaults. */
static struct error *read_text(const char *text, struct agent_config *ret)
{
	char path[] = "/tmp/goheapd-config-XXXXXX";
	int fd = mkstemp(path);
	struct error *err;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	agent_config_init(ret);
	err = agent_config_read(ret, path);
	unlink(path);
	return err;
}

static void an_empty_file_leaves_the_defaults(void **state)
{
	struct agent_config config;

	(void)state;
	assert_success(read_text("# nothing\n", &config));
	assert_int_equal(config.min_stop_interval_ms, 1000);
	assert_int_equal(config.max_scans, 4);
	assert_int_equal(config.max_scan_memory, 0);
	assert_int_equal(config.max_kept_scans, 8);
	assert_false(config.has_max_kept_memory);
	assert_null(config.user);
	assert_true(config.huge_page_weight == 0.25);
	assert_null(config.debug_dir);
	assert_int_equal(config.clone_allowed_cgroups.count, 0);
	assert_int_equal(config.clone_allowed_units.count, 0);
	agent_config_fini(&config);
}

static void every_key_is_taken(void **state)
{
	struct agent_config config;

	(void)state;
	assert_success(read_text("min_stop_interval = 0.25\nmax_scans = 9\n"
				 "max_scan_memory = 5000000000\nuser = \"somebody\"\n"
				 "clone_allowed_cgroups = {\"/docker/*\", \"/kubepods*\"}\n"
				 "clone_allowed_units = {\"shop.service\"}\n"
				 "huge_page_weight = 0.5\n"
				 "max_kept_scans = 0\nmax_kept_memory = 6000000000\n"
				 "debug_dir = \"/srv/debug\"\n",
				 &config));
	assert_int_equal(config.max_kept_scans, 0);
	assert_true(config.has_max_kept_memory);
	assert_int_equal(config.max_kept_memory, 6000000000);
	assert_int_equal(config.min_stop_interval_ms, 250);
	assert_int_equal(config.max_scans, 9);
	assert_int_equal(config.max_scan_memory, 5000000000);
	assert_string_equal(config.user, "somebody");
	assert_int_equal(config.clone_allowed_cgroups.count, 2);
	assert_string_equal(config.clone_allowed_cgroups.items[0], "/docker/*");
	assert_string_equal(config.clone_allowed_cgroups.items[1], "/kubepods*");
	assert_int_equal(config.clone_allowed_units.count, 1);
	assert_string_equal(config.clone_allowed_units.items[0], "shop.service");
	assert_true(config.huge_page_weight == 0.5);
	assert_string_equal(config.debug_dir, "/srv/debug");
	agent_config_fini(&config);
}

static void keys_of_the_daemon_are_passed_over(void **state)
{
	struct agent_config config;

	(void)state;
	assert_success(read_text("metric_labels = {\"tenant\"}\nmax_scans = 2\n", &config));
	assert_int_equal(config.max_scans, 2);
	agent_config_fini(&config);
}

static void values_out_of_range_are_refused_with_their_line(void **state)
{
	static const char *const texts[] = {
		"\nmin_stop_interval = -1\n",
		"\nmax_scans = 0\n",
		"\nmax_scans = 65\n",
		"\nmax_scan_memory = -1\n",
		"\nmax_kept_scans = -1\n",
		"\nmax_kept_scans = 65\n",
		"\nmax_kept_memory = -1\n",
		"\nmax_scans = many\n",
		"\nmax_scan = 3\n",
		"\nclone_allowed_units = {\"\"}\n",
		"\nhuge_page_weight = 1.01\n",
		"\nhuge_page_weight = -0.1\n",
		"\ndebug_dir = \"usr/lib/debug\"\n",
		"\ndebug_dir = \"\"\n",
		"\nmax_scans\n",
	};
	const size_t count = sizeof(texts) / sizeof(texts[0]);
	struct agent_config config;

	(void)state;
	for (size_t i = 0; i < count; i++) {
		struct error *err = read_text(texts[i], &config);

		print_message("# %s\n", err ? error_message(err) : "no error");
		assert_non_null(err);
		assert_int_equal(error_code(err), ERROR_FORMAT);
		assert_non_null(strstr(error_message(err), i + 1 < count ? ":2: " : ":3: "));
		error_free(err);
	}
}

static void lists_of_patterns_have_an_end(void **state)
{
	char *text scoped(freep) = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);
	struct agent_config config;

	(void)state;
	fputs("clone_allowed_cgroups = {", file);
	for (int i = 0; i < 65; i++)
		fprintf(file, "%s\"/a/%d\"", i ? ", " : "", i);
	fputs("}\n", file);
	fclose(file);
	assert_error(read_text(text, &config), ERROR_FORMAT);
	assert_int_equal(config.clone_allowed_cgroups.count, 0);
	agent_config_fini(&config);
}

static void a_missing_file_is_an_error(void **state)
{
	struct agent_config config;

	(void)state;
	agent_config_init(&config);
	assert_error(agent_config_read(&config, "/nonexistent/goheapd.conf"), ERROR_SYSTEM);
	agent_config_fini(&config);
}

/* ---- options ---- */

static struct error *parse(struct options *options, const char *first, const char *second)
{
	char program[] = "goheap-agent";
	char *arguments[] = { program, (char *)(uintptr_t)first, (char *)(uintptr_t)second, NULL };

	optind = 0; /* begin anew */
	opterr = 0;
	return options_parse(options, 1 + (first != NULL) + (second != NULL), arguments);
}

static void options_are_taken(void **state)
{
	struct options options;

	(void)state;
	assert_success(parse(&options, NULL, NULL));
	assert_int_equal(options.socket_fd, -1);
	assert_null(options.listen);
	assert_success(parse(&options, "--socket-fd=5", "--max-scan-memory=123456789012"));
	assert_int_equal(options.socket_fd, 5);
	assert_true(options.has_max_scan_memory);
	assert_int_equal(options.max_scan_memory, 123456789012);
	assert_success(parse(&options, "--listen", "/run/x"));
	assert_string_equal(options.listen, "/run/x");
	assert_success(parse(&options, "--help", "--version"));
	assert_true(options.help && options.version);
}

static void wrong_options_are_refused(void **state)
{
	static const char *const wrong[][2] = {
		{ "--socket-fd=-1", NULL },
		{ "--socket-fd=", NULL },
		{ "--socket-fd=3x", NULL },
		{ "--socket-fd=4294967296", NULL },
		{ "--max-scan-memory=1e9", NULL },
		{ "--unknown", NULL },
		{ "an argument", NULL },
		{ "--listen=/x", "--socket-fd=3" },
		{ "--listen", NULL },
	};
	struct options options;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_error(parse(&options, wrong[i][0], wrong[i][1]), ERROR_BAD_REQUEST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_file_leaves_the_defaults),
		cmocka_unit_test(every_key_is_taken),
		cmocka_unit_test(keys_of_the_daemon_are_passed_over),
		cmocka_unit_test(values_out_of_range_are_refused_with_their_line),
		cmocka_unit_test(lists_of_patterns_have_an_end),
		cmocka_unit_test(a_missing_file_is_an_error),
		cmocka_unit_test(options_are_taken),
		cmocka_unit_test(wrong_options_are_refused),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("agent config", tests, NULL, NULL);
}
