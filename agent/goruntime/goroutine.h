/*
 * Goroutines: every g of runtime.allgs, its status in the runtime's words, where its stack is and
 * from which registers a walk of it begins. Read once from a snapshot.
 */
#ifndef AGENT_GORUNTIME_GOROUTINE_H
#define AGENT_GORUNTIME_GOROUTINE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

struct layout;
struct module_table;

/* Registers in the order of the pt_regs of amd64; only those that can hold a pointer of Go's. */
enum { THREAD_GPR_COUNT = 16 };

/* A thread as it was stopped. */
struct stopped_thread {
	uint32_t tid;        /* in our pid namespace */
	uint32_t target_tid; /* in the target's own, which m.procid holds */
	uint64_t pc, sp, bp;
	uint64_t tls; /* fs_base */
	uint64_t gpr[THREAD_GPR_COUNT];
	const uint8_t *vector; /* the extended state (NT_X86_XSTATE), borrowed */
	uint32_t vector_size;
};

/* Numbers of g.atomicstatus; runtime/runtime2.go, unchanged since go1.15 but for the last two. */
enum goroutine_status {
	GOROUTINE_IDLE = 0,
	GOROUTINE_RUNNABLE = 1,
	GOROUTINE_RUNNING = 2,
	GOROUTINE_SYSCALL = 3,
	GOROUTINE_WAITING = 4,
	GOROUTINE_DEAD = 6,
	GOROUTINE_COPYSTACK = 8,
	GOROUTINE_PREEMPTED = 9,
	GOROUTINE_LEAKED = 10,    /* since go1.26 */
	GOROUTINE_DEADEXTRA = 11, /* since go1.26 */
};

struct goroutine {
	taddr g;
	uint64_t id;
	uint64_t parent_id; /* 0: none, or not kept by this runtime */
	uint32_t status;    /* without the scan bit */
	bool scan_bit;      /* a scanner owned the stack at the stop */
	bool system;        /* as the runtime's isSystemGoroutine says */
	uint8_t wait_reason;
	int64_t wait_since; /* monotonic ns, 0: not known */
	taddr stack_lo, stack_hi;
	taddr start_pc, created_pc;
	taddr m;                             /* 0: none */
	taddr locked_m;                      /* 0: none */
	const struct stopped_thread *thread; /* of g.m, matched by thread id; NULL: none */
	bool has_stack;                      /* by its status: with frames that count */
	/* Where a walk begins; 0, 0 if there is nothing to walk. */
	uint64_t pc, sp;
	bool on_registers;    /* pc and sp are the thread's own: not a safe point */
	bool in_system_call;  /* on_registers, but what is in the others is left over */
	bool on_system_stack; /* the thread runs on g0 or gsignal; pc and sp are g.sched's */
	/* Its stack is being switched or moved at the stop: no walk of it can be relied upon. */
	bool unsettled;
	/* Registers that a signal handler's frame holds: [from, to) of the signal stack; 0: none.
	 */
	taddr signal_frame, signal_frame_end;
	/* Words of the g that the scan of its stack needs. */
	taddr stack_top; /* stktopsp: sp of the outermost frame */
	taddr context;   /* sched.ctxt */
	taddr defers, panic;
	taddr vector_state; /* registers saved by asyncPreempt outside the stack; 0: none */
	taddr labels;       /* the pprof labels, in whatever form this runtime has; 0: none */
};

struct goroutine_table;
struct machine_table;

/* Threads are borrowed for the table's life. The caller frees *ret. */
must_check struct error *goroutine_table_read(struct memory *memory, const struct layout *layout,
					      const struct module_table *modules,
					      const struct stopped_thread *threads,
					      uint32_t thread_count, struct goroutine_table **ret);
void goroutine_table_free(struct goroutine_table *table);
DEFINE_FREEP(goroutine_table, goroutine_table_free)

uint32_t goroutine_table_count(const struct goroutine_table *table);
const struct goroutine *goroutine_table_at(const struct goroutine_table *table, uint32_t index);

/* Is there anything to say of a goroutine but that it once was? */
bool goroutine_is_alive(const struct goroutine *g);

/* 0 if its bounds were caught while they were being changed, and do not fit together. */
uint64_t goroutine_stack_bytes(const struct goroutine *g);

/* Gs of allgs that could not be read: goroutines of which nothing is known. */
uint64_t goroutine_table_unreadable(const struct goroutine_table *table);

/* The Ms, which goroutines' m name. */
const struct machine_table *goroutine_table_machines(const struct goroutine_table *table);

/* The runtime's word for a status, or a phrase that says it is not known. Static. */
const char *goroutine_status_name(uint32_t status);

/* Text of runtime.waitReasonStrings, owned by the table; NULL if unknown. */
const char *goroutine_wait_reason(const struct goroutine_table *table, uint8_t reason);

/* allglen, Ms, and what else of the goroutine lists did not add up: NULL or a sentence. */
const char *goroutine_table_complaint(const struct goroutine_table *table);

#endif
