/*
 * The decoder's tasks, and what they share. A task sends its own result; an error that it returns
 * is sent as the failure.
 */
#ifndef AGENT_DECODER_TASKS_H
#define AGENT_DECODER_TASKS_H

#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"
#include "proto/wire/frame.h"

struct decoder {
	int agent, keeper;          /* both block */
	struct frame_reader orders; /* of the agent */
	struct frame_reader events; /* of the keeper */
};

must_check struct error *decoder_scan(struct decoder *decoder, const Goheapd__DecodeScan *task);
must_check struct error *decoder_overview(struct decoder *decoder);

/* The first executable is in frame; then come others until the agent has no more. */
must_check struct error *decoder_identify(struct decoder *decoder, struct frame *frame);

/* ---- shared ---- */

/* The agent's next order. ERROR_SYSTEM if there is none, since then nobody wants a result. */
must_check struct error *decoder_next_order(struct decoder *decoder, struct frame *ret);

must_check struct error *decoder_tell_agent(struct decoder *decoder,
					    const Goheapd__DecoderEvent *event);

/* The same for a result, which may be too large to travel: ERROR_OUT_OF_MEMORY. */
must_check struct error *decoder_tell_result(struct decoder *decoder,
					     const Goheapd__DecoderEvent *event);

#endif
