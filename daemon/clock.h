/*
 * Time that only goes forward, in microseconds, for deadlines.
 */
#ifndef DAEMON_CLOCK_H
#define DAEMON_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* Milliseconds from now to a deadline for poll(2), rounded up, at most a minute at a time. */
static inline int clock_poll_ms(uint64_t deadline_us)
{
	uint64_t now = clock_now_us();
	uint64_t left_ms = deadline_us > now ? (deadline_us - now + 999) / 1000 : 0;

	return left_ms < 60000 ? (int)left_ms : 60000;
}

#endif
