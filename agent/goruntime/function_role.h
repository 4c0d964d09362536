/*
 * Functions of the runtime that mean something to a stack walk, told by name: function ids change
 * from release to release, names hardly do.
 */
#ifndef AGENT_GORUNTIME_FUNCTION_ROLE_H
#define AGENT_GORUNTIME_FUNCTION_ROLE_H

#include <stdint.h>

enum function_role {
	ROLE_TOP = 1 << 0,      /* outermost frame of its stack */
	ROLE_SWITCH = 1 << 1,   /* moves SP from one stack to another */
	ROLE_CLOCK = 1 << 2,    /* runs the vDSO on g0, noting where it came from in its m */
	ROLE_SIGPANIC = 1 << 3, /* called by a signal handler in the name of the faulting code */
	ROLE_INJECTED = 1 << 4, /* the same for preemption: holds its caller's registers */
	ROLE_UNMAPPED_CALL =
	    1 << 5,                /* calls to it have no stack map, or one without its arguments */
	ROLE_MOVES_STACK = 1 << 6, /* copies the stack of some goroutine */
	ROLE_GROWS_STACK = 1 << 7, /* copies the stack of the thread's own goroutine */
	ROLE_REFLECT_STUB = 1 << 8, /* its argument map is in the closure it was called by */
	ROLE_CGO_CALLBACK = 1 << 9, /* moves SP but can be walked through */
	ROLE_RUNTIME = 1 << 10,     /* any function of the runtime */
	ROLE_UNWALKABLE = 1 << 11,  /* better not caught in it: see stack_unwalkable_ranges */
	/* Its assembly keeps no pointer in registers alone while the kernel works for it. */
	ROLE_SYSTEM_CALL = 1 << 12,
};

/* A set of enum function_role. */
uint32_t function_roles(const char *name);

#endif
