#include "agent/report/goroutine_list.h"

#include <stdlib.h>
#include <time.h>

#include "agent/binary/pclntab.h"
#include "agent/goruntime/goroutine.h"
#include "agent/goruntime/machine.h"
#include "agent/goruntime/module.h"
#include "agent/goruntime/stack.h"
#include "agent/report/message.h"

struct frames {
	const struct goroutine_list_input *input;
	Goheapd__Goroutine *message;
	struct error *err;
	bool cut;
};

bool goroutine_is_alive(const struct goroutine *g)
{
	return g->status != GOROUTINE_IDLE && g->status != GOROUTINE_DEAD &&
	       g->status != GOROUTINE_DEADEXTRA;
}

/* ERROR_GONE and the like end the scan; what is wrong with one stack is said in its message. */
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

static struct error *fill_frame(Goheapd__Frame *frame, const struct pclntab_line *line)
{
	struct error *err = message_text(line->function, &frame->function);

	if (!err && line->file) {
		frame->has_file = true;
		err = message_text(line->file, &frame->file);
	}
	frame->has_line = line->line != 0;
	frame->line = line->line;
	frame->has_inlined = true;
	frame->inlined = line->inlined;
	return err;
}

static struct error *add_frame(Goheapd__Goroutine *message, const struct pclntab_line *line)
{
	Goheapd__Frame *frame;
	struct error *err = message_reserve((void ***)&message->frames, message->n_frames);

	if (err)
		return err;
	frame = malloc(sizeof(*frame));
	if (!frame)
		return &error_nomem;
	goheapd__frame__init(frame);
	message->frames[message->n_frames++] = frame;
	return fill_frame(frame, line);
}

static bool visit_frame(void *arg, const struct stack_frame *frame)
{
	struct frames *frames = arg;
	const struct pclntab_line *lines;
	uint32_t count;

	frames->err = stack_frame_lines(frames->input->walker, frame, &lines, &count);
	for (uint32_t i = 0; !frames->err && i < count; i++) {
		if (frames->message->n_frames == GOROUTINE_LIST_FRAMES_MAX) {
			frames->cut = true;
			return false;
		}
		frames->err = add_frame(frames->message, &lines[i]);
	}
	return !frames->err;
}

static struct error *set_error(Goheapd__Goroutine *message, const char *text)
{
	message->has_error = true;
	return message_text(text, &message->error);
}

static struct error *fill_frames(const struct goroutine_list_input *input,
				 const struct goroutine *g, Goheapd__Goroutine *message)
{
	struct frames frames = { .input = input, .message = message };
	struct error *err = stack_walk(input->walker, g, visit_frame, &frames);

	if (!err)
		err = frames.err;
	else
		error_free(frames.err);
	if (!err && frames.cut)
		return set_error(message, "the outer frames of this deep stack are left out");
	if (err && is_about_stack(err)) {
		struct error *failed = set_error(message, error_message(err));

		error_free(err);
		return failed;
	}
	return err;
}

/* The place of the go statement; left out where its function cannot be told. */
static struct error *fill_creator(const struct goroutine_list_input *input,
				  const struct goroutine *g, Goheapd__Goroutine *message)
{
	const struct module *module = module_table_find_text(input->modules, g->created_pc);
	struct pclntab_line lines[PCLNTAB_LINES_MAX];
	struct pclntab_func func;
	uint32_t count = 0;
	bool found = false;
	struct error *err = NULL;

	if (module)
		err = pclntab_find(module->pclntab, g->created_pc, &found, &func);
	if (!err && found)
		err = pclntab_lines(module->pclntab, &func, g->created_pc, true, NULL, 0, lines,
				    &count);
	if (err && is_about_stack(err)) {
		error_free(err);
		return NULL;
	}
	if (err || !count)
		return err;
	message->has_created_by = true;
	err = message_text(lines[count - 1].function, &message->created_by);
	if (err || !lines[count - 1].file)
		return err;
	message->has_created_by_file = true;
	message->has_created_by_line = lines[count - 1].line != 0;
	message->created_by_line = lines[count - 1].line;
	return message_text(lines[count - 1].file, &message->created_by_file);
}

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The runtime notes when a goroutine began to wait on the monotonic clock. */
static void fill_wait(const struct goroutine *g, Goheapd__Goroutine *message)
{
	int64_t boot = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);

	if (g->wait_since <= 0 || g->wait_since > INT64_MAX - boot)
		return;
	message->has_waiting_since_ns = true;
	message->waiting_since_ns = (uint64_t)(boot + g->wait_since);
}

static void fill_threads(const struct goroutine_list_input *input, const struct goroutine *g,
			 Goheapd__Goroutine *message)
{
	const struct machine *locked =
	    g->locked_m
		? machine_table_find(goroutine_table_machines(input->goroutines), g->locked_m)
		: NULL;

	message->has_thread = g->thread != NULL;
	message->thread = g->thread ? g->thread->tid : 0;
	message->has_locked_thread = locked && locked->thread;
	message->locked_thread = message->has_locked_thread ? locked->thread->tid : 0;
}

static struct error *fill_state(const struct goroutine_list_input *input, const struct goroutine *g,
				Goheapd__Goroutine *message)
{
	const char *reason = goroutine_wait_reason(input->goroutines, g->wait_reason);
	struct error *err = message_string(goroutine_status_name(g->status), &message->status);
	bool waits = g->status == GOROUTINE_WAITING || g->status == GOROUTINE_LEAKED;

	if (err || !waits)
		return err;
	fill_wait(g, message);
	if (!reason || !*reason)
		return NULL;
	message->has_wait_reason = true;
	return message_text(reason, &message->wait_reason);
}

static struct error *fill(const struct goroutine_list_input *input, uint32_t index,
			  Goheapd__Goroutine *message)
{
	const struct goroutine *g = goroutine_table_at(input->goroutines, index);
	struct error *err = fill_state(input, g, message);

	message->id = g->id;
	message->system = g->system;
	message->has_creator_id = g->parent_id != 0;
	message->creator_id = g->parent_id;
	message->stack_bytes = g->stack_hi - g->stack_lo;
	fill_threads(input, g, message);
	if (!err)
		err = fill_creator(input, g, message);
	if (err || !goroutine_is_alive(g))
		return err;
	message->has_stack_in_use_bytes = input->scans[index].trust != STACK_SKIPPED;
	message->stack_in_use_bytes = input->scans[index].in_use_bytes;
	return fill_frames(input, g, message);
}

struct error *goroutine_list_fill(const struct goroutine_list_input *input,
				  Goheapd__ScanResult *result)
{
	for (uint32_t i = 0; i < goroutine_table_count(input->goroutines); i++) {
		Goheapd__Goroutine *message;
		struct error *err;

		if (!input->want_dead &&
		    !goroutine_is_alive(goroutine_table_at(input->goroutines, i)))
			continue;
		err = message_reserve((void ***)&result->goroutines, result->n_goroutines);
		if (err)
			return err;
		message = malloc(sizeof(*message));
		if (!message)
			return &error_nomem;
		goheapd__goroutine__init(message);
		result->goroutines[result->n_goroutines++] = message;
		err = fill(input, i, message);
		if (err)
			return error_context(err, "goroutine %u", i);
	}
	return NULL;
}
