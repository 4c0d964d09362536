#include "agent/report/retained.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/analysis/dominators.h"
#include "agent/analysis/label_owner.h"
#include "agent/analysis/root_set.h"
#include "agent/goruntime/addr_map.h"
#include "agent/goruntime/goroutine.h"

enum { GROUP_NONE = UINT32_MAX, NAME_SIZE = 32, FIRST_CAPACITY = 64 };

static const char global_name[] = "(globals)", runtime_name[] = "(runtime)";

struct retained {
	struct dominators *tree;
	struct retained_group *groups;
	uint32_t group_count, group_room;
	uint32_t *goroutine_groups; /* by goroutine; GROUP_NONE: it has none */
	uint32_t goroutine_count;
	char (*names)[NAME_SIZE]; /* of goroutines, by goroutine */
};

/* The making of groups. */
struct grouping {
	const struct retained_input *input;
	struct retained *retained;
	struct addr_map by_name; /* where the name lies: the group's number + 1 */
	uint32_t *root_groups, *owner_groups;
	uint32_t special_group;
};

void retained_free(struct retained *retained)
{
	if (!retained)
		return;
	dominators_free(retained->tree);
	free(retained->groups);
	free(retained->goroutine_groups);
	free(retained->names);
	free(retained);
}

static void grouping_fini(struct grouping *grouping)
{
	addr_map_fini(&grouping->by_name);
	free(grouping->root_groups);
	free(grouping->owner_groups);
}

static struct error *add_group(struct retained *retained, const struct retained_group *group,
			       uint32_t *ret)
{
	if (retained->group_count == retained->group_room) {
		uint32_t room = retained->group_room ? 2 * retained->group_room : FIRST_CAPACITY;
		struct retained_group *grown;

		if (room <= retained->group_room)
			return error_new(ERROR_LIMIT, "more than 2^31 groups of roots");
		grown = reallocarray(retained->groups, room, sizeof(*grown));
		if (!grown)
			return &error_nomem;
		retained->groups = grown;
		retained->group_room = room;
	}
	retained->groups[retained->group_count] = *group;
	*ret = retained->group_count++;
	return NULL;
}

/* Equal names are one, by address, too. */
static struct error *group_of_name(struct grouping *grouping, const struct retained_group *group,
				   uint32_t *ret)
{
	uintptr_t key = (uintptr_t)group->name;
	uintptr_t found = (uintptr_t)addr_map_get(&grouping->by_name, key);
	struct error *err;

	if (found) {
		*ret = (uint32_t)(found - 1);
		return NULL;
	}
	err = add_group(grouping->retained, group, ret);
	return err ? err : addr_map_put(&grouping->by_name, key, (void *)((uintptr_t)*ret + 1));
}

static struct error *group_of_goroutine(struct grouping *grouping, uint32_t goroutine,
					uint32_t *ret)
{
	struct retained *retained = grouping->retained;
	const struct goroutine *g = goroutine_table_at(grouping->input->goroutines, goroutine);
	const struct retained_group group = { .name = retained->names[goroutine],
					      .package = "",
					      .goroutine = goroutine,
					      .kind = VARIABLE_LOCAL };
	struct error *err = NULL;

	if (retained->goroutine_groups[goroutine] == GROUP_NONE) {
		snprintf(retained->names[goroutine], NAME_SIZE, "goroutine %" PRIu64, g->id);
		err = add_group(retained, &group, &retained->goroutine_groups[goroutine]);
	}
	*ret = retained->goroutine_groups[goroutine];
	return err;
}

/* Where nobody has looked for names: what is global, and what is the runtime's. */
static void find_unnamed(enum root_kind kind, struct variable *ret)
{
	bool global = kind == ROOT_DATA || kind == ROOT_BSS;

	*ret = (struct variable){ .name = global ? global_name : runtime_name,
				  .package = "",
				  .kind = global ? VARIABLE_NAMELESS : VARIABLE_RUNTIME };
}

static struct error *group_of_variable(struct grouping *grouping, enum root_kind kind, taddr slot,
				       uint32_t *ret)
{
	const struct variable_table *variables = grouping->input->variables;
	struct variable variable;

	if (variables)
		variable_table_find(variables, kind, ROOT_NO_GOROUTINE, slot, &variable);
	else
		find_unnamed(kind, &variable);
	return group_of_name(grouping,
			     &(struct retained_group){ .name = variable.name,
						       .package = variable.package,
						       .goroutine = ROOT_NO_GOROUTINE,
						       .kind = variable.kind },
			     ret);
}

static bool has_goroutine(const struct grouping *grouping, uint32_t goroutine)
{
	return goroutine < grouping->retained->goroutine_count;
}

static struct error *group_roots(struct grouping *grouping)
{
	const struct root_set *roots = grouping->input->roots;
	struct error *err = NULL;

	for (uint64_t i = 0; !err && i < root_set_count(roots); i++) {
		const struct heap_root *root = root_set_at(roots, i);
		uint32_t *group = &grouping->root_groups[i];

		if (has_goroutine(grouping, root->goroutine))
			err = group_of_goroutine(grouping, root->goroutine, group);
		else
			err = group_of_variable(grouping, (enum root_kind)root->kind, root->slot,
						group);
	}
	return err;
}

/* What is owned by no goroutine are Ms and Ps. */
static struct error *group_owners(struct grouping *grouping)
{
	static const struct retained_group runtime = { .name = runtime_name,
						       .package = "",
						       .goroutine = ROOT_NO_GOROUTINE,
						       .kind = VARIABLE_RUNTIME };
	const struct label_owners *owners = grouping->input->owners;
	struct error *err = NULL;

	for (size_t i = 0; owners && !err && i < owners->count; i++) {
		uint32_t goroutine = owners->items[i].goroutine;
		uint32_t *group = &grouping->owner_groups[i];

		if (has_goroutine(grouping, goroutine))
			err = group_of_goroutine(grouping, goroutine, group);
		else
			err = group_of_name(grouping, &runtime, group);
	}
	return err;
}

static struct error *make_groups(struct grouping *grouping)
{
	const struct label_owners *owners = grouping->input->owners;
	struct error *err;

	grouping->root_groups =
	    calloc(root_set_count(grouping->input->roots) + 1, sizeof(*grouping->root_groups));
	grouping->owner_groups =
	    calloc((owners ? owners->count : 0) + 1, sizeof(*grouping->owner_groups));
	if (!grouping->root_groups || !grouping->owner_groups)
		return &error_nomem;
	err = group_roots(grouping);
	if (!err)
		err = group_owners(grouping);
	if (!err)
		err = group_of_variable(grouping, ROOT_FINALIZER, 0, &grouping->special_group);
	return err;
}

static struct error *find_tree(const struct grouping *grouping)
{
	const struct retained_input *input = grouping->input;
	const struct dominator_input tree = {
		.graph = input->graph,
		.mark = input->mark,
		.roots = input->roots,
		.specials = input->specials,
		.root_groups = grouping->root_groups,
		.group_count = grouping->retained->group_count,
		.special_group = grouping->special_group,
		.owners = input->owners,
		.owner_groups = grouping->owner_groups,
		.thread_count = input->thread_count,
		.memory_limit = input->memory_limit,
	};

	return dominators_find(&tree, &grouping->retained->tree);
}

static struct retained *retained_new(const struct goroutine_table *goroutines)
{
	struct retained *retained scoped(retained_freep) = calloc(1, sizeof(*retained));
	uint32_t count = goroutine_table_count(goroutines);

	if (!retained)
		return NULL;
	retained->goroutine_count = count;
	retained->goroutine_groups = calloc(count + (size_t)1, sizeof(*retained->goroutine_groups));
	retained->names = calloc(count + (size_t)1, sizeof(*retained->names));
	if (!retained->goroutine_groups || !retained->names)
		return NULL;
	for (uint32_t i = 0; i < count; i++)
		retained->goroutine_groups[i] = GROUP_NONE;
	return take(retained);
}

struct error *retained_find(const struct retained_input *input, struct retained **ret)
{
	struct retained *retained scoped(retained_freep) = retained_new(input->goroutines);
	struct grouping grouping scoped(grouping_fini) = { .input = input, .retained = retained };
	struct error *err;

	if (!retained)
		return &error_nomem;
	err = make_groups(&grouping);
	if (!err)
		err = find_tree(&grouping);
	if (err)
		return error_context(err, "retained sizes");
	*ret = take(retained);
	return NULL;
}

const struct dominators *retained_dominators(const struct retained *retained)
{
	return retained->tree;
}

struct retained_group retained_group_at(const struct retained *retained, uint32_t group)
{
	return retained->groups[group];
}

uint32_t retained_goroutine_node(const struct retained *retained, uint32_t goroutine)
{
	uint32_t group = retained->goroutine_groups[goroutine];

	return group == GROUP_NONE ? (uint32_t)DOMINATOR_NONE
				   : dominators_group_node(retained->tree, group);
}

uint64_t retained_of_goroutine(const struct retained *retained, uint32_t goroutine)
{
	uint32_t node = retained_goroutine_node(retained, goroutine);

	return node == DOMINATOR_NONE ? 0 : dominators_retained(retained->tree, node);
}
