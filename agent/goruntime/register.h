/*
 * General registers, as DWARF numbers them, and where each is kept when a goroutine is interrupted
 * at no call: in what a thread had, in the kernel's frame on a signal stack, in the frame of
 * runtime.asyncPreempt.
 */
#ifndef AGENT_GORUNTIME_REGISTER_H
#define AGENT_GORUNTIME_REGISTER_H

#include <stdint.h>

enum {
	REGISTER_COUNT = 16,
	REGISTER_NOT_KEPT = UINT16_MAX,
};

/* Its place in the general registers of a stopped thread. */
unsigned register_of_thread(unsigned number);

/* Its offset in the ucontext of a signal frame. */
unsigned register_in_context(unsigned number);

/* Its offset from sp in the frame of asyncPreempt, or REGISTER_NOT_KEPT. */
unsigned register_in_preempt(unsigned number);

#endif
