/*
 * Where the runtime's global variables lie in a program without symbols: told by the code that
 * refers to them. A function of the runtime, found by its name in the pclntab, refers to the same
 * variables in every program made by one version of Go. Each known reference (function, offset in
 * the variable, width of the access) is a witness: every place that the function refers to in that
 * manner may be the variable. The place that most witnesses agree on is the variable, if it is the
 * only one and enough of them do; what is left ambiguous is not found.
 */
#ifndef AGENT_GORUNTIME_GLOBAL_FIND_H
#define AGENT_GORUNTIME_GLOBAL_FIND_H

#include <stddef.h>
#include <stdint.h>

#include "agent/goruntime/layout.h"
#include "agent/target/memory.h"
#include "proto/base/error.h"

struct module;

/* A witness: what some function of the runtime says of a global variable. */
struct global_ref {
	const char *function;
	enum layout_global_id global;
	uint32_t offset; /* in the variable */
	uint8_t width;   /* of the access; 0: its address is taken */
};

/*
 * Fills in the addresses of globals whose size the layout knows and whose address is 0, as far as
 * they are found; addresses are as in memory. The module is that of the runtime.
 */
must_check struct error *global_find(struct memory *memory, const struct module *module,
				     const struct global_ref *refs, size_t ref_count,
				     struct layout *layout);

#endif
