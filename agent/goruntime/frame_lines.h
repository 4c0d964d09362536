/*
 * Source lines of frames, kept by pc: a hundred thousand goroutines mostly wait in the same few
 * places.
 */
#ifndef AGENT_GORUNTIME_FRAME_LINES_H
#define AGENT_GORUNTIME_FRAME_LINES_H

#include "agent/goruntime/addr_map.h"

/* All zero is an empty store. */
struct frame_lines {
	struct addr_map calls;  /* of return addresses */
	struct addr_map places; /* of other pcs */
};

void frame_lines_fini(struct frame_lines *lines);

#endif
