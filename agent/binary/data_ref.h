/*
 * What the instructions of a function say of static data: which addresses they refer to, and how.
 * Instructions are decoded by Capstone. x86-64 only; position-independent operands only, which are
 * what Go's compiler and assembler make for global variables.
 */
#ifndef AGENT_BINARY_DATA_REF_H
#define AGENT_BINARY_DATA_REF_H

#include <stddef.h>
#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

enum {
	DATA_REF_FUNCTION_MAX = 64 << 10, /* bytes of code; longer functions are cut */
	DATA_REF_COUNT_MAX = 1024,        /* of one function; further ones are left out */
};

struct data_ref {
	taddr addr;
	uint8_t width; /* bytes that are read or written there; 0: the address is taken */
};

/*
 * The references of size bytes of code that lie at pc, in the order of the code. Bytes that are no
 * instruction end it. The caller frees *ret.
 */
must_check struct error *data_ref_read(const uint8_t *code, size_t size, taddr pc,
				       struct data_ref **ret, size_t *ret_count);

#endif
