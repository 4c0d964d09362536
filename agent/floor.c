#include "agent/floor.h"

#include <stdlib.h>

struct floor_stop {
	pid_t pid;
	uint64_t start_ticks;
	uint64_t at_ms;
};

void floor_init(struct floor *floor, uint64_t interval_ms)
{
	*floor = (struct floor){ .interval_ms = interval_ms };
}

void floor_fini(struct floor *floor)
{
	free(take(floor->stops));
	floor->count = floor->capacity = 0;
}

uint64_t floor_wait_ms(const struct floor *floor, pid_t pid, uint64_t start_ticks, uint64_t now_ms)
{
	uint64_t wait_ms = 0;

	for (size_t i = 0; i < floor->count; i++) {
		const struct floor_stop *stop = &floor->stops[i];
		uint64_t passed_ms = now_ms - stop->at_ms;

		if (stop->pid != pid || stop->start_ticks != start_ticks ||
		    passed_ms >= floor->interval_ms)
			continue;
		if (floor->interval_ms - passed_ms > wait_ms)
			wait_ms = floor->interval_ms - passed_ms;
	}
	return wait_ms;
}

/* Forgets what binds nobody any more. */
static void prune(struct floor *floor, uint64_t now_ms)
{
	size_t kept = 0;

	for (size_t i = 0; i < floor->count; i++)
		if (now_ms - floor->stops[i].at_ms < floor->interval_ms)
			floor->stops[kept++] = floor->stops[i];
	floor->count = kept;
}

struct error *floor_note(struct floor *floor, pid_t pid, uint64_t start_ticks, uint64_t now_ms)
{
	prune(floor, now_ms);
	if (floor->count == floor->capacity) {
		size_t capacity = floor->capacity ? 2 * floor->capacity : 16;
		struct floor_stop *stops =
		    reallocarray(floor->stops, capacity, sizeof(*floor->stops));

		if (!stops)
			return &error_nomem;
		floor->stops = stops;
		floor->capacity = capacity;
	}
	floor->stops[floor->count++] =
	    (struct floor_stop){ .pid = pid, .start_ticks = start_ticks, .at_ms = now_ms };
	return NULL;
}
