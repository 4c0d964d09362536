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
#include "proto/base/error.h"

struct maps;
struct process;
struct tracee;

/* One name in the pc-line table can stand for several functions (ABI0 and a wrapper of it). */
enum { INJECT_CANDIDATES = 4 };

struct inject_function {
	taddr entry[INJECT_CANDIDATES]; /* run-time addresses; 0: none */
};

/*
 * What the decoder found out about the target, untrusted: addresses are checked against maps and
 * the bytes there against the few instructions that we know; structures against each other.
 */
struct inject_plan {
	struct inject_function osyield;   /* runtime.osyield */
	struct inject_function exit;      /* runtime.exit */
	struct inject_function sigreturn; /* runtime.sigreturn__sigaction or runtime.sigreturn */
	taddr allm;                       /* address of the variable runtime.allm */
	uint32_t m_alllink, m_procid, m_gsignal; /* offsets in runtime.m */
	uint32_t g_m, g_stack_lo, g_stack_hi;    /* offsets in runtime.g */
};

/* A plan whose addresses and bytes were found to be right in one target. */
struct inject_code {
	taddr syscall; /* of `syscall; ret` */
	taddr exit, sigreturn;
};

/* ERROR_UNSUPPORTED saying what is missing or differs; ERROR_UNSUPPORTED_ARCH. */
must_check struct error *inject_verify(const struct inject_plan *plan, pid_t tid,
				       const struct maps *maps, struct inject_code *ret);

#endif
