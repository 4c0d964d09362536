/*
 * Plugins of a target: files that it has mapped, besides its executable. What of them the target
 * has not touched is not in its memory, and reading it there would put it there.
 */
#ifndef AGENT_KEEPER_PLUGINS_H
#define AGENT_KEEPER_PLUGINS_H

#include "agent/keeper_orders.h"

/* Hands the decoder the files that are mapped at the addresses, as far as they can be opened. */
must_check struct error *keeper_find_plugins(struct keeper *keeper, const struct process *process,
					     const Goheapd__PluginSearch *search);

#endif
