/*
 * Stack objects: the variables of a frame whose address is taken. They are live only while
 * something live points to them, so the maps leave them out and a record tells where each lies
 * and which of its words are pointers. runtime/stack.go, stackObjectRecord: to go1.15 an offset
 * and a type; since then offsets, sizes and an offset to the pointer mask (to go1.23 to a GC
 * program if the size of the pointer part is negative).
 */
#ifndef AGENT_GORUNTIME_STACK_OBJECT_H
#define AGENT_GORUNTIME_STACK_OBJECT_H

#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

struct layout;

struct stack_object {
	int64_t offset; /* negative: from the end of the locals, else from the arguments */
	uint64_t size;
	uint32_t word_count; /* words that mask covers; those after it are no pointers */
	uint8_t *mask;       /* one bit a word */
};

/* All zero is an empty list. */
struct stack_object_list {
	struct stack_object *objects;
	uint32_t count;
};

/*
 * The records at addr: a count, then that many. rodata is the base of mask offsets
 * (moduledata.rodata). The caller gives *ret back with stack_object_list_fini.
 */
must_check struct error *stack_object_list_read(struct memory *memory, const struct layout *layout,
						taddr addr, taddr rodata,
						struct stack_object_list *ret);

/*
 * The one object of a frame of reflect.makeFuncStub or methodValueCall, which no compiler
 * described: runtime.methodValueCallFrameObjs, since go1.17 (runtime/stkframe.go). Empty where
 * there is none.
 */
must_check struct error *stack_object_list_read_reflect(struct memory *memory,
							const struct layout *layout, taddr rodata,
							struct stack_object_list *ret);

void stack_object_list_fini(struct stack_object_list *list);

#endif
