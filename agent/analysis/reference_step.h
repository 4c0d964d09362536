/*
 * Steps of reference chains: how one object leads to the next, as the frames that tell it. Each
 * different step is kept once and has a number; a step is made out of another and one more frame.
 */
#ifndef AGENT_ANALYSIS_REFERENCE_STEP_H
#define AGENT_ANALYSIS_REFERENCE_STEP_H

#include <stdint.h>

#include "proto/base/error.h"

enum {
	STEP_NONE = 0,    /* without frames: a part of what leads to it */
	STEP_UNTYPED = 1, /* "$sub_objects$" */
	STEPS_MAX = 1 << 20,
	STEP_FRAMES_MAX = 64,       /* of one step */
	STEP_TEXT_MAX = 4 << 10,    /* bytes of one frame */
	STEP_BYTES_MAX = 256 << 20, /* of all frames */
	STEP_ELEMENTS = 10,         /* of slices and arrays, that have frames of their own */
};

struct step_table;

must_check struct error *step_table_new(struct step_table **ret);
void step_table_free(struct step_table *table);
DEFINE_FREEP(step_table, step_table_free)

/*
 * The step with one frame more: "name. (type)". Where the table is full it is the step itself, so
 * that memory is bounded. Any thread may ask.
 */
must_check struct error *step_table_add(struct step_table *table, uint32_t step, const char *name,
					const char *type, uint32_t *ret);

/* Frames of a step, outermost first; they belong to the table. No thread may add meanwhile. */
uint32_t step_table_frames(const struct step_table *table, uint32_t step, const char *const **ret);

#endif
