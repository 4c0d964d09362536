/*
 * The injected call itself: from a stopped thread with an idle signal stack to the same thread,
 * stopped, with everything as it was. Between the change of the registers and their restoration
 * nothing else is done. For inject.c.
 *
 * The order of steps is what makes our death harmless at each of them. Registers are set before
 * signals are blocked and signals unblocked before registers are restored: a thread let go in
 * between runs on, or back, through the frame with its own mask, never with signals blocked for
 * good. A signal that comes right there is handled beneath the frame, where there is room for it.
 */
#ifndef AGENT_TARGET_INJECTION_H
#define AGENT_TARGET_INJECTION_H

#include <linux/filter.h>
#include <stdbool.h>

#include "agent/target/inject.h"
#include "agent/target/inject_arch.h"
#include "agent/target/tracee.h"

/* Functions of the target. */
struct inject_code {
	taddr syscall; /* `syscall; ret` */
	taddr exit;
	taddr sigreturn;
};

/* Room to work in, since a keeper allocates nothing while its target stands. */
struct injection_room {
	struct inject_image image;
	uint8_t extended_state[INJECT_IMAGE_SIZE];
	struct sock_filter filter[TRACEE_FILTER_SIZE];
};

struct injection_request {
	struct inject_call call;
	bool clone;               /* the second argument becomes the child's stack */
	struct inject_call later; /* what a thread of its filters will have to run after a clone */
	bool filtered;            /* lift the thread's seccomp filter for the call */
	bool vouched; /* where it cannot be lifted it lets the call pass, as somebody says */
};

/*
 * Runs the call. *ret is valid after an error too. ERROR_FORK_UNSAFE, nothing done, for a filter
 * that cannot be lifted and that nobody vouches for; and for one that ends who makes the call:
 * should we die before it is made, it is not lifted any more.
 */
must_check struct error *injection_run(struct tracee *tracee, const struct inject_code *code,
				       const struct inject_stack *stack,
				       struct injection_request request,
				       struct injection_room *room, struct inject_result *ret);

/*
 * Has a stopped child of a clone, which is ours and nobody else's, run one call for its effect on
 * itself. Nothing is restored, and what it returns does not matter. Traced with TRACESYSGOOD.
 */
must_check struct error *injection_begin_in_child(struct tracee *child, taddr syscall,
						  const struct inject_call *call);
/* Until the call is over, or deadline_ns. */
must_check struct error *injection_await_child(struct tracee *child, uint64_t deadline_ns);

/*
 * For tests only, which define it: called as an injection reaches each of its phases, to die
 * there. The library does not have it.
 */
enum inject_phase {
	INJECT_FRAME_WRITTEN,
	INJECT_REGISTERS_SET,
	INJECT_SIGNALS_BLOCKED,
	INJECT_RESUMED,
	INJECT_AT_ENTRY,
	INJECT_IN_CALL,
	INJECT_AT_CLONE,
	INJECT_AT_EXIT,
	INJECT_SIGNALS_RESTORED,
	INJECT_RESTORED,
	INJECT_PHASE_COUNT
};

void inject_phase_reached(enum inject_phase phase) __attribute__((weak));

#endif
