#include "tests/support/fake_analysis.h"

#include <assert.h>
#include <stdlib.h>

enum {
	TYPES_MAX = 256,
	OBJECTS_MAX = 1 << 16,
	STEPS_MAX = 1 << 12,
	ROOTS_MAX = 16,
	NAMES_MAX = 16
};

/* ---- types ---- */

struct go_types {
	struct go_type types[TYPES_MAX];
	uint32_t count;
	struct {
		taddr itab;
		type_id type;
	} itabs[NAMES_MAX];
	uint32_t itab_count;
};

struct go_types *fake_types_new(void)
{
	struct go_types *types = calloc(1, sizeof(*types));

	assert(types);
	types->types[0].name = "?";
	types->count = 1;
	return types;
}

type_id fake_types_add(struct go_types *types, const struct go_type *type)
{
	assert(types->count < TYPES_MAX);
	types->types[types->count] = *type;
	return types->count++;
}

void fake_types_add_itab(struct go_types *types, taddr itab, type_id type)
{
	assert(types->itab_count < NAMES_MAX);
	types->itabs[types->itab_count].itab = itab;
	types->itabs[types->itab_count++].type = type;
}

void go_types_free(struct go_types *types)
{
	free(types);
}

const struct go_type *go_type_at(const struct go_types *types, type_id id)
{
	assert(id < types->count);
	return &types->types[id];
}

struct error *go_types_by_descriptor(struct go_types *types, taddr descriptor, type_id *ret)
{
	*ret = TYPE_UNKNOWN;
	for (uint32_t i = 1; i < types->count; i++)
		if (descriptor && types->types[i].descriptor == descriptor)
			*ret = i;
	return NULL;
}

struct error *go_types_by_itab(struct go_types *types, taddr itab, type_id *ret)
{
	*ret = TYPE_UNKNOWN;
	for (uint32_t i = 0; i < types->itab_count; i++)
		if (types->itabs[i].itab == itab)
			*ret = types->itabs[i].type;
	return NULL;
}

/* ---- the walk ---- */

struct reference_walk {
	struct {
		type_id type;
		bool is_array;
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

uint32_t reference_walk_count(const struct reference_walk *walk)
{
	return walk->count;
}

uint32_t reference_walk_object(const struct reference_walk *walk, uint32_t place)
{
	return walk->objects[place];
}

struct reference reference_walk_at(const struct reference_walk *walk, uint32_t place)
{
	return walk->references[place];
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

/* ---- variables ---- */

struct variable_table {
	struct variable variables[NAMES_MAX];
	uint32_t count;
};

struct variable_table *fake_variables_new(void)
{
	struct variable_table *table = calloc(1, sizeof(*table));

	assert(table);
	return table;
}

void fake_variables_add(struct variable_table *table, const struct variable *variable)
{
	assert(table->count < NAMES_MAX);
	table->variables[table->count++] = *variable;
}

void variable_table_free(struct variable_table *table)
{
	free(table);
}

void variable_table_find(const struct variable_table *table, enum root_kind kind,
			 uint32_t goroutine, taddr slot, struct variable *ret)
{
	(void)kind, (void)goroutine;
	*ret = (struct variable){ .name = "(nameless data)",
				  .package = "",
				  .kind = VARIABLE_NAMELESS };
	for (uint32_t i = 0; i < table->count; i++)
		if (slot - table->variables[i].addr < table->variables[i].size)
			*ret = table->variables[i];
}

/* ---- dominators ---- */

struct dominators {
	uint32_t object_end;
	uint32_t parents[OBJECTS_MAX];
	uint64_t retained[OBJECTS_MAX];
};

struct dominators *fake_dominators_new(uint32_t object_end)
{
	struct dominators *dominators = calloc(1, sizeof(*dominators));

	assert(dominators && object_end < OBJECTS_MAX);
	dominators->object_end = object_end;
	for (uint32_t i = 0; i < OBJECTS_MAX; i++)
		dominators->parents[i] = DOMINATOR_TOP;
	return dominators;
}

void dominators_free(struct dominators *dominators)
{
	free(dominators);
}

void fake_dominators_set(struct dominators *dominators, uint32_t node, uint32_t parent,
			 uint64_t retained)
{
	assert(node < OBJECTS_MAX);
	dominators->parents[node] = parent;
	dominators->retained[node] = retained;
}

uint32_t dominators_group_node(const struct dominators *dominators, uint32_t group)
{
	return dominators->object_end + group;
}

uint32_t dominators_parent(const struct dominators *dominators, uint32_t node)
{
	return dominators->parents[node];
}

uint64_t dominators_retained(const struct dominators *dominators, uint32_t node)
{
	return dominators->retained[node];
}
