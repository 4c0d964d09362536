/*
 * The stacks of goroutines. A stack is walked where that can be relied upon; where it cannot, or
 * where the walk fails, all its words from sp up (from its low end, if sp is not known) are taken
 * conservatively, which finds all that a walk would find and perhaps a little more.
 */
#include "agent/goruntime/stack.h"

#include <inttypes.h>
#include <stdlib.h>

#include "agent/goruntime/defer.h"
#include "agent/goruntime/frame.h"
#include "agent/goruntime/frame_lines.h"
#include "agent/goruntime/frame_roots.h"
#include "agent/goruntime/function_role.h"
#include "agent/goruntime/layout.h"
#include "agent/goruntime/pc_facts.h"
#include "agent/goruntime/register.h"
#include "agent/goruntime/stack_scan.h"
#include "agent/goruntime/stack_walker.h"
#include "agent/goruntime/stack_window.h"

enum {
	VECTOR_STATE_MAX = 64 << 10, /* bytes of runtime.xRegState; it has about 2,100 */
};

struct error *stack_walker_new(struct memory *memory, const struct layout *layout,
			       const struct module_table *modules,
			       const struct goroutine_table *goroutines, struct stack_walker **ret)
{
	struct stack_walker *walker scoped(stack_walker_freep) = calloc(1, sizeof(*walker));
	struct error *err;

	if (!walker)
		return &error_nomem;
	walker->memory = memory;
	walker->layout = layout;
	walker->goroutines = goroutines;
	stack_window_init(&walker->window, memory);
	err = pc_cache_new(memory, layout, modules, &walker->cache);
	if (err)
		return err;
	*ret = take(walker);
	return NULL;
}

void stack_walker_free(struct stack_walker *walker)
{
	if (!walker)
		return;
	pc_cache_free(walker->cache);
	stack_window_fini(&walker->window);
	stack_scan_fini(&walker->scan);
	frame_lines_fini(&walker->lines);
	free(walker);
}

static struct error *start(struct stack_walker *walker, const struct goroutine *g,
			   struct frame_walk *ret)
{
	if (!g->sp)
		return error_new(ERROR_CORRUPT_TARGET, "no registers to begin with");
	stack_window_open(&walker->window, g->sp, g->stack_hi, STACK_READ_AHEAD);
	return frame_walk_start(ret, walker->cache, &walker->window, g);
}

static struct error *visit_frames(struct frame_walk *walk,
				  bool (*visit)(void *arg, const struct stack_frame *frame),
				  void *arg)
{
	bool more = true;

	while (more) {
		const struct frame *frame = &walk->frame;
		const struct stack_frame visited = {
			.pc = frame->pc,
			.sp = frame->sp,
			.fp = frame->fp,
			.is_call = frame->is_call,
			.func = frame->facts->function->func,
			.module = frame->facts->function->module,
		};
		struct error *err;

		if (!visit(arg, &visited))
			return NULL;
		err = frame_walk_next(walk, &more);
		if (err)
			return err;
	}
	return NULL;
}

struct error *stack_walk(struct stack_walker *walker, const struct goroutine *g,
			 bool (*visit)(void *arg, const struct stack_frame *frame), void *arg)
{
	struct frame_walk walk;
	struct error *err = start(walker, g, &walk);

	if (!err)
		err = visit_frames(&walk, visit, arg);
	return err ? error_context(err, "goroutine %" PRIu64, g->id) : NULL;
}

static struct error *frames_roots(struct stack_walker *walker, const struct goroutine *g,
				  struct stack_scan *ret)
{
	struct frame_walk walk;
	bool in_runtime = true, more = true;
	struct error *err = start(walker, g, &walk);

	while (!err && more) {
		bool exact;

		err = frame_roots(&walk.frame, g, in_runtime, walker->cache, walker->memory,
				  &walker->scan, &exact);
		if (err)
			return err;
		ret->conservative_frames += !exact;
		in_runtime &= (walk.frame.facts->function->roles & ROLE_RUNTIME) != 0;
		err = frame_walk_next(&walk, &more);
	}
	return err;
}

struct error *memory_roots(struct stack_walker *walker, enum root_kind kind, taddr from, taddr to)
{
	uint8_t bytes[1024];
	struct error *err = NULL;

	for (taddr at = (from + 7) & ~(taddr)7; !err && at < to; at += sizeof(bytes)) {
		uint64_t size = to - at < sizeof(bytes) ? to - at : sizeof(bytes);

		err = memory_read(walker->memory, at, bytes, size);
		if (!err)
			err = stack_scan_bytes(&walker->scan, kind, at, bytes, size);
	}
	return err;
}

/* Registers that the thread had, or that a signal handler's frame has, at the instant of the stop.
 */
static struct error *register_roots(struct stack_walker *walker, const struct goroutine *g)
{
	struct stack_scan_state *scan = &walker->scan;
	const struct stopped_thread *thread = g->thread;
	struct error *err = NULL;

	if (!thread || g->status != GOROUTINE_RUNNING || g->in_system_call)
		return NULL;
	if (g->signal_frame)
		return memory_roots(walker, ROOT_REGISTER, g->signal_frame, g->signal_frame_end);
	if (g->on_system_stack && !g->unsettled)
		return NULL;
	for (unsigned i = 0; !err && i < REGISTER_COUNT; i++)
		err =
		    stack_scan_word(scan, ROOT_REGISTER, i + 1, thread->gpr[register_of_thread(i)]);
	if (!err && thread->vector)
		err = stack_scan_bytes(scan, ROOT_REGISTER, 0, thread->vector, thread->vector_size);
	return err;
}

/* What the scan of a stack finds beside the frames. */
static struct error *g_roots(struct stack_walker *walker, const struct goroutine *g)
{
	const struct layout *layout = walker->layout;
	struct stack_scan_state *scan = &walker->scan;
	struct error *err =
	    stack_scan_word(scan, ROOT_GOROUTINE, g->g + layout->g_sched_ctxt.offset, g->context);

	if (!err)
		err = register_roots(walker, g);
	if (!err && g->vector_state && layout->vector_state.size <= VECTOR_STATE_MAX)
		err = memory_roots(walker, ROOT_REGISTER, g->vector_state,
				   g->vector_state + layout->vector_state.size);
	/* Panics are on the stack always: this leads to a stack object. */
	if (!err)
		err =
		    stack_scan_word(scan, ROOT_GOROUTINE, g->g + layout->g_panic.offset, g->panic);
	if (!err)
		err = defer_roots(walker->memory, layout, walker->cache, g->defers, scan);
	return err;
}

static struct error *exact_roots(struct stack_walker *walker, const struct goroutine *g,
				 struct stack_scan *ret)
{
	struct error *err = frames_roots(walker, g, ret);

	if (!err)
		err = g_roots(walker, g);
	return err ? err : stack_scan_objects(&walker->scan);
}

static bool is_fatal(const struct stack_walker *walker, const struct error *err)
{
	return walker->scan.failed || error_code(err) == ERROR_NOMEM ||
	       error_code(err) == ERROR_GONE;
}

/*
 * Every word there is. What leads into the stack itself leads to words that are taken anyhow. The
 * rest of the g may be what is broken: as much is taken of it as can be.
 */
static struct error *conservative_roots(struct stack_walker *walker, const struct goroutine *g)
{
	taddr from = g->sp ? g->sp : g->stack_lo;
	struct error *err;

	walker->scan.whole = true;
	stack_window_open(&walker->window, from, g->stack_hi, STACK_READ_AHEAD);
	err = stack_scan_range(&walker->scan, ROOT_STACK_CONSERVATIVE, from, g->stack_hi);
	if (err)
		return err;
	err = g_roots(walker, g);
	if (!err || is_fatal(walker, err))
		return err;
	error_free(err);
	return NULL;
}

struct error *stack_roots(struct stack_walker *walker, uint32_t goroutine_index,
			  struct root_sink *sink, struct stack_scan *ret)
{
	const struct goroutine *g = goroutine_table_at(walker->goroutines, goroutine_index);
	struct stack_scan scan = { .trust = STACK_EXACT };
	struct error *err = NULL;

	if (g->has_stack && g->stack_lo >= g->stack_hi)
		scan.trust = STACK_SKIPPED;
	*ret = scan;
	if (!g->has_stack || scan.trust == STACK_SKIPPED)
		return NULL;
	scan.in_use_bytes = g->stack_hi - (g->sp ? g->sp : g->stack_lo);
	stack_scan_begin(&walker->scan, &walker->window, sink, goroutine_index, g->stack_lo,
			 g->stack_hi);
	if (!g->unsettled)
		err = exact_roots(walker, g, &scan);
	if (err && is_fatal(walker, err))
		return err;
	if (err || g->unsettled) {
		error_free(err);
		scan.trust = STACK_CONSERVATIVE;
		scan.conservative_frames = 0;
		err = conservative_roots(walker, g);
	}
	if (err && is_fatal(walker, err))
		return err;
	if (err) {
		error_free(err);
		scan.trust = STACK_SKIPPED;
	}
	*ret = scan;
	return NULL;
}
