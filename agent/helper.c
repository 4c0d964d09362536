#include "agent/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/socket.h>

#include "proto/base/log.h"

/* Orders that may wait for a helper that does not read; it is stuck or taken over by then. */
enum { QUEUE_MAX_BYTES = MIB };

#define helper_of(pointer, member)                                                                 \
	((struct helper *)((char *)(pointer)-offsetof(struct helper, member)))

static void close_socket(struct helper *helper)
{
	event_remove(helper->loop, &helper->socket_source);
	frame_queue_fini(&helper->queue);
	frame_reader_fini(&helper->reader);
	closep(&helper->socket);
	helper->socket = -1;
}

/* Its side of the connection is of no more use: nothing it may say now is believed. */
void helper_distrust(struct helper *helper, struct error *err)
{
	if (!helper->kind || helper->socket < 0) {
		error_free(err);
		helper_kill(helper);
		return;
	}
	log_warning("agent", "a %s is ended, the agent goes on pid=%d err=\"%s\"",
		    helper->kind->role, (int)helper->child.pid, error_message(err));
	error_free(err);
	helper->distrusted = true;
	close_socket(helper);
	child_kill(&helper->child);
}

static struct error *hand_over(struct helper *helper, struct frame *frame)
{
	struct error *err = helper->kind->ops.message(helper, frame);

	frame_fini(frame);
	return err;
}

/* Hears what has come; its socket is closed at its end. */
static void hear(struct helper *helper)
{
	while (helper->socket >= 0) {
		struct frame frame;
		enum frame_state state;
		struct error *err = frame_read(&helper->reader, &frame, &state);

		if (!err && state == FRAME_COMPLETE)
			err = hand_over(helper, &frame);
		else if (!err && state == FRAME_PARTIAL)
			return;
		else if (!err)
			close_socket(helper);
		if (err)
			helper_distrust(helper, err);
	}
}

static void flush(struct helper *helper)
{
	struct error *err = frame_queue_flush(&helper->queue);

	/* it has ended: its exit tells how */
	if (err) {
		error_free(err);
		frame_queue_fini(&helper->queue);
		frame_queue_init(&helper->queue, helper->socket, helper->kind->orders,
				 QUEUE_MAX_BYTES);
	}
	event_change(helper->loop, &helper->socket_source,
		     frame_queue_is_empty(&helper->queue) ? EPOLLIN : EPOLLIN | EPOLLOUT);
}

static void socket_ready(struct event_source *source, uint32_t events)
{
	struct helper *helper = helper_of(source, socket_source);

	if (events & EPOLLOUT)
		flush(helper);
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		hear(helper);
}

static void process_ready(struct event_source *source, uint32_t events)
{
	struct helper *helper = helper_of(source, process_source);
	const struct helper_kind *kind;
	int status;

	(void)events;
	hear(helper);
	kind = helper->kind;
	event_remove(helper->loop, &helper->process_source);
	if (helper->socket >= 0)
		close_socket(helper);
	status = child_reap(&helper->child);
	helper->kind = NULL;
	kind->ops.ended(helper, status);
}

static struct error *watch(struct helper *helper)
{
	struct error *err =
	    event_add(helper->loop, &helper->socket_source, helper->socket, EPOLLIN, socket_ready);

	return err ? err
		   : event_add(helper->loop, &helper->process_source, helper->child.pidfd, EPOLLIN,
			       process_ready);
}

struct error *helper_start(struct helper *helper, const struct helper_kind *kind,
			   struct event_loop *loop, int peer_socket, uint64_t memory_limit)
{
	int theirs scoped(closep) = -1;
	int sockets[2];
	struct error *err;

	*helper = (struct helper){ .loop = loop,
				   .child.pidfd = -1,
				   .socket = -1,
				   .socket_source.fd = -1,
				   .process_source.fd = -1 };
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
		return error_system(errno, "socketpair");
	helper->socket = sockets[0];
	theirs = sockets[1];
	/* ours does not block; theirs does, since a helper does one thing at a time */
	if (fcntl(helper->socket, F_SETFL, O_NONBLOCK)) {
		closep(&helper->socket);
		return error_system(errno, "O_NONBLOCK");
	}
	helper->kind = kind;
	frame_reader_init(&helper->reader, helper->socket, kind->events);
	frame_queue_init(&helper->queue, helper->socket, kind->orders, QUEUE_MAX_BYTES);
	err = child_spawn(kind->role, theirs, peer_socket, memory_limit, &helper->child);
	if (!err)
		err = watch(helper);
	if (err)
		helper_fini(helper);
	return err;
}

void helper_fini(struct helper *helper)
{
	if (!helper_runs(helper))
		return;
	event_remove(helper->loop, &helper->process_source);
	if (helper->socket >= 0)
		close_socket(helper);
	if (helper->child.pid > 0) {
		child_kill(&helper->child);
		child_reap(&helper->child);
	}
	helper->kind = NULL;
}

struct error *helper_send(struct helper *helper, const ProtobufCMessage *order, const int *fds,
			  unsigned fd_count)
{
	struct error *err;

	if (!helper_runs(helper) || helper->socket < 0)
		return NULL;
	err = frame_queue_add(&helper->queue, order, fds, fd_count);
	if (err)
		return err;
	flush(helper);
	return NULL;
}

void helper_hang_up(struct helper *helper)
{
	if (helper_runs(helper) && helper->socket >= 0)
		shutdown(helper->socket, SHUT_WR);
}

void helper_kill(struct helper *helper)
{
	if (helper_runs(helper))
		child_kill(&helper->child);
}

void helper_hand_over(struct helper *helper, const struct helper_kind *kind, void *owner)
{
	helper->kind = kind;
	helper->owner = owner;
}
