/*
 * Real connections over loopback. Each is made so that only one end can be the client: what the
 * kernel says of it is compared with what we know.
 */
#include "daemon/peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "tests/support/assertions.h"

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

struct pair {
	int listener, client, server;
};

static union address loopback(int family)
{
	union address address = { 0 };

	address.any.sa_family = (sa_family_t)family;
	if (family == AF_INET)
		address.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		address.v6.sin6_addr = in6addr_loopback;
	return address;
}

/* ::ffff:127.0.0.1 with the same port. */
static union address mapped(const union address *v4)
{
	union address address = { .v6 = { .sin6_family = AF_INET6, .sin6_port = v4->v4.sin_port } };

	address.v6.sin6_addr.s6_addr[10] = address.v6.sin6_addr.s6_addr[11] = 0xff;
	memcpy(&address.v6.sin6_addr.s6_addr[12], &v4->v4.sin_addr, 4);
	return address;
}

/* Listens, on any address of the family if dual, and returns the loopback address to connect to. */
static union address start_listening(struct pair *pair, int family, bool dual)
{
	union address address = loopback(family);
	socklen_t size = sizeof(address);

	if (dual)
		address.v6.sin6_addr = in6addr_any;
	pair->listener = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(pair->listener >= 0);
	assert_int_equal(bind(pair->listener, &address.any, sizeof(address.v6)), 0);
	assert_int_equal(listen(pair->listener, 4), 0);
	assert_int_equal(getsockname(pair->listener, &address.any, &size), 0);
	return address;
}

static void connect_pair(struct pair *pair, const union address *address)
{
	pair->client = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(pair->client >= 0);
	assert_int_equal(connect(pair->client, &address->any, sizeof(*address)), 0);
	pair->server = accept(pair->listener, NULL, NULL);
	assert_true(pair->server >= 0);
}

static void close_pair(struct pair *pair)
{
	if (pair->client >= 0)
		close(pair->client);
	close(pair->server);
	close(pair->listener);
}

/*
 * cmocka reports a skipped test as "not ok", which is a failure to TAP: where a machine lacks what
 * a test needs, the test says so and passes.
 */
static bool has_ipv6(void)
{
	union address address = loopback(AF_INET6);
	int probe = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool has = probe >= 0 && bind(probe, &address.any, sizeof(address.v6)) == 0;

	if (probe >= 0)
		close(probe);
	if (!has)
		print_message("# not tried: this machine has no IPv6\n");
	return has;
}

static void check_is_us(int socket, bool gid_known)
{
	struct peer peer;

	assert_success(peer_of_socket(socket, &peer));
	assert_int_equal(peer.uid, getuid());
	assert_int_equal(peer.gid_known, gid_known);
	if (gid_known)
		assert_int_equal(peer.gid, getgid());
}

static void a_client_over_ipv4_is_known(void **state)
{
	struct pair pair;
	union address address = start_listening(&pair, AF_INET, false);

	(void)state;
	connect_pair(&pair, &address);
	check_is_us(pair.server, false);
	close_pair(&pair);
}

static void a_client_over_ipv6_is_known(void **state)
{
	struct pair pair;
	union address address;

	(void)state;
	if (!has_ipv6())
		return;
	address = start_listening(&pair, AF_INET6, false);
	connect_pair(&pair, &address);
	check_is_us(pair.server, false);
	close_pair(&pair);
}

static void an_ipv4_client_of_an_ipv6_socket_is_known(void **state)
{
	struct pair pair;
	union address any, address = loopback(AF_INET);

	(void)state;
	if (!has_ipv6())
		return;
	any = start_listening(&pair, AF_INET6, true);
	address.v4.sin_port = any.v6.sin6_port;
	connect_pair(&pair, &address);
	check_is_us(pair.server, false);
	close_pair(&pair);
}

static void an_ipv6_client_of_an_ipv4_socket_is_known(void **state)
{
	struct pair pair;
	union address v4, address;

	(void)state;
	if (!has_ipv6())
		return;
	v4 = start_listening(&pair, AF_INET, false);
	address = mapped(&v4);
	connect_pair(&pair, &address);
	check_is_us(pair.server, false);
	close_pair(&pair);
}

static void a_client_that_has_closed_is_refused(void **state)
{
	struct pair pair;
	union address address = start_listening(&pair, AF_INET, false);
	struct peer peer;

	(void)state;
	connect_pair(&pair, &address);
	close(pair.client);
	pair.client = -1;
	assert_error(peer_of_socket(pair.server, &peer), ERROR_FORBIDDEN);
	assert_true(peer_has_left(pair.server));
	close_pair(&pair);
}

static void a_client_that_has_only_finished_sending_is_known(void **state)
{
	struct pair pair;
	union address address = start_listening(&pair, AF_INET, false);

	(void)state;
	connect_pair(&pair, &address);
	assert_int_equal(shutdown(pair.client, SHUT_WR), 0);
	check_is_us(pair.server, false);
	assert_false(peer_has_left(pair.server));
	close_pair(&pair);
}

/* A listener on that address, or -1 where somebody else's connection has got the port by now. */
static int listen_at(const union address *address, socklen_t size)
{
	const int on = 1;
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(listener >= 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (!bind(listener, &address->any, size) && !listen(listener, 1))
		return listener;
	close(listener);
	return -1;
}

/* The kernel's lookup finds a listener where there is no connection: it must not be the client. */
static void a_listener_on_the_clients_port_is_not_the_client(void **state)
{
	enum { ATTEMPTS = 50 };
	const struct linger reset = { .l_onoff = 1, .l_linger = 0 };
	int listener = -1;

	(void)state;
	for (int i = 0; i < ATTEMPTS && listener < 0; i++) {
		struct pair pair;
		union address address = start_listening(&pair, AF_INET, false), client;
		socklen_t size = sizeof(client);
		struct peer peer;

		connect_pair(&pair, &address);
		assert_int_equal(getsockname(pair.client, &client.any, &size), 0);
		setsockopt(pair.client, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		close(pair.client);
		pair.client = -1;
		listener = listen_at(&client, size);
		if (listener >= 0)
			assert_error(peer_of_socket(pair.server, &peer), ERROR_FORBIDDEN);
		close_pair(&pair);
	}
	assert_true(listener >= 0);
	close(listener);
}

/* Another user's client is that user's, whoever we are. */
static void a_client_of_another_user_is_theirs(void **state)
{
	enum { OTHER_UID = 1234 };
	struct pair pair;
	union address address;
	struct peer peer;
	int status, gate[2];
	char byte;
	pid_t child;

	(void)state;
	if (getuid() != 0) {
		print_message("# not tried: only root can be somebody else\n");
		return;
	}
	address = start_listening(&pair, AF_INET, false);
	assert_int_equal(pipe(gate), 0);
	child = fork();
	if (child == 0) {
		int fd;

		close(gate[1]);
		if (setuid(OTHER_UID) < 0)
			_exit(1);
		fd = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(fd, &address.any, sizeof(address.v4)) < 0)
			_exit(1);
		_exit(read(gate[0], &byte, 1) == 0 ? 0 : 1); /* until the parent has looked */
	}
	close(gate[0]);
	pair.client = -1;
	pair.server = accept(pair.listener, NULL, NULL);
	assert_success(peer_of_socket(pair.server, &peer));
	assert_int_equal(peer.uid, OTHER_UID);
	close(gate[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close_pair(&pair);
}

static void a_client_on_a_unix_socket_is_known_with_its_group(void **state)
{
	int ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	check_is_us(ends[0], true);
	assert_int_equal(shutdown(ends[1], SHUT_WR), 0);
	assert_false(peer_has_left(ends[0]));
	close(ends[1]);
	assert_true(peer_has_left(ends[0]));
	close(ends[0]);
}

static void what_is_no_connection_is_refused(void **state)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct peer peer;

	(void)state;
	assert_error(peer_of_socket(fd, &peer), ERROR_FORBIDDEN);
	close(fd);
	assert_error(peer_of_socket(-1, &peer), ERROR_FORBIDDEN);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_client_over_ipv4_is_known),
		cmocka_unit_test(a_client_over_ipv6_is_known),
		cmocka_unit_test(an_ipv4_client_of_an_ipv6_socket_is_known),
		cmocka_unit_test(an_ipv6_client_of_an_ipv4_socket_is_known),
		cmocka_unit_test(a_client_that_has_closed_is_refused),
		cmocka_unit_test(a_client_that_has_only_finished_sending_is_known),
		cmocka_unit_test(a_listener_on_the_clients_port_is_not_the_client),
		cmocka_unit_test(a_client_of_another_user_is_theirs),
		cmocka_unit_test(a_client_on_a_unix_socket_is_known_with_its_group),
		cmocka_unit_test(what_is_no_connection_is_refused),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("peer", tests, NULL, NULL);
}
