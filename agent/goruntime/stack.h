/*
 * Goroutine stacks, frame by frame: pclntab gives frame sizes, stack maps and stack objects. What
 * the collector scans exactly at a safe point is scanned exactly here; where a stop is not a safe
 * point (the innermost frame of a running thread, asyncPreempt, a write barrier under way, a stack
 * being moved or switched) words are taken conservatively, tagged as such and counted.
 * runtime/stack.go, mgcmark.go, stkframe.go, traceback.go.
 */
#ifndef AGENT_GORUNTIME_STACK_H
#define AGENT_GORUNTIME_STACK_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/binary/pclntab.h"
#include "agent/goruntime/goroutine.h"
#include "agent/target/memory.h"
#include "proto/base/error.h"

struct layout;
struct module;
struct module_table;
struct root_sink;

enum {
	STACK_FRAMES_MAX = 1 << 26, /* the runtime's largest stack, all of it tiny frames */
	STACK_SCAN_US = 5, /* what scanning one of ten frames took; 4 with one, 7 with thirty */
};

struct stack_frame {
	taddr pc, sp, fp; /* fp: just above the return address */
	bool is_call;     /* pc is a return address */
	struct pclntab_func func;
	const struct module *module;
};

/* How well a stack was scanned. */
enum stack_trust { STACK_EXACT, STACK_CONSERVATIVE, STACK_SKIPPED };

struct stack_walker;

/* Caches function facts over many stacks; one thread. All arguments are borrowed. */
must_check struct error *stack_walker_new(struct memory *memory, const struct layout *layout,
					  const struct module_table *modules,
					  const struct goroutine_table *goroutines,
					  struct stack_walker **ret);
void stack_walker_free(struct stack_walker *walker);
DEFINE_FREEP(stack_walker, stack_walker_free)

/*
 * Calls visit for each frame of a goroutine, innermost first, until it returns false. An error is
 * returned for a stack that cannot be walked to its end; the frames before it were visited.
 */
must_check struct error *stack_walk(struct stack_walker *walker, const struct goroutine *g,
				    bool (*visit)(void *arg, const struct stack_frame *frame),
				    void *arg);

/*
 * The source lines of a frame, inlined calls first, as pclntab_lines says. They belong to the
 * walker and stay as long as it does.
 */
must_check struct error *stack_frame_lines(struct stack_walker *walker,
					   const struct stack_frame *frame,
					   const struct pclntab_line **ret, uint32_t *ret_count);

struct stack_scan {
	enum stack_trust trust;
	uint64_t in_use_bytes;        /* from the innermost sp to the top of the stack */
	uint32_t conservative_frames; /* of a stack that was walked: taken word by word */
};

/*
 * Hands the roots of one goroutine to the sink: stack slots, stack objects reached from them, its
 * registers, defer and panic records. A stack that cannot be walked is scanned conservatively
 * from sp (or its low end) to its top; only one that cannot be read at all is skipped.
 */
must_check struct error *stack_roots(struct stack_walker *walker, uint32_t goroutine_index,
				     struct root_sink *sink, struct stack_scan *ret);

/*
 * g0 and gsignal stacks of every M whose thread is stopped on them, from SP up, and that thread's
 * registers: ROOT_SYSTEM_STACK. Ms without a P are left out: they cannot be allocating, and what
 * lies on their stacks is left over.
 */
must_check struct error *stack_system_roots(struct stack_walker *walker, struct root_sink *sink);

/* Functions in which a thread should not be caught (facts sheet 4.4): let it run a little. */
struct pc_range {
	taddr start, end;
};

struct pclntab;

/* Found by name; the caller frees *ret with free(). */
must_check struct error *stack_unwalkable_ranges(const struct pclntab *pclntab,
						 struct pc_range **ret, uint32_t *ret_count);

#endif
