#include "agent/keeper_watch.h"

#include <errno.h>
#include <poll.h>

#include "agent/target/process.h"
#include "agent/target/tracee.h"

enum { WATCH_AGENT, WATCH_DECODER, WATCH_TARGET, WATCH_SNAPSHOT, WATCH_COUNT };

/* How often to look for an exec, which nothing tells of. */
enum { LOOK_MS = 5 };

static void prepare(const struct keeper_watch *watch, struct pollfd *polls)
{
	bool sending = !frame_queue_is_empty(&watch->keeper->to_decoder);

	polls[WATCH_AGENT] = (struct pollfd){ watch->keeper->agent, POLLIN, 0 };
	polls[WATCH_DECODER] =
	    (struct pollfd){ watch->keeper->decoder, sending ? POLLIN | POLLOUT : POLLIN, 0 };
	polls[WATCH_TARGET] = (struct pollfd){ watch->target_pidfd, POLLIN, 0 };
	polls[WATCH_SNAPSHOT] = (struct pollfd){ watch->snapshot_pidfd, POLLIN, 0 };
}

/* Milliseconds to sleep: to the deadline, rounded up, and no longer than an exec may go unseen. */
static int sleep_ms(const struct keeper_watch *watch, uint64_t now_ns)
{
	uint64_t left_ms = UINT64_MAX;

	if (watch->deadline_ns != UINT64_MAX)
		left_ms = (watch->deadline_ns - now_ns + 999999) / 1000000;
	if (watch->target_mem_fd >= 0 && left_ms > LOOK_MS)
		left_ms = LOOK_MS;
	return left_ms > INT32_MAX ? -1 : (int)left_ms;
}

static struct error *check_lives(const struct keeper_watch *watch, const struct pollfd *polls)
{
	if (polls[WATCH_TARGET].revents)
		return error_new(ERROR_GONE, "the process ended during the scan");
	if (watch->target_mem_fd >= 0 && process_image_gone(watch->target_mem_fd))
		return error_new(ERROR_GONE,
				 "the process ended or ran another program during the scan");
	if (polls[WATCH_SNAPSHOT].revents)
		return error_new(ERROR_SYSTEM, "something killed the snapshot");
	return NULL;
}

/* *ret_state is FRAME_PARTIAL if there is nothing to read. */
static struct error *serve_decoder(struct keeper *keeper, short revents, struct frame *ret,
				   enum frame_state *ret_state)
{
	*ret_state = FRAME_PARTIAL;
	if (revents & POLLOUT) {
		struct error *err = frame_queue_flush(&keeper->to_decoder);

		/* it is gone: what it said last, or its end, is read below */
		if (err) {
			error_free(err);
			revents |= POLLIN;
		}
	}
	return revents & ~POLLOUT ? frame_read(&keeper->plans, ret, ret_state) : NULL;
}

struct error *keeper_wait(struct keeper_watch *watch, struct frame *ret, enum keeper_wake *ret_wake)
{
	for (;;) {
		struct pollfd polls[WATCH_COUNT];
		uint64_t now_ns = tracee_now_ns();
		enum frame_state state;
		struct error *err;

		if (now_ns >= watch->deadline_ns) {
			*ret_wake = KEEPER_DEADLINE;
			return NULL;
		}
		prepare(watch, polls);
		if (poll(polls, WATCH_COUNT, sleep_ms(watch, now_ns)) < 0) {
			if (errno == EINTR)
				continue;
			return error_system(errno, "poll");
		}
		err = check_lives(watch, polls);
		if (err)
			return err;
		/* nothing but its end comes from the agent */
		if (polls[WATCH_AGENT].revents) {
			*ret_wake = KEEPER_LET_GO;
			return NULL;
		}
		err = serve_decoder(watch->keeper, polls[WATCH_DECODER].revents, ret, &state);
		if (err)
			return err;
		if (state == FRAME_PARTIAL)
			continue;
		*ret_wake = state == FRAME_COMPLETE ? KEEPER_MESSAGE : KEEPER_LET_GO;
		return NULL;
	}
}
