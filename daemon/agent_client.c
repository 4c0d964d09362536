#include "daemon/agent_client.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "daemon/clock.h"
#include "proto/base/log.h"
#include "proto/wire/failure.h"
#include "proto/wire/frame.h"

enum {
	SEND_PATIENCE_US = 5000000,
	HELLO_PATIENCE_US = 10000000,
	BACKOFF_FIRST_MS = 100,
	BACKOFF_LAST_MS = 5000,
};

/* A request whose answer has not come; it lives on its caller's stack. */
struct call {
	struct call *next;
	uint32_t id;
	int event;               /* eventfd: answer or lost has been set */
	Goheapd__Answer *answer; /* the call's until it is taken */
	bool lost;
};

struct agent_client {
	struct agent_source *source;
	pthread_t thread;
	int stop; /* eventfd, readable for good once the client is to end */

	/* Held while a frame is written, so that frames do not mix; taken before lock. */
	pthread_mutex_t send_lock;

	pthread_mutex_t lock; /* guards what follows */
	int socket;           /* -1: none */
	bool ready, stopping;
	struct call *calls;
	size_t call_count;
	uint32_t last_id;
	char trouble[256];      /* why there is no agent */
	pthread_cond_t changed; /* ready, or trouble */
};

static struct error *unavailable(const char *why)
{
	return error_new(ERROR_AGENT_UNAVAILABLE, "the agent cannot be reached: %s", why);
}

/* ---- calls ---- */

static void signal_event(int event)
{
	const uint64_t one = 1;

	if (write(event, &one, sizeof(one)) < 0)
		log_error("agent", "an event is lost err=\"%s\"", strerror(errno));
}

static struct error *call_open(struct agent_client *client, struct call *call)
{
	struct error *err = NULL;

	*call = (struct call){ .event = eventfd(0, EFD_CLOEXEC) };
	if (call->event < 0)
		return error_system(errno, "eventfd");
	pthread_mutex_lock(&client->lock);
	if (client->stopping) {
		err = unavailable("goheapd is ending");
	} else if (!client->ready) {
		err = unavailable(client->trouble);
	} else if (client->call_count >= LIMIT_OPEN_REQUESTS) {
		err =
		    error_new(ERROR_BUSY, "%d requests to the agent are open", LIMIT_OPEN_REQUESTS);
	} else {
		call->id = ++client->last_id;
		call->next = client->calls;
		client->calls = call;
		client->call_count++;
	}
	pthread_mutex_unlock(&client->lock);
	if (err)
		close(call->event);
	return err;
}

/* Takes the call off the list: nobody will write to it any more. */
static void call_close(struct agent_client *client, struct call *call)
{
	pthread_mutex_lock(&client->lock);
	for (struct call **link = &client->calls; *link; link = &(*link)->next) {
		if (*link == call) {
			*link = call->next;
			client->call_count--;
			break;
		}
	}
	pthread_mutex_unlock(&client->lock);
	close(call->event);
}

/* ---- sending ---- */

static struct error *send_all(int socket, const struct bytes *bytes)
{
	uint64_t deadline = clock_now_us() + SEND_PATIENCE_US;
	size_t sent = 0;

	while (sent < bytes->size) {
		struct pollfd room = { .fd = socket, .events = POLLOUT };
		ssize_t size = send(socket, bytes->data + sent, bytes->size - sent,
				    MSG_NOSIGNAL | MSG_DONTWAIT);

		if (size >= 0) {
			sent += (size_t)size;
			continue;
		}
		if (errno != EAGAIN && errno != EINTR)
			return error_system(errno, "send");
		if (clock_now_us() >= deadline)
			return error_new(ERROR_TIMEOUT, "it does not read its requests");
		poll(&room, 1, clock_poll_ms(deadline));
	}
	return NULL;
}

/*
 * A request that could not be written whole leaves a connection that is of no more use: shutting it
 * down wakes the receiving thread, which starts over.
 */
static struct error *send_request(struct agent_client *client, const Goheapd__Request *request)
{
	struct bytes bytes;
	struct error *err;
	int socket;

	bytes_init(&bytes, LIMIT_REQUEST_BYTES + sizeof(uint32_t));
	err = frame_pack(&frame_request, &request->base, &bytes);
	if (!err) {
		pthread_mutex_lock(&client->send_lock);
		pthread_mutex_lock(&client->lock);
		socket = client->socket;
		pthread_mutex_unlock(&client->lock);
		err = socket < 0 ? unavailable("it has just ended") : send_all(socket, &bytes);
		if (err && socket >= 0) {
			shutdown(socket, SHUT_RDWR);
			err = error_recode(error_context(err, "the agent cannot be reached"),
					   ERROR_AGENT_UNAVAILABLE);
		}
		pthread_mutex_unlock(&client->send_lock);
	}
	bytes_fini(&bytes);
	return err;
}

static struct error *send_cancel(struct agent_client *client, uint32_t id)
{
	Goheapd__Request request = GOHEAPD__REQUEST__INIT;
	Goheapd__Cancel cancel = GOHEAPD__CANCEL__INIT;

	pthread_mutex_lock(&client->lock);
	request.id = ++client->last_id;
	pthread_mutex_unlock(&client->lock);
	request.body_case = GOHEAPD__REQUEST__BODY_CANCEL;
	request.cancel = &cancel;
	cancel.request = id;
	return send_request(client, &request);
}

/* ---- the receiving thread ---- */

static void deliver(struct agent_client *client, Goheapd__Answer *answer)
{
	pthread_mutex_lock(&client->lock);
	for (struct call *call = client->calls; call; call = call->next) {
		if (call->id == answer->id && !call->answer) {
			call->answer = take(answer);
			signal_event(call->event);
			break;
		}
	}
	pthread_mutex_unlock(&client->lock);
	if (answer) /* its caller has given up */
		goheapd__answer__free_unpacked(answer, NULL);
}

/* Frees nothing of the frame but what deliver() did not take. */
static struct error *receive(struct agent_client *client, int socket)
{
	struct frame_reader reader;
	struct error *err = NULL;

	frame_reader_init(&reader, socket, &frame_answer);
	for (;;) {
		struct frame frame = { 0 };
		enum frame_state state;

		err = frame_read(&reader, &frame, &state);
		if (err || state == FRAME_END)
			break;
		deliver(client, (Goheapd__Answer *)take(frame.message));
		frame_fini(&frame);
	}
	frame_reader_fini(&reader);
	return err ? err
		   : error_new(ERROR_AGENT_UNAVAILABLE, "the agent has closed the connection");
}

/* Both greet; the agent's protocol must be ours. Nothing else is on the wire yet. */
static struct error *greet(const struct agent_client *client, int socket)
{
	const struct patience patience = { .deadline_us = clock_now_us() + HELLO_PATIENCE_US,
					   .client = -1,
					   .stop = client->stop };

	Goheapd__Request request = GOHEAPD__REQUEST__INIT;
	Goheapd__Hello hello = GOHEAPD__HELLO__INIT;
	struct frame frame = { 0 };
	struct frame_reader reader;
	enum frame_state state;
	Goheapd__Answer *answer;
	struct error *err;

	hello.protocol = WIRE_PROTOCOL;
	request.body_case = GOHEAPD__REQUEST__BODY_HELLO;
	request.hello = &hello;
	err = frame_send(socket, &frame_request, &request.base, NULL, 0);
	if (err)
		return err;
	err = patience_wait(&patience, socket);
	if (err)
		return error_context(err, "the agent does not greet");
	frame_reader_init(&reader, socket, &frame_answer);
	err = frame_read(&reader, &frame, &state);
	frame_reader_fini(&reader);
	if (err)
		return err;
	answer = state == FRAME_COMPLETE ? (Goheapd__Answer *)frame.message : NULL;
	if (!answer)
		err = error_new(ERROR_AGENT_UNAVAILABLE, "the agent ended at once");
	else if (answer->body_case == GOHEAPD__ANSWER__BODY_FAILURE)
		err = failure_make_error(answer->failure);
	else if (answer->body_case != GOHEAPD__ANSWER__BODY_HELLO ||
		 answer->hello->protocol != WIRE_PROTOCOL)
		err = error_new(ERROR_AGENT_UNAVAILABLE,
				"the agent speaks another protocol: install one version of both");
	frame_fini(&frame);
	return err;
}

/* Publishes the connection, unless the client is ending. */
static bool session_begin(struct agent_client *client, int socket)
{
	bool go;

	pthread_mutex_lock(&client->lock);
	go = !client->stopping;
	if (go) {
		client->socket = socket;
		client->ready = true;
		pthread_cond_broadcast(&client->changed);
	}
	pthread_mutex_unlock(&client->lock);
	return go;
}

/* Takes the connection away, closes it and lets every open call know. */
static void session_end(struct agent_client *client, int socket, const char *why)
{
	pthread_mutex_lock(&client->send_lock); /* nobody is writing to the socket now */
	pthread_mutex_lock(&client->lock);
	client->socket = -1;
	client->ready = false;
	snprintf(client->trouble, sizeof(client->trouble), "%s", why);
	for (struct call *call = client->calls; call; call = call->next) {
		call->lost = true;
		signal_event(call->event);
	}
	pthread_cond_broadcast(&client->changed);
	pthread_mutex_unlock(&client->lock);
	pthread_mutex_unlock(&client->send_lock);
	if (socket >= 0)
		close(socket);
}

static bool is_stopping(struct agent_client *client)
{
	bool stopping;

	pthread_mutex_lock(&client->lock);
	stopping = client->stopping;
	pthread_mutex_unlock(&client->lock);
	return stopping;
}

/* One agent's life. Returns why it ended, and whether it had been of use. */
static struct error *run_session(struct agent_client *client, bool *ret_was_ready)
{
	struct error *err;
	int socket;

	*ret_was_ready = false;
	err = client->source->connect(client->source, &socket);
	if (err) {
		session_end(client, -1, error_message(err));
		return err;
	}
	err = greet(client, socket);
	if (!err && session_begin(client, socket)) {
		*ret_was_ready = true;
		log_debug("agent", "connected");
		err = receive(client, socket);
	}
	session_end(client, socket, err ? error_message(err) : "goheapd is ending");
	client->source->lost(client->source);
	return err;
}

static void *client_thread(void *arg)
{
	struct agent_client *client = arg;
	struct pollfd stop = { .fd = client->stop, .events = POLLIN };
	int backoff_ms = BACKOFF_FIRST_MS;

	while (!is_stopping(client)) {
		bool was_ready;
		struct error *err scoped(error_freep) = run_session(client, &was_ready);

		if (is_stopping(client))
			break;
		backoff_ms = was_ready ? BACKOFF_FIRST_MS : backoff_ms * 2;
		if (backoff_ms > BACKOFF_LAST_MS)
			backoff_ms = BACKOFF_LAST_MS;
		if (err)
			log_warning("agent", "no agent, trying again retry_ms=%d err=\"%s\"",
				    backoff_ms, error_message(err));
		poll(&stop, 1, backoff_ms);
	}
	return NULL;
}

/* ---- the caller's side ---- */

struct error *agent_client_new(struct agent_source *source, struct agent_client **ret)
{
	struct agent_client *client = malloc(sizeof(*client));
	int errnum;

	if (!client) {
		agent_source_free(source);
		return &error_nomem;
	}
	*client = (struct agent_client){
		.source = source,
		.stop = eventfd(0, EFD_CLOEXEC),
		.send_lock = PTHREAD_MUTEX_INITIALIZER,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.changed = PTHREAD_COND_INITIALIZER,
		.socket = -1,
		.trouble = "it is being started",
	};
	errnum =
	    client->stop < 0 ? errno : pthread_create(&client->thread, NULL, client_thread, client);
	if (errnum) {
		if (client->stop >= 0)
			close(client->stop);
		agent_source_free(source);
		free(client);
		return error_system(errnum, "cannot start a thread");
	}
	*ret = client;
	return NULL;
}

void agent_client_shut_down(struct agent_client *client)
{
	pthread_mutex_lock(&client->lock);
	client->stopping = true;
	if (client->socket >= 0)
		shutdown(client->socket, SHUT_RDWR);
	signal_event(client->stop);
	pthread_cond_broadcast(&client->changed);
	pthread_mutex_unlock(&client->lock);
}

void agent_client_free(struct agent_client *client)
{
	if (!client)
		return;
	agent_client_shut_down(client);
	pthread_join(client->thread, NULL);
	agent_source_free(client->source);
	close(client->stop);
	pthread_mutex_destroy(&client->lock);
	pthread_mutex_destroy(&client->send_lock);
	pthread_cond_destroy(&client->changed);
	free(client);
}

bool agent_client_is_ready(struct agent_client *client)
{
	bool ready;

	pthread_mutex_lock(&client->lock);
	ready = client->ready;
	pthread_mutex_unlock(&client->lock);
	return ready;
}

struct error *agent_client_wait_ready(struct agent_client *client, uint64_t timeout_us)
{
	uint64_t deadline_us = clock_now_us() + timeout_us;
	struct timespec deadline = { .tv_sec = (time_t)(deadline_us / 1000000),
				     .tv_nsec = (long)(deadline_us % 1000000) * 1000 };
	struct error *err = NULL;

	pthread_mutex_lock(&client->lock);
	while (!client->ready && !client->stopping) {
		if (pthread_cond_clockwait(&client->changed, &client->lock, CLOCK_MONOTONIC,
					   &deadline) == ETIMEDOUT)
			break;
	}
	if (!client->ready)
		err = unavailable(client->trouble);
	pthread_mutex_unlock(&client->lock);
	return err;
}

/* Waits for the answer; when the patience ends, cancels and waits for that to be confirmed. */
static struct error *call_wait(struct agent_client *client, struct call *call,
			       const struct patience *patience, uint64_t grace_us)
{
	struct error *err = patience_wait(patience, call->event);
	struct patience grace = { .client = -1, .stop = -1 };

	if (!err)
		return NULL;
	error_free(send_cancel(client, call->id)); /* if it cannot be sent the agent is gone too */
	grace.deadline_us = clock_now_us() + grace_us;
	if (grace_us)
		error_free(patience_wait(&grace, call->event));
	return err;
}

static struct error *call_result(struct call *call, Goheapd__Answer **ret,
				 uint64_t *ret_retry_after_ms)
{
	struct error *err;

	if (!call->answer)
		return unavailable("it ended before it answered");
	if (call->answer->body_case != GOHEAPD__ANSWER__BODY_FAILURE) {
		*ret = take(call->answer);
		return NULL;
	}
	err = failure_make_error(call->answer->failure);
	if (ret_retry_after_ms)
		*ret_retry_after_ms = call->answer->failure->has_retry_after_ms
					  ? call->answer->failure->retry_after_ms
					  : 0;
	return err;
}

struct error *agent_client_call(struct agent_client *client, Goheapd__Request *request,
				const struct patience *patience, uint64_t grace_us,
				Goheapd__Answer **ret, uint64_t *ret_retry_after_ms)
{
	struct call call;
	struct error *err;

	if (ret_retry_after_ms)
		*ret_retry_after_ms = 0;
	err = call_open(client, &call);
	if (err)
		return err;
	request->id = call.id;
	err = send_request(client, request);
	if (!err)
		err = call_wait(client, &call, patience, grace_us);
	call_close(client, &call);
	if (!err)
		err = call_result(&call, ret, ret_retry_after_ms);
	if (call.answer)
		goheapd__answer__free_unpacked(call.answer, NULL);
	return err;
}
