/*
 * What the decoder tells the keeper before the stop: where no stack can be walked, and which
 * functions and fields the injected calls need.
 */
#ifndef AGENT_DECODER_PLAN_H
#define AGENT_DECODER_PLAN_H

#include "agent/decoder_tasks.h"

struct decoder_target;

must_check struct error *decoder_plan_send(struct decoder *decoder,
					   const struct decoder_target *target);

#endif
