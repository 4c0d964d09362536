#include "agent/goruntime/frame.h"

#include <inttypes.h>

#include "agent/goruntime/function_role.h"
#include "agent/goruntime/goroutine.h"
#include "agent/goruntime/pc_facts.h"
#include "agent/goruntime/stack.h"
#include "agent/goruntime/stack_window.h"

enum { WORD = 8 };

static uint32_t roles_of(const struct frame *frame)
{
	return frame->facts->function->roles;
}

/*
 * The runtime ends its walks at functions flagged TopFrame (before go1.17: known by name) and
 * holds others that write SP, innermost ones excepted, for unwalkable.
 */
static bool is_outermost(const struct frame *frame)
{
	return roles_of(frame) & ROLE_TOP ||
	       frame->facts->function->func.flag & PCLNTAB_FLAG_TOP_FRAME;
}

static bool is_unwalkable(const struct frame *frame)
{
	return !frame->innermost && !(roles_of(frame) & ROLE_CGO_CALLBACK) &&
	       frame->facts->function->func.flag & PCLNTAB_FLAG_SP_WRITE;
}

/*
 * A function whose callee is sigpanic was interrupted at no call: what it holds is live only if it
 * will go on in its deferreturn, where the + 1 makes a return address of the call.
 */
static taddr continue_pc(const struct frame *frame)
{
	const struct pclntab_func *func = &frame->facts->function->func;

	if (!(frame->callee_roles & ROLE_SIGPANIC))
		return frame->pc;
	return func->deferreturn ? func->entry + func->deferreturn + 1 : 0;
}

/* Fills in what follows from pc, sp and the callee. */
static struct error *resolve(struct frame_walk *walk)
{
	struct frame *frame = &walk->frame;
	const char *name;
	struct error *err = pc_cache_find(walk->cache, frame->pc, &frame->facts);

	if (err)
		return err;
	if (!frame->facts)
		return error_new(ERROR_CORRUPT_TARGET, "no function holds pc 0x%" PRIx64,
				 frame->pc);
	name = frame->facts->function->func.name;
	if (frame->facts->frame_size < 0)
		return error_new(ERROR_CORRUPT_TARGET, "%s tells no frame size", name);
	if (is_unwalkable(frame))
		return error_new(ERROR_CORRUPT_TARGET, "%s writes SP", name);
	frame->fp = frame->sp + (uint32_t)frame->facts->frame_size + WORD;
	if (frame->fp <= frame->sp || frame->fp > walk->window->hi)
		return error_new(ERROR_CORRUPT_TARGET, "frame of %s at 0x%" PRIx64 " has no end",
				 name, frame->sp);
	frame->varp = frame->fp - WORD;
	if (frame->varp > frame->sp)
		frame->varp -= WORD; /* a frame begins with the saved frame pointer */
	frame->is_call = frame->pc != frame->facts->function->func.entry &&
			 !(frame->callee_roles & (ROLE_SIGPANIC | ROLE_INJECTED)) &&
			 !(frame->innermost && walk->g->on_registers);
	frame->continue_pc = continue_pc(frame);
	frame->caller_pc = 0;
	return is_outermost(frame)
		   ? NULL
		   : stack_window_word(walk->window, frame->fp - WORD, &frame->caller_pc);
}

struct error *frame_walk_start(struct frame_walk *walk, struct pc_cache *cache,
			       struct stack_window *window, const struct goroutine *g)
{
	struct frame *frame = &walk->frame;

	*walk = (struct frame_walk){ .cache = cache, .window = window, .g = g, .count = 1 };
	*frame = (struct frame){ .pc = g->pc, .sp = g->sp, .innermost = true };
	if (!frame->pc) {
		/* A call of a nil function; the runtime begins in its caller, too. */
		struct error *err = stack_window_word(window, frame->sp, &frame->pc);

		if (err)
			return err;
		frame->sp += WORD;
	}
	return resolve(walk);
}

static struct error *check_end(const struct frame_walk *walk)
{
	if (walk->frame.sp == walk->g->stack_top)
		return NULL;
	return error_new(
	    ERROR_CORRUPT_TARGET, "the walk ends in %s at 0x%" PRIx64 ", the stack at 0x%" PRIx64,
	    walk->frame.facts->function->func.name, walk->frame.sp, walk->g->stack_top);
}

struct error *frame_walk_next(struct frame_walk *walk, bool *ret)
{
	struct frame *frame = &walk->frame;

	*ret = frame->caller_pc != 0;
	if (!*ret)
		return check_end(walk);
	if (walk->count++ == STACK_FRAMES_MAX)
		return error_new(ERROR_LIMIT, "more than %d frames", STACK_FRAMES_MAX);
	*frame = (struct frame){ .pc = frame->caller_pc,
				 .sp = frame->fp,
				 .callee_roles = roles_of(frame) };
	return resolve(walk);
}
