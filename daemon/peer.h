/*
 * Who is at the other end of a connection, as the kernel knows it. On a Unix socket it tells at
 * once; for TCP over loopback it is asked which user owns the socket with exactly the reversed
 * pair of addresses and ports. What cannot be told for sure is refused.
 */
#ifndef DAEMON_PEER_H
#define DAEMON_PEER_H

#include <stdbool.h>
#include <sys/types.h>

#include "proto/base/error.h"

struct peer {
	uid_t uid;
	gid_t gid;
	bool gid_known; /* TCP sockets have an owner and no group */
	bool is_unix;   /* came over the Unix socket */
};

/* ERROR_FORBIDDEN, with the reason, if the kernel does not name one owner. */
must_check struct error *peer_of_socket(int socket, struct peer *ret);

/* Whether a client from which nothing more can come has closed its socket, or only its sending
 * half. */
bool peer_has_left(int socket);

#endif
