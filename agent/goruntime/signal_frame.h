/*
 * The frame that the kernel lays on a signal stack when it calls a handler: at its lower end a
 * ucontext with the registers that were interrupted, above it the signal's facts and the extended
 * registers. Linux on amd64: arch/x86/include/asm/sigframe.h, uapi/asm/ucontext.h, sigcontext.h.
 */
#ifndef AGENT_GORUNTIME_SIGNAL_FRAME_H
#define AGENT_GORUNTIME_SIGNAL_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

struct signal_frame {
	taddr context; /* of the ucontext */
	uint64_t pc, sp;
};

/*
 * The innermost frame on the signal stack [lo, hi) at or above sp. It is known by naming that very
 * stack as the one it was delivered on, wherever the handler's own frames have come to lie.
 */
must_check struct error *signal_frame_find(struct memory *memory, taddr lo, taddr hi, taddr sp,
					   bool *ret_found, struct signal_frame *ret);

#endif
