/*
 * Walking the frames of one goroutine's stack by pclntab, innermost first, on amd64: no frame
 * pointers, since leaf functions and assembly have none. runtime/traceback.go (gentraceback,
 * unwinder) and stkframe.go.
 *
 *	fp -> | arguments                 | <- argp = fp
 *	      | return address            |
 *	      | saved frame pointer       |
 *	      | locals                    | <- varp: just above them
 *	sp -> | arguments of what it calls|
 */
#ifndef AGENT_GORUNTIME_FRAME_H
#define AGENT_GORUNTIME_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

struct goroutine;
struct pc_cache;
struct pc_facts;
struct stack_window;

struct frame {
	taddr pc, sp, fp, varp;
	taddr caller_pc; /* 0: this is the outermost frame */
	/* Where it goes on, which decides what is live; 0: nowhere, its callee ended in a panic. */
	taddr continue_pc;
	struct pc_facts *facts; /* of pc */
	uint32_t callee_roles;  /* of the function that runs above it; 0: innermost */
	bool innermost;
	bool is_call; /* pc is a return address */
};

struct frame_walk {
	struct pc_cache *cache;
	struct stack_window *window;
	const struct goroutine *g;
	uint32_t count;
	struct frame frame;
};

/*
 * Begins at the innermost frame of g. The window is open on its stack, from g->sp at least, and
 * everything is borrowed for the walk.
 */
must_check struct error *frame_walk_start(struct frame_walk *walk, struct pc_cache *cache,
					  struct stack_window *window, const struct goroutine *g);

/*
 * Goes on to the caller; *ret is false after the outermost frame. An error if that is not where
 * the stack ends, so that whoever sees false has seen every frame.
 */
must_check struct error *frame_walk_next(struct frame_walk *walk, bool *ret);

#endif
