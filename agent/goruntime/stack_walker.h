/* The inside of a stack walker, for the files that implement it. */
#ifndef AGENT_GORUNTIME_STACK_WALKER_H
#define AGENT_GORUNTIME_STACK_WALKER_H

#include "agent/goruntime/frame_lines.h"
#include "agent/goruntime/root.h"
#include "agent/goruntime/stack.h"
#include "agent/goruntime/stack_scan.h"
#include "agent/goruntime/stack_window.h"

struct pc_cache;

struct stack_walker {
	struct memory *memory;
	const struct layout *layout;
	const struct goroutine_table *goroutines;
	struct pc_cache *cache;
	struct stack_window window;   /* used for one stack after the other */
	struct stack_scan_state scan; /* likewise */
	struct frame_lines lines;
};

/* All words of [from, to), wherever that is, for the scan under way. */
must_check struct error *memory_roots(struct stack_walker *walker, enum root_kind kind, taddr from,
				      taddr to);

#endif
