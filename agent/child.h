/*
 * Starting a keeper or decoder: the agent's own program, executed anew in that role with nothing
 * but its sockets, each at a fixed number. The kernel's descriptor of the process (pidfd) names it
 * from then on, so that no signal ever reaches a stranger who got its number.
 */
#ifndef AGENT_CHILD_H
#define AGENT_CHILD_H

#include <stdint.h>
#include <sys/types.h>

#include "proto/base/error.h"

/* Where a role finds its sockets; there is nothing else but the standard ones. */
enum { CHILD_AGENT_SOCKET = 3, CHILD_PEER_SOCKET = 4 };

struct child {
	pid_t pid; /* 0: none */
	int pidfd;
};

/*
 * Spawns "goheap-agent --role=ROLE [--max-scan-memory=BYTES]"; 0 bytes is no limit. The sockets
 * stay the caller's; peer_socket may be -1. The caller reaps with child_reap.
 */
must_check struct error *child_spawn(const char *role, int agent_socket, int peer_socket,
				     uint64_t memory_limit, struct child *ret);

/* SIGKILL; nothing happens to one that was reaped. */
void child_kill(const struct child *child);

/* Waits for its end and gives the pidfd back. Returns the wait status. */
int child_reap(struct child *child);

#endif
