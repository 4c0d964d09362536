#include "agent/report/frame_list.h"

#include <stdlib.h>
#include <string.h>

#include "agent/binary/pclntab.h"
#include "agent/goruntime/stack.h"

struct taking {
	struct frame_list *list;
	struct stack_walker *walker;
	struct goroutine_frames *frames;
	uint32_t line_count;
	struct error *err;
};

/* What is wrong with one stack is said of it; ERROR_GONE and the like end the scan. */
static bool is_about_stack(const struct error *err)
{
	switch (error_code(err)) {
	case ERROR_FAULT:
	case ERROR_FORMAT:
	case ERROR_LIMIT:
	case ERROR_UNSUPPORTED:
	case ERROR_CORRUPT_TARGET:
		return true;
	default:
		return false;
	}
}

static struct error *make_room(struct frame_list *list)
{
	uint64_t capacity = list->capacity ? list->capacity * 2 : 256;
	struct frame_lines_of *grown;

	if (list->count < list->capacity)
		return NULL;
	grown = reallocarray(list->frames, capacity, sizeof(*grown));
	if (!grown)
		return &error_nomem;
	list->frames = grown;
	list->capacity = capacity;
	return NULL;
}

static bool take_frame(void *arg, const struct stack_frame *frame)
{
	struct taking *t = arg;
	struct frame_lines_of lines;

	if (t->line_count == FRAME_LIST_LINES_MAX) {
		t->frames->cut = true;
		return false;
	}
	t->err = make_room(t->list);
	if (!t->err)
		t->err = stack_frame_lines(t->walker, frame, &lines.lines, &lines.count);
	if (t->err)
		return false;
	if (lines.count > FRAME_LIST_LINES_MAX - t->line_count)
		lines.count = FRAME_LIST_LINES_MAX - t->line_count;
	t->line_count += lines.count;
	t->list->frames[t->list->count++] = lines;
	return true;
}

struct error *frame_list_take(struct frame_list *list, struct stack_walker *walker,
			      const struct goroutine *g, struct goroutine_frames *ret)
{
	struct goroutine_frames frames = { .first = list->count };
	struct taking taking = { .list = list, .walker = walker, .frames = &frames };
	struct error *err = stack_walk(walker, g, take_frame, &taking);

	if (!err)
		err = taking.err;
	else
		error_free(taking.err);
	if (err && !is_about_stack(err))
		return err;
	frames.count = (uint32_t)(list->count - frames.first);
	if (err) {
		frames.error = strdup(error_message(err));
		error_free(err);
		if (!frames.error)
			return &error_nomem;
	}
	*ret = frames;
	return NULL;
}

void goroutine_frames_fini(struct goroutine_frames *frames)
{
	free(frames->error);
	frames->error = NULL;
}

void frame_list_fini(struct frame_list *list)
{
	free(list->frames);
	*list = (struct frame_list){ 0 };
}
