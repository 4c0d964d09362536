/*
 * The bytes of one stack, read from the target in large pieces: most stacks in one. A window is
 * used for one stack after the other and keeps its buffer.
 */
#ifndef AGENT_GORUNTIME_STACK_WINDOW_H
#define AGENT_GORUNTIME_STACK_WINDOW_H

#include <stddef.h>
#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

enum {
	STACK_VIEW_MAX = 64 << 10, /* bytes in one view */
	STACK_READ_AHEAD = 256 << 10,
};

struct stack_window {
	struct memory *memory;
	taddr lo, hi; /* the stack */
	size_t read_ahead;
	uint8_t *bytes; /* STACK_READ_AHEAD of them, once there is something to read */
	taddr base;     /* where the first of them lies */
	size_t size;    /* how many are filled */
};

void stack_window_init(struct stack_window *window, struct memory *memory);
void stack_window_fini(struct stack_window *window);

/* Turns to another stack. What is read comes with up to read_ahead bytes that follow it. */
void stack_window_open(struct stack_window *window, taddr lo, taddr hi, size_t read_ahead);

/* From now on reads less at a time; what is there stays. */
void stack_window_narrow(struct stack_window *window, size_t read_ahead);

/* Points *ret at size bytes of the stack until the next call. ERROR_CORRUPT_TARGET outside it. */
must_check struct error *stack_window_view(struct stack_window *window, taddr addr, size_t size,
					   const uint8_t **ret);
must_check struct error *stack_window_word(struct stack_window *window, taddr addr, uint64_t *ret);

#endif
