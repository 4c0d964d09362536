/*
 * Frames that wait for room in a non-blocking socket, so that one slow reader holds up nobody.
 */
#ifndef PROTO_WIRE_FRAME_QUEUE_H
#define PROTO_WIRE_FRAME_QUEUE_H

#include "proto/wire/frame.h"

struct queued_frame;

struct frame_queue {
	int socket; /* borrowed */
	const struct frame_kind *kind;
	struct queued_frame *first, **end;
	size_t bytes_left; /* not sent yet */
	size_t bytes_max;  /* ERROR_LIMIT beyond it: the other side does not read */
};

void frame_queue_init(struct frame_queue *queue, int socket, const struct frame_kind *kind,
		      size_t bytes_max);
void frame_queue_fini(struct frame_queue *queue);

/* Adds a frame. The descriptors are duplicated: the caller keeps its own. */
must_check struct error *frame_queue_add(struct frame_queue *queue, const ProtobufCMessage *message,
					 const int *fds, unsigned fd_count);

/* Sends what there is room for. More is left if frame_queue_is_empty says no. */
must_check struct error *frame_queue_flush(struct frame_queue *queue);

static inline bool frame_queue_is_empty(const struct frame_queue *queue)
{
	return !queue->first;
}

#endif
