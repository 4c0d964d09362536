#include "daemon/config.h"

#include <fcntl.h>

#include "proto/base/config_text.h"
#include "tests/support/assertions.h"

static char path[64];

/* Writes a file and reads it as the configuration. */
static struct error *read_text(const char *text, struct config *config)
{
	int fd;

	strcpy(path, "/tmp/goheapd-config-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	config_init(config);
	return config_read(config, path);
}

static void finish(struct config *config)
{
	unlink(path);
	config_fini(config);
}

static void an_empty_file_changes_nothing(void **state)
{
	struct config config;

	(void)state;
	assert_success(read_text("# nothing\n", &config));
	assert_int_equal(config.min_stop_interval_us, 1000000);
	assert_int_equal(config.max_scans, 4);
	assert_int_equal(config.max_scan_memory, 0);
	assert_null(config.user);
	assert_int_equal(config.metrics.label_count, 0);
	assert_int_equal(config.metrics.series_max, 20);
	finish(&config);
}

static void every_key_is_read(void **state)
{
	struct config config;

	(void)state;
	assert_success(read_text("min_stop_interval = 2.5\nmax_scans = 7\n"
				 "max_scan_memory = 4294967296\nuser = \"nobody-else\"\n"
				 "metric_labels = {\"tenant\", \"job.id\"}\n"
				 "metric_series_max = 1000\n",
				 &config));
	assert_int_equal(config.min_stop_interval_us, 2500000);
	assert_int_equal(config.max_scans, 7);
	assert_true(config.max_scan_memory == 4294967296);
	assert_string_equal(config.user, "nobody-else");
	assert_int_equal(config.metrics.label_count, 2);
	assert_string_equal(config.metrics.labels[0].key, "tenant");
	assert_string_equal(config.metrics.labels[1].key, "job.id");
	assert_string_equal(config.metrics.labels[1].name, "label_job_id");
	assert_int_equal(config.metrics.series_max, 1000);
	finish(&config);
}

/* Each is wrong in line 3. */
static void errors_name_file_and_line(void **state)
{
	static const struct {
		const char *line, *word;
	} wrong[] = {
		{ "max_scan = 3", "max_scan" },
		{ "max_scans = many", "max_scans" },
		{ "max_scans = 0", "max_scans" },
		{ "max_scans = 65", "max_scans" },
		{ "min_stop_interval = -1", "min_stop_interval" },
		{ "min_stop_interval = 86401", "min_stop_interval" },
		{ "max_scan_memory = -5", "max_scan_memory" },
		{ "user = \"\"", "user" },
		{ "max_scans 3", "max_scans" },
		{ "metric_series_max = 0", "metric_series_max" },
		{ "metric_series_max = 1001", "metric_series_max" },
		{ "metric_labels = {\"\"}", "metric_labels" },
		{ "metric_labels = {\"a\", \"\"}", "metric_labels" },
		{ "metric_labels = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17}", "metric_labels" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		char text[128], place[96];
		struct config config;
		struct error *err;

		snprintf(text, sizeof(text), "# one\nmin_stop_interval = 3\n%s\n", wrong[i].line);
		err = read_text(text, &config);
		assert_non_null(err);
		assert_int_equal(error_code(err), ERROR_FORMAT);
		snprintf(place, sizeof(place), "%s:3: ", path);
		print_message("# %s\n", error_message(err));
		assert_ptr_equal(strstr(error_message(err), place), error_message(err));
		assert_int_equal(config.min_stop_interval_us, 1000000);
		error_free(err);
		finish(&config);
	}
}

static void keys_that_would_be_one_label_are_refused(void **state)
{
	struct config config;
	struct error *err = read_text("metric_labels = {\"a.b\", \"c\", \"a-b\"}\n", &config);

	(void)state;
	assert_non_null(err);
	assert_int_equal(error_code(err), ERROR_FORMAT);
	assert_non_null(
	    strstr(error_message(err), "\"a.b\" and \"a-b\" would both be the label label_a_b"));
	assert_int_equal(config.metrics.label_count, 0);
	error_free(err);
	finish(&config);
}

static void comments_are_blanked_and_lines_kept(void **state)
{
	static const struct {
		const char *text, *blanked;
	} cases[] = {
		{ "a # b\nc", "a    \nc" },
		{ "// b\nc", "    \nc" },
		{ "a /* b\n*/c", "a     \n  c" },
		{ "\"# no\" #", "\"# no\"  " },
		{ "'\\'#' #", "'\\'#'  " },
		{ "/* open\n", "       \n" },
		{ "\"open #", "\"open #" },
		{ "/", "/" },
		{ "\"\\", "\"\\" },
		{ "/*/", "   " },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		size_t size = strlen(cases[i].text);
		struct tail_copy copy = tail_copy(cases[i].text, size);

		config_text_blank((char *)copy.bytes, size);
		assert_memory_equal(copy.bytes, cases[i].blanked, size);
		tail_copy_fini(&copy);
	}
}

static void a_file_that_is_not_there_is_an_error(void **state)
{
	struct config config;

	(void)state;
	config_init(&config);
	assert_error(config_read(&config, "/nowhere/goheapd.conf"), ERROR_SYSTEM);
	config_fini(&config);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_file_changes_nothing),
		cmocka_unit_test(every_key_is_read),
		cmocka_unit_test(errors_name_file_and_line),
		cmocka_unit_test(keys_that_would_be_one_label_are_refused),
		cmocka_unit_test(comments_are_blanked_and_lines_kept),
		cmocka_unit_test(a_file_that_is_not_there_is_an_error),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("daemon config", tests, NULL, NULL);
}
