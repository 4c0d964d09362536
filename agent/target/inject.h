/*
 * One system call run by a thread of the target, in a way that survives our death at any instant:
 * the thread runs a `syscall; ret` of Go's own with its stack pointer on its idle signal stack,
 * where a signal frame with its own state waits behind the return. Alive, we restore it by
 * registers; dead, the `ret` leads to Go's signal return trampoline and the kernel restores it.
 *
 *     idle signal stack      hi ┌──────────────────────────┐
 *                               │ extended state           │ ◀── fpstate of the frame
 *                               │ child: runtime.exit, 0, 0│ ◀── stack of a clone's child
 *                               │ ucontext: saved state    │
 *                       sp ───▶ │ signal return trampoline │
 *                               │ (free: for signals)      │
 *                            lo └──────────────────────────┘
 *
 * It is the only memory of a target that is ever written.
 */
#ifndef AGENT_TARGET_INJECT_H
#define AGENT_TARGET_INJECT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/target/memory.h"
#include "agent/target/tracee.h"
#include "proto/base/error.h"

struct injector;
struct process;

/* One name in the pc-line table can stand for several functions (ABI0 and a wrapper of it). */
enum { INJECT_CANDIDATES = 4 };

struct inject_function {
	taddr entry[INJECT_CANDIDATES]; /* run-time addresses, in any order; 0: none */
};

/*
 * What the decoder found out about the target, untrusted: addresses are checked against the maps,
 * the code there against the few instructions that we know, structures against each other.
 */
struct inject_plan {
	struct inject_function osyield;   /* runtime.osyield */
	struct inject_function exit;      /* runtime.exit */
	struct inject_function sigreturn; /* runtime.sigreturn__sigaction, or runtime.sigreturn */
	taddr allm;                       /* address of the variable runtime.allm */
	taddr entry;                      /* AT_ENTRY of the image with these; 0: not known */
	uint32_t m_alllink, m_procid, m_gsignal; /* offsets in runtime.m */
	uint32_t g_m, g_stack_lo, g_stack_hi;    /* offsets in runtime.g */
};

/*
 * Checks the plan against a target that still runs. ERROR_UNSUPPORTED saying what is missing or
 * differs (take stop mode then), ERROR_UNSUPPORTED_ARCH. The plan is copied, process borrowed for
 * the injector's life. The caller frees *ret.
 */
must_check struct error *injector_new(const struct process *process, const struct inject_plan *plan,
				      struct injector **ret);
void injector_free(struct injector *injector);
DEFINE_FREEP(injector, injector_free)

/* What it was made for. */
const struct process *injector_process(const struct injector *injector);

/* Threads that were asked to stop and have not yet: they must be let go of when they do. */
enum { INJECT_LATE_MAX = 8 };

struct late_threads {
	struct tracee items[INJECT_LATE_MAX];
	unsigned count;
};

/* Of the calls of this injector; belongs to it. */
struct late_threads *injector_late_threads(struct injector *injector);

/*
 * Reads the maps again, for stacks made since; where the same program has been run again, follows
 * it to where it lies now. Errors are those of injector_new.
 */
must_check struct error *injector_refresh(struct injector *injector);

/* The signal stack of a thread that is not using it. */
struct inject_stack {
	taddr lo, hi;
};

/*
 * Whether a stopped thread, which calls itself namespace_tid, can be used: *ret is its idle signal
 * stack, until it runs again. ERROR_BUSY if it cannot just now, ERROR_UNSUPPORTED if it never can.
 */
must_check struct error *injector_find_stack(const struct injector *injector,
					     const struct tracee *tracee, pid_t namespace_tid,
					     struct inject_stack *ret);

struct inject_result {
	int64_t value; /* what the call returned: a pid in the target's namespace, or -errno */
	pid_t child;   /* of a clone, in our pid namespace; 0: none */
};

/*
 * The stopped thread makes a child that shares its descriptors and signals nothing. The thread is
 * left stopped with all that it had. *ret is valid after an error too: a child that it names must
 * be killed. ERROR_FORK_UNSAFE, nothing done, where the thread has a seccomp filter that might
 * forbid it, or that would end it should we die, or its child would be the first of a pid
 * namespace.
 */
must_check struct error *injector_clone(struct injector *injector, struct tracee *tracee,
					const struct inject_stack *stack,
					struct inject_result *ret);

/*
 * A stopped child of injector_clone, to be killed with its tracer, gets a table of descriptors of
 * its own, an empty one. Whatever its parent or the parent's next program does with descriptors,
 * ports and locks, the child is not in the way. Where the kernel cannot do it, or a filter forbids
 * it, the child goes on sharing. *ret_begun: it runs for that now, to be waited for.
 */
must_check struct error *injector_drop_descriptors(const struct injector *injector,
						   struct tracee *child, bool *ret_begun);
/* Until it is done, or deadline_ns; then call it again. */
must_check struct error *injector_await_drop(struct tracee *child, uint64_t deadline_ns);

/* The stopped thread collects its process's child, if that is dead. */
must_check struct error *injector_wait(struct injector *injector, struct tracee *tracee,
				       const struct inject_stack *stack, pid_t namespace_child,
				       struct inject_result *ret);

#endif
