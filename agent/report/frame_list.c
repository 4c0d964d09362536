#include "agent/report/frame_list.h"

#include <stdlib.h>
#include <string.h>

#include "agent/goruntime/goroutine.h"
#include "agent/goruntime/module.h"
#include "agent/goruntime/stack.h"

enum { MAIN_GOROUTINE = 1 };

struct taking {
	struct frame_list *list;
	struct stack_walker *walker;
	struct goroutine_frames *frames;
	uint32_t lines[FRAME_LIST_LINES_MAX];
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

/* ---- lines ---- */

static struct error *make_room(struct frame_list *list, uint32_t more)
{
	uint64_t capacity = list->capacity ? list->capacity : 256;
	struct pclntab_line *grown;

	while (capacity - list->count < more)
		capacity *= 2;
	if (capacity == list->capacity)
		return NULL;
	if (capacity > UINT32_MAX)
		return error_new(ERROR_LIMIT, "stacks hold too many different lines");
	grown = reallocarray(list->lines, capacity, sizeof(*grown));
	if (!grown)
		return &error_nomem;
	list->lines = grown;
	list->capacity = (uint32_t)capacity;
	return NULL;
}

/* Copies the lines of a pc into the list and remembers where they are. */
static struct error *add_lines(struct frame_list *list, struct addr_map *map, taddr pc,
			       const struct pclntab_line *lines, uint32_t count,
			       const struct line_run **ret)
{
	struct line_run *run scoped(freep) = malloc(sizeof(*run));
	struct error *err;

	if (!run)
		return &error_nomem;
	*run = (struct line_run){ .first = list->count, .count = count };
	err = make_room(list, count);
	if (!err)
		err = addr_map_put(map, pc, run);
	if (err)
		return err;
	if (count)
		memcpy(list->lines + list->count, lines, count * sizeof(*lines));
	list->count += count;
	*ret = take(run);
	return NULL;
}

static struct error *find_lines(struct frame_list *list, struct stack_walker *walker,
				const struct stack_frame *frame, const struct line_run **ret)
{
	struct addr_map *map = frame->is_call ? &list->calls : &list->places;
	const struct pclntab_line *lines;
	uint32_t count;
	struct error *err;

	*ret = addr_map_get(map, frame->pc);
	if (*ret)
		return NULL;
	err = stack_frame_lines(walker, frame, &lines, &count);
	return err ? err : add_lines(list, map, frame->pc, lines, count, ret);
}

/* ---- stacks ---- */

static bool take_frame(void *arg, const struct stack_frame *frame)
{
	struct taking *t = arg;
	const struct line_run *run;

	if (t->line_count == FRAME_LIST_LINES_MAX) {
		t->frames->cut = true;
		return false;
	}
	t->err = find_lines(t->list, t->walker, frame, &run);
	if (t->err)
		return false;
	for (uint32_t i = 0; i < run->count && t->line_count < FRAME_LIST_LINES_MAX; i++)
		t->lines[t->line_count++] = run->first + i;
	return true;
}

struct error *frame_list_take(struct frame_list *list, struct stack_walker *walker,
			      const struct goroutine *g, struct goroutine_frames *ret)
{
	struct goroutine_frames frames = { 0 };
	struct taking taking = { .list = list, .walker = walker, .frames = &frames };
	struct error *add_err, *err = stack_walk(walker, g, take_frame, &taking);

	if (!err)
		err = taking.err;
	else
		error_free(taking.err);
	if (err && !is_about_stack(err))
		return err;
	add_err = sequence_set_add(&list->traces, taking.lines, taking.line_count, &frames.trace);
	if (add_err) {
		error_free(err);
		return add_err;
	}
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

/* ---- go statements ---- */

static struct error *find_creator(const struct module_table *modules, taddr pc,
				  struct pclntab_line lines[PCLNTAB_LINES_MAX], uint32_t *ret_count)
{
	const struct module *module = module_table_find_text(modules, pc);
	struct pclntab_func func;
	bool found = false;
	struct error *err = NULL;

	*ret_count = 0;
	if (module)
		err = pclntab_find(module->pclntab, pc, &found, &func);
	if (!err && found)
		err = pclntab_lines(module->pclntab, &func, pc, true, NULL, 0, lines, ret_count);
	if (!err || error_code(err) == ERROR_NOMEM)
		return err;
	error_free(err);
	*ret_count = 0;
	return NULL;
}

struct error *frame_list_creator(struct frame_list *list, const struct module_table *modules,
				 const struct goroutine *g, const struct line_run **ret)
{
	struct pclntab_line lines[PCLNTAB_LINES_MAX];
	const struct line_run *run = addr_map_get(&list->creators, g->created_pc);
	uint32_t count;
	struct error *err = NULL;

	*ret = NULL;
	if (g->id == MAIN_GOROUTINE || !g->created_pc)
		return NULL;
	if (!run) {
		err = find_creator(modules, g->created_pc, lines, &count);
		/* the function itself, which comes last */
		if (!err)
			err = add_lines(list, &list->creators, g->created_pc,
					count ? lines + count - 1 : NULL, count != 0, &run);
	}
	if (!err && run->count)
		*ret = run;
	return err;
}

/* ---- their end ---- */

static void runs_fini(struct addr_map *map)
{
	for (size_t i = 0; i < map->capacity; i++)
		free(map->entries[i].value);
	addr_map_fini(map);
}

void frame_list_fini(struct frame_list *list)
{
	runs_fini(&list->calls);
	runs_fini(&list->places);
	runs_fini(&list->creators);
	sequence_set_fini(&list->traces);
	free(list->lines);
	*list = (struct frame_list){ 0 };
}
