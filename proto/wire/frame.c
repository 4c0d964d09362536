#include "proto/wire/frame.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "proto/goheapd.pb-c.h"
#include "proto/wire/check.h"

enum { HEADER_BYTES = 4 };

const struct frame_kind frame_request = { &goheapd__request__descriptor, LIMIT_REQUEST_BYTES,
					  2 * LIMIT_REQUEST_BYTES, 0 };
const struct frame_kind frame_answer = { &goheapd__answer__descriptor, LIMIT_ANSWER_BYTES,
					 4 * (uint64_t)LIMIT_ANSWER_BYTES, 0 };
const struct frame_kind frame_keeper_order = { &goheapd__keeper_order__descriptor,
					       LIMIT_KEEPER_ORDER_BYTES,
					       2 * LIMIT_KEEPER_ORDER_BYTES, 1 };
const struct frame_kind frame_keeper_event = { &goheapd__keeper_event__descriptor,
					       LIMIT_KEEPER_EVENT_BYTES,
					       4 * LIMIT_KEEPER_EVENT_BYTES, 1 };
const struct frame_kind frame_target_event = { &goheapd__target_event__descriptor,
					       LIMIT_TARGET_EVENT_BYTES,
					       2 * (uint64_t)LIMIT_TARGET_EVENT_BYTES,
					       LIMIT_FRAME_FDS };
const struct frame_kind frame_plan_event = { &goheapd__plan_event__descriptor, LIMIT_PLAN_BYTES,
					     16 * LIMIT_PLAN_BYTES, 0 };
const struct frame_kind frame_decoder_order = { &goheapd__decoder_order__descriptor,
						LIMIT_DECODER_ORDER_BYTES,
						4 * LIMIT_DECODER_ORDER_BYTES, LIMIT_FRAME_FDS };
const struct frame_kind frame_decoder_event = { &goheapd__decoder_event__descriptor,
						LIMIT_ANSWER_BYTES,
						4 * (uint64_t)LIMIT_ANSWER_BYTES, 1 };

static void close_all(int *fds, unsigned *count)
{
	for (unsigned i = 0; i < *count; i++)
		closep(&fds[i]);
	*count = 0;
}

void frame_fini(struct frame *frame)
{
	if (frame->message)
		protobuf_c_message_free_unpacked(frame->message, NULL);
	frame->message = NULL;
	close_all(frame->fds, &frame->fd_count);
}

void frame_close_fds(struct frame *frame)
{
	close_all(frame->fds, &frame->fd_count);
}

int frame_take_fd(struct frame *frame, unsigned index)
{
	return index < frame->fd_count ? take_fd(frame->fds[index]) : -1;
}

struct error *frame_pack(const struct frame_kind *kind, const ProtobufCMessage *message,
			 struct bytes *out)
{
	size_t size = protobuf_c_message_get_packed_size(message);
	uint8_t *to;
	struct error *err;

	if (size > kind->size_max)
		return error_new(ERROR_LIMIT, "%s of %zu bytes is larger than the wire carries",
				 kind->descriptor->name, size);
	err = bytes_extend(out, HEADER_BYTES + size, &to);
	if (err)
		return err;
	store_u32le(to, (uint32_t)size);
	protobuf_c_message_pack(message, to + HEADER_BYTES);
	return NULL;
}

/* Room in which the kernel finds or leaves descriptors; one more than we take shows an excess. */
union fd_control {
	struct cmsghdr header;
	uint8_t bytes[CMSG_SPACE((LIMIT_FRAME_FDS + 1) * sizeof(int))];
};

static void attach_fds(struct msghdr *msg, union fd_control *control, const int *fds,
		       unsigned fd_count)
{
	size_t size = fd_count * sizeof(int);

	msg->msg_control = control->bytes;
	msg->msg_controllen = CMSG_SPACE(size);
	control->header = (struct cmsghdr){
		.cmsg_len = CMSG_LEN(size),
		.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS,
	};
	memcpy(CMSG_DATA(&control->header), fds, size);
}

ssize_t frame_send_part(int socket, const uint8_t *bytes, size_t size, const int *fds,
			unsigned fd_count)
{
	union fd_control control = { 0 };
	struct iovec iov = { (void *)(uintptr_t)bytes, size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t sent;

	if (fd_count)
		attach_fds(&msg, &control, fds, fd_count);
	do
		sent = sendmsg(socket, &msg, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent;
}

static struct error *wait_for_room(int socket)
{
	struct pollfd room = { .fd = socket, .events = POLLOUT };

	if (poll(&room, 1, -1) < 0 && errno != EINTR)
		return error_system(errno, "wait for room in a socket");
	return NULL;
}

struct error *frame_send(int socket, const struct frame_kind *kind, const ProtobufCMessage *message,
			 const int *fds, unsigned fd_count)
{
	struct bytes bytes;
	size_t done = 0;
	struct error *err;

	if (fd_count > kind->fds_max)
		return error_new(ERROR_LIMIT, "%u descriptors with one %s", fd_count,
				 kind->descriptor->name);
	bytes_init(&bytes, (size_t)kind->size_max + HEADER_BYTES);
	err = frame_pack(kind, message, &bytes);
	while (!err && done < bytes.size) {
		/* descriptors go with the first byte, so only until something was sent */
		ssize_t sent = frame_send_part(socket, bytes.data + done, bytes.size - done, fds,
					       done ? 0 : fd_count);

		if (sent >= 0)
			done += (size_t)sent;
		else if (errno == EAGAIN)
			err = wait_for_room(socket);
		else
			err = error_system(errno, "send %s", kind->descriptor->name);
	}
	bytes_fini(&bytes);
	return err;
}

void frame_reader_init(struct frame_reader *reader, int socket, const struct frame_kind *kind)
{
	*reader = (struct frame_reader){ .socket = socket, .kind = kind };
}

void frame_reader_fini(struct frame_reader *reader)
{
	free(take(reader->body));
	reader->header_size = 0;
	close_all(reader->fds, &reader->fd_count);
}

/*
 * Takes in the descriptors of one received part; on an error they are closed with the reader.
 * Only the first byte of a frame may carry any.
 */
static struct error *take_fds(struct frame_reader *reader, struct msghdr *msg, bool first)
{
	struct error *err = NULL;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (first && reader->fd_count < reader->kind->fds_max) {
				reader->fds[reader->fd_count++] = fd;
				continue;
			}
			close(fd);
			if (!err)
				err = error_new(ERROR_FORMAT, "%s: unexpected descriptors",
						reader->kind->descriptor->name);
		}
	}
	if (!err && (msg->msg_flags & MSG_CTRUNC))
		err = error_new(ERROR_FORMAT, "%s: more descriptors than a frame carries",
				reader->kind->descriptor->name);
	return err;
}

/* Receives up to size bytes; *ret_size is 0 at the end, -1 if there is nothing yet. */
static struct error *receive(struct frame_reader *reader, void *to, size_t size, bool first,
			     ssize_t *ret_size)
{
	union fd_control control;
	struct iovec iov = { to, size };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };
	ssize_t got;

	do
		got = recvmsg(reader->socket, &msg, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got < 0 && errno == EAGAIN) {
		*ret_size = -1;
		return NULL;
	}
	/* a peer that died with our bytes unread resets the connection: its end as well */
	if (got < 0 && errno != ECONNRESET)
		return error_system(errno, "receive %s", reader->kind->descriptor->name);
	*ret_size = got < 0 ? 0 : got;
	return got < 0 ? NULL : take_fds(reader, &msg, first);
}

/* The header has come: checks the length before anything is allocated for it. */
static struct error *begin_body(struct frame_reader *reader)
{
	uint32_t size = load_u32le(reader->header);

	if (size > reader->kind->size_max)
		return error_new(ERROR_LIMIT, "%s of %" PRIu32 " bytes is larger than %" PRIu32,
				 reader->kind->descriptor->name, size, reader->kind->size_max);
	/* an empty message still has a body, so that its buffer tells that the header is done */
	reader->body = malloc(size ? size : 1);
	if (!reader->body)
		return &error_nomem;
	reader->body_size = size;
	reader->body_filled = 0;
	return NULL;
}

/* The frame has come: decodes it and begins anew. */
static struct error *end_body(struct frame_reader *reader, struct frame *ret)
{
	uint8_t *body scoped(freep) = take(reader->body);
	const struct frame_kind *kind = reader->kind;
	ProtobufCMessage *message;
	struct error *err = wire_check(kind->descriptor, body, reader->body_size, kind->memory_max);

	if (err)
		return err;
	message = protobuf_c_message_unpack(kind->descriptor, NULL, reader->body_size, body);
	if (!message)
		return error_new(ERROR_FORMAT, "%s: not a whole message", kind->descriptor->name);
	*ret = (struct frame){ .message = message, .fd_count = reader->fd_count };
	memcpy(ret->fds, reader->fds, sizeof(reader->fds));
	reader->fd_count = 0;
	reader->header_size = 0;
	return NULL;
}

/* One receive into the header or the body. *ret_size as receive() has it. */
static struct error *advance(struct frame_reader *reader, ssize_t *ret_size)
{
	struct error *err;

	if (reader->body) {
		err = receive(reader, reader->body + reader->body_filled,
			      reader->body_size - reader->body_filled, false, ret_size);
		if (!err && *ret_size > 0)
			reader->body_filled += (size_t)*ret_size;
		return err;
	}
	err = receive(reader, reader->header + reader->header_size,
		      HEADER_BYTES - reader->header_size, reader->header_size == 0, ret_size);
	if (err)
		return err;
	if (*ret_size > 0)
		reader->header_size += (size_t)*ret_size;
	return reader->header_size == HEADER_BYTES ? begin_body(reader) : NULL;
}

struct error *frame_read(struct frame_reader *reader, struct frame *ret,
			 enum frame_state *ret_state)
{
	while (!reader->body || reader->body_filled < reader->body_size) {
		ssize_t size;
		struct error *err = advance(reader, &size);

		if (err)
			return err;
		if (size > 0)
			continue;
		if (size == 0 && reader->header_size)
			return error_new(ERROR_FORMAT, "%s: the connection ended in the middle",
					 reader->kind->descriptor->name);
		*ret_state = size < 0 ? FRAME_PARTIAL : FRAME_END;
		return NULL;
	}
	*ret_state = FRAME_COMPLETE;
	return end_body(reader, ret);
}
