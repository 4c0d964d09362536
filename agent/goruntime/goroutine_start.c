#include "agent/goruntime/goroutine_start.h"

#include "agent/goruntime/goroutine.h"
#include "agent/goruntime/machine.h"

static void start_at(struct goroutine *g, uint64_t pc, uint64_t sp)
{
	g->pc = pc;
	g->sp = sp;
}

/* The runtime's own test of a stopped goroutine; runtime/traceback.go, initAt. */
static void start_saved(struct goroutine *g, const struct saved_registers *saved)
{
	if (saved->syscall_sp)
		start_at(g, saved->syscall_pc, saved->syscall_sp);
	else
		start_at(g, saved->sched_pc, saved->sched_sp);
}

/* The thread was caught on the goroutine's own stack, or its signal handler interrupted it there.
 */
static void start_on_registers(struct goroutine *g, const struct machine *machine)
{
	g->on_registers = true;
	start_at(g, machine->interrupted.pc, machine->interrupted.sp);
	if (machine->signal_frame) {
		g->signal_frame = machine->signal_frame;
		g->signal_frame_end = machine->signal_stack.hi;
	}
}

/*
 * A running goroutine. Its thread may have left its stack: for the vDSO, which the m says, or for
 * g0 by systemstack, mcall or morestack, which saved the registers in sched. On a stack that is
 * none of the three that its m names, nothing is known to have been saved.
 */
static void start_running(struct goroutine *g, const struct saved_registers *saved,
			  const struct machine *machine)
{
	const struct stack_bounds stack = { g->stack_lo, g->stack_hi };

	if (!machine || !machine->thread) {
		g->unsettled = true;
		return;
	}
	g->unsettled = machine->switching || machine->grows_stack;
	if (stack_bounds_hold(stack, machine->vdso_sp)) {
		g->on_system_stack = !stack_bounds_hold(stack, machine->interrupted.sp);
		start_at(g, machine->vdso_pc, machine->vdso_sp);
	} else if (stack_bounds_hold(stack, machine->interrupted.sp)) {
		start_on_registers(g, machine);
	} else {
		g->on_system_stack = true;
		g->unsettled |= machine->interrupted.stack != MACHINE_STACK_G0;
		start_saved(g, saved);
	}
}

void goroutine_find_start(struct goroutine *g, const struct saved_registers *saved,
			  const struct machine *machine, bool stacks_move)
{
	const struct stack_bounds stack = { g->stack_lo, g->stack_hi };

	g->thread = machine ? machine->thread : NULL;
	switch (g->status) {
	case GOROUTINE_RUNNABLE:
	case GOROUTINE_SYSCALL:
	case GOROUTINE_WAITING:
	case GOROUTINE_PREEMPTED:
	case GOROUTINE_LEAKED:
		start_saved(g, saved);
		break;
	case GOROUTINE_RUNNING:
		start_running(g, saved, machine);
		break;
	case GOROUTINE_COPYSTACK:
		start_saved(g, saved);
		g->unsettled = true;
		break;
	default:
		return; /* no stack, or nothing on it */
	}
	g->unsettled |= g->scan_bit && stacks_move;
	if (!stack_bounds_hold(stack, g->sp)) {
		g->unsettled = true;
		start_at(g, 0, 0);
	}
}
