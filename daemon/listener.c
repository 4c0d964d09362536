#include "daemon/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>

#include "proto/base/log.h"

enum { BACKLOG = 128 };

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un local;
};

void listeners_init(struct listeners *listeners)
{
	*listeners = (struct listeners){ 0 };
}

void listeners_fini(struct listeners *listeners)
{
	for (size_t i = 0; i < listeners->count; i++)
		closep(&listeners->sockets[i]);
	if (listeners->unix_path)
		unlink(listeners->unix_path);
	free(listeners->unix_path);
	*listeners = (struct listeners){ 0 };
}

/* Takes fd over. */
static struct error *add(struct listeners *listeners, int fd)
{
	if (listeners->count == LISTENERS_MAX) {
		close(fd);
		return error_new(ERROR_LIMIT, "more than %d sockets to listen on", LISTENERS_MAX);
	}
	listeners->sockets[listeners->count++] = fd;
	return NULL;
}

static bool is_loopback(const union address *address)
{
	if (address->any.sa_family == AF_INET)
		return ntohl(address->v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return address->any.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
}

/* For people and for scripts that listen on port 0. */
static void log_listening(int fd)
{
	union address address;
	socklen_t size = sizeof(address);
	char host[64], port[16];

	if (getsockname(fd, &address.any, &size) < 0)
		return;
	if (address.any.sa_family == AF_UNIX)
		log_info("main", "listening on %s", address.local.sun_path);
	else if (getnameinfo(&address.any, size, host, sizeof(host), port, sizeof(port),
			     NI_NUMERICHOST | NI_NUMERICSERV) == 0)
		log_info("main", "listening on http://%s%s%s:%s",
			 address.any.sa_family == AF_INET6 ? "[" : "", host,
			 address.any.sa_family == AF_INET6 ? "]" : "", port);
}

/* ---- systemd ---- */

static struct error *check_activated(int fd)
{
	union address address;
	socklen_t size = sizeof(address);

	if (sd_is_socket(fd, AF_UNIX, SOCK_STREAM, 1) > 0)
		return NULL;
	if (sd_is_socket(fd, AF_UNSPEC, SOCK_STREAM, 1) <= 0)
		return error_new(ERROR_SYSTEM, "descriptor %d is no listening stream socket", fd);
	if (getsockname(fd, &address.any, &size) < 0)
		return error_system(errno, "getsockname");
	if (!is_loopback(&address))
		return error_new(
		    ERROR_SYSTEM,
		    "a socket unit listens beyond this machine: goheapd takes loopback "
		    "addresses and Unix sockets only");
	return NULL;
}

struct error *listeners_add_activated(struct listeners *listeners)
{
	int count = sd_listen_fds(1);
	struct error *err = NULL;

	if (count < 0)
		return error_system(-count, "sockets from systemd");
	for (int fd = SD_LISTEN_FDS_START; !err && fd < SD_LISTEN_FDS_START + count; fd++) {
		err = check_activated(fd);
		if (!err)
			err = add(listeners, fd);
		if (!err)
			log_listening(fd);
	}
	return err;
}

/* ---- TCP ---- */

/* Splits "host:port", with brackets around an IPv6 host. Cuts copy into its parts. */
static bool split(char *copy, const char **ret_host, const char **ret_port)
{
	char *colon = strrchr(copy, ':');
	size_t host_size;

	if (!colon || !colon[1])
		return false;
	*colon = '\0';
	host_size = strlen(copy);
	if (copy[0] == '[' && copy[host_size - 1] == ']') {
		copy[host_size - 1] = '\0';
		copy++;
	} else if (strchr(copy, ':')) {
		return false;
	}
	*ret_host = copy;
	*ret_port = colon + 1;
	return *copy != '\0';
}

static struct error *resolve(const char *text, union address *ret, socklen_t *ret_size)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
					.ai_flags = AI_PASSIVE | AI_NUMERICSERV };
	char *copy scoped(freep) = strdup(text);
	struct addrinfo *found;
	const char *host, *port;
	int failed;

	if (!copy)
		return &error_nomem;
	if (!split(copy, &host, &port))
		return error_new(ERROR_BAD_REQUEST,
				 "\"%s\" is no address: 127.0.0.1:7070 or [::1]:7070 is", text);
	failed = getaddrinfo(host, port, &hints, &found);
	if (failed)
		return error_new(ERROR_BAD_REQUEST, "%s: %s", text, gai_strerror(failed));
	memcpy(ret, found->ai_addr, found->ai_addrlen);
	*ret_size = found->ai_addrlen;
	freeaddrinfo(found);
	if (!is_loopback(ret))
		return error_new(ERROR_BAD_REQUEST,
				 "%s is no loopback address: goheapd is not for other machines",
				 text);
	return NULL;
}

static struct error *listen_tcp(const union address *address, socklen_t size, int *ret)
{
	const int on = 1;
	int fd scoped(closep) =
	    socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return error_system(errno, "socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (address->any.sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (bind(fd, &address->any, size) < 0 || listen(fd, BACKLOG) < 0)
		return error_system(errno, "cannot listen");
	*ret = take_fd(fd);
	return NULL;
}

struct error *listeners_add_tcp(struct listeners *listeners, const char *text)
{
	union address address;
	socklen_t size;
	int fd;
	struct error *err = resolve(text, &address, &size);

	if (err)
		return err;
	err = listen_tcp(&address, size, &fd);
	if (err)
		return error_context(err, "%s", text);
	log_listening(fd);
	return add(listeners, fd);
}

/* Whether the machine has the IPv6 loopback address at all. */
static bool has_ipv6(void)
{
	struct sockaddr_in6 address = { .sin6_family = AF_INET6,
					.sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd scoped(closep) = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
}

struct error *listeners_add_default_tcp(struct listeners *listeners)
{
	struct error *err = listeners_add_tcp(listeners, "127.0.0.1:7070");

	if (err || !has_ipv6())
		return err;
	return listeners_add_tcp(listeners, "[::1]:7070");
}

/* ---- Unix ---- */

/* Whether somebody listens there. */
static bool is_alive(const union address *address)
{
	int fd scoped(closep) = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd >= 0 &&
	       (connect(fd, &address->any, sizeof(address->local)) == 0 || errno == EAGAIN);
}

static struct error *remove_stale(const union address *address)
{
	const char *path = address->local.sun_path;
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? NULL : error_system(errno, "%s", path);
	if (!S_ISSOCK(st.st_mode))
		return error_new(ERROR_SYSTEM, "%s is there and no socket", path);
	if (is_alive(address))
		return error_new(ERROR_SYSTEM, "another goheapd listens on %s", path);
	if (unlink(path) < 0)
		return error_system(errno, "cannot remove %s, which a dead process has left", path);
	return NULL;
}

struct error *listeners_add_unix(struct listeners *listeners, const char *path)
{
	union address address = { .local = { .sun_family = AF_UNIX } };
	int fd scoped(closep) = -1;
	struct error *err;

	if (strlen(path) >= sizeof(address.local.sun_path))
		return error_new(ERROR_BAD_REQUEST, "%s is too long for a socket's name", path);
	strcpy(address.local.sun_path, path);
	err = remove_stale(&address);
	if (err)
		return err;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_system(errno, "socket");
	if (bind(fd, &address.any, sizeof(address.local)) < 0)
		return error_system(errno, "cannot make %s", path);
	listeners->unix_path = strdup(path);
	if (!listeners->unix_path)
		return &error_nomem;
	/* everybody may connect: who asks is looked at with every request */
	if (chmod(path, 0666) < 0 || listen(fd, BACKLOG) < 0)
		return error_system(errno, "%s", path);
	log_listening(fd);
	return add(listeners, take_fd(fd));
}
