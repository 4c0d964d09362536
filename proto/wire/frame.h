/*
 * Frames: how messages travel between our processes. A frame is a u32 little-endian length and one
 * protobuf message, on a Unix stream socket; descriptors ride on its first byte. Each connection
 * carries one kind of message in each direction. Whatever does not fit its kind (too long, unknown
 * fields, trailing bytes, descriptors that were not expected) is an error, after which the
 * connection is of no more use.
 */
#ifndef PROTO_WIRE_FRAME_H
#define PROTO_WIRE_FRAME_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/base/bytes.h"
#include "proto/base/error.h"
#include "proto/wire/limits.h"

/* What one direction of a connection carries, and how much of it. */
struct frame_kind {
	const ProtobufCMessageDescriptor *descriptor;
	uint32_t size_max;   /* bytes of one message on the wire */
	uint64_t memory_max; /* bytes of one message decoded */
	unsigned fds_max;    /* descriptors with one message */
};

extern const struct frame_kind frame_request;       /* daemon to agent */
extern const struct frame_kind frame_answer;        /* agent to daemon */
extern const struct frame_kind frame_keeper_order;  /* agent to keeper */
extern const struct frame_kind frame_keeper_event;  /* keeper to agent */
extern const struct frame_kind frame_target_event;  /* keeper to decoder */
extern const struct frame_kind frame_plan_event;    /* decoder to keeper */
extern const struct frame_kind frame_decoder_order; /* agent to decoder */
extern const struct frame_kind frame_decoder_event; /* decoder to agent */

/* A message that was received, and the descriptors that came with it, close-on-exec. */
struct frame {
	ProtobufCMessage *message; /* of the kind's type; NULL: none */
	int fds[LIMIT_FRAME_FDS];
	unsigned fd_count;
};

/* Frees the message and closes what is left of the descriptors; fine on an empty frame. */
void frame_fini(struct frame *frame);

/* Closes what is left of the descriptors; the message stays. */
void frame_close_fds(struct frame *frame);

/* Moves descriptor number index out of the frame, -1 if there is none. The caller closes it. */
int frame_take_fd(struct frame *frame, unsigned index);

/* ---- sending ---- */

/* Appends length and message to out. ERROR_LIMIT if the message is larger than its kind may be. */
must_check struct error *frame_pack(const struct frame_kind *kind, const ProtobufCMessage *message,
				    struct bytes *out);

/*
 * Sends a frame whole, waiting for room where the socket is full. The descriptors stay the
 * caller's. ERROR_SYSTEM if the other side is gone; there is no SIGPIPE.
 */
must_check struct error *frame_send(int socket, const struct frame_kind *kind,
				    const ProtobufCMessage *message, const int *fds,
				    unsigned fd_count);

/*
 * One sendmsg of a part of a frame, the descriptors with it if it is the first: what frame_send
 * and frame_queue are made of. As sendmsg, but never interrupted.
 */
ssize_t frame_send_part(int socket, const uint8_t *bytes, size_t size, const int *fds,
			unsigned fd_count);

/* ---- receiving ---- */

enum frame_state {
	FRAME_PARTIAL,  /* a non-blocking socket has no whole frame yet */
	FRAME_COMPLETE, /* *ret is a frame; the caller finishes it */
	FRAME_END,      /* the other side closed, between two frames */
};

struct frame_reader {
	int socket; /* borrowed */
	const struct frame_kind *kind;
	uint8_t header[4];
	size_t header_size; /* bytes of it that have come */
	uint8_t *body;
	size_t body_size, body_filled;
	int fds[LIMIT_FRAME_FDS];
	unsigned fd_count;
};

void frame_reader_init(struct frame_reader *reader, int socket, const struct frame_kind *kind);
void frame_reader_fini(struct frame_reader *reader);

/*
 * Reads up to the end of one frame and never beyond. On a blocking socket it waits and
 * FRAME_PARTIAL does not occur. *ret is written for FRAME_COMPLETE alone.
 */
must_check struct error *frame_read(struct frame_reader *reader, struct frame *ret,
				    enum frame_state *ret_state);

#endif
