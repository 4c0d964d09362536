/*
 * The scan of one stack under way: words found go to the sink as roots or, where they point into
 * the stack itself, wait here until it is known which stack objects there are; an object is live
 * if a word that is live points into it, and then its own words count (runtime/mgcmark.go,
 * scanstack; mgcstack.go).
 */
#ifndef AGENT_GORUNTIME_STACK_SCAN_H
#define AGENT_GORUNTIME_STACK_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/goruntime/root.h"
#include "agent/target/memory.h"
#include "proto/base/error.h"

struct stack_object;
struct stack_window;

enum {
	SCAN_OBJECTS_MAX = 1 << 22, /* on one stack */
	SCAN_WORDS_MAX = 1 << 25,   /* pointers into the stack, of one stack */
};

/* A stack object of a frame, at its place. */
struct placed_object {
	taddr addr;
	const struct stack_object *object; /* borrowed; NULL: scanned already */
	uint64_t size;
};

/* Words that point into the stack. */
struct inner_words {
	taddr *words;
	size_t count, capacity;
};

struct stack_scan_state {
	struct stack_window *window;
	struct root_sink *sink;
	uint32_t goroutine;
	taddr lo, hi; /* the stack's bounds */
	bool whole;  /* all words are taken anyhow: there is no need to follow any into the stack */
	bool failed; /* the sink did: nothing can make up for it */
	struct placed_object *objects;
	size_t object_count, object_capacity;
	struct inner_words exact, conservative;
};

/* Prepares for another stack; buffers are kept. All zero is a valid state before the first. */
void stack_scan_begin(struct stack_scan_state *scan, struct stack_window *window,
		      struct root_sink *sink, uint32_t goroutine, taddr lo, taddr hi);
void stack_scan_fini(struct stack_scan_state *scan);

/* A word that was found at slot, 0 if in no memory. */
must_check struct error *stack_scan_word(struct stack_scan_state *scan, enum root_kind kind,
					 taddr slot, uint64_t value);

/* Words of memory that bytes hold a copy of, all of them taken for pointers. */
must_check struct error *stack_scan_bytes(struct stack_scan_state *scan, enum root_kind kind,
					  taddr addr, const uint8_t *bytes, uint64_t size);

/* The same for [from, to) of the stack, from and to rounded inwards to words. */
must_check struct error *stack_scan_range(struct stack_scan_state *scan, enum root_kind kind,
					  taddr from, taddr to);

/* Words of the stack from addr on whose bit in mask is set. */
must_check struct error *stack_scan_masked(struct stack_scan_state *scan, enum root_kind kind,
					   taddr addr, const uint8_t *mask, uint32_t word_count);

must_check struct error *stack_scan_add_object(struct stack_scan_state *scan, taddr addr,
					       const struct stack_object *object);

/* Follows what points into the stack, from object to object, to its end. */
must_check struct error *stack_scan_objects(struct stack_scan_state *scan);

#endif
