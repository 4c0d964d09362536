/*
 * The search for a file with the DWARF of an executable that has none: in the root of the target
 * and in our own, never on a network. The keeper knows the places and opens what lies there; what
 * is in it is for the decoder to judge.
 */
#ifndef AGENT_KEEPER_DEBUG_H
#define AGENT_KEEPER_DEBUG_H

#include "agent/keeper_orders.h"

/* Hands the decoder every file that may be the one. */
must_check struct error *keeper_find_debug(struct keeper *keeper, const struct process *process,
					   ProtobufCBinaryData debug_dir,
					   const Goheapd__DebugSearch *search);

#endif
