#include "cli/labels.h"
#include "cli/options.h"
#include "cli/paint.h"
#include "daemon/scan_ask.h"

#include "tests/support/assertions.h"

enum { ARGS_MAX = 80 };

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
	assert_int_equal(options.command->parts, SCAN_MEMORY | SCAN_LABELS);
	assert_string_equal(options.process, "1234");
	assert_true(options.json);
	assert_int_equal(options.params.mode, GOHEAPD__MODE__MODE_STOP);
	assert_int_equal(options.params.max_pause_us, 500000);
	assert_int_equal(options.given_count, 2);
	assert_string_equal(options.given[1].name, "max_pause");
	assert_string_equal(options.given[1].value, "0.5");
}

static void labels_may_be_several(void **state)
{
	struct options options;

	(void)state;
	assert_success(parse("memusage 1 --label b=1 --label a=2 --by @module --detail", &options));
	assert_int_equal(options.params.labels.select_count, 2);
	assert_memory_equal(options.params.labels.select[0].key.data, "a", 1);
	assert_true(options.params.labels.has_by);
	assert_true(options.params.labels.detail);
	assert_int_equal(options.given_count, 4);
	assert_string_equal(options.given[1].name, "label");
	assert_string_equal(options.given[1].value, "a=2");
	assert_string_equal(options.given[3].value, "1");
	assert_success(parse("labels 1", &options));
	assert_int_equal(options.params.depth, GOHEAPD__DEPTH__DEPTH_CENSUS);
}

static void profiles_have_options_of_their_own(void **state)
{
	struct options options;

	(void)state;
	assert_success(parse("profile 7 -o f.pb.gz --max-depth 5 --labels --by @module", &options));
	assert_string_equal(options.output, "f.pb.gz");
	assert_int_equal(options.params.max_depth, 5);
	assert_true(options.params.with_labels && options.params.labels.has_by);
	assert_int_equal(options.given_count, 3);
	assert_string_equal(options.given[0].name, "max_depth");
	assert_success(parse("top 7 --top 3 --min-bytes 10", &options));
	assert_int_equal(options.params.top, 3);
	assert_int_equal(options.given_count, 1); /* the daemon is not told how many rows */
	assert_string_equal(options.given[0].name, "min_bytes");
	assert_success(parse("why 7 main.Order", &options));
	assert_string_equal(options.subject, "main.Order");
	assert_success(parse("diff 7 --over 5m", &options));
	assert_int_equal(options.params.over_us, 300000000);
	assert_success(parse("diff 7 --since 0123456789abcdef", &options));
	assert_error(parse("diff 7", &options), ERROR_BAD_REQUEST);
	assert_error(parse("diff 7 --direct --since 0123456789abcdef", &options),
		     ERROR_BAD_REQUEST);
	assert_error(parse("why 7", &options), ERROR_BAD_REQUEST);
	assert_error(parse("why 7 a b", &options), ERROR_BAD_REQUEST);
	assert_error(parse("profile 7 --format json", &options), ERROR_BAD_REQUEST);
	assert_error(parse("profile 7 --depth census", &options), ERROR_BAD_REQUEST);
	assert_error(parse("top 7 -o x", &options), ERROR_BAD_REQUEST);
	assert_error(parse("memusage 7 --top 3", &options), ERROR_BAD_REQUEST);
	assert_error(parse("top 7 --max-depth 0", &options), ERROR_BAD_REQUEST);
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
	assert_false(options.direct);
	assert_success(parse("memusage 1 --max-scan-memory 123456789012", &options));
	assert_int_equal(options.max_scan_memory, 123456789012);
	assert_true(options.direct);
}

static void scans_are_kept_and_asked(void **state)
{
	struct options options;

	(void)state;
	assert_success(parse("memusage 1 --keep 2.5", &options));
	assert_int_equal(options.params.keep_us, 2500000);
	assert_error(options_check_direct(&options), ERROR_BAD_REQUEST);
	assert_success(parse("memusage 1 --scan 0123456789abcdef", &options));
	assert_string_equal(options.params.scan, "0123456789abcdef");
	assert_error(options_check_direct(&options), ERROR_BAD_REQUEST);
	assert_success(parse("scans 1", &options));
	assert_string_equal(options.command->endpoint, "/scans");
	assert_error(options_check_direct(&options), ERROR_BAD_REQUEST);
	assert_success(parse("memusage 1 --keep 0", &options));
	assert_success(options_check_direct(&options));
}

static void questions_about_objects_are_taken(void **state)
{
	struct options options;

	(void)state;
	assert_success(parse("object checkout 0xc000123000 --contents", &options));
	assert_string_equal(options.process, "checkout");
	assert_string_equal(options.address, "0xc000123000");
	assert_true(options.params.object == 0xc000123000);
	assert_true(options.params.contents);
	assert_ptr_equal(options.command->query, object_query_object);
	assert_success(
	    parse("objects 1 --type main.T --min-bytes 9 --limit 7 --cursor ab.1", &options));
	assert_null(options.address);
	assert_int_equal(options.params.limit, 7);
	assert_int_equal(options.params.cursor.count, 1);
	assert_string_equal(options.given[1].name, "min_bytes");
	assert_success(parse("histogram 1 --top 20 --retained --garbage", &options));
	assert_int_equal(options.params.top, 20);
	assert_success(parse("dominators 1 --object 0xc000", &options));
	assert_true(options.params.has_object);
	assert_error(parse("object 1", &options), ERROR_BAD_REQUEST);
	assert_error(parse("object 1 c000", &options), ERROR_BAD_REQUEST);
	assert_error(parse("object 1 0xc000 0xc001", &options), ERROR_BAD_REQUEST);
	assert_error(parse("histogram 1 0xc000", &options), ERROR_BAD_REQUEST);
	assert_error(parse("histogram 1 --limit 5", &options), ERROR_BAD_REQUEST);
	assert_error(parse("objects 1 --cursor nonsense", &options), ERROR_BAD_REQUEST);
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
		"memusage 1 --max-scan-memory 0",
		"memusage 1 --max-scan-memory 1G",
		"memusage 1 --max-scan-memory 1000 --socket /x",
		"memusage 1 --label tenant",
		"memusage 1 --by @nothing",
		"memusage 1 --by a --by b",
		"labels 1 --depth full",
		"labels 1 --label a=b",
		"goroutines 1 --by a",
		"memusage 1 --keep 86401",
		"memusage 1 --keep -1",
		"memusage 1 --scan x",
		"memusage 1 --scan 0123456789abcdeg",
		"memusage 1 --keep 5 --direct",
		"memusage 1 --scan 0123456789abcdef --direct",
		"scans 1 --direct",
		"scans 1 --keep 5",
		"labels 1 --keep 5",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct options options;

		assert_error(parse(wrong[i], &options), ERROR_BAD_REQUEST);
	}
}

static void labels_have_errors_of_their_own(void **state)
{
	char line[1024] = "memusage 1";
	struct options options;

	(void)state;
	assert_error(parse("memusage 1 --label =a", &options), ERROR_EMPTY_LABEL_KEY);
	for (int i = 0; i < 65; i++)
		snprintf(line + strlen(line), sizeof(line) - strlen(line), " --label=a=%d", i);
	assert_error(parse(line, &options), ERROR_TOO_MANY_LABELS);
}

static struct error *table_of(const char *answer, struct text *table)
{
	struct text json;
	struct error *err;

	text_init(&json);
	text_string(&json, answer);
	text_init(table);
	err = labels_table(&json, table);
	text_fini(&json);
	return err;
}

static void a_census_becomes_a_table(void **state)
{
	static const char answer[] =
	    "{\"comm\":\"shop\\u001b\",\"pid\":12,\"go_version\":\"go1.26\","
	    "\"scan\":{\"pause_seconds\":0.0113},\"labels\":{"
	    "\"status\":{\"decoded\":3,\"no_labels\":1,\"malformed\":1200},\"sets\":["
	    "{\"labels\":{\"job\":\"a b\"},\"goroutines\":3,\"stack_bytes\":2048},"
	    "{\"labels\":{\"k\":\"\\u0000\",\"t\":\"x\"},\"goroutines\":4000,"
	    "\"stack_bytes\":8388608}],"
	    "\"unlabelled\":{\"goroutines\":1,\"stack_bytes\":0},"
	    "\"system\":{\"goroutines\":5,\"stack_bytes\":40960}}}";
	struct text table;

	(void)state;
	assert_success(table_of(answer, &table));
	text_append(&table, "", 1);
	assert_string_equal((const char *)table.bytes.data,
			    "shop\\x1b pid 12 go1.26 | 2 label sets | stopped 11.3 ms\n"
			    "!! labels could not be read: malformed 1,200\n"
			    "GOROUTINES      STACKS  LABELS\n"
			    "     4,000    8.00 MiB  k=\"\\x00\",t=x\n"
			    "         3    2.00 KiB  job=\"a b\"\n"
			    "         1         0 B  no label\n"
			    "         5    40.0 KiB  system\n");
	text_fini(&table);
}

static void what_is_no_census_is_an_error(void **state)
{
	static const char *const bad[] = {
		"", "{", "[]", "{}", "{\"labels\":null}", "{\"labels\":{}}"
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct text table;

		assert_error(table_of(bad[i], &table), ERROR_SYSTEM);
		text_fini(&table);
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
		cmocka_unit_test(profiles_have_options_of_their_own),
		cmocka_unit_test(options_may_stand_anywhere),
		cmocka_unit_test(scans_are_kept_and_asked),
		cmocka_unit_test(questions_about_objects_are_taken),
		cmocka_unit_test(help_needs_no_process),
		cmocka_unit_test(wrong_lines_are_refused),
		cmocka_unit_test(labels_may_be_several),
		cmocka_unit_test(labels_have_errors_of_their_own),
		cmocka_unit_test(a_census_becomes_a_table),
		cmocka_unit_test(what_is_no_census_is_an_error),
		cmocka_unit_test(painting_adds_colours_and_nothing_else),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("goheap", tests, NULL, NULL);
}
