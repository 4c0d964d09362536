/*
 * What the code of a closure's function takes out of the closure: the compiler passes it in DX, and
 * loads each captured variable to where DWARF says that the variable is from the next instruction
 * on. That tells which field is which variable, where DWARF does not: before go1.23. x86-64 only;
 * of other code nothing is found.
 *
 * cmd/compile/internal/ssagen/ssa.go (gc/ssa.go in go1.15), OpGetClosurePtr.
 */
#ifndef AGENT_BINARY_CLOSURE_LOAD_H
#define AGENT_BINARY_CLOSURE_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

enum {
	CLOSURE_LOADS_MAX = 128,      /* of one function; further ones are left out */
	CLOSURE_LOAD_CODE_MAX = 4096, /* bytes of one function that are looked at */
};

struct closure_load {
	taddr pc;        /* of the instruction that follows */
	uint64_t offset; /* in the closure */
	int64_t place;   /* a register as DWARF numbers it, or an offset from the frame's CFA */
	bool in_frame;
	bool is_address; /* the field's address was taken, and not what is in it */
};

struct closure_reader;

must_check struct error *closure_reader_new(struct closure_reader **ret);
void closure_reader_free(struct closure_reader *reader);
DEFINE_FREEP(closure_reader, closure_reader_free)

/* Of size bytes of code that lie at pc, which begin a function. Returns how many there are. */
unsigned closure_reader_find(struct closure_reader *reader, const uint8_t *code, size_t size,
			     taddr pc, struct closure_load ret[CLOSURE_LOADS_MAX]);

#endif
