/*
 * The list of special records that hangs on a span, sorted by offset and kind. runtime/mheap.go,
 * special and addspecial.
 */
#ifndef AGENT_GORUNTIME_SPECIAL_LIST_H
#define AGENT_GORUNTIME_SPECIAL_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/goruntime/special.h"
#include "agent/target/memory.h"
#include "proto/base/error.h"

struct layout;
struct span;

struct special_record {
	taddr addr;
	uint32_t slot; /* of its span */
	enum special_kind kind;
};

typedef struct error *special_visit(void *arg, const struct span *span,
				    const struct special_record *record);

/*
 * Calls visit for each record of a span's list. A list that does not hold together (a record that
 * cannot be read, offsets that fall or lie outside of the span, a cycle) ends there and *ret_cut
 * is set, otherwise cleared. The error is visit's, or that the target is gone.
 */
must_check struct error *special_list_walk(struct memory *memory, const struct layout *layout,
					   const struct span *span, special_visit *visit, void *arg,
					   bool *ret_cut);

#endif
