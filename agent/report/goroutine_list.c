#include "agent/report/goroutine_list.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/goruntime/goroutine.h"
#include "agent/goruntime/label.h"
#include "agent/goruntime/machine.h"
#include "agent/goruntime/stack.h"
#include "agent/report/frame_list.h"
#include "agent/report/label_pairs.h"
#include "agent/report/message.h"
#include "agent/report/retained.h"

struct goroutine_list {
	struct goroutine_list_input input;
	struct frame_list frames;
	/* By goroutine: */
	struct goroutine_frames *stacks;
	const struct line_run **creators; /* NULL: not known */
	uint32_t count;                   /* of goroutines */
};

static struct error *fill_frame(Goheapd__Frame *frame, const struct pclntab_line *line)
{
	struct error *err = message_function(line->function, &frame->function);

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

static struct error *add_frame(const struct pclntab_line *line, Goheapd__ScanResult *result)
{
	Goheapd__Frame *frame;
	struct error *err = message_reserve((void ***)&result->frames, result->n_frames);

	if (err)
		return err;
	frame = malloc(sizeof(*frame));
	if (!frame)
		return &error_nomem;
	goheapd__frame__init(frame);
	result->frames[result->n_frames++] = frame;
	return fill_frame(frame, line);
}

static struct error *add_trace(const uint32_t *frames, uint32_t count, Goheapd__ScanResult *result)
{
	Goheapd__StackTrace *trace;
	struct error *err = message_reserve((void ***)&result->traces, result->n_traces);

	if (err)
		return err;
	trace = malloc(sizeof(*trace));
	if (!trace)
		return &error_nomem;
	goheapd__stack_trace__init(trace);
	result->traces[result->n_traces++] = trace;
	if (!count)
		return NULL;
	trace->frames = malloc(count * sizeof(*frames));
	if (!trace->frames)
		return &error_nomem;
	memcpy(trace->frames, frames, count * sizeof(*frames));
	trace->n_frames = count;
	return NULL;
}

/* The lists that goroutines name places of. */
static struct error *fill_shared(const struct frame_list *frames, Goheapd__ScanResult *result)
{
	struct error *err = NULL;

	for (uint32_t i = 0; !err && i < frames->count; i++)
		err = add_frame(&frames->lines[i], result);
	for (uint32_t i = 0; !err && i < frames->traces.count; i++) {
		uint32_t count;
		const uint32_t *items = sequence_set_at(&frames->traces, i, &count);

		err = add_trace(items, count, result);
	}
	return err;
}

static struct error *set_error(Goheapd__Goroutine *message, const char *text)
{
	message->has_error = true;
	return message_text(text, &message->error);
}

static struct error *fill_trace(const struct goroutine_frames *stack, Goheapd__Goroutine *message)
{
	message->has_trace = true;
	message->trace = stack->trace;
	if (stack->error)
		return set_error(message, stack->error);
	if (stack->cut)
		return set_error(message, "the outer frames of this deep stack are left out");
	return NULL;
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

static struct error *fill_labels(const struct label_set *set, Goheapd__Goroutine *message)
{
	message->has_has_no_labels = set->status == LABEL_NONE;
	message->has_no_labels = message->has_has_no_labels;
	if (set->error) {
		message->has_label_error = true;
		return message_text(set->error, &message->label_error);
	}
	return label_pairs_fill(set, &message->labels, &message->n_labels);
}

static struct error *fill(const struct goroutine_list *list, uint32_t index,
			  Goheapd__Goroutine *message)
{
	const struct goroutine_list_input *input = &list->input;
	const struct goroutine *g = goroutine_table_at(input->goroutines, index);
	struct error *err = fill_state(input, g, message);

	message->id = g->id;
	message->system = g->system;
	message->has_creator_id = g->parent_id != 0;
	message->creator_id = g->parent_id;
	message->stack_bytes = goroutine_stack_bytes(g);
	fill_threads(input, g, message);
	message->has_created_by = list->creators[index] != NULL;
	message->created_by = list->creators[index] ? list->creators[index]->first : 0;
	if (err || !goroutine_is_alive(g))
		return err;
	err = fill_labels(label_table_of(input->labels, index), message);
	if (err)
		return err;
	message->has_stack_in_use_bytes = input->scans[index].trust != STACK_SKIPPED;
	message->stack_in_use_bytes = input->scans[index].in_use_bytes;
	return fill_trace(&list->stacks[index], message);
}

static struct error *add_goroutine(const struct goroutine_list *list, uint32_t index,
				   Goheapd__ScanResult *result)
{
	Goheapd__Goroutine *message;
	struct error *err = message_reserve((void ***)&result->goroutines, result->n_goroutines);

	if (err)
		return err;
	message = malloc(sizeof(*message));
	if (!message)
		return &error_nomem;
	goheapd__goroutine__init(message);
	result->goroutines[result->n_goroutines++] = message;
	return fill(list, index, message);
}

static bool is_alive(const struct goroutine_list *list, uint32_t index)
{
	return goroutine_is_alive(goroutine_table_at(list->input.goroutines, index));
}

struct error *goroutine_list_fill(const struct goroutine_list *list, Goheapd__ScanResult *result)
{
	struct error *err = fill_shared(&list->frames, result);

	if (err)
		return error_context(err, "frames");
	for (uint32_t i = 0; i < list->count; i++) {
		if (!list->input.want_dead && !is_alive(list, i))
			continue;
		err = add_goroutine(list, i, result);
		if (err)
			return error_context(err, "goroutine %u", i);
	}
	return NULL;
}

void goroutine_list_fill_retained(const struct goroutine_list *list,
				  const struct retained *retained, Goheapd__ScanResult *result)
{
	size_t place = 0;

	for (uint32_t i = 0; i < list->count && place < result->n_goroutines; i++) {
		bool alive = is_alive(list, i);

		if (!alive && !list->input.want_dead)
			continue;
		result->goroutines[place]->has_retained_bytes = alive;
		if (alive)
			result->goroutines[place]->retained_bytes =
			    retained_of_goroutine(retained, i);
		place++;
	}
}

void goroutine_list_free(struct goroutine_list *list)
{
	if (!list)
		return;
	for (uint32_t i = 0; list->stacks && i < list->count; i++)
		goroutine_frames_fini(&list->stacks[i]);
	free(list->stacks);
	free(list->creators);
	frame_list_fini(&list->frames);
	free(list);
}

static struct error *take_frames(struct goroutine_list *list, uint32_t index)
{
	const struct goroutine_list_input *input = &list->input;
	const struct goroutine *g = goroutine_table_at(input->goroutines, index);
	struct error *err =
	    frame_list_creator(&list->frames, input->modules, g, &list->creators[index]);

	if (err || !goroutine_is_alive(g))
		return err;
	return frame_list_take(&list->frames, input->walker, g, &list->stacks[index]);
}

struct error *goroutine_list_read(const struct goroutine_list_input *input,
				  struct goroutine_list **ret)
{
	struct goroutine_list *list scoped(goroutine_list_freep) = calloc(1, sizeof(*list));
	struct error *err = NULL;

	if (!list)
		return &error_nomem;
	list->input = *input;
	list->count = goroutine_table_count(input->goroutines);
	list->stacks = calloc(list->count + (size_t)1, sizeof(*list->stacks));
	list->creators = calloc(list->count + (size_t)1, sizeof(const struct line_run *));
	if (!list->stacks || !list->creators)
		return &error_nomem;
	for (uint32_t i = 0; !err && i < list->count; i++)
		err = take_frames(list, i);
	if (err)
		return error_context(err, "frames of goroutines");
	*ret = take(list);
	return NULL;
}
