/*
 * A keeper or decoder at work: its process, and the connection to it. Its messages are handed to
 * its owner, then its end, once, when the process is reaped and everything it said was heard.
 */
#ifndef AGENT_HELPER_H
#define AGENT_HELPER_H

#include <stdbool.h>

#include "agent/child.h"
#include "agent/event.h"
#include "proto/wire/frame_queue.h"

struct helper;

struct helper_ops {
	/* The frame is the helper's; what is taken out of it stays out. An error kills it. */
	struct error *(*message)(struct helper *helper, struct frame *frame);
	/* The owner may free the helper in it. status as waitpid has it. */
	void (*ended)(struct helper *helper, int status);
};

struct helper_kind {
	const char *role;
	const struct frame_kind *orders, *events;
	struct helper_ops ops;
};

struct helper {
	const struct helper_kind *kind; /* NULL: never started, or ended */
	void *owner;                    /* to set once it has started, for the owner's use */
	struct event_loop *loop;
	struct child child;
	bool distrusted; /* killed for what it said */
	int socket;
	struct frame_reader reader;
	struct frame_queue queue;
	struct event_source socket_source, process_source;
};

/* peer_socket is the caller's, -1: none. memory_limit in bytes, 0: none. */
must_check struct error *helper_start(struct helper *helper, const struct helper_kind *kind,
				      struct event_loop *loop, int peer_socket,
				      uint64_t memory_limit);

/* Kills and reaps it if it still runs; ended is not called. */
void helper_fini(struct helper *helper);

/* For these, NULL is a helper that has ended. */
static inline bool helper_runs(const struct helper *helper)
{
	return helper && helper->kind;
}

/* Sends an order; fine, and without effect, after its end. Descriptors stay the caller's. */
must_check struct error *helper_send(struct helper *helper, const ProtobufCMessage *order,
				     const int *fds, unsigned fd_count);

/* Tells it to come to its end, by closing our direction. */
void helper_hang_up(struct helper *helper);
void helper_kill(struct helper *helper);

/* Kills it for what it said, or did not say; nothing that it says from now on is heard. Consumes
 * err, which is logged. */
void helper_distrust(struct helper *helper, struct error *err);

/*
 * Hands a helper that runs to another owner, with the kind that its messages and its end go to from
 * now on. May be called from within either.
 */
void helper_hand_over(struct helper *helper, const struct helper_kind *kind, void *owner);

#endif
