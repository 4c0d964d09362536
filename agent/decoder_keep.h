/*
 * A decoder whose scan is kept: after its answer it holds the graph and what goes with it, and
 * answers one question after the other. The target is nobody's business any more.
 */
#ifndef AGENT_DECODER_KEEP_H
#define AGENT_DECODER_KEEP_H

#include "agent/decoder_tasks.h"

struct decoded;

/*
 * Answers until the agent has no more questions. Each answer has identity, scan and heap totals of
 * the first one, which is borrowed. An error is that the agent cannot be told or means no sense.
 */
must_check struct error *decoder_keep(struct decoder *decoder, struct decoded *decoded,
				      Goheapd__ScanResult *first);

#endif
