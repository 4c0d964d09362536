/*
 * Ms: the threads as the runtime knows them (struct m), each matched with the stopped thread that
 * it is, and where that thread was caught: on the stack of its goroutine, on its system stack g0,
 * on its signal stack.
 */
#ifndef AGENT_GORUNTIME_MACHINE_H
#define AGENT_GORUNTIME_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

struct layout;
struct pc_cache;
struct stopped_thread;

enum { MACHINES_MAX = 1 << 16 };

struct stack_bounds {
	taddr lo, hi;
};

/* SP stands at hi on an empty stack. */
static inline bool stack_bounds_hold(struct stack_bounds bounds, taddr sp)
{
	return sp > bounds.lo && sp <= bounds.hi;
}

/* Which stack a pc and sp belong to. */
enum machine_stack {
	MACHINE_STACK_NONE,
	MACHINE_STACK_USER,
	MACHINE_STACK_G0,
	MACHINE_STACK_SIGNAL
};

struct machine_state {
	uint64_t pc, sp;
	enum machine_stack stack;
};

struct machine {
	taddr m;
	taddr curg; /* 0: none */
	taddr p;    /* 0: none */
	uint64_t procid;
	taddr vdso_pc, vdso_sp; /* where it left its stack for the vDSO; 0: it did not */
	struct stack_bounds g0_stack, signal_stack, user_stack;
	const struct stopped_thread *thread; /* NULL: none has its procid */
	struct machine_state registers;      /* the thread's own */
	/*
	 * If that is on the signal stack: what the handler interrupted, as the kernel's frame at
	 * signal_frame (a ucontext on that stack) holds it; otherwise the same as registers.
	 */
	struct machine_state interrupted;
	taddr signal_frame;
	bool moves_stack; /* it is moving the stack of some goroutine */
	bool grows_stack; /* it is moving the stack of curg */
	bool switching;   /* caught between two stacks */
	/*
	 * Interrupted in a system call of the runtime's assembly, whose callers expect nothing of
	 * what they had in registers: what is there is left over.
	 */
	bool in_system_call;
};

struct machine_table {
	struct machine *machines;
	uint32_t count, capacity;
};

/* Follows runtime.allm. Threads are borrowed. The caller gives *ret back with _fini. */
must_check struct error *machine_table_read(struct memory *memory, const struct layout *layout,
					    struct pc_cache *cache,
					    const struct stopped_thread *threads,
					    uint32_t thread_count, struct machine_table *ret);
void machine_table_fini(struct machine_table *table);

const struct machine *machine_table_find(const struct machine_table *table, taddr m);

#endif
