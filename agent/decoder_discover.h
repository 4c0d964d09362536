/*
 * The layout of a target without DWARF, from what is built in and what its memory tells.
 */
#ifndef AGENT_DECODER_DISCOVER_H
#define AGENT_DECODER_DISCOVER_H

#include "agent/decoder_layout.h"

/*
 * The target's files and memory are open. Fills in the layout, with link-time addresses, and how it
 * is known. ERROR_UNSUPPORTED, ERROR_CORRUPT_TARGET.
 */
must_check struct error *decoder_discover(const struct decoder_target *target,
					  struct decoder_layout *ret);

#endif
