#include "daemon/origin.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/support/assertions.h"

static void loopback_has_few_names(void **state)
{
	static const char *const good[] = { "localhost",      "LOCALHOST:7070",   "127.0.0.1",
					    "127.0.0.1:7070", "127.8.9.1:1",      "[::1]",
					    "[::1]:7070",     "[0:0:0:0:0:0:0:1]" };
	static const char *const bad[] = {
		"",
		":7070",
		"evil.example",
		"localhost.evil.example",
		"127.0.0.1.evil.example",
		"127.0.0.1@evil.example",
		"127.0.0.1:70x",
		"127.0.0.1:7070/x",
		"128.0.0.1",
		"0.0.0.0",
		"[::]",
		"[::1",
		"[::1]x",
		"[::2]",
		"[127.0.0.1]",
		"[]",
		"2130706433",
		"a-name-that-is-longer-than-any-name-of-loopback-will-ever-be.example"
	};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		assert_true(origin_is_loopback(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_false(origin_is_loopback(bad[i]));
}

static void web_pages_are_kept_out(void **state)
{
	int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const char *host = "localhost:7070";

	(void)state;
	assert_success(origin_check(tcp, host, NULL, NULL));
	assert_success(origin_check(tcp, NULL, NULL, NULL)); /* HTTP/1.0 */
	assert_success(origin_check(tcp, host, "http://localhost:7070", "same-origin"));
	assert_success(origin_check(tcp, host, NULL, "none"));
	assert_error(origin_check(tcp, "evil.example:7070", NULL, NULL), ERROR_FORBIDDEN);
	assert_error(origin_check(tcp, host, "http://evil.example", NULL), ERROR_FORBIDDEN);
	assert_error(origin_check(tcp, host, "https://localhost:7070", NULL), ERROR_FORBIDDEN);
	assert_error(origin_check(tcp, host, "http://localhost:3000", NULL), ERROR_FORBIDDEN);
	assert_error(origin_check(tcp, host, "null", NULL), ERROR_FORBIDDEN);
	assert_error(origin_check(tcp, NULL, "http://localhost:7070", NULL), ERROR_FORBIDDEN);
	assert_error(origin_check(tcp, host, NULL, "cross-site"), ERROR_FORBIDDEN);
	assert_error(origin_check(tcp, host, NULL, "same-site"), ERROR_FORBIDDEN);
	close(tcp);
}

static void a_unix_socket_takes_any_host(void **state)
{
	int local = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	assert_success(origin_check(local, "goheapd", NULL, NULL));
	assert_error(origin_check(local, "goheapd", "http://evil.example", NULL), ERROR_FORBIDDEN);
	close(local);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(loopback_has_few_names),
		cmocka_unit_test(web_pages_are_kept_out),
		cmocka_unit_test(a_unix_socket_takes_any_host),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("origin", tests, NULL, NULL);
}
