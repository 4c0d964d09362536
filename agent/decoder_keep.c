#include "agent/decoder_keep.h"

#include <malloc.h>
#include <stdlib.h>

#include "agent/report/decode.h"

/* What the first answer has and the others repeat, but for its warnings: each has its own. */
static void lend(const Goheapd__ScanResult *first, Goheapd__ScanInfo *info,
		 Goheapd__ScanResult *result)
{
	*info = *first->scan;
	info->warnings = NULL;
	info->n_warnings = 0;
	result->identity = first->identity;
	result->scan = info;
	result->heap = first->heap;
}

static void take_back(Goheapd__ScanResult *result)
{
	for (size_t i = 0; i < result->scan->n_warnings; i++)
		goheapd__warning__free_unpacked(result->scan->warnings[i], NULL);
	free(result->scan->warnings);
	result->identity = NULL;
	result->scan = NULL;
	result->heap = NULL;
}

static struct error *send_result(struct decoder *decoder, Goheapd__ScanResult *result)
{
	Goheapd__DecoderEvent event = GOHEAPD__DECODER_EVENT__INIT;

	event.body_case = GOHEAPD__DECODER_EVENT__BODY_SCAN;
	event.scan = result;
	return decoder_tell_result(decoder, &event);
}

/* A question that fails is told so and costs nothing else. */
static struct error *answer(struct decoder *decoder, struct decoded *decoded,
			    const Goheapd__Analysis *analysis, const Goheapd__ScanResult *first)
{
	Goheapd__ScanResult *result = malloc(sizeof(*result));
	Goheapd__ScanInfo info;
	struct error *err;

	if (!result)
		return decoder_tell_failure(decoder, &error_nomem);
	goheapd__scan_result__init(result);
	lend(first, &info, result);
	err = decode_answer(decoded, analysis, result);
	if (!err)
		err = send_result(decoder, result);
	take_back(result);
	goheapd__scan_result__free_unpacked(result, NULL);
	if (err) {
		struct error *send_err = decoder_tell_failure(decoder, err);

		error_free(err);
		err = send_err;
	}
	malloc_trim(0);
	return err;
}

/* *ret_over: the agent has no more. */
static struct error *answer_next(struct decoder *decoder, struct decoded *decoded,
				 const Goheapd__ScanResult *first, bool *ret_over)
{
	const Goheapd__DecoderOrder *order;
	struct frame frame;
	enum frame_state state;
	struct error *err = frame_read(&decoder->orders, &frame, &state);

	*ret_over = !err && state == FRAME_END;
	if (err || *ret_over)
		return err;
	order = (const Goheapd__DecoderOrder *)frame.message;
	if (order->body_case == GOHEAPD__DECODER_ORDER__BODY_ASK)
		err = answer(decoder, decoded, order->ask->analysis, first);
	else
		err = error_new(ERROR_FORMAT, "order %d to a kept scan", order->body_case);
	frame_fini(&frame);
	return err;
}

struct error *decoder_keep(struct decoder *decoder, struct decoded *decoded,
			   Goheapd__ScanResult *first)
{
	struct error *err = NULL;
	bool over = false;

	while (!err && !over)
		err = answer_next(decoder, decoded, first, &over);
	return err;
}
