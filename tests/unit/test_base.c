#include "proto/base/bytes.h"
#include "proto/base/checked.h"
#include "proto/base/error.h"
#include "proto/base/log.h"

#include <errno.h>
#include <fcntl.h>

#include "tests/support/assertions.h"

static void a_message_is_the_chain_of_what_was_done(void **state)
{
	struct error *err scoped(error_freep) =
	    error_new(ERROR_FAULT, "0x%x: not readable", 0xc000);

	(void)state;
	err = error_context(err, "span %d", 812);
	err = error_context(err, "span table");
	assert_string_equal(error_message(err), "span table: span 812: 0xc000: not readable");
	assert_int_equal(error_code(err), ERROR_FAULT);
	err = error_recode(err, ERROR_CORRUPT_TARGET);
	assert_int_equal(error_code(err), ERROR_CORRUPT_TARGET);
}

static void system_errors_branch_by_errno(void **state)
{
	static const struct {
		int errnum;
		enum error_code code;
	} cases[] = {
		{ ENOMEM, ERROR_NOMEM }, { EPERM, ERROR_DENIED }, { EACCES, ERROR_DENIED },
		{ ESRCH, ERROR_GONE },   { EIO, ERROR_SYSTEM },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct error *err scoped(error_freep) = error_system(cases[i].errnum, "open");

		assert_int_equal(error_code(err), cases[i].code);
		assert_memory_equal(error_message(err), "open: ", 6);
	}
}

static void running_out_of_memory_needs_none(void **state)
{
	struct error *err = error_context(error_recode(&error_nomem, ERROR_FAULT), "graph");

	(void)state;
	assert_ptr_equal(err, &error_nomem);
	assert_int_equal(error_code(err), ERROR_NOMEM);
	error_free(err);
	error_free(err);
	error_free(NULL);
}

static void bytes_grow_to_their_limit_and_no_further(void **state)
{
	static const char text[300] = "abc";
	struct bytes bytes;
	uint8_t *room = NULL;

	(void)state;
	bytes_init(&bytes, 700);
	assert_success(bytes_append(&bytes, text, sizeof(text)));
	assert_success(bytes_append(&bytes, text, sizeof(text)));
	assert_int_equal(bytes.size, 600);
	assert_error(bytes_append(&bytes, text, 101), ERROR_LIMIT);
	assert_error(bytes_extend(&bytes, SIZE_MAX, &room), ERROR_LIMIT);
	assert_int_equal(bytes.size, 600);
	assert_success(bytes_extend(&bytes, 100, &room));
	assert_ptr_equal(room, bytes.data + 600);
	assert_string_equal((const char *)bytes.data + 300, "abc");
	bytes_fini(&bytes);
	assert_null(bytes.data);
}

static void numbers_survive_store_and_load(void **state)
{
	uint8_t raw[9] = { 0 };

	(void)state;
	store_u64le(raw + 1, 0x0102030405060708);
	assert_int_equal(raw[1], 8);
	assert_true(load_u64le(raw + 1) == 0x0102030405060708);
	assert_int_equal(load_u32le(raw + 1), 0x05060708);
	assert_int_equal(load_uint_le(raw + 1, 2), 0x0708);
	assert_int_equal(load_uint_le(raw + 1, 1), 0x08);
	assert_int_equal(load_uint_le(raw + 1, 3), 0);
}

static void arithmetic_that_overflows_is_refused(void **state)
{
	uint64_t value = 7;

	(void)state;
	assert_false(checked_add(UINT64_MAX, 1, &value));
	assert_false(checked_mul(1ull << 33, 1ull << 31, &value));
	assert_int_equal(value, 7);
	assert_true(checked_add(UINT64_MAX - 1, 1, &value));
	assert_true(value == UINT64_MAX);
	assert_true(checked_mul(1ull << 32, 1ull << 31, &value));
	assert_true(value == 1ull << 63);
}

static void strings_of_a_target_cannot_break_a_log_line(void **state)
{
	char text[16];

	(void)state;
	assert_string_equal(log_escape("a\nb\"\x7f", text, sizeof(text)), "a\\x0ab\\x22\\x7f");
	assert_string_equal(log_escape("0123456789abcdefgh", text, sizeof(text)),
			    "0123456789abcde");
	/* an escape that does not fit is left out whole */
	assert_string_equal(log_escape("0123456789abc\n", text, sizeof(text)), "0123456789abc");
}

/* What log_line writes to stderr for a level, read back; the caller gives 4096 bytes. */
static void captured_line(enum log_level level, const char *message, char *ret)
{
	int saved = dup(STDERR_FILENO);
	int pipe_fds[2];
	ssize_t size;

	assert_int_equal(pipe2(pipe_fds, O_NONBLOCK), 0);
	dup2(pipe_fds[1], STDERR_FILENO);
	log_line(level, "test", "%s", message);
	dup2(saved, STDERR_FILENO);
	close(saved);
	size = read(pipe_fds[0], ret, 4095);
	ret[size > 0 ? size : 0] = '\0';
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

static void a_log_line_is_one_write_with_its_level(void **state)
{
	char line[4096], long_message[4000];

	(void)state;
	unsetenv("JOURNAL_STREAM");
	captured_line(LOG_LEVEL_WARNING, "no snapshot pid=7", line);
	assert_string_equal(line, "warning test: no snapshot pid=7\n");
	captured_line(LOG_LEVEL_DEBUG, "hidden", line);
	assert_string_equal(line, "");
	memset(long_message, 'x', sizeof(long_message) - 1);
	long_message[sizeof(long_message) - 1] = '\0';
	captured_line(LOG_LEVEL_ERROR, long_message, line);
	assert_int_equal(line[strlen(line) - 1], '\n');
	assert_int_equal(strlen(line), 2047);
	setenv("JOURNAL_STREAM", "8:1", 1);
	captured_line(LOG_LEVEL_ERROR, "broken", line);
	assert_string_equal(line, "<3>test: broken\n");
	unsetenv("JOURNAL_STREAM");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_is_the_chain_of_what_was_done),
		cmocka_unit_test(system_errors_branch_by_errno),
		cmocka_unit_test(running_out_of_memory_needs_none),
		cmocka_unit_test(bytes_grow_to_their_limit_and_no_further),
		cmocka_unit_test(numbers_survive_store_and_load),
		cmocka_unit_test(arithmetic_that_overflows_is_refused),
		cmocka_unit_test(strings_of_a_target_cannot_break_a_log_line),
		cmocka_unit_test(a_log_line_is_one_write_with_its_level),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
