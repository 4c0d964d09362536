/*
 * Files beyond those of /proc/PID that a decoder asks for while it learns of the target: one search
 * for each kind, all before the plan.
 */
#ifndef AGENT_KEEPER_SEARCH_H
#define AGENT_KEEPER_SEARCH_H

#include <stdbool.h>

#include "agent/keeper_orders.h"

struct keeper_searches {
	struct keeper *keeper;
	const struct process *process;
	ProtobufCBinaryData debug_dir;
	bool debug_done, plugins_done;
};

/* *ret_answered says whether the message was a search; it is answered and finished then. */
must_check struct error *keeper_search(struct keeper_searches *searches, struct frame *frame,
				       bool *ret_answered);

#endif
