#include "agent/report/object_path.h"

#include <stdlib.h>

#include "agent/analysis/graph.h"
#include "agent/analysis/mark.h"
#include "agent/analysis/reference_walk.h"
#include "agent/goruntime/object_header.h"
#include "agent/goruntime/span.h"
#include "agent/report/analysed.h"
#include "agent/report/message.h"

static struct error *add_frame(Goheapd__Object *message, const char *frame, Goheapd__PathStep **ret)
{
	Goheapd__PathStep *step;
	struct error *err = message_reserve((void ***)&message->path, message->n_path);

	if (err)
		return err;
	step = malloc(sizeof(*step));
	if (!step)
		return &error_nomem;
	goheapd__path_step__init(step);
	err = message_text(frame, &step->frame);
	if (err) {
		free(step);
		return err;
	}
	message->path[message->n_path++] = step;
	*ret = step;
	return NULL;
}

static taddr address_of(const struct analysed *a, uint32_t object)
{
	const struct span *span = span_table_span_of(graph_spans(a->graph), object);

	return span_object_addr(span, object) + object_header_bytes(a->layout, span);
}

/* Is an object reached without a frame a block of what leads to it, such as a map's? */
static bool is_part(const struct analysed *a, uint32_t place)
{
	bool is_array;

	return reference_walk_type(a->walk, reference_walk_object(a->walk, place), &is_array) !=
	       TYPE_UNKNOWN;
}

/* A step's last frame is the one that leads to the object. */
static struct error *add_step(const struct analysed *a, uint32_t place, Goheapd__Object *message)
{
	struct reference reference = reference_walk_at(a->walk, place);
	Goheapd__PathStep *added = NULL;
	const char *const *frames;
	uint32_t count = reference_walk_step_frames(a->walk, reference.step, &frames);
	struct error *err = NULL;

	if (reference.parent == REFERENCE_ROOT)
		err = add_frame(message, reference_walk_root(a->walk, reference.root).name, &added);
	if (count > OBJECT_PATH_STEP_FRAMES) {
		message->path_cut = true;
		frames += count - OBJECT_PATH_STEP_FRAMES;
		count = OBJECT_PATH_STEP_FRAMES;
	}
	for (uint32_t i = 0; !err && i < count; i++)
		err = add_frame(message, frames[i], &added);
	if (!err && !count && is_part(a, place))
		added = message->n_path ? message->path[message->n_path - 1] : NULL;
	if (!err && !added)
		err = add_frame(message, "$sub_objects$", &added);
	if (err)
		return err;
	added->has_address = true;
	added->address = address_of(a, reference_walk_object(a->walk, place));
	return NULL;
}

static bool find_place(const struct analysed *a, uint32_t object, uint32_t *ret)
{
	uint32_t count = reference_walk_count(a->walk);

	for (uint32_t i = 0; i < count; i++) {
		if (reference_walk_object(a->walk, i) == object) {
			*ret = i;
			return true;
		}
	}
	return false;
}

/* Parents lie before their children, so that the way to a root ends. */
static uint32_t parent_of(const struct analysed *a, uint32_t place)
{
	uint32_t parent = reference_walk_at(a->walk, place).parent;

	return parent < place ? parent : REFERENCE_ROOT;
}

static uint32_t length_of(const struct analysed *a, uint32_t place)
{
	uint32_t length = 0;

	for (; place != REFERENCE_ROOT; place = parent_of(a, place))
		length++;
	return length;
}

/* Both ends of the way, the root's first; from_root counts the steps before one. */
static bool is_told(uint32_t from_root, uint32_t length)
{
	return from_root < OBJECT_PATH_STEPS || length - from_root <= OBJECT_PATH_STEPS;
}

static uint32_t choose_steps(const struct analysed *a, uint32_t place, uint32_t length,
			     uint32_t *steps)
{
	uint32_t count = 0;

	for (uint32_t i = length; i-- > 0; place = parent_of(a, place))
		if (is_told(i, length))
			steps[count++] = place;
	return count;
}

struct error *object_path_fill(const struct analysed *analysed, uint32_t object,
			       Goheapd__Object *message)
{
	uint32_t steps[2 * OBJECT_PATH_STEPS], place, length, count;
	struct error *err = NULL;

	message->has_path_cut = true;
	if (!mark_is_live(analysed->mark, object) || !find_place(analysed, object, &place))
		return NULL;
	length = length_of(analysed, place);
	count = choose_steps(analysed, place, length, steps);
	message->path_cut = count < length;
	while (!err && count > 0)
		err = add_step(analysed, steps[--count], message);
	return err;
}
