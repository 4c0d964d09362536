/*
 * How much memory of ours a scan takes, against the limit that it may have. What it takes depends
 * on how many of a heap's words are pointers, which only reading it tells; so there are two
 * figures: with less than one it cannot be done, with the other it can, whatever the heap holds
 * (an edge takes 4 bytes for each 8 bytes of pointer). What each part takes is in memory_need.c, by
 * slot, pointer and object.
 */
#ifndef AGENT_REPORT_MEMORY_NEED_H
#define AGENT_REPORT_MEMORY_NEED_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"

struct heap_extent;

struct memory_need {
	uint64_t base; /* all but the graph and what is made of it */
	uint64_t least, enough;
	uint64_t plain; /* least, if there were no questions about objects */
};

/* What questions about objects make a scan do beside its graph. */
struct memory_need_questions {
	bool walks;       /* references are walked for types */
	bool chains;      /* and for chains of them */
	uint32_t samples; /* of a profile of them; 0: there is none */
	bool roots;       /* all is made ready for such a walk */
	bool copies;      /* what holds pointers is copied */
	bool retained;    /* dominators are found */
	bool holders;     /* who holds each object is known by object */
};

struct memory_need_input {
	const struct heap_extent *extent;
	uint64_t base;     /* bytes that are taken already */
	bool spans_read;   /* the span table, goroutines and roots are among these */
	bool labels;       /* memory is attributed to parties */
	bool many_parties; /* more than marking can tell apart */
	struct memory_need_questions questions;
	uint32_t goroutines;
	unsigned threads;
};

/*
 * What a scan with these questions does, NULL: none. keeps: later ones come. stopped: the target
 * stands still while it is read.
 */
struct memory_need_questions memory_need_questions(const Goheapd__Analysis *analysis, bool keeps,
						   bool stopped);

void memory_need_find(const struct memory_need_input *input, struct memory_need *ret);

/* Bytes of memory that this process takes now. */
uint64_t memory_need_taken(void);

/* What a walk of references holds once it has run. */
uint64_t memory_need_walked(uint64_t slots, uint64_t live_objects, bool chains);

/* What is left for the graph of a limit: 0 without one, at least 1 with one. */
uint64_t memory_need_left(const struct memory_need *need, uint64_t limit);

/* ERROR_OUT_OF_MEMORY that says what it would need. Consumes err, which may be NULL. */
must_check struct error *memory_need_refuse(const struct memory_need *need, uint64_t limit,
					    struct error *err);

#endif
