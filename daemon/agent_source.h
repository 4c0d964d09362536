/*
 * Where a connection to an agent comes from: a socket on which one listens already, or a program
 * that is started for us. A source can be asked again after the agent was lost.
 */
#ifndef DAEMON_AGENT_SOURCE_H
#define DAEMON_AGENT_SOURCE_H

#include "proto/base/error.h"

struct agent_source {
	/* A connected socket, the caller's; blocking and close-on-exec. */
	struct error *(*connect)(struct agent_source *source, int *ret);
	/* The connection that was made last has been closed. */
	void (*lost)(struct agent_source *source);
	void (*free)(struct agent_source *source);
};

void agent_source_free(struct agent_source *source);

/* An agent that listens on a Unix socket. */
must_check struct error *agent_source_socket(const char *path, struct agent_source **ret);

#endif
