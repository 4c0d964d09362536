#include "agent/decoder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "agent/child.h"
#include "agent/decoder_tasks.h"
#include "proto/base/log.h"
#include "proto/wire/failure.h"

struct error *decoder_next_order(struct decoder *decoder, struct frame *ret)
{
	enum frame_state state;
	struct error *err = frame_read(&decoder->orders, ret, &state);

	if (!err && state != FRAME_COMPLETE)
		err = error_new(ERROR_SYSTEM, "the agent has no more orders");
	return err;
}

struct error *decoder_tell_agent(struct decoder *decoder, const Goheapd__DecoderEvent *event)
{
	return frame_send(decoder->agent, &frame_decoder_event, &event->base, NULL, 0);
}

struct error *decoder_tell_result(struct decoder *decoder, const Goheapd__DecoderEvent *event)
{
	struct error *err = decoder_tell_agent(decoder, event);

	return err && error_code(err) == ERROR_LIMIT ? error_recode(err, ERROR_OUT_OF_MEMORY) : err;
}

struct error *decoder_tell_failure(struct decoder *decoder, const struct error *err)
{
	Goheapd__DecoderEvent event = GOHEAPD__DECODER_EVENT__INIT;
	Goheapd__Failure failure;

	failure_from_error(err, &failure);
	event.body_case = GOHEAPD__DECODER_EVENT__BODY_FAILURE;
	event.failure = &failure;
	return decoder_tell_agent(decoder, &event);
}

static struct error *run(struct decoder *decoder)
{
	struct frame frame;
	const Goheapd__DecoderOrder *order;
	struct error *err = decoder_next_order(decoder, &frame);

	if (err)
		return err;
	order = (const Goheapd__DecoderOrder *)frame.message;
	switch (order->body_case) {
	case GOHEAPD__DECODER_ORDER__BODY_SCAN:
		err = decoder_scan(decoder, order->scan);
		break;
	case GOHEAPD__DECODER_ORDER__BODY_OVERVIEW:
		err = decoder_overview(decoder, order->overview);
		break;
	case GOHEAPD__DECODER_ORDER__BODY_IDENTIFY:
		err = decoder_identify(decoder, &frame);
		break;
	default:
		err = error_new(ERROR_FORMAT, "task %d of a decoder", order->body_case);
	}
	frame_fini(&frame);
	return err;
}

/* Where memory runs out, it is the decoder that the kernel shall take, and never the keeper. */
static void volunteer(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "1000", 4) < 0)
		log_debug("decoder", "oom_score_adj stays as it is errno=%d", errno);
	closep(&fd);
}

static struct error *limit(__rlimit_resource_t resource, uint64_t value)
{
	struct rlimit rlimit = { value, value };

	return setrlimit(resource, &rlimit) ? error_system(errno, "setrlimit") : NULL;
}

/* A sanitizer's shadow memory is terabytes of address space: no limit leaves room for it. */
#if defined(__SANITIZE_ADDRESS__)
#define HAS_SHADOW_MEMORY 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_SHADOW_MEMORY 1
#endif
#endif
#ifndef HAS_SHADOW_MEMORY
#define HAS_SHADOW_MEMORY 0
#endif

/* From birth: no core of what it has read, no life after the agent's, no memory beyond its own. */
static struct error *confine(uint64_t memory_limit)
{
	enum { PROGRAM_BYTES = 256 << 20 }; /* libraries and the stacks of threads, mostly unused */
	struct error *err = limit(RLIMIT_CORE, 0);

	volunteer();
	if (!err && prctl(PR_SET_PDEATHSIG, SIGKILL))
		err = error_system(errno, "PR_SET_PDEATHSIG");
	if (!err && memory_limit && !HAS_SHADOW_MEMORY)
		err = limit(RLIMIT_DATA, memory_limit + PROGRAM_BYTES);
	return err;
}

int decoder_main(uint64_t memory_limit)
{
	struct decoder decoder = { .agent = CHILD_AGENT_SOCKET, .keeper = CHILD_PEER_SOCKET };
	struct error *err = confine(memory_limit);

	frame_reader_init(&decoder.orders, decoder.agent, &frame_decoder_order);
	frame_reader_init(&decoder.events, decoder.keeper, &frame_target_event);
	if (!err)
		err = run(&decoder);
	if (err) {
		struct error *send_err = decoder_tell_failure(&decoder, err);

		error_free(err);
		err = send_err;
	}
	frame_reader_fini(&decoder.events);
	frame_reader_fini(&decoder.orders);
	if (!err)
		return 0;
	/* the agent is gone or has hung up: it knows */
	log_debug("decoder", "nobody hears the result err=\"%s\"", error_message(err));
	error_free(err);
	return 1;
}
