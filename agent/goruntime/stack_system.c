/*
 * System stacks. Go's collector never scans them: at its safe points nothing that matters is
 * there. An outside stop may find the only pointer to an object that is being allocated on g0, or
 * in the registers of a thread that runs on it.
 */
#include "agent/goruntime/machine.h"
#include "agent/goruntime/stack.h"
#include "agent/goruntime/stack_walker.h"

enum {
	/* Of one stack. Those of threads that C made reach far beyond what Go uses of them. */
	SYSTEM_STACK_MAX = 1 << 20,
};

/* [sp, hi), as far as it can be read. */
static struct error *range_roots(struct stack_walker *walker, taddr sp, taddr hi)
{
	taddr end = hi - sp < SYSTEM_STACK_MAX ? hi : sp + SYSTEM_STACK_MAX;
	struct error *err;

	if (sp >= hi)
		return NULL;
	err = memory_roots(walker, ROOT_SYSTEM_STACK, sp, end);
	if (!err || error_code(err) != ERROR_FAULT)
		return err;
	error_free(err);
	return NULL;
}

static struct error *state_roots(struct stack_walker *walker, const struct machine *machine,
				 const struct machine_state *state)
{
	switch (state->stack) {
	case MACHINE_STACK_G0:
		return range_roots(walker, state->sp, machine->g0_stack.hi);
	case MACHINE_STACK_SIGNAL:
		return range_roots(walker, state->sp, machine->signal_stack.hi);
	default:
		return NULL;
	}
}

static struct error *register_roots(struct stack_walker *walker,
				    const struct stopped_thread *thread)
{
	struct error *err = NULL;

	for (unsigned i = 0; !err && i < THREAD_GPR_COUNT; i++)
		err = stack_scan_word(&walker->scan, ROOT_SYSTEM_STACK, 0, thread->gpr[i]);
	if (!err && thread->vector)
		err = stack_scan_bytes(&walker->scan, ROOT_SYSTEM_STACK, 0, thread->vector,
				       thread->vector_size);
	return err;
}

static struct error *machine_roots(struct stack_walker *walker, const struct machine *machine)
{
	struct error *err;

	if (!machine->thread || !machine->p || machine->registers.stack == MACHINE_STACK_USER)
		return NULL;
	/* A signal handler has registers of its own. */
	err = machine->in_system_call && !machine->signal_frame
		  ? NULL
		  : register_roots(walker, machine->thread);
	if (!err)
		err = state_roots(walker, machine, &machine->registers);
	if (!err && machine->signal_frame)
		err = state_roots(walker, machine, &machine->interrupted);
	return err;
}

struct error *stack_system_roots(struct stack_walker *walker, struct root_sink *sink)
{
	const struct machine_table *machines = goroutine_table_machines(walker->goroutines);
	struct error *err = NULL;

	stack_scan_begin(&walker->scan, &walker->window, sink, ROOT_NO_GOROUTINE, 0, 0);
	for (uint32_t i = 0; !err && i < machines->count; i++)
		err = machine_roots(walker, &machines->machines[i]);
	return err ? error_context(err, "system stacks") : NULL;
}
