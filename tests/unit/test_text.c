#include "daemon/text.h"

#include "daemon/json_fields.h"
#include "daemon/render_text_common.h"
#include "daemon/utf8.h"
#include "tests/support/assertions.h"

static ProtobufCBinaryData bytes_of(const char *string)
{
	return (ProtobufCBinaryData){ .len = strlen(string), .data = (uint8_t *)(uintptr_t)string };
}

static void check_text(struct text *text, const char *expected)
{
	assert_success(text_finish(text));
	text_append(text, "", 1);
	assert_string_equal((const char *)text->bytes.data, expected);
	text_fini(text);
	text_init(text);
}

static void invalid_utf8_becomes_replacements(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{ "plain", "plain" },
		{ "Gr\xc3\xbc\xc3\x9f \xe4\xbd\xa0 \xf0\x9f\x98\x80",
		  "Gr\xc3\xbc\xc3\x9f \xe4\xbd\xa0 \xf0\x9f\x98\x80" },
		{ "a\xff"
		  "b",
		  "a\xef\xbf\xbd"
		  "b" },
		{ "\xc3", "\xef\xbf\xbd" },                 /* cut */
		{ "\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd" }, /* too long a form of '/' */
		{ "\xe0\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xed\xa0\x80",
		  "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" }, /* half a surrogate pair */
		{ "\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xf0\x9f\x98", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		size_t length = strlen(cases[i].in), size = 0;
		struct tail_copy copy = tail_copy(cases[i].in, length);
		char *clean = utf8_clean(copy.bytes, length, &size);

		assert_string_equal(clean, cases[i].out);
		assert_int_equal(size, strlen(cases[i].out));
		free(clean);
		tail_copy_fini(&copy);
	}
}

static void a_terminal_gets_nothing_to_obey(void **state)
{
	struct text text;

	(void)state;
	text_init(&text);
	text_escaped(&text, bytes_of("a\x1b[2J\r\n\tb\x7f"), 100);
	check_text(&text, "a\\x1b[2J\\x0d\\x0a\\x09b\\x7f");
	text_escaped(&text,
		     bytes_of("\xc2\x9b"
			      "x\xe2\x80\xae"
			      "y\xe2\x81\xa6"),
		     100);
	check_text(&text, "\\x9bx\\u202ey\\u2066");
	assert_int_equal(text_escaped(&text, (ProtobufCBinaryData){ 0 }, 100), 0);
	text_escaped(&text, bytes_of("ab\xff"), 100);
	check_text(&text, "ab\xef\xbf\xbd");
	text_fini(&text);
}

static void long_names_are_cut(void **state)
{
	struct text text;

	(void)state;
	text_init(&text);
	assert_int_equal(text_escaped(&text, bytes_of("abcdef"), 6), 6);
	check_text(&text, "abcdef");
	assert_int_equal(text_escaped(&text, bytes_of("abcdefg"), 6), 6);
	check_text(&text, "abcde\xe2\x80\xa6");
	assert_int_equal(text_escaped(&text, bytes_of("\xc3\xbc\xc3\xbc\xc3\xbc"), 2), 2);
	check_text(&text, "\xc3\xbc\xe2\x80\xa6");
	text_fini(&text);
}

static void columns_are_counted_in_characters(void **state)
{
	struct text text;

	(void)state;
	text_init(&text);
	text_string(&text, "first line\n\xc3\xbc");
	text_pad(&text, 4, 1);
	text_string(&text, "x");
	text_pad(&text, 4, 2);
	text_string(&text, "y   ");
	text_end_line(&text);
	check_text(&text, "first line\n\xc3\xbc   x  y\n");
	text_fini(&text);
}

static void sizes_counts_and_durations_read_well(void **state)
{
	struct text text;

	(void)state;
	text_init(&text);
	text_size(&text, 0);
	text_string(&text, " ");
	text_size(&text, 1023);
	text_string(&text, " ");
	text_size(&text, 1024);
	text_string(&text, " ");
	text_size(&text, 12288);
	text_string(&text, " ");
	text_size(&text, 310ull << 20);
	text_string(&text, " ");
	text_size(&text, UINT64_MAX);
	check_text(&text, "0 B 1023 B 1.00 KiB 12.0 KiB 310 MiB 16777216 TiB");
	text_count(&text, 7);
	text_string(&text, " ");
	text_count(&text, 1000);
	text_string(&text, " ");
	text_count(&text, UINT64_MAX);
	check_text(&text, "7 1,000 18,446,744,073,709,551,615");
	text_duration(&text, 59);
	text_string(&text, " ");
	text_duration(&text, 3599);
	text_string(&text, " ");
	text_duration(&text, 3 * 3600 + 720);
	text_string(&text, " ");
	text_duration(&text, 6 * 86400 + 4 * 3600);
	check_text(&text, "59s 59m 3h12m 6d4h");
	text_fini(&text);
}

static void a_long_note_is_folded(void **state)
{
	struct text text;

	(void)state;
	text_init(&text);
	text_note(&text, "WARN",
		  bytes_of("a word and another word and more words until the line is full, which "
			   "happens about here or a little later"));
	check_text(&text, "WARN   a word and another word and more words until the line is full, "
			  "which happens about here\n       or a little later\n");
	text_fini(&text);
}

static void json_holds_any_bytes_and_any_number(void **state)
{
	struct json_fields fields;
	struct text text;
	json_t *object = NULL;

	(void)state;
	text_init(&text);
	json_fields_init(&fields);
	json_add_bytes(&fields, "nothing", (ProtobufCBinaryData){ 0 });
	json_add_bytes(&fields, "name", bytes_of("a\"\\\x01\xff"));
	json_add_u64(&fields, "max", INT64_MAX);
	json_add_u64(&fields, "beyond", UINT64_MAX);
	json_add_address(&fields, "address", 0xc000123000);
	json_add_seconds(&fields, "pause", 11300);
	json_add_time(&fields, "time", 1770087491250000000);
	assert_success(json_fields_finish(&fields, &object));
	json_write(&text, object);
	check_text(&text, "{\"nothing\":\"\",\"name\":\"a\\\"\\\\\\u0001\xef\xbf\xbd\",\"max\":"
			  "9223372036854775807,"
			  "\"beyond\":null,\"address\":\"0xc000123000\",\"pause\":0.0113,"
			  "\"time\":\"2026-02-03T02:58:11.25Z\"}\n");
	text_fini(&text);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(invalid_utf8_becomes_replacements),
		cmocka_unit_test(a_terminal_gets_nothing_to_obey),
		cmocka_unit_test(long_names_are_cut),
		cmocka_unit_test(columns_are_counted_in_characters),
		cmocka_unit_test(sizes_counts_and_durations_read_well),
		cmocka_unit_test(a_long_note_is_folded),
		cmocka_unit_test(json_holds_any_bytes_and_any_number),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
