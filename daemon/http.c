#include "daemon/http.h"

#include <errno.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "daemon/clock.h"
#include "daemon/serve.h"
#include "proto/base/log.h"

enum {
	CONNECTIONS_MAX = 128, /* on each socket */
	IDLE_SECONDS = 30,
	END_PATIENCE_US = 2 * 1000000,
	/*
	 * Request line and headers must fit: a label's value of 1 MiB with every byte escaped takes
	 * three. It is reserved for each connection, and used as far as a request needs it.
	 */
	CONNECTION_MEMORY = 4 << 20,
};

struct http {
	struct server *server;
	struct MHD_Daemon *daemons[LISTENERS_MAX];
	size_t count;
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t idle;
	int request_count; /* requests that have come whole and are not answered to the end */
};

/* What libmicrohttpd hands back with each callback of one request. */
struct request {
	char *target; /* NULL: there was no memory for it */
	bool counted; /* among those that are being answered */
};

static void count_request(struct http *http, int change)
{
	pthread_mutex_lock(&http->lock);
	http->request_count += change;
	if (http->request_count == 0)
		pthread_cond_broadcast(&http->idle);
	pthread_mutex_unlock(&http->lock);
}

static void *request_begin(void *arg, const char *uri, struct MHD_Connection *connection)
{
	struct request *request = malloc(sizeof(*request));

	(void)arg;
	(void)connection;
	if (!request)
		return NULL;
	*request = (struct request){ .target = strdup(uri) };
	return request;
}

static void request_end(void *arg, struct MHD_Connection *connection, void **state,
			enum MHD_RequestTerminationCode why)
{
	struct request *request = take(*state);
	struct http *http = arg;

	(void)connection;
	(void)why;
	if (!request)
		return;
	if (request->counted)
		count_request(http, -1);
	free(request->target);
	free(request);
}

static const char *header(struct MHD_Connection *connection, const char *name)
{
	return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* A header that comes twice could be read one way by us and another way by somebody else. */
struct header_count {
	const char *name;
	unsigned count;
};

static enum MHD_Result count_header(void *arg, enum MHD_ValueKind kind, const char *name,
				    const char *value)
{
	struct header_count *header = arg;

	(void)kind;
	(void)value;
	header->count += strcasecmp(name, header->name) == 0;
	return MHD_YES;
}

static bool is_repeated(struct MHD_Connection *connection, const char *name)
{
	struct header_count header = { .name = name };

	MHD_get_connection_values(connection, MHD_HEADER_KIND, count_header, &header);
	return header.count > 1;
}

/* ---- the answer on its way out ---- */

static ssize_t no_content(void *arg, uint64_t position, char *buffer, size_t size)
{
	(void)arg;
	(void)position;
	(void)buffer;
	(void)size;
	return MHD_CONTENT_READER_END_OF_STREAM;
}

/* The body moves into the response; a body whose size nobody knows has no Content-Length. */
static struct MHD_Response *make_response(struct exchange *exchange)
{
	struct bytes *body = &exchange->body.bytes;
	struct MHD_Response *response;

	if (!exchange->has_body) {
		response =
		    MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 1, no_content, NULL, NULL);
		/* without it the headers would promise chunks, which GET does not send */
		if (response)
			MHD_set_response_options(response, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT,
						 MHD_RO_END);
		return response;
	}
	response = MHD_create_response_from_buffer(body->size, body->data, MHD_RESPMEM_MUST_FREE);
	if (response)
		body->data = NULL, body->size = body->capacity = 0;
	return response;
}

/* *failed stays set once it is. */
static void add_header(struct MHD_Response *response, const char *name, const char *value,
		       bool *failed)
{
	if (MHD_add_response_header(response, name, value) != MHD_YES)
		*failed = true;
}

static bool add_headers(struct MHD_Response *response, const struct exchange *exchange)
{
	bool failed = false;

	add_header(response, "Content-Type", exchange->content_type, &failed);
	add_header(response, "Cache-Control", "no-store", &failed);
	add_header(response, "X-Content-Type-Options", "nosniff", &failed);
	if (exchange->allow)
		add_header(response, "Allow", exchange->allow, &failed);
	if (*exchange->file_name && exchange->status == 200) {
		char disposition[128];

		snprintf(disposition, sizeof(disposition), "attachment; filename=\"%s\"",
			 exchange->file_name);
		add_header(response, "Content-Disposition", disposition, &failed);
	}
	if (exchange->for_pprof && exchange->status != 200)
		add_header(response, "X-Go-Pprof", "1", &failed);
	if (exchange->retry_after_ms && exchange->status != 200) {
		char seconds[24];

		snprintf(seconds, sizeof(seconds), "%" PRIu64,
			 (exchange->retry_after_ms + 999) / 1000);
		add_header(response, "Retry-After", seconds, &failed);
	}
	return !failed;
}

static enum MHD_Result respond(struct MHD_Connection *connection, struct exchange *exchange)
{
	struct error *err = text_finish(&exchange->body);
	struct MHD_Response *response = NULL;
	enum MHD_Result result = MHD_NO;

	if (!err)
		response = make_response(exchange);
	if (response && add_headers(response, exchange))
		result = MHD_queue_response(connection, exchange->status, response);
	if (response)
		MHD_destroy_response(response);
	if (result != MHD_YES)
		log_error("http", "connection dropped, no memory for an answer");
	error_free(err);
	return result;
}

/* The time that answering takes is not the client's: it must not count as idle. */
static void set_idle_limit(struct MHD_Connection *connection, unsigned seconds)
{
	if (MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, seconds) !=
	    MHD_YES)
		log_debug("http", "a connection keeps its idle limit");
}

static enum MHD_Result answer(struct server *server, struct MHD_Connection *connection,
			      const char *method, const struct request *request)
{
	const union MHD_ConnectionInfo *info =
	    MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct exchange exchange;
	enum MHD_Result result;

	if (!info)
		return MHD_NO;
	set_idle_limit(connection, 0);
	exchange_init(&exchange, server);
	exchange.method = method;
	exchange.target = request->target;
	exchange.client = info->connect_fd;
	exchange.host = header(connection, "Host");
	exchange.origin = header(connection, "Origin");
	exchange.fetch_site = header(connection, "Sec-Fetch-Site");
	exchange.accept = header(connection, "Accept");
	if (is_repeated(connection, "Host") || is_repeated(connection, "Origin"))
		exchange_refuse(&exchange, 400, "bad_request", "a header is given twice");
	else
		serve(&exchange);
	set_idle_limit(connection, IDLE_SECONDS);
	result = respond(connection, &exchange);
	exchange_fini(&exchange);
	return result;
}

/*
 * Called with the headers, then with what follows them. An answer at the first call would close the
 * connection, which is right only where a body is on its way that nobody wants.
 */
static enum MHD_Result handle(void *arg, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *upload_data,
			      size_t *upload_size, void **state)
{
	struct http *http = arg;
	struct request *request = *state;
	bool may_have_body = strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0;

	(void)url;
	(void)version;
	(void)upload_data;
	if (!request || !request->target)
		return MHD_NO;
	if (!request->counted) {
		request->counted = true;
		count_request(http, 1);
		if (!may_have_body)
			return MHD_YES;
	}
	if (*upload_size) { /* a GET with a body: it is read and forgotten */
		*upload_size = 0;
		return MHD_YES;
	}
	return answer(http->server, connection, method, request);
}

static __attribute__((format(printf, 2, 0))) void log_library(void *arg, const char *format,
							      va_list args)
{
	char text[256], escaped[512];

	(void)arg;
	vsnprintf(text, sizeof(text), format, args);
	log_debug("http", "libmicrohttpd says \"%s\"", log_escape(text, escaped, sizeof(escaped)));
}

struct error *http_start(struct server *server, struct listeners *listeners, struct http **ret)
{
	const unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD |
			       MHD_USE_POLL | MHD_USE_ITC | MHD_USE_ERROR_LOG;
	struct http *http = calloc(1, sizeof(*http));

	if (!http)
		return &error_nomem;
	http->server = server;
	pthread_mutex_init(&http->lock, NULL);
	pthread_cond_init(&http->idle, NULL);
	for (size_t i = 0; i < listeners->count; i++) {
		struct MHD_Daemon *daemon = MHD_start_daemon(
		    flags, 0, NULL, NULL, handle, http, MHD_OPTION_EXTERNAL_LOGGER, log_library,
		    NULL, MHD_OPTION_LISTEN_SOCKET, listeners->sockets[i],
		    MHD_OPTION_URI_LOG_CALLBACK, request_begin, http, MHD_OPTION_NOTIFY_COMPLETED,
		    request_end, http, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX,
		    MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		    (size_t)CONNECTION_MEMORY, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);

		if (!daemon) {
			http_free(http);
			return error_system(errno, "cannot start the HTTP server");
		}
		listeners->sockets[i] = -1;
		http->daemons[http->count++] = daemon;
	}
	*ret = http;
	return NULL;
}

void http_quiesce(struct http *http)
{
	for (size_t i = 0; i < http->count; i++) {
		int listener = MHD_quiesce_daemon(http->daemons[i]);

		closep(&listener);
	}
}

/* The library cuts connections off when it stops: what is being answered gets a moment before. */
static void wait_until_idle(struct http *http)
{
	uint64_t end_us = clock_now_us() + END_PATIENCE_US;
	struct timespec end = { .tv_sec = (time_t)(end_us / 1000000),
				.tv_nsec = (long)(end_us % 1000000) * 1000 };

	pthread_mutex_lock(&http->lock);
	while (http->request_count) {
		if (pthread_cond_clockwait(&http->idle, &http->lock, CLOCK_MONOTONIC, &end) ==
		    ETIMEDOUT)
			break;
	}
	pthread_mutex_unlock(&http->lock);
}

void http_free(struct http *http)
{
	if (!http)
		return;
	wait_until_idle(http);
	for (size_t i = 0; i < http->count; i++)
		MHD_stop_daemon(http->daemons[i]);
	pthread_cond_destroy(&http->idle);
	pthread_mutex_destroy(&http->lock);
	free(http);
}
