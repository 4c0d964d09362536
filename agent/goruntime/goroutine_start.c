#include "agent/goruntime/goroutine_start.h"

#include "agent/goruntime/goroutine.h"
#include "agent/goruntime/machine.h"

enum { WORD = 8 };

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
	g->in_system_call = machine->in_system_call;
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
	g->unsettled |= machine->switching || machine->grows_stack;
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

/*
 * Bounds caught while copystack changes them, one word after the other, do not fit together. Then
 * the registers and stktopsp, which it changes later, still tell where the old stack is.
 */
static void repair_bounds(struct goroutine *g, const struct saved_registers *saved)
{
	if (g->stack_lo < g->stack_hi || saved->sched_sp < WORD || saved->sched_sp >= g->stack_top)
		return;
	g->stack_lo = saved->sched_sp - WORD;
	g->stack_hi = g->stack_top + WORD;
	g->unsettled = true;
}

static bool has_stack(const struct goroutine *g)
{
	switch (g->status) {
	case GOROUTINE_RUNNABLE:
	case GOROUTINE_RUNNING:
	case GOROUTINE_SYSCALL:
	case GOROUTINE_WAITING:
	case GOROUTINE_COPYSTACK:
	case GOROUTINE_PREEMPTED:
	case GOROUTINE_LEAKED:
		return true;
	default:
		return false;
	}
}

void goroutine_find_start(struct goroutine *g, const struct saved_registers *saved,
			  const struct machine *machine, bool stacks_move)
{
	g->thread = machine ? machine->thread : NULL;
	g->has_stack = has_stack(g);
	if (!g->has_stack)
		return;
	repair_bounds(g, saved);
	g->unsettled |= g->status == GOROUTINE_COPYSTACK || (g->scan_bit && stacks_move);
	if (g->status == GOROUTINE_RUNNING)
		start_running(g, saved, machine);
	else
		start_saved(g, saved);
	if (!stack_bounds_hold((struct stack_bounds){ g->stack_lo, g->stack_hi }, g->sp)) {
		g->unsettled = true;
		start_at(g, 0, 0);
	}
}
