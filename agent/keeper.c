#include "agent/keeper.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/child.h"
#include "agent/keeper_orders.h"
#include "proto/base/log.h"
#include "proto/wire/failure.h"

/* Orders of the decoder's that may wait: the registers of every thread. */
enum { QUEUE_MAX_BYTES = LIMIT_TARGET_EVENT_BYTES };

struct error *keeper_tell_agent(struct keeper *keeper, const Goheapd__KeeperEvent *event,
				const int *fds, unsigned fd_count)
{
	return frame_send(keeper->agent, &frame_keeper_event, &event->base, fds, fd_count);
}

void keeper_signal_decoder(const struct keeper *keeper, int signal)
{
	if (keeper->decoder_pidfd >= 0)
		syscall(SYS_pidfd_send_signal, keeper->decoder_pidfd, signal, NULL, 0);
}

static struct error *obey(struct keeper *keeper, const Goheapd__KeeperOrder *order)
{
	switch (order->body_case) {
	case GOHEAPD__KEEPER_ORDER__BODY_LIST:
		return keeper_list(keeper);
	case GOHEAPD__KEEPER_ORDER__BODY_OBSERVE:
		return keeper_observe(keeper, order->observe);
	case GOHEAPD__KEEPER_ORDER__BODY_SCAN:
		return keeper_scan(keeper, order->scan);
	case GOHEAPD__KEEPER_ORDER__BODY_COLLECT:
		return keeper_collect(keeper, order->collect);
	default:
		return error_new(ERROR_FORMAT, "order %d of a keeper", order->body_case);
	}
}

/* Its last word: err, which is consumed, or success. */
static struct error *report(struct keeper *keeper, struct error *err)
{
	Goheapd__KeeperEvent event = GOHEAPD__KEEPER_EVENT__INIT;
	Goheapd__KeeperDone done = GOHEAPD__KEEPER_DONE__INIT;
	Goheapd__Failure failure;
	struct error *send_err;

	done.pause_us = keeper->outcome.pause_us;
	done.has_mode = keeper->outcome.mode != GOHEAPD__MODE__MODE_AUTO;
	done.mode = keeper->outcome.mode;
	done.released = keeper->outcome.released;
	if (err) {
		failure_from_error(err, &failure);
		done.failure = &failure;
	}
	event.body_case = GOHEAPD__KEEPER_EVENT__BODY_DONE;
	event.done = &done;
	send_err = keeper_tell_agent(keeper, &event, NULL, 0);
	error_free(err);
	return send_err;
}

static struct error *run(struct keeper *keeper)
{
	struct frame_reader reader;
	struct frame frame;
	enum frame_state state;
	struct error *err;

	frame_reader_init(&reader, keeper->agent, &frame_keeper_order);
	err = frame_read(&reader, &frame, &state);
	frame_reader_fini(&reader);
	if (err || state != FRAME_COMPLETE)
		return err;
	keeper->decoder_pidfd = frame_take_fd(&frame, 0);
	err = procfs_init(&keeper->procfs, "/proc", "/sys/fs/cgroup");
	if (!err)
		err = obey(keeper, (const Goheapd__KeeperOrder *)frame.message);
	frame_fini(&frame);
	closep(&keeper->decoder_pidfd);
	return report(keeper, err);
}

/* Its end is the agent's affair: a terminal or a service manager must not take it away. */
static void ignore_signals(void)
{
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
}

int keeper_main(void)
{
	struct keeper keeper = { .agent = CHILD_AGENT_SOCKET,
				 .decoder = CHILD_PEER_SOCKET,
				 .decoder_pidfd = -1 };
	struct error *err;

	ignore_signals();
	/* what it has touched stays in memory; without the right to, it does without */
	mlockall(MCL_CURRENT | MCL_ONFAULT);
	/* fails where an order needs no decoder and there is none */
	fcntl(keeper.decoder, F_SETFL, O_NONBLOCK);
	frame_reader_init(&keeper.plans, keeper.decoder, &frame_plan_event);
	frame_queue_init(&keeper.to_decoder, keeper.decoder, &frame_target_event, QUEUE_MAX_BYTES);
	err = run(&keeper);
	frame_queue_fini(&keeper.to_decoder);
	frame_reader_fini(&keeper.plans);
	if (!err)
		return 0;
	log_warning("keeper", "the agent does not hear of the end err=\"%s\"", error_message(err));
	error_free(err);
	return 1;
}
