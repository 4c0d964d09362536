#include "agent/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/session.h"
#include "agent/supervise.h"
#include "proto/base/log.h"
#include "proto/wire/limits.h"

#define DEFAULT_USER "goheapd"
#define NO_UID       ((uid_t)-1)

struct error *listener_init(struct listener *listener, struct supervisor *supervisor,
			    const char *user)
{
	const struct passwd *entry = getpwnam(user ? user : DEFAULT_USER);

	*listener = (struct listener){ .supervisor = supervisor, .daemon_uid = NO_UID };
	if (entry)
		listener->daemon_uid = entry->pw_uid;
	else if (user)
		return error_new(ERROR_BAD_REQUEST, "there is no user \"%s\"", user);
	return NULL;
}

void listener_fini(struct listener *listener)
{
	for (unsigned i = 0; i < listener->socket_count; i++) {
		event_remove(listener->supervisor->loop, &listener->sockets[i].source);
		closep(&listener->sockets[i].fd);
	}
	listener->socket_count = 0;
	if (listener->path)
		unlink(listener->path);
	free(take(listener->path));
}

static void session_ended(void *arg)
{
	struct listener *listener = arg;

	listener->session_count--;
}

static bool may_connect(const struct listener *listener, uid_t uid)
{
	return uid == 0 || uid == geteuid() ||
	       (listener->daemon_uid != NO_UID && uid == listener->daemon_uid);
}

static struct error *check_peer(const struct listener *listener, int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size))
		return error_system(errno, "SO_PEERCRED");
	if (!may_connect(listener, peer.uid))
		return error_new(ERROR_FORBIDDEN, "uid %u may not talk to the agent", peer.uid);
	if (listener->session_count == LIMIT_SESSIONS)
		return error_new(ERROR_BUSY, "%d connections are open already", LIMIT_SESSIONS);
	return NULL;
}

static void accept_ready(struct event_source *source, uint32_t events)
{
	struct listener_socket *socket =
	    (struct listener_socket *)((char *)source - offsetof(struct listener_socket, source));
	struct listener *listener = socket->listener;
	int fd = accept4(socket->fd, NULL, NULL, SOCK_CLOEXEC);
	struct error *err;

	(void)events;
	if (fd < 0)
		return; /* whoever it was has gone */
	err = check_peer(listener, fd);
	if (err) {
		close(fd);
	} else {
		err = session_start(listener->supervisor, fd, session_ended, listener);
		listener->session_count += !err;
	}
	if (err)
		log_warning("agent", "a connection was refused err=\"%s\"", error_message(err));
	error_free(err);
}

struct error *listener_adopt(struct listener *listener, int fd)
{
	struct listener_socket *socket = &listener->sockets[listener->socket_count];
	struct error *err;

	if (listener->socket_count == LISTENER_SOCKETS_MAX)
		return error_new(ERROR_LIMIT, "more than %d sockets to listen on",
				 LISTENER_SOCKETS_MAX);
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) || fcntl(fd, F_SETFL, O_NONBLOCK))
		return error_system(errno, "prepare a listening socket");
	socket->listener = listener;
	socket->fd = fd;
	err = event_add(listener->supervisor->loop, &socket->source, fd, EPOLLIN, accept_ready);
	if (!err)
		listener->socket_count++;
	return err;
}

/* A socket that nobody answers on was left by an agent that died; one that somebody does is his. */
static struct error *make_room(const struct sockaddr_un *address)
{
	int fd scoped(closep) = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return error_system(errno, "socket");
	if (!connect(fd, (const struct sockaddr *)address, sizeof(*address)))
		return error_new(ERROR_BAD_REQUEST, "an agent listens on %s already",
				 address->sun_path);
	if (errno == ECONNREFUSED && unlink(address->sun_path))
		return error_system(errno, "remove %s", address->sun_path);
	return NULL;
}

/* Nobody but those who may connect can; the check of the peer does not rest on it. */
static struct error *bind_privately(const struct listener *listener, int fd,
				    const struct sockaddr_un *address)
{
	mode_t mask = umask(0177);
	int failed = bind(fd, (const struct sockaddr *)address, sizeof(*address));
	int errnum = errno;

	umask(mask);
	if (failed)
		return error_system(errnum, "bind %s", address->sun_path);
	if (geteuid() == 0 && listener->daemon_uid != NO_UID &&
	    chown(address->sun_path, listener->daemon_uid, (gid_t)-1))
		return error_system(errno, "chown %s", address->sun_path);
	return listen(fd, LIMIT_SESSIONS) ? error_system(errno, "listen") : NULL;
}

struct error *listener_listen(struct listener *listener, const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd scoped(closep) = -1;
	struct error *err;

	if (strlen(path) >= sizeof(address.sun_path))
		return error_new(ERROR_BAD_REQUEST, "the socket's path is too long: %s", path);
	memcpy(address.sun_path, path, strlen(path) + 1);
	err = make_room(&address);
	if (err)
		return err;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return error_system(errno, "socket");
	err = bind_privately(listener, fd, &address);
	if (err)
		return err;
	listener->path = strdup(path);
	if (!listener->path)
		return &error_nomem;
	err = listener_adopt(listener, fd);
	if (!err)
		take_fd(fd);
	return err;
}
