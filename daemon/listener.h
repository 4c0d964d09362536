/*
 * The sockets that goheapd listens on: TCP on loopback addresses alone, a Unix socket, or what
 * systemd hands over.
 */
#ifndef DAEMON_LISTENER_H
#define DAEMON_LISTENER_H

#include <stddef.h>

#include "proto/base/error.h"

enum { LISTENERS_MAX = 20 };

struct listeners {
	int sockets[LISTENERS_MAX]; /* whoever takes one leaves -1 */
	size_t count;
	char *unix_path; /* a socket file that we made, or NULL */
};

void listeners_init(struct listeners *listeners);
/* Closes the sockets and removes the file. */
void listeners_fini(struct listeners *listeners);

/* Takes over the sockets that systemd passes, if any. */
must_check struct error *listeners_add_activated(struct listeners *listeners);

/* "127.0.0.1:7070", "[::1]:7070" or "localhost:7070"; port 0 takes a free one. */
must_check struct error *listeners_add_tcp(struct listeners *listeners, const char *address);

/* 127.0.0.1:7070, and [::1]:7070 where the machine has IPv6. */
must_check struct error *listeners_add_default_tcp(struct listeners *listeners);

/* A file that a dead goheapd has left is replaced. */
must_check struct error *listeners_add_unix(struct listeners *listeners, const char *path);

#endif
