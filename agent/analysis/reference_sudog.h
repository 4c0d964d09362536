/*
 * Who waits at a channel: runtime.sudog, whose elem leads to the value that is sent, or to where
 * one is to be put, as an unsafe.Pointer. The channel says of what type that is. Mostly it lies on
 * a stack; reflect has it in the heap. runtime/runtime2.go, chan.go, reflect/value.go.
 */
#ifndef AGENT_ANALYSIS_REFERENCE_SUDOG_H
#define AGENT_ANALYSIS_REFERENCE_SUDOG_H

#include "agent/analysis/reference_expander.h"

bool sudog_is(const struct go_type *type);

/*
 * The type of a sudog that lies at an offset of an object: its own with the type of its channel's
 * elements in it, or that alone where it waits for something else.
 */
must_check struct error *sudog_type(struct expander *expander, struct item_state *state,
				    uint64_t offset, type_id sudog, type_id *ret);

#endif
