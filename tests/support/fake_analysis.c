#include "tests/support/fake_analysis.h"

#include <assert.h>
#include <stdlib.h>

enum { OBJECTS_MAX = 1 << 16, STEPS_MAX = 1 << 12, ROOTS_MAX = 16, NAMES_MAX = 16 };

/* ---- the walk ---- */

struct reference_walk {
	struct {
		type_id type;
		bool is_array, is_live;
	} types[OBJECTS_MAX];
	uint32_t objects[STEPS_MAX];
	struct reference references[STEPS_MAX];
	struct {
		const char *const *frames;
		uint32_t count;
	} steps[STEPS_MAX];
	uint32_t count;
	const char *roots[ROOTS_MAX];
	uint32_t root_count;
};

struct reference_walk *fake_walk_new(void)
{
	struct reference_walk *walk = calloc(1, sizeof(*walk));

	assert(walk);
	return walk;
}

void reference_walk_free(struct reference_walk *walk)
{
	free(walk);
}

void fake_walk_set_type(struct reference_walk *walk, uint32_t object, type_id type, bool is_array)
{
	assert(object < OBJECTS_MAX);
	walk->types[object].type = type;
	walk->types[object].is_array = is_array;
}

void fake_walk_set_live(struct reference_walk *walk, uint32_t object)
{
	assert(object < OBJECTS_MAX);
	walk->types[object].is_live = true;
}

uint32_t fake_walk_add(struct reference_walk *walk, uint32_t object, uint32_t parent, uint32_t root,
		       const char *const *frames, uint32_t frame_count)
{
	uint32_t place = walk->count++;

	assert(place < STEPS_MAX);
	walk->objects[place] = object;
	walk->references[place] =
	    (struct reference){ .parent = parent, .root = root, .step = place };
	walk->steps[place].frames = frames;
	walk->steps[place].count = frame_count;
	return place;
}

uint32_t fake_walk_add_root(struct reference_walk *walk, const char *name)
{
	assert(walk->root_count < ROOTS_MAX);
	walk->roots[walk->root_count] = name;
	return walk->root_count++;
}

type_id reference_walk_type(const struct reference_walk *walk, uint32_t object, bool *ret_is_array)
{
	*ret_is_array = walk->types[object].is_array;
	return walk->types[object].type;
}

static bool is_same(const struct reference_walk *walk, uint32_t a, uint32_t b)
{
	return walk->types[a].is_live == walk->types[b].is_live &&
	       walk->types[a].type == walk->types[b].type &&
	       walk->types[a].is_array == walk->types[b].is_array;
}

uint32_t reference_walk_run_of(const struct reference_walk *walk, uint32_t object, uint32_t end,
			       bool *ret_is_live, type_id *ret_type, bool *ret_is_array)
{
	uint32_t next = object + 1;

	while (next < end && is_same(walk, object, next))
		next++;
	*ret_is_live = walk->types[object].is_live;
	*ret_type = reference_walk_type(walk, object, ret_is_array);
	return next - object;
}

uint32_t reference_walk_count(const struct reference_walk *walk)
{
	return walk->count;
}

uint32_t reference_walk_object(const struct reference_walk *walk, uint32_t place)
{
	return walk->objects[place];
}

void reference_walk_read(const struct reference_walk *walk, uint32_t first, uint32_t count,
			 struct reference *ret)
{
	for (uint32_t i = 0; i < count; i++)
		ret[i] = walk->references[first + i];
}

struct reference_root reference_walk_root(const struct reference_walk *walk, uint32_t number)
{
	assert(number < walk->root_count);
	return (struct reference_root){ .name = walk->roots[number],
					.goroutine = ROOT_NO_GOROUTINE };
}

uint32_t reference_walk_step_frames(const struct reference_walk *walk, uint32_t step,
				    const char *const **ret)
{
	*ret = walk->steps[step].frames;
	return walk->steps[step].count;
}

/* ---- dominators ---- */

struct dominators {
	uint32_t object_end, group_count;
	uint32_t parents[OBJECTS_MAX];
	uint64_t retained[OBJECTS_MAX];
};

struct retained {
	struct dominators tree;
	struct retained_group groups[NAMES_MAX];
};

struct retained *fake_retained_new(uint32_t object_end)
{
	struct retained *retained = calloc(1, sizeof(*retained));

	assert(retained && object_end + NAMES_MAX < OBJECTS_MAX);
	retained->tree.object_end = object_end;
	for (uint32_t i = 0; i < OBJECTS_MAX; i++)
		retained->tree.parents[i] = DOMINATOR_NONE;
	return retained;
}

void fake_retained_add_group(struct retained *retained, const struct retained_group *group)
{
	assert(retained->tree.group_count < NAMES_MAX);
	retained->groups[retained->tree.group_count++] = *group;
}

void fake_retained_set(struct retained *retained, uint32_t node, uint32_t parent, uint64_t bytes)
{
	assert(node < OBJECTS_MAX);
	retained->tree.parents[node] = parent;
	retained->tree.retained[node] = bytes;
}

void retained_free(struct retained *retained)
{
	free(retained);
}

const struct dominators *retained_dominators(const struct retained *retained)
{
	return &retained->tree;
}

struct retained_group retained_group_at(const struct retained *retained, uint32_t group)
{
	assert(group < retained->tree.group_count);
	return retained->groups[group];
}

uint32_t dominators_group_node(const struct dominators *dominators, uint32_t group)
{
	return dominators->object_end + group;
}

uint32_t dominators_group_count(const struct dominators *dominators)
{
	return dominators->group_count;
}

uint32_t dominators_node_group(const struct dominators *dominators, uint32_t node)
{
	return node < dominators->object_end ? UINT32_MAX : node - dominators->object_end;
}

uint64_t dominators_retained(const struct dominators *dominators, uint32_t node)
{
	return dominators->retained[node];
}

static int by_size(const void *a, const void *b)
{
	const struct dominator_child *one = a, *other = b;

	if (one->retained != other->retained)
		return one->retained < other->retained ? 1 : -1;
	return (one->node > other->node) - (one->node < other->node);
}

uint32_t dominators_children(const struct dominators *dominators, uint32_t node,
			     const struct dominator_child *after, struct dominator_child *children,
			     uint32_t limit, bool *ret_more)
{
	struct dominator_child *all = calloc(OBJECTS_MAX, sizeof(*all));
	uint32_t count = 0;

	assert(all);
	for (uint32_t i = 0; i < dominators->object_end + dominators->group_count; i++) {
		struct dominator_child child = { .node = i, .retained = dominators->retained[i] };

		if (dominators->parents[i] == node && (!after || by_size(after, &child) < 0))
			all[count++] = child;
	}
	qsort(all, count, sizeof(*all), by_size);
	*ret_more = count > limit;
	count = count > limit ? limit : count;
	for (uint32_t i = 0; i < count; i++)
		children[i] = all[i];
	free(all);
	return count;
}

struct error *dominators_count_children(const struct dominators *dominators,
					const struct dominator_child *children, uint32_t count,
					uint64_t *counts)
{
	for (uint32_t k = 0; k < count; k++) {
		counts[k] = 0;
		for (uint32_t i = 0; i < OBJECTS_MAX; i++)
			counts[k] += dominators->parents[i] == children[k].node;
	}
	return NULL;
}

/* Every object counts, whoever dominates it: what is summed up is for the tree's own tests. */
struct error *dominators_retained_by_class(const struct dominators *dominators,
					   const struct dominator_classes *classes,
					   uint64_t *retained)
{
	for (uint32_t i = 1; i < dominators->object_end; i++) {
		uint32_t class = classes->class_of(classes->arg, i);

		if (class != DOMINATOR_NO_CLASS && dominators->parents[i] != DOMINATOR_NONE)
			retained[class] += dominators->retained[i];
	}
	return NULL;
}
