/*
 * The decoder's tasks, and what they share. A task sends its own result; an error that it returns
 * is sent as the failure.
 */
#ifndef AGENT_DECODER_TASKS_H
#define AGENT_DECODER_TASKS_H

#include <stdbool.h>

#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"
#include "proto/wire/frame.h"

struct build_info;
struct elf_file;

struct decoder {
	int agent, keeper;          /* both block; no keeper, -1, once a scan is kept */
	struct frame_reader orders; /* of the agent */
	struct frame_reader events; /* of the keeper */
};

must_check struct error *decoder_scan(struct decoder *decoder, const Goheapd__DecodeScan *task);
must_check struct error *decoder_overview(struct decoder *decoder,
					  const Goheapd__DecodeOverview *task);

/* The first executable is in frame; then come others until the agent has no more. */
must_check struct error *decoder_identify(struct decoder *decoder, struct frame *frame);

/* ---- shared ---- */

/*
 * Whether an executable is a Go program, and its build info: NULL if it has none, or none that can
 * be read in spite of its table of functions, and nothing depends on it but what is told of it.
 */
must_check struct error *decoder_build_info(const struct elf_file *file, struct build_info **ret,
					    bool *ret_is_go);

/* Says that what was asked could not be done. */
must_check struct error *decoder_tell_failure(struct decoder *decoder, const struct error *err);

/* The agent's next order. ERROR_SYSTEM if there is none, since then nobody wants a result. */
must_check struct error *decoder_next_order(struct decoder *decoder, struct frame *ret);

must_check struct error *decoder_tell_agent(struct decoder *decoder,
					    const Goheapd__DecoderEvent *event);

/* The same for a result, which may be too large to travel: ERROR_OUT_OF_MEMORY. */
must_check struct error *decoder_tell_result(struct decoder *decoder,
					     const Goheapd__DecoderEvent *event);

#endif
