/*
 * Kept scans: decoders that stay after their answer with the graph of their target, which itself is
 * as it was by then and may be gone. Each belongs to the asker whose scan it was, who alone may ask
 * it and is told of none else; it goes when its time is over, when it is dropped, when memory is
 * short, when there is no room for a newer one, or with its asker.
 *
 * A decoder has read a hostile target and may be taken over: it is asked one question at a time,
 * and one that speaks unasked, says what does not belong to its target, or takes too long is ended.
 */
#ifndef AGENT_KEPT_SCAN_H
#define AGENT_KEPT_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/event.h"
#include "agent/job.h"
#include "agent/pressure.h"
#include "agent/target/procfs.h"

struct helper;
struct kept_scan;

enum {
	KEPT_ID_MAX_BYTES = 64,
	KEPT_MAX_MS = 24 * 3600 * 1000,
	/* Questions that wait for one decoder. */
	KEPT_QUESTIONS_MAX = 16,
	KEPT_QUESTION_MAX_BYTES = 64 << 10,
	/* One that has not answered by then is stuck. No request waits longer than that. */
	KEPT_ANSWER_MAX_MS = 600 * 1000,
	/* Between two looks at memory. */
	KEPT_LOOK_MS = 1000,
};

struct kept_limits {
	unsigned count_max;  /* 0: nothing is kept */
	uint64_t memory_max; /* bytes of all decoders together */
	uint64_t answer_max_ms, look_ms;
};

struct kept_table {
	struct event_loop *loop; /* borrowed, as is procfs */
	const struct procfs *procfs;
	struct kept_limits limits;
	struct pressure pressure;
	struct event_timer look;
	struct kept_scan *oldest; /* those that are being ended included */
};

must_check struct error *kept_table_init(struct kept_table *table, struct event_loop *loop,
					 const struct procfs *procfs,
					 const struct kept_limits *limits);
/* Ends all that are left; no question is open any more. */
void kept_table_fini(struct kept_table *table);

/* What is to be kept, and for whom. */
struct kept_offer {
	const void *asker;
	ProtobufCBinaryData id; /* borrowed */
	uint64_t ms;
	bool implied; /* nobody has asked for it: it makes room for those that were asked for */
	pid_t pid;
	uint64_t start_ticks;
};

/*
 * Takes a decoder over that has given its answer, and with it its memory (malloc's). *ret_until_ns
 * is since the epoch. An error says why it is not kept; the decoder stays the caller's then.
 */
must_check struct error *kept_table_add(struct kept_table *table, const struct kept_offer *offer,
					struct helper *decoder, uint64_t *ret_until_ns);

/*
 * Asks a decoder. The answer goes to reply, later; *ret belongs to the table, and is good until
 * then. ERROR_NOT_FOUND if the asker keeps none of that id, ERROR_BUSY if too much is asked of it.
 */
must_check struct error *kept_table_ask(struct kept_table *table, const void *asker,
					const Goheapd__Ask *request, struct reply *reply,
					struct job **ret);

/* Drops or prolongs the scan that request names. ERROR_NOT_FOUND as above. */
must_check struct error *kept_table_change(struct kept_table *table, const void *asker,
					   const Goheapd__Ask *request);

/* What the asker keeps, oldest first. The caller frees *ret with free_unpacked. */
must_check struct error *kept_table_list(const struct kept_table *table, const void *asker,
					 Goheapd__KeptScans **ret);

/* Drops what the asker keeps (NULL: what anybody keeps), for that reason. */
void kept_table_drop_all(struct kept_table *table, const void *asker, const char *reason);

#endif
