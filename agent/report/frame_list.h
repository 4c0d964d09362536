/*
 * The frames of goroutines, taken down while the target's memory can be read and kept as pointers
 * to source lines that the stack walker owns: a hundred thousand goroutines mostly wait in the same
 * few places.
 */
#ifndef AGENT_REPORT_FRAME_LIST_H
#define AGENT_REPORT_FRAME_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/error.h"

struct goroutine;
struct pclntab_line;
struct stack_walker;

/* Lines of one goroutine beyond this many are left out, the outermost ones. */
enum { FRAME_LIST_LINES_MAX = 512 };

struct frame_lines_of {
	const struct pclntab_line *lines; /* inlined calls first */
	uint32_t count;
};

struct goroutine_frames {
	uint64_t first; /* in frame_list.frames */
	uint32_t count;
	bool cut;    /* there are more than FRAME_LIST_LINES_MAX lines */
	char *error; /* why the stack could not be walked to its end; NULL: it was */
};

/* All zero is an empty list. The lines belong to the walker. */
struct frame_list {
	struct frame_lines_of *frames;
	uint64_t count, capacity;
};

/* Takes down the frames of one goroutine, which the caller frees with goroutine_frames_fini. */
must_check struct error *frame_list_take(struct frame_list *list, struct stack_walker *walker,
					 const struct goroutine *g, struct goroutine_frames *ret);
void goroutine_frames_fini(struct goroutine_frames *frames);
void frame_list_fini(struct frame_list *list);

#endif
