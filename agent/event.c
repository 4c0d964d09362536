#include "agent/event.h"

#include <assert.h>
#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

struct error *event_loop_init(struct event_loop *loop)
{
	loop->stopped = false;
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return loop->epoll_fd < 0 ? error_system(errno, "epoll") : NULL;
}

void event_loop_fini(struct event_loop *loop)
{
	closep(&loop->epoll_fd);
	loop->epoll_fd = -1;
}

struct error *event_loop_run(struct event_loop *loop)
{
	while (!loop->stopped) {
		struct epoll_event event;
		struct event_source *source;
		/* one at a time: the next one's source may be gone by then */
		int count = epoll_wait(loop->epoll_fd, &event, 1, -1);

		if (count < 0 && errno != EINTR)
			return error_system(errno, "epoll_wait");
		if (count < 1)
			continue;
		source = event.data.ptr;
		source->ready(source, event.events);
	}
	return NULL;
}

void event_loop_stop(struct event_loop *loop)
{
	loop->stopped = true;
}

struct error *event_add(struct event_loop *loop, struct event_source *source, int fd,
			uint32_t events,
			void (*ready)(struct event_source *source, uint32_t events))
{
	struct epoll_event event = { .events = events, .data.ptr = source };

	*source = (struct event_source){ .fd = -1, .events = events, .ready = ready };
	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event))
		return error_system(errno, "epoll_ctl");
	source->fd = fd;
	return NULL;
}

void event_change(struct event_loop *loop, struct event_source *source, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = source };

	if (source->fd < 0 || source->events == events)
		return;
	source->events = events;
	/* cannot fail for a descriptor that is in the set, and nothing is allocated for it */
	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, source->fd, &event))
		assert(!"EPOLL_CTL_MOD");
}

void event_remove(struct event_loop *loop, struct event_source *source)
{
	if (source->fd < 0)
		return;
	epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
	source->fd = -1;
}

static void timer_ready(struct event_source *source, uint32_t events)
{
	struct event_timer *timer = (struct event_timer *)source;
	uint64_t count;

	(void)events;
	/* set anew since the event was seen: nothing to read, it will come again */
	if (read(source->fd, &count, sizeof(count)) == sizeof(count))
		timer->expired(timer);
}

struct error *event_timer_init(struct event_timer *timer, struct event_loop *loop,
			       void (*expired)(struct event_timer *timer))
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	struct error *err;

	*timer = (struct event_timer){ .source.fd = -1, .loop = loop, .expired = expired };
	if (fd < 0)
		return error_system(errno, "timerfd_create");
	err = event_add(loop, &timer->source, fd, EPOLLIN, timer_ready);
	if (err)
		close(fd);
	return err;
}

void event_timer_fini(struct event_timer *timer)
{
	int fd = timer->source.fd;

	event_remove(timer->loop, &timer->source);
	closep(&fd);
}

void event_timer_set(struct event_timer *timer, uint64_t ms)
{
	/* all zero would disarm it */
	struct itimerspec when = { .it_value = { .tv_sec = (time_t)(ms / 1000),
						 .tv_nsec = (long)(ms % 1000) * 1000000 + 1 } };

	timerfd_settime(timer->source.fd, 0, &when, NULL);
}
