/*
 * Keeping web pages out: a page in somebody's browser can make it send requests to loopback as
 * that user, under a name of the page's that was made to resolve to 127.0.0.1, or as a request
 * from another site. Neither gets through.
 */
#ifndef DAEMON_ORIGIN_H
#define DAEMON_ORIGIN_H

#include <stdbool.h>

#include "proto/base/error.h"

/*
 * Checks the headers Host, Origin and Sec-Fetch-Site, each NULL if absent. On a Unix socket, which
 * no browser reaches, any Host will do. ERROR_FORBIDDEN otherwise.
 */
must_check struct error *origin_check(int socket, const char *host, const char *origin,
				      const char *fetch_site);

/* Whether "host" or "host:port" names this machine's loopback. */
bool origin_is_loopback(const char *host);

#endif
