/*
 * Roots: the words from which the collector, and so we, begin to mark. The rooms that know where
 * roots lie (modules, stacks, specials, queues, registers) hand each word to a sink, tagged with
 * what holds it. A word need not point into the heap; the sink looks it up.
 */
#ifndef AGENT_GORUNTIME_ROOT_H
#define AGENT_GORUNTIME_ROOT_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

enum root_kind {
	ROOT_DATA,        /* a module's data segment */
	ROOT_BSS,         /* a module's bss segment */
	ROOT_STACK,       /* a stack slot, by stack map or stack object */
	ROOT_GOROUTINE,   /* a word of a g that its stack scan marks: sched.ctxt, defer records */
	ROOT_FINALIZER,   /* a finalizer special: its function, or a field of its object */
	ROOT_WEAK_HANDLE, /* a weak handle special: the handle, not the target */
	ROOT_CLEANUP,     /* a cleanup special */
	ROOT_FINALIZER_QUEUE,
	ROOT_CLEANUP_QUEUE,
	ROOT_TINY_BLOCK, /* a P's current tiny allocation block */
	/* Words that merely look like pointers, tested as the conservative scanner tests them: */
	ROOT_STACK_CONSERVATIVE, /* a frame that has no exact map at this instant */
	ROOT_REGISTER,           /* of a thread that runs Go code, or saved by asyncPreempt */
	ROOT_SYSTEM_STACK,       /* g0 and signal stacks */
	ROOT_KIND_END
};

static inline bool root_kind_is_conservative(enum root_kind kind)
{
	return kind >= ROOT_STACK_CONSERVATIVE;
}

enum {
	ROOT_NO_GOROUTINE = UINT32_MAX,
	ROOT_REGISTER_SLOTS = 32, /* slots below it are no addresses */
};

struct root {
	enum root_kind kind;
	uint32_t goroutine; /* index in the goroutine table, or ROOT_NO_GOROUTINE */
	taddr slot;  /* where the word was read; in a general register its DWARF number + 1; or 0 */
	taddr value; /* the word */
};

struct root_sink {
	/* Takes one root; an error ends the walk that produced it. */
	struct error *(*add)(struct root_sink *sink, const struct root *root);
};

#endif
