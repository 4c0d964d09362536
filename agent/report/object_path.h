/* A shortest way from a root to a live object, frame by frame. */
#ifndef AGENT_REPORT_OBJECT_PATH_H
#define AGENT_REPORT_OBJECT_PATH_H

#include <stdint.h>

#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"

struct analysed;

/* Steps at each end of a way that is too long to be told; frames that one step may have. */
enum { OBJECT_PATH_STEPS = 256, OBJECT_PATH_STEP_FRAMES = 16 };

/*
 * Fills the message's path and path_cut. An object that is not live, or that the walk has not met,
 * has none.
 */
must_check struct error *object_path_fill(const struct analysed *analysed, uint32_t object,
					  Goheapd__Object *message);

#endif
