/*
 * How large anything on the wire may be. A message over its limit ends the connection before
 * anything is allocated for it.
 */
#ifndef PROTO_WIRE_LIMITS_H
#define PROTO_WIRE_LIMITS_H

/* The protocol that Hello names; raised when a message changes its meaning. */
enum { WIRE_PROTOCOL = 2 };

enum {
	KIB = 1 << 10,
	MIB = 1 << 20,

	/* Nested messages: the memory tree, and room for it to grow. */
	LIMIT_MESSAGE_DEPTH = 24,

	/* Bytes of one message on the wire. */
	LIMIT_REQUEST_BYTES = 4 * MIB,       /* what a request line holds: labels to select by */
	LIMIT_ANSWER_BYTES = 256 * MIB,      /* some millions of goroutines */
	LIMIT_KEEPER_ORDER_BYTES = 64 * KIB, /* two lists of patterns */
	LIMIT_KEEPER_EVENT_BYTES = 64 * KIB,
	LIMIT_TARGET_EVENT_BYTES = 64 * MIB, /* registers of 16,384 threads */
	LIMIT_PLAN_BYTES = 256 * KIB,
	LIMIT_DECODER_ORDER_BYTES = 4 * MIB, /* the same labels */

	/* Descriptors that travel with one message; the kernel's own limit is 253. */
	LIMIT_FRAME_FDS = 16,

	/* Labels that one request selects by, and how long their parts may be. */
	LIMIT_SELECT_LABELS = 64,
	LIMIT_LABEL_KEY_BYTES = 1 * KIB,
	LIMIT_LABEL_VALUE_BYTES = 1 * MIB,

	/* Places in which a debug file is looked for. */
	LIMIT_DEBUG_FILES = 6,

	/* The content of a binary's index, in a message and on disk. */
	LIMIT_INDEX_BYTES = 1 * MIB,
	/* The same of its types, in a memory file. */
	LIMIT_TYPE_INDEX_BYTES = 256 * MIB,
	/* Threads of a target that one scan takes. */
	LIMIT_THREADS = 16384,
	/* Requests that one connection may have open. */
	LIMIT_OPEN_REQUESTS = 256,
	/* Connections to one agent. */
	LIMIT_SESSIONS = 32,
};

#endif
