/*
 * Objects that were freed explicitly (GOEXPERIMENT=runtimefreegc, since go1.26): they wait on lists
 * of their P's mcache to be allocated again, and look allocated to the span.
 */
#ifndef AGENT_GORUNTIME_SPAN_REUSABLE_H
#define AGENT_GORUNTIME_SPAN_REUSABLE_H

#include "agent/target/memory.h"
#include "proto/base/error.h"

struct layout;
struct span_table;

/* Takes the waiting objects out of all bitmaps of the table. */
must_check struct error *span_reusable_remove(struct memory *memory, const struct layout *layout,
					      struct span_table *table);

#endif
