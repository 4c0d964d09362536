/*
 * The table itself: entries in segments that never move, and the ways to find one. Many ask for
 * what is known already, so that a lock for readers comes first.
 */
#include "agent/goruntime/go_type.h"

#include <stdlib.h>
#include <string.h>

#include "agent/binary/type_index.h"
#include "agent/goruntime/closure_site.h"
#include "agent/goruntime/go_type_table.h"
#include "agent/goruntime/itab.h"
#include "agent/goruntime/layout.h"
#include "agent/goruntime/module.h"

enum { REMEMBERED_MAX = 1 << 22 }; /* addresses of one kind, what turned out to be none included */

static const struct go_type unknown_type = { .name = "?" };

static void init_entry(struct type_entry *entry)
{
	*entry = (struct type_entry){ .type = unknown_type, .state = TYPE_DONE, .is_plain = true };
}

struct type_entry *go_types_entry(const struct go_types *types, type_id id)
{
	return &types->segments[id / GO_TYPES_SEGMENT][id % GO_TYPES_SEGMENT];
}

struct error *go_types_add(struct go_types *types, type_id *ret)
{
	uint32_t segment = types->count / GO_TYPES_SEGMENT;

	*ret = TYPE_UNKNOWN;
	if (segment == GO_TYPES_SEGMENTS)
		return NULL;
	if (!types->segments[segment]) {
		types->segments[segment] =
		    calloc(GO_TYPES_SEGMENT, sizeof(*types->segments[segment]));
		if (!types->segments[segment])
			return &error_nomem;
	}
	init_entry(go_types_entry(types, types->count));
	*ret = types->count++;
	return NULL;
}

static struct error *init_tables(struct go_types *types)
{
	type_id unknown;

	if (types->index)
		types->number_count = type_index_type_count(types->index);
	types->by_number = calloc((size_t)types->number_count + 1, sizeof(*types->by_number));
	if (!types->by_number)
		return &error_nomem;
	return go_types_add(types, &unknown);
}

struct error *go_types_new(struct memory *memory, const struct layout *layout,
			   const struct module_table *modules, const struct type_index *index,
			   uint64_t bias, struct go_types **ret)
{
	struct go_types *types scoped(go_types_freep) = calloc(1, sizeof(*types));
	struct error *err;

	if (!types)
		return &error_nomem;
	pthread_rwlock_init(&types->lock, NULL);
	type_memory_init(&types->memory, memory);
	text_pool_init(&types->pool, GO_TYPES_POOL_MAX);
	types->layout = layout;
	types->modules = modules;
	types->index = index;
	types->bias = bias;
	types->source =
	    (struct rtype_source){ &types->memory, layout, modules, &types->reflect_offsets };
	err = init_tables(types);
	if (err)
		return err;
	*ret = take(types);
	return NULL;
}

void go_types_free(struct go_types *types)
{
	if (!types)
		return;
	for (uint32_t i = 0; i < GO_TYPES_SEGMENTS; i++)
		free(types->segments[i]);
	for (uint32_t i = 0; i < types->detail_count; i++) {
		free(types->details[i].string);
		free(types->details[i].parts);
	}
	free(types->details);
	addr_map_fini(&types->by_descriptor);
	addr_map_fini(&types->by_itab);
	addr_map_fini(&types->by_closure);
	addr_map_fini(&types->pointers_to);
	addr_map_fini(&types->refined);
	free(types->by_number);
	reflect_offsets_fini(&types->reflect_offsets);
	type_memory_fini(&types->memory);
	text_pool_fini(&types->pool);
	closure_sites_free(types->sites);
	pthread_rwlock_destroy(&types->lock);
	free(types);
}

static struct error *keep_memory(struct go_types *types)
{
	struct error *err =
	    reflect_offsets_keep(&types->reflect_offsets, &types->memory, types->layout);

	if (!err)
		err = itab_keep(types);
	/* Where DWARF tells what closures capture, reading the code is not worth a longer pause. */
	if (!err && (!types->index || !type_index_capture_count(types->index)))
		err = go_types_read_sites(types);
	for (uint32_t i = 0; i < module_table_count(types->modules) && !err; i++) {
		const struct module *module = module_table_at(types->modules, i);

		err = type_memory_keep(&types->memory, module->types, module->etypes);
	}
	return err;
}

struct error *go_types_let_go(struct go_types *types, struct memory *instead)
{
	struct error *err;

	pthread_rwlock_wrlock(&types->lock);
	err = keep_memory(types);
	type_memory_let_go(&types->memory, err ? NULL : instead);
	pthread_rwlock_unlock(&types->lock);
	return err ? error_context(err, "types") : NULL;
}

const struct go_type *go_type_at(const struct go_types *types, type_id id)
{
	return &go_types_entry(types, id)->type;
}

bool go_types_known(const struct addr_map *map, taddr addr, type_id *ret)
{
	uintptr_t place = (uintptr_t)addr_map_get(map, addr);

	if (place)
		*ret = (type_id)(place - 1);
	return place;
}

struct error *go_types_remember(struct addr_map *map, taddr addr, type_id id)
{
	if (id == TYPE_UNKNOWN && map->count >= REMEMBERED_MAX)
		return NULL;
	return addr_map_put(map, addr, (void *)((uintptr_t)id + 1));
}

bool go_types_is_final(const struct error *err)
{
	return error_code(err) == ERROR_NOMEM || error_code(err) == ERROR_GONE;
}

/* What each public function does for what is not known yet, with the lock held. */
typedef struct error *find_type(struct go_types *types, uint64_t key, type_id *ret);

static struct error *find_locked(struct go_types *types, find_type *find, uint64_t key,
				 type_id *ret)
{
	type_id id = TYPE_UNKNOWN;
	struct error *err;

	pthread_rwlock_wrlock(&types->lock);
	err = find(types, key, &id);
	if (!err)
		err = go_types_work_off(types);
	pthread_rwlock_unlock(&types->lock);
	if (!err)
		*ret = id;
	return err;
}

/* By an address in one of the maps, else by the slow way. */
static struct error *find_addr(struct go_types *types, const struct addr_map *map, find_type *find,
			       taddr addr, type_id *ret)
{
	bool known;

	*ret = TYPE_UNKNOWN;
	if (!addr)
		return NULL;
	pthread_rwlock_rdlock(&types->lock);
	known = go_types_known(map, addr, ret);
	pthread_rwlock_unlock(&types->lock);
	return known ? NULL : find_locked(types, find, addr, ret);
}

struct error *go_types_by_descriptor(struct go_types *types, taddr descriptor, type_id *ret)
{
	return find_addr(types, &types->by_descriptor, go_types_meet_descriptor, descriptor, ret);
}

struct error *go_types_by_itab(struct go_types *types, taddr itab, type_id *ret)
{
	return find_addr(types, &types->by_itab, itab_meet, itab, ret);
}

struct error *go_types_by_closure(struct go_types *types, taddr code, type_id *ret)
{
	return find_addr(types, &types->by_closure, go_types_meet_closure, code, ret);
}

struct error *go_types_refined(struct go_types *types, type_id type, uint32_t field,
			       type_id of_field, type_id *ret)
{
	return find_addr(types, &types->refined, go_types_meet_refined,
			 go_types_refined_key(type, field, of_field), ret);
}

struct error *go_types_pointer_to(struct go_types *types, type_id elem, type_id *ret)
{
	/* Even of what is not known: a pointer is a pointer. */
	return find_addr(types, &types->pointers_to, go_types_meet_pointer, (taddr)elem + 1, ret);
}

static struct error *meet_number(struct go_types *types, uint64_t number, type_id *ret)
{
	return go_types_meet_number(types, (uint32_t)number, ret);
}

struct error *go_types_by_index(struct go_types *types, uint32_t number, type_id *ret)
{
	uint32_t place;

	*ret = TYPE_UNKNOWN;
	if (!number || number >= types->number_count)
		return NULL;
	pthread_rwlock_rdlock(&types->lock);
	place = types->by_number[number];
	pthread_rwlock_unlock(&types->lock);
	if (!place)
		return find_locked(types, meet_number, number, ret);
	*ret = place - 1;
	return NULL;
}

struct error *go_types_first_param(struct go_types *types, taddr code, type_id *ret)
{
	struct error *err = NULL;

	*ret = TYPE_UNKNOWN;
	if (types->index)
		err = go_types_by_index(
		    types, type_index_first_param(types->index, code - types->bias), ret);
	if (!err && strstr(go_type_at(types, *ret)->name, "go.shape."))
		*ret = TYPE_UNKNOWN;
	return err;
}

struct error *go_types_by_name(struct go_types *types, const char *name, type_id *ret)
{
	struct error *err;
	type_id id = TYPE_UNKNOWN;

	*ret = TYPE_UNKNOWN;
	pthread_rwlock_wrlock(&types->lock);
	err = go_types_meet_name(types, name, &id);
	if (!err)
		err = go_types_work_off(types);
	pthread_rwlock_unlock(&types->lock);
	if (!err)
		*ret = id;
	return err;
}
