/*
 * Where the walk of a goroutine's stack begins, and whether it can be relied upon: the registers
 * that the goroutine left in its g, or those of the thread that runs it.
 */
#ifndef AGENT_GORUNTIME_GOROUTINE_START_H
#define AGENT_GORUNTIME_GOROUTINE_START_H

#include <stdbool.h>
#include <stdint.h>

struct goroutine;
struct machine;

/* Registers in the g itself. */
struct saved_registers {
	uint64_t sched_pc, sched_sp;
	uint64_t syscall_pc, syscall_sp;
};

/*
 * Fills thread, has_stack, pc, sp, on_registers, on_system_stack, unsettled and signal_frame of g,
 * and mends its bounds. machine is that of g.m, NULL if there is none. stacks_move: some thread is
 * moving the stack of a goroutine that it holds by the scan bit.
 */
void goroutine_find_start(struct goroutine *g, const struct saved_registers *saved,
			  const struct machine *machine, bool stacks_move);

#endif
