/*
 * The sockets on which the agent is reached, and who may: root, the agent's own user, and the
 * daemon's.
 */
#ifndef AGENT_LISTENER_H
#define AGENT_LISTENER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/event.h"
#include "proto/base/error.h"

struct supervisor;

enum { LISTENER_SOCKETS_MAX = 4 };

struct listener_socket {
	struct event_source source;
	struct listener *listener;
	int fd;
};

struct listener {
	struct supervisor *supervisor;
	uid_t daemon_uid; /* -1: there is no such user */
	struct listener_socket sockets[LISTENER_SOCKETS_MAX];
	unsigned socket_count, session_count;
	char *path; /* of a socket that we made, and remove */
};

/* user may be NULL for the default, which need not exist. ERROR_BAD_REQUEST for one that does not.
 */
must_check struct error *listener_init(struct listener *listener, struct supervisor *supervisor,
				       const char *user);
void listener_fini(struct listener *listener);

/* Makes a socket at path, which a dead agent may have left there. */
must_check struct error *listener_listen(struct listener *listener, const char *path);
/* Takes over a socket that listens already. */
must_check struct error *listener_adopt(struct listener *listener, int fd);

#endif
