#include "proto/wire/failure.h"

#include "tests/support/assertions.h"

/* The HTTP contract's rows, written out a second time: a change of one must be meant. */
static const struct {
	Goheapd__FailureCode code;
	const char *name;
	unsigned status;
} contract[] = {
#define ROW(id, name, status)                                                                      \
	{                                                                                          \
		GOHEAPD__FAILURE_CODE__FAILURE_##id, name, status                                  \
	}
	ROW(INTERNAL, "internal", 500),
	ROW(BAD_REQUEST, "bad_request", 400),
	ROW(FORBIDDEN, "forbidden", 403),
	ROW(ATTACH_DENIED, "attach_denied", 403),
	ROW(NO_SUCH_PROCESS, "no_such_process", 404),
	ROW(ALREADY_TRACED, "already_traced", 409),
	ROW(AMBIGUOUS, "ambiguous", 409),
	ROW(PROCESS_CHANGED, "process_changed", 409),
	ROW(NOT_STOPPABLE, "not_stoppable", 409),
	ROW(FORK_UNSAFE, "fork_unsafe", 409),
	ROW(PROCESS_EXITED, "process_exited", 410),
	ROW(NOT_GO, "not_go", 422),
	ROW(UNSUPPORTED_ARCH, "unsupported_arch", 422),
	ROW(UNSUPPORTED_RUNTIME, "unsupported_runtime", 422),
	ROW(NO_DEBUG_INFO, "no_debug_info", 422),
	ROW(CORRUPT_TARGET, "corrupt_target", 422),
	ROW(BUSY, "busy", 429),
	ROW(AGENT_UNAVAILABLE, "agent_unavailable", 503),
	ROW(OUT_OF_MEMORY, "out_of_memory", 503),
	ROW(TIMEOUT, "timeout", 504),
	ROW(PAUSE_EXCEEDED, "pause_exceeded", 504),
	ROW(LABEL_RECOVERY_FAILED, "label_recovery_failed", 422),
	ROW(STRING_MISSING, "string_missing", 422),
	ROW(TOO_MANY_LABELS, "too_many_labels", 400),
	ROW(EMPTY_LABEL_KEY, "empty_label_key", 400),
	ROW(LABEL_TOO_LONG, "label_too_long", 400),
	ROW(NOT_FOUND, "not_found", 404),
};

static void every_failure_has_its_name_and_status(void **state)
{
	const ProtobufCEnumDescriptor *codes = &goheapd__failure_code__descriptor;

	(void)state;
	assert_int_equal(codes->n_values, sizeof(contract) / sizeof(contract[0]));
	for (size_t i = 0; i < codes->n_values; i++) {
		assert_string_equal(failure_name(contract[i].code), contract[i].name);
		assert_int_equal(failure_http_status(contract[i].code), contract[i].status);
	}
}

static void every_failure_comes_back_from_its_error(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(contract) / sizeof(contract[0]); i++)
		assert_int_equal(failure_of_error(failure_to_error(contract[i].code)),
				 contract[i].code);
}

static void every_error_has_a_failure(void **state)
{
	(void)state;
	for (int code = ERROR_NOMEM; code < ERROR_CODE_END; code++) {
		Goheapd__FailureCode failure = failure_of_error((enum error_code)code);

		/* only a failed system call of ours is an internal failure */
		assert_int_equal(failure == GOHEAPD__FAILURE_CODE__FAILURE_INTERNAL,
				 code == ERROR_SYSTEM);
	}
	assert_int_equal(failure_of_error(ERROR_NOMEM),
			 GOHEAPD__FAILURE_CODE__FAILURE_OUT_OF_MEMORY);
	assert_int_equal(failure_of_error(ERROR_FAULT),
			 GOHEAPD__FAILURE_CODE__FAILURE_CORRUPT_TARGET);
	assert_int_equal(failure_of_error(ERROR_FORMAT),
			 GOHEAPD__FAILURE_CODE__FAILURE_CORRUPT_TARGET);
	assert_int_equal(failure_of_error(ERROR_LIMIT),
			 GOHEAPD__FAILURE_CODE__FAILURE_CORRUPT_TARGET);
}

static void a_code_from_outside_that_we_do_not_know_is_internal(void **state)
{
	Goheapd__FailureCode unknown = (Goheapd__FailureCode)99;

	(void)state;
	assert_int_equal(failure_to_error(unknown), ERROR_SYSTEM);
	assert_string_equal(failure_name(unknown), "internal");
	assert_int_equal(failure_http_status(unknown), 500);
}

static void an_error_keeps_its_words_over_the_wire(void **state)
{
	struct error *err = error_new(ERROR_GONE, "pid %d ended", 7);
	struct error *copy;
	Goheapd__Failure failure;

	(void)state;
	failure_from_error(err, &failure);
	copy = failure_make_error(&failure);
	assert_int_equal(error_code(copy), ERROR_GONE);
	assert_string_equal(error_message(copy), "pid 7 ended");
	error_free(copy);
	error_free(err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_failure_has_its_name_and_status),
		cmocka_unit_test(every_failure_comes_back_from_its_error),
		cmocka_unit_test(every_error_has_a_failure),
		cmocka_unit_test(a_code_from_outside_that_we_do_not_know_is_internal),
		cmocka_unit_test(an_error_keeps_its_words_over_the_wire),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("failure", tests, NULL, NULL);
}
