/*
 * Where the parameters of a function go that come in registers: each has a place for it in the
 * frame of the caller, above the return address, to which the compiler spills it. DWARF ends its
 * lists of places before that, but the collector's stack maps do not.
 * cmd/compile/abi-internal.md, since go1.17. x86-64 only.
 */
#ifndef AGENT_BINARY_REGISTER_PARAMS_H
#define AGENT_BINARY_REGISTER_PARAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/binary/type_index_format.h"

/* Types by number; NULL for what is none. Fields by place, of structs. */
struct param_types {
	const struct type_record *(*type)(const void *arg, uint32_t number);
	const struct field_record *(*field)(const void *arg, uint32_t place);
	const void *arg;
};

enum param_entry {
	PARAM_UNKNOWN = -1,  /* DWARF does not say where it is at the function's entry */
	PARAM_IN_FRAME = -2, /* it lies there */
};

struct register_param {
	uint32_t type;
	int32_t entry; /* DWARF's number of the register that its first word is in at entry */
	bool is_result;
	bool has_place;  /* found: it came in registers, */
	uint32_t offset; /* and its place is so far above the CFA */
};

/*
 * Finds the places of the params, which are in the order of their declaration. If anything that
 * DWARF says of them is not as the rules have it, or nothing shows that the function follows them,
 * no param has a place.
 */
void register_params_place(const struct param_types *types, struct register_param *params,
			   uint32_t count);

#endif
