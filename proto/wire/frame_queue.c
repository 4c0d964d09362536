#include "proto/wire/frame_queue.h"

#include <errno.h>
#include <fcntl.h>

struct queued_frame {
	struct queued_frame *next;
	struct bytes bytes;
	size_t sent;
	int fds[LIMIT_FRAME_FDS];
	unsigned fd_count;
};

static void queued_frame_free(struct queued_frame *frame)
{
	if (!frame)
		return;
	for (unsigned i = 0; i < frame->fd_count; i++)
		closep(&frame->fds[i]);
	bytes_fini(&frame->bytes);
	free(frame);
}
DEFINE_FREEP(queued_frame, queued_frame_free)

void frame_queue_init(struct frame_queue *queue, int socket, const struct frame_kind *kind,
		      size_t bytes_max)
{
	*queue = (struct frame_queue){ .socket = socket, .kind = kind, .bytes_max = bytes_max };
	queue->end = &queue->first;
}

static void remove_first(struct frame_queue *queue)
{
	struct queued_frame *frame = queue->first;

	queue->first = frame->next;
	if (!queue->first)
		queue->end = &queue->first;
	queued_frame_free(frame);
}

void frame_queue_fini(struct frame_queue *queue)
{
	while (queue->first)
		remove_first(queue);
}

static struct error *duplicate_fds(struct queued_frame *frame, const int *fds, unsigned fd_count)
{
	while (frame->fd_count < fd_count) {
		int fd = fcntl(fds[frame->fd_count], F_DUPFD_CLOEXEC, 0);

		if (fd < 0)
			return error_system(errno, "duplicate a descriptor");
		frame->fds[frame->fd_count++] = fd;
	}
	return NULL;
}

struct error *frame_queue_add(struct frame_queue *queue, const ProtobufCMessage *message,
			      const int *fds, unsigned fd_count)
{
	struct queued_frame *frame scoped(queued_frame_freep) = calloc(1, sizeof(*frame));
	struct error *err;

	if (!frame)
		return &error_nomem;
	bytes_init(&frame->bytes, (size_t)queue->kind->size_max + sizeof(uint32_t));
	if (fd_count > queue->kind->fds_max)
		return error_new(ERROR_LIMIT, "%u descriptors with one %s", fd_count,
				 queue->kind->descriptor->name);
	err = frame_pack(queue->kind, message, &frame->bytes);
	if (err)
		return err;
	/* an idle connection takes any frame; only what piles up is refused */
	if (queue->first && (queue->bytes_left > queue->bytes_max ||
			     frame->bytes.size > queue->bytes_max - queue->bytes_left))
		return error_new(ERROR_LIMIT, "%zu bytes wait for a reader that does not read",
				 queue->bytes_left);
	err = duplicate_fds(frame, fds, fd_count);
	if (err)
		return err;
	queue->bytes_left += frame->bytes.size;
	*queue->end = frame;
	queue->end = &take(frame)->next;
	return NULL;
}

struct error *frame_queue_flush(struct frame_queue *queue)
{
	while (queue->first) {
		struct queued_frame *frame = queue->first;
		ssize_t sent = frame_send_part(queue->socket, frame->bytes.data + frame->sent,
					       frame->bytes.size - frame->sent, frame->fds,
					       frame->sent ? 0 : frame->fd_count);

		if (sent < 0 && errno == EAGAIN)
			return NULL;
		if (sent < 0)
			return error_system(errno, "send %s", queue->kind->descriptor->name);
		frame->sent += (size_t)sent;
		queue->bytes_left -= (size_t)sent;
		if (frame->sent == frame->bytes.size)
			remove_first(queue);
	}
	return NULL;
}
