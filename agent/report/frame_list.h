/*
 * The frames of goroutines, taken down while the target's memory can be read: each source line and
 * each stack once, since a hundred thousand goroutines mostly wait in the same few places.
 */
#ifndef AGENT_REPORT_FRAME_LIST_H
#define AGENT_REPORT_FRAME_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/binary/pclntab.h"
#include "agent/goruntime/addr_map.h"
#include "agent/report/sequence_set.h"
#include "proto/base/error.h"

struct goroutine;
struct module_table;
struct stack_walker;

/* Lines of one goroutine beyond this many are left out, the outermost ones. */
enum { FRAME_LIST_LINES_MAX = 512 };

/* Where a list has the lines of a pc, inlined calls first. */
struct line_run {
	uint32_t first, count;
};

struct goroutine_frames {
	uint32_t trace; /* in frame_list.traces */
	bool cut;       /* there are more than FRAME_LIST_LINES_MAX lines */
	char *error;    /* why the stack could not be walked to its end; NULL: it was */
};

/* All zero is an empty list. The lines' strings belong to the modules. */
struct frame_list {
	struct pclntab_line *lines;
	uint32_t count, capacity;
	struct sequence_set traces; /* of places in lines, innermost first */
	/* By pc, of struct line_run: of calls that return there, of other places, of go statements.
	 */
	struct addr_map calls, places, creators;
};

/* Takes down the frames of one goroutine, which the caller frees with goroutine_frames_fini. */
must_check struct error *frame_list_take(struct frame_list *list, struct stack_walker *walker,
					 const struct goroutine *g, struct goroutine_frames *ret);
void goroutine_frames_fini(struct goroutine_frames *frames);

/*
 * The line of the go statement that made a goroutine; NULL where its function cannot be told, and
 * of the main goroutine, which no go statement made (runtime/traceback.go, printcreatedby).
 */
must_check struct error *frame_list_creator(struct frame_list *list,
					    const struct module_table *modules,
					    const struct goroutine *g, const struct line_run **ret);

void frame_list_fini(struct frame_list *list);

#endif
