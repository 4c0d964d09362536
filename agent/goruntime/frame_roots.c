#include "agent/goruntime/frame_roots.h"

#include <stdlib.h>

#include "agent/goruntime/frame.h"
#include "agent/goruntime/function_role.h"
#include "agent/goruntime/goroutine.h"
#include "agent/goruntime/pc_facts.h"
#include "agent/goruntime/stack_scan.h"
#include "agent/goruntime/stack_window.h"

enum {
	WORD = 8,
	UNKNOWN_ARGS_SIZE = 64 << 10, /* reflect passes no more on the stack */
};

/* What is live in a frame, borrowed but for reflect_args. */
struct liveness {
	bool known;
	const struct stack_map *locals, *args;
	const struct stack_object_list *objects;
	struct stack_map reflect_args;
};

static const struct stack_map no_map;
static const struct stack_object_list no_objects;

/*
 * Taken word by word: the frame that a thread is in, at whatever instruction, and below it those
 * of the runtime, which holds new objects as plain numbers for a moment; frames of functions whose
 * calls have no map, and their callers; and what preemption interrupted, whose registers are in
 * the frame above it.
 */
static bool is_conservative(const struct frame *frame, const struct goroutine *g, bool in_runtime)
{
	uint32_t roles = frame->facts->function->roles;

	if (g->on_registers && (frame->innermost || (in_runtime && roles & ROLE_RUNTIME)))
		return true;
	return (roles | frame->callee_roles) & (ROLE_INJECTED | ROLE_UNMAPPED_CALL);
}

static uint64_t args_size(const struct frame *frame)
{
	int32_t args = frame->facts->function->func.args;

	if (args == PCLNTAB_ARGS_UNKNOWN)
		return UNKNOWN_ARGS_SIZE;
	return args > 0 ? (uint64_t)args : 0;
}

/*
 * From sp up to the return address, which takes in the arguments that were being prepared for a
 * call, and the function's own arguments.
 */
static struct error *scan_conservatively(const struct frame *frame, struct stack_scan_state *scan)
{
	struct error *err =
	    stack_scan_range(scan, ROOT_STACK_CONSERVATIVE, frame->sp, frame->fp - WORD);
	uint64_t left = scan->hi - frame->fp;
	uint64_t args = args_size(frame);

	if (err)
		return err;
	return stack_scan_range(scan, ROOT_STACK_CONSERVATIVE, frame->fp,
				frame->fp + (args < left ? args : left));
}

/*
 * The stub keeps its closure at 0(SP) and, one word further since registers pass arguments, whether
 * reflect has put results in place (reflect/asm_amd64.s). One that has not begun has no frame and
 * finds its closure in the context register.
 */
static struct error *reflect_liveness(const struct frame *frame, const struct goroutine *g,
				      struct pc_cache *cache, struct memory *memory,
				      struct stack_scan_state *scan, struct liveness *live)
{
	bool started = frame->sp < frame->fp - WORD;
	uint64_t closure = started ? 0 : g->context, results = 0;
	struct error *err = pc_cache_reflect_objects(cache, &live->objects);

	if (!err && started)
		err = stack_window_word(scan->window, frame->sp, &closure);
	if (!err && started)
		err = stack_window_word(
		    scan->window, frame->sp + (live->objects->count ? 4 : 3) * WORD, &results);
	if (err)
		return err;
	live->args = &live->reflect_args;
	live->locals = &no_map;
	if (!closure) {
		live->known = !started;
		return NULL;
	}
	return stack_map_read_reflect(memory, closure, frame->facts->function->func.entry,
				      (results & 0xff) != 0, &live->known, &live->reflect_args);
}

static struct error *ordinary_liveness(const struct frame *frame, struct pc_cache *cache,
				       struct liveness *live)
{
	struct pc_facts *facts = frame->facts;
	struct error *err = NULL;

	if (frame->continue_pc != frame->pc)
		err = pc_cache_find(cache, frame->continue_pc, &facts);
	if (!err && (!facts || facts->function != frame->facts->function))
		return NULL;
	if (!err)
		err = pc_cache_read_maps(cache, frame->continue_pc, facts);
	if (!err)
		err = pc_cache_read_objects(cache, frame->facts->function);
	if (err)
		return err;
	live->known = (frame->varp == frame->sp || facts->locals_known) &&
		      (!args_size(frame) || facts->args_known);
	live->locals = frame->varp > frame->sp ? &facts->locals : &no_map;
	live->args = args_size(frame) ? &facts->args : &no_map;
	live->objects = &frame->facts->function->objects;
	return NULL;
}

/* known stays false where there are no maps: the collector could not have stopped there. */
static struct error *find_liveness(const struct frame *frame, const struct goroutine *g,
				   struct pc_cache *cache, struct memory *memory,
				   struct stack_scan_state *scan, struct liveness *live)
{
	const struct function_facts *function = frame->facts->function;

	if (function->func.args == PCLNTAB_ARGS_UNKNOWN && function->roles & ROLE_REFLECT_STUB)
		return reflect_liveness(frame, g, cache, memory, scan, live);
	return ordinary_liveness(frame, cache, live);
}

static struct error *place_objects(const struct frame *frame,
				   const struct stack_object_list *objects,
				   struct stack_scan_state *scan)
{
	for (uint32_t i = 0; i < objects->count; i++) {
		const struct stack_object *object = &objects->objects[i];
		taddr base = object->offset < 0 ? frame->varp : frame->fp;
		taddr addr = base + (uint64_t)object->offset;
		struct error *err;

		/* Below sp: the frame does not have it yet. */
		if (addr < frame->sp || addr >= scan->hi)
			continue;
		err = stack_scan_add_object(scan, addr, object);
		if (err)
			return err;
	}
	return NULL;
}

static struct error *scan_exactly(const struct frame *frame, const struct liveness *live,
				  struct stack_scan_state *scan)
{
	uint64_t locals_size = (uint64_t)live->locals->bit_count * WORD;
	struct error *err;

	if (locals_size > frame->varp - frame->sp)
		return error_new(ERROR_CORRUPT_TARGET, "map of locals is larger than the frame");
	err = stack_scan_masked(scan, ROOT_STACK, frame->varp - locals_size, live->locals->bits,
				live->locals->bit_count);
	if (!err)
		err = stack_scan_masked(scan, ROOT_STACK, frame->fp, live->args->bits,
					live->args->bit_count);
	return err ? err : place_objects(frame, live->objects, scan);
}

struct error *frame_roots(const struct frame *frame, const struct goroutine *g, bool in_runtime,
			  struct pc_cache *cache, struct memory *memory,
			  struct stack_scan_state *scan, bool *ret_exact)
{
	struct liveness live = { .locals = &no_map, .args = &no_map, .objects = &no_objects };
	struct error *err = NULL;

	*ret_exact = true;
	if (!frame->continue_pc)
		return NULL;
	*ret_exact = false;
	if (is_conservative(frame, g, in_runtime))
		return scan_conservatively(frame, scan);
	err = find_liveness(frame, g, cache, memory, scan, &live);
	if (!err) {
		*ret_exact = live.known;
		err = live.known ? scan_exactly(frame, &live, scan)
				 : scan_conservatively(frame, scan);
	}
	free(live.reflect_args.bits);
	return err;
}
