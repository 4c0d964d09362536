/*
 * The HTTP server: libmicrohttpd on sockets that listen already, a thread for each connection.
 */
#ifndef DAEMON_HTTP_H
#define DAEMON_HTTP_H

#include "daemon/exchange.h"
#include "daemon/listener.h"

struct http;

/* Serves on the listeners' sockets, which it takes over. The server must outlive it. */
must_check struct error *http_start(struct server *server, struct listeners *listeners,
				    struct http **ret);

/* Takes no more connections; requests that run go on. */
void http_quiesce(struct http *http);

/* Waits a moment for the requests that run, then cuts them off. */
void http_free(struct http *http);
DEFINE_FREEP(http, http_free)

#endif
