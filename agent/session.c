#include "agent/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>

#include "agent/event.h"
#include "agent/supervise.h"
#include "config.h"
#include "proto/base/log.h"
#include "proto/wire/failure.h"
#include "proto/wire/frame_queue.h"

enum session_state { SESSION_NEW, SESSION_READY };

/* A request that is not answered yet. */
struct open_request {
	struct open_request *next;
	struct reply reply;
	struct session *session;
	uint32_t id;
	struct job *job;
};

struct session {
	struct session *next; /* in the supervisor's list */
	struct supervisor *supervisor;
	int socket;
	struct event_source source;
	struct frame_reader reader;
	struct frame_queue queue;
	enum session_state state;
	struct open_request *open;
	unsigned open_count;
	bool ending; /* an answer could not be queued: goes at the next event */
	void (*ended)(void *arg);
	void *arg;
};

static void leave_list(struct session *session)
{
	struct session **link = &session->supervisor->sessions;

	while (*link != session)
		link = &(*link)->next;
	*link = session->next;
}

static void session_free(struct session *session)
{
	leave_list(session);
	while (session->open) {
		struct open_request *request = session->open;

		session->open = request->next;
		job_abandon(request->job);
		free(request);
	}
	supervise_forget(session->supervisor, session);
	event_remove(session->supervisor->loop, &session->source);
	frame_queue_fini(&session->queue);
	frame_reader_fini(&session->reader);
	closep(&session->socket);
	free(session);
}

static void session_end(struct session *session)
{
	void (*ended)(void *arg) = session->ended;
	void *arg = session->arg;

	session_free(session);
	ended(arg);
}

/* ---- answers ---- */

/* Called from within jobs, which the session must outlive: an error ends it at the next event. */
static void send_answer(struct session *session, Goheapd__Answer *answer)
{
	struct error *err = frame_queue_add(&session->queue, &answer->base, NULL, 0);

	if (!err)
		err = frame_queue_flush(&session->queue);
	if (err) {
		log_warning("session", "an answer could not be sent, the session ends err=\"%s\"",
			    error_message(err));
		error_free(err);
		session->ending = true;
	}
	event_change(session->supervisor->loop, &session->source,
		     session->ending || !frame_queue_is_empty(&session->queue) ? EPOLLIN | EPOLLOUT
									       : EPOLLIN);
}

/* Consumes err. */
static void send_failure(struct session *session, uint32_t id, struct error *err,
			 uint64_t retry_after_ms)
{
	Goheapd__Answer answer = GOHEAPD__ANSWER__INIT;
	Goheapd__Failure failure;

	failure_from_error(err, &failure);
	failure.has_retry_after_ms = retry_after_ms != 0;
	failure.retry_after_ms = retry_after_ms;
	answer.id = id;
	answer.body_case = GOHEAPD__ANSWER__BODY_FAILURE;
	answer.failure = &failure;
	send_answer(session, &answer);
	error_free(err);
}

static void close_request(struct open_request *request)
{
	struct session *session = request->session;
	struct open_request **link = &session->open;

	while (*link != request)
		link = &(*link)->next;
	*link = request->next;
	session->open_count--;
	free(request);
}

static void job_answered(struct reply *reply, Goheapd__Answer *answer)
{
	struct open_request *request =
	    (struct open_request *)((char *)reply - offsetof(struct open_request, reply));
	struct session *session = request->session;

	answer->id = request->id;
	close_request(request);
	send_answer(session, answer);
}

/* ---- requests ---- */

static struct open_request *find_open(const struct session *session, uint32_t id)
{
	for (struct open_request *request = session->open; request; request = request->next)
		if (request->id == id)
			return request;
	return NULL;
}

/* Consumes the error of a request that was refused at once: busy ones say when to come again. */
static struct error *refuse(struct session *session, uint32_t id, struct error *err,
			    uint64_t retry_after_ms)
{
	enum { DEFAULT_RETRY_MS = 500 };
	bool busy = error_code(err) == ERROR_BUSY;

	if (failure_of_error(error_code(err)) == GOHEAPD__FAILURE_CODE__FAILURE_INTERNAL)
		log_error("session", "a request could not be begun, others go on err=\"%s\"",
			  error_message(err));
	if (busy && !retry_after_ms)
		retry_after_ms = DEFAULT_RETRY_MS;
	send_failure(session, id, err, busy ? retry_after_ms : 0);
	return NULL;
}

static struct error *answer_hello(struct session *session, const Goheapd__Request *request)
{
	Goheapd__Answer answer = GOHEAPD__ANSWER__INIT;
	Goheapd__HelloAnswer hello = GOHEAPD__HELLO_ANSWER__INIT;
	char version[] = PACKAGE_VERSION;

	if (request->hello->protocol != WIRE_PROTOCOL)
		return error_new(ERROR_UNSUPPORTED, "protocol %u, ours is %d",
				 request->hello->protocol, WIRE_PROTOCOL);
	hello.protocol = WIRE_PROTOCOL;
	hello.version = version;
	answer.id = request->id;
	answer.body_case = GOHEAPD__ANSWER__BODY_HELLO;
	answer.hello = &hello;
	session->state = SESSION_READY;
	send_answer(session, &answer);
	return NULL;
}

static struct error *answer_look(struct session *session, const Goheapd__Request *request)
{
	Goheapd__Answer answer = GOHEAPD__ANSWER__INIT;
	Goheapd__Process *process;
	struct error *err =
	    supervise_look(session->supervisor, (pid_t)request->look_process->pid, &process);

	if (err)
		return refuse(session, request->id, err, 0);
	answer.id = request->id;
	answer.body_case = GOHEAPD__ANSWER__BODY_PROCESS;
	answer.process = process;
	send_answer(session, &answer);
	goheapd__process__free_unpacked(process, NULL);
	return NULL;
}

/* A job for a request, which is kept open until it answers. */
static struct error *start_job(struct session *session, const Goheapd__Request *request,
			       struct open_request *open, uint64_t *ret_retry_after_ms)
{
	struct supervisor *supervisor = session->supervisor;

	switch (request->body_case) {
	case GOHEAPD__REQUEST__BODY_LIST_PROCESSES:
		return supervise_list(supervisor, &open->reply, &open->job);
	case GOHEAPD__REQUEST__BODY_OVERVIEW:
		return supervise_overview(supervisor, request->overview, &open->reply, &open->job);
	case GOHEAPD__REQUEST__BODY_ASK:
		return supervise_ask(supervisor, request->ask, &open->reply, &open->job);
	default:
		return supervise_scan(supervisor, request->scan, &open->reply, &open->job,
				      ret_retry_after_ms);
	}
}

static struct error *answer_by_job(struct session *session, const Goheapd__Request *request)
{
	struct open_request *open scoped(freep) = NULL;
	uint64_t retry_after_ms = 0;
	struct error *err;

	if (find_open(session, request->id))
		return error_new(ERROR_FORMAT, "request %u is open already", request->id);
	if (session->open_count == LIMIT_OPEN_REQUESTS)
		return error_new(ERROR_LIMIT, "more than %d open requests", LIMIT_OPEN_REQUESTS);
	open = calloc(1, sizeof(*open));
	if (!open)
		return &error_nomem;
	open->session = session;
	open->id = request->id;
	open->reply.answer = job_answered;
	open->reply.asker = session;
	err = start_job(session, request, open, &retry_after_ms);
	if (err)
		return refuse(session, request->id, err, retry_after_ms);
	open->next = session->open;
	session->open = take(open);
	session->open_count++;
	return NULL;
}

static struct error *answer_list_kept(struct session *session, const Goheapd__Request *request)
{
	Goheapd__Answer answer = GOHEAPD__ANSWER__INIT;
	Goheapd__KeptScans *list;
	struct error *err = supervise_list_kept(session->supervisor, session, &list);

	if (err)
		return refuse(session, request->id, err, 0);
	answer.id = request->id;
	answer.body_case = GOHEAPD__ANSWER__BODY_KEPT_SCANS;
	answer.kept_scans = list;
	send_answer(session, &answer);
	goheapd__kept_scans__free_unpacked(list, NULL);
	return NULL;
}

/* What only changes how long a scan is kept is answered at once. */
static struct error *answer_ask(struct session *session, const Goheapd__Request *request)
{
	struct error *err;

	if (!request->ask->drop && !request->ask->has_keep_ms)
		return answer_by_job(session, request);
	err = supervise_change_kept(session->supervisor, session, request->ask);
	return err ? refuse(session, request->id, err, 0) : answer_list_kept(session, request);
}

/* One that was answered meanwhile is no mistake: the answer is on its way. */
static struct error *answer_cancel(struct session *session, const Goheapd__Request *request)
{
	struct open_request *open = find_open(session, request->cancel->request);

	if (!open)
		return NULL;
	job_abandon(open->job);
	close_request(open);
	send_failure(session, request->cancel->request,
		     error_new(ERROR_TIMEOUT, "the request was cancelled"), 0);
	return NULL;
}

static const struct request {
	Goheapd__Request__BodyCase body;
	enum session_state state; /* the only state in which it may come */
	struct error *(*answer)(struct session *session, const Goheapd__Request *request);
} requests[] = {
	{ GOHEAPD__REQUEST__BODY_HELLO, SESSION_NEW, answer_hello },
	{ GOHEAPD__REQUEST__BODY_LIST_PROCESSES, SESSION_READY, answer_by_job },
	{ GOHEAPD__REQUEST__BODY_LOOK_PROCESS, SESSION_READY, answer_look },
	{ GOHEAPD__REQUEST__BODY_OVERVIEW, SESSION_READY, answer_by_job },
	{ GOHEAPD__REQUEST__BODY_SCAN, SESSION_READY, answer_by_job },
	{ GOHEAPD__REQUEST__BODY_ASK, SESSION_READY, answer_ask },
	{ GOHEAPD__REQUEST__BODY_LIST_KEPT, SESSION_READY, answer_list_kept },
	{ GOHEAPD__REQUEST__BODY_CANCEL, SESSION_READY, answer_cancel },
};

/* An error ends the session. */
static struct error *answer_request(struct session *session, const Goheapd__Request *request)
{
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
		if (requests[i].body == request->body_case && requests[i].state == session->state)
			return requests[i].answer(session, request);
	return error_new(ERROR_FORMAT, "request %d may not come now", request->body_case);
}

/* ---- the connection ---- */

/* *ret_over: it has come to its end. One request, so that others get their turn. */
static struct error *read_request(struct session *session, bool *ret_over)
{
	struct frame frame;
	enum frame_state state;
	struct error *err = frame_read(&session->reader, &frame, &state);

	*ret_over = false;
	if (err || state == FRAME_PARTIAL)
		return err;
	if (state == FRAME_END) {
		*ret_over = true;
		return NULL;
	}
	err = answer_request(session, (const Goheapd__Request *)frame.message);
	frame_fini(&frame);
	return err;
}

static void session_ready(struct event_source *source, uint32_t events)
{
	struct session *session =
	    (struct session *)((char *)source - offsetof(struct session, source));
	struct error *err = NULL;
	bool over = session->ending;

	if (!over && (events & EPOLLOUT)) {
		err = frame_queue_flush(&session->queue);
		event_change(session->supervisor->loop, source,
			     frame_queue_is_empty(&session->queue) ? EPOLLIN : EPOLLIN | EPOLLOUT);
	}
	if (!err && !over && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		err = read_request(session, &over);
	if (!err && !over)
		return;
	if (err)
		log_warning("session", "a session is ended, others go on err=\"%s\"",
			    error_message(err));
	error_free(err);
	session_end(session);
}

struct error *session_start(struct supervisor *supervisor, int socket, void (*ended)(void *arg),
			    void *arg)
{
	struct session *session;
	struct error *err;

	if (fcntl(socket, F_SETFL, O_NONBLOCK) || fcntl(socket, F_SETFD, FD_CLOEXEC)) {
		err = error_system(errno, "prepare a socket");
		close(socket);
		return err;
	}
	session = calloc(1, sizeof(*session));
	if (!session) {
		close(socket);
		return &error_nomem;
	}
	session->next = supervisor->sessions;
	supervisor->sessions = session;
	session->supervisor = supervisor;
	session->socket = socket;
	session->ended = ended;
	session->arg = arg;
	frame_reader_init(&session->reader, socket, &frame_request);
	frame_queue_init(&session->queue, socket, &frame_answer, LIMIT_ANSWER_BYTES);
	err = event_add(supervisor->loop, &session->source, socket, EPOLLIN, session_ready);
	if (err)
		session_free(session);
	return err;
}

void session_end_all(struct supervisor *supervisor)
{
	while (supervisor->sessions)
		session_free(supervisor->sessions);
}
