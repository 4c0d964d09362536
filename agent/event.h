/*
 * The agent's one event loop: descriptors and timers with a function to call when they are ready.
 * A source lives inside the struct of whoever waits for it, and may be removed, with that struct
 * freed, from within any call: one event is taken from the kernel at a time.
 */
#ifndef AGENT_EVENT_H
#define AGENT_EVENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "proto/base/error.h"

struct event_loop {
	int epoll_fd;
	bool stopped;
};

struct event_source {
	int fd;          /* borrowed; -1 while it is in no loop */
	uint32_t events; /* EPOLLIN, EPOLLOUT */
	void (*ready)(struct event_source *source, uint32_t events);
};

must_check struct error *event_loop_init(struct event_loop *loop);
void event_loop_fini(struct event_loop *loop);

/* Calls sources as they become ready, until event_loop_stop. */
must_check struct error *event_loop_run(struct event_loop *loop);
void event_loop_stop(struct event_loop *loop);

must_check struct error *event_add(struct event_loop *loop, struct event_source *source, int fd,
				   uint32_t events,
				   void (*ready)(struct event_source *source, uint32_t events));
/* Waits for other events from now on; nothing happens if they are the same. */
void event_change(struct event_loop *loop, struct event_source *source, uint32_t events);
/* Fine for a source that is in no loop, if its fd is -1. */
void event_remove(struct event_loop *loop, struct event_source *source);

/* A timer is a source with a timerfd of its own. */
struct event_timer {
	struct event_source source;
	struct event_loop *loop;
	void (*expired)(struct event_timer *timer);
};

must_check struct error *event_timer_init(struct event_timer *timer, struct event_loop *loop,
					  void (*expired)(struct event_timer *timer));
void event_timer_fini(struct event_timer *timer);

/* Once, after that many milliseconds; a later call replaces an earlier one. */
void event_timer_set(struct event_timer *timer, uint64_t ms);

#endif
