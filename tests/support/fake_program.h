/*
 * A made-up Go program in made-up memory: functions with their pclntab, a module, goroutines and
 * the Ms that run them, laid out by a layout of its own. For tests of what walks stacks.
 */
#ifndef TESTS_SUPPORT_FAKE_PROGRAM_H
#define TESTS_SUPPORT_FAKE_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/goruntime/goroutine.h"
#include "agent/goruntime/layout.h"
#include "agent/goruntime/root.h"
#include "tests/support/fake_memory.h"

enum {
	FAKE_TEXT = 0x400000,
	FAKE_FUNCTION_SIZE = 0x100, /* of every function */
	FAKE_STACK_SIZE = 0x1000,
	FAKE_DATA_WORDS = 256, /* of the data segment, and of bss */
};

/* A stack object; mask has a '1' or '0' for each word that may be a pointer. */
struct fake_object {
	int32_t offset;
	uint32_t size;
	const char *mask;
};

/* The same frame and the same maps at every pc. */
struct fake_function {
	const char *name;
	int32_t frame; /* bytes from sp to the return address; a multiple of 8 */
	int32_t args;
	uint8_t flag;
	uint32_t deferreturn;
	const char *locals, *arg_map; /* a '1' or '0' for each word; NULL: no map */
	const struct fake_object *objects;
	unsigned object_count;
};

struct fake_program {
	struct fake_memory *memory;
	struct layout layout;
	taddr moduledata;
	taddr next; /* free room */
	taddr last_m;
	unsigned g_count;
};

void fake_program_init(struct fake_program *program, const struct fake_function *functions,
		       unsigned count);
void fake_program_fini(struct fake_program *program);

/* An instruction of the index-th function. */
taddr fake_program_pc(unsigned function, unsigned offset);

/* Zeroed room that nothing else uses, aligned to 64 bytes. */
taddr fake_program_room(struct fake_program *program, size_t size);

/* Sets a field of the struct at addr. */
void fake_program_set(struct fake_program *program, taddr addr, struct layout_field field,
		      uint64_t value);

/* A waiting g with a stack of its own, listed in allgs; pc and sp are its sched's. */
taddr fake_program_g(struct fake_program *program, uint64_t pc, uint64_t sp_below_top);

/* The upper end of a g's stack. */
taddr fake_program_stack(struct fake_program *program, taddr g);

/*
 * Stores words on a g's stack, the last of them just below its upper end, and returns the address
 * of the first.
 */
taddr fake_program_push(struct fake_program *program, taddr g, const uint64_t *words,
			unsigned count);

/* An m with a g0, a gsignal and a P, that runs g on the thread of that id. */
taddr fake_program_m(struct fake_program *program, taddr g, uint32_t thread);

/* A sink that keeps what it gets, and fails when it is full. */
struct fake_sink {
	struct root_sink sink;
	struct root roots[512];
	unsigned count, limit;
};

void fake_sink_init(struct fake_sink *sink);

/* How often the value came with that kind. */
unsigned fake_sink_count(const struct fake_sink *sink, enum root_kind kind, uint64_t value);

#endif
