#include "daemon/patience.h"

#include <errno.h>
#include <poll.h>

#include "daemon/clock.h"

enum { WAIT_EVENT, WAIT_STOP, WAIT_CLIENT, WAIT_COUNT };

enum { FINISHED_LOOK_MS = 500 }; /* how often to look whether a silent client is still there */

static bool has_left(const struct patience *patience)
{
	return !patience->has_left || patience->has_left(patience->client);
}

/*
 * Polls once. A client that has finished sending keeps its socket readable for good: from then on
 * it is looked at now and then instead.
 */
static int poll_once(struct pollfd fds[WAIT_COUNT], const struct patience *patience,
		     bool client_finished)
{
	int timeout_ms = clock_poll_ms(patience->deadline_us);

	if (client_finished && timeout_ms > FINISHED_LOOK_MS)
		timeout_ms = FINISHED_LOOK_MS;
	fds[WAIT_CLIENT].fd = client_finished ? -1 : patience->client;
	return poll(fds, WAIT_COUNT, timeout_ms);
}

struct error *patience_wait(const struct patience *patience, int event)
{
	struct pollfd fds[WAIT_COUNT] = {
		[WAIT_EVENT] = { .fd = event, .events = POLLIN },
		[WAIT_STOP] = { .fd = patience->stop, .events = POLLIN },
		[WAIT_CLIENT] = { .events = POLLRDHUP },
	};
	bool client_finished = false;

	for (;;) {
		int count = poll_once(fds, patience, client_finished);

		if (count < 0 && errno != EINTR)
			return error_system(errno, "poll");
		if (count > 0 && fds[WAIT_EVENT].revents)
			return NULL;
		if (count > 0 && fds[WAIT_STOP].revents)
			return error_new(ERROR_AGENT_UNAVAILABLE, "goheapd is ending");
		client_finished |= count > 0 && fds[WAIT_CLIENT].revents;
		if (client_finished && has_left(patience))
			return error_new(ERROR_TIMEOUT, "the client has left");
		if (clock_now_us() >= patience->deadline_us)
			return error_new(ERROR_TIMEOUT, "no answer within the timeout");
	}
}
