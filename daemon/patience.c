#include "daemon/patience.h"

#include <errno.h>
#include <poll.h>

#include "daemon/clock.h"

enum { WAIT_EVENT, WAIT_CLIENT, WAIT_STOP, WAIT_COUNT };

struct error *patience_wait(const struct patience *patience, int event)
{
	struct pollfd fds[WAIT_COUNT] = {
		[WAIT_EVENT] = { .fd = event, .events = POLLIN },
		[WAIT_CLIENT] = { .fd = patience->client, .events = POLLRDHUP },
		[WAIT_STOP] = { .fd = patience->stop, .events = POLLIN },
	};

	for (;;) {
		int count = poll(fds, WAIT_COUNT, clock_poll_ms(patience->deadline_us));

		if (count < 0 && errno != EINTR)
			return error_system(errno, "poll");
		if (count > 0 && fds[WAIT_EVENT].revents)
			return NULL;
		if (count > 0 && fds[WAIT_STOP].revents)
			return error_new(ERROR_AGENT_UNAVAILABLE, "goheapd is ending");
		if (count > 0 && fds[WAIT_CLIENT].revents)
			return error_new(ERROR_TIMEOUT, "the client has left");
		if (clock_now_us() >= patience->deadline_us)
			return error_new(ERROR_TIMEOUT, "no answer within the timeout");
	}
}
