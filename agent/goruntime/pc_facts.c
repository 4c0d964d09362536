#include "agent/goruntime/pc_facts.h"

#include <inttypes.h>
#include <stdlib.h>

#include "agent/goruntime/addr_map.h"
#include "agent/goruntime/function_role.h"
#include "agent/goruntime/layout.h"
#include "agent/goruntime/module.h"

struct pc_cache {
	struct memory *memory;
	const struct layout *layout;
	const struct module_table *modules;
	struct addr_map pcs;       /* struct pc_facts */
	struct addr_map functions; /* struct function_facts, by entry */
	bool reflect_objects_read;
	struct stack_object_list reflect_objects;
};

static void pc_facts_free(struct pc_facts *facts)
{
	if (!facts)
		return;
	free(facts->locals.bits);
	free(facts->args.bits);
	free(facts);
}
DEFINE_FREEP(pc_facts, pc_facts_free)

static void function_facts_free(struct function_facts *function)
{
	if (!function)
		return;
	stack_object_list_fini(&function->objects);
	free(function);
}
DEFINE_FREEP(function_facts, function_facts_free)

struct error *pc_cache_new(struct memory *memory, const struct layout *layout,
			   const struct module_table *modules, struct pc_cache **ret)
{
	struct pc_cache *cache = calloc(1, sizeof(*cache));

	if (!cache)
		return &error_nomem;
	cache->memory = memory;
	cache->layout = layout;
	cache->modules = modules;
	*ret = cache;
	return NULL;
}

void pc_cache_free(struct pc_cache *cache)
{
	if (!cache)
		return;
	for (size_t i = 0; i < cache->pcs.capacity; i++)
		pc_facts_free(cache->pcs.entries[i].value);
	for (size_t i = 0; i < cache->functions.capacity; i++)
		function_facts_free(cache->functions.entries[i].value);
	addr_map_fini(&cache->pcs);
	addr_map_fini(&cache->functions);
	stack_object_list_fini(&cache->reflect_objects);
	free(cache);
}

/* The function of pc, or NULL. */
static struct error *find_function(struct pc_cache *cache, taddr pc, struct function_facts **ret)
{
	const struct module *module = module_table_find_text(cache->modules, pc);
	struct function_facts *facts scoped(function_facts_freep) = NULL;
	struct pclntab_func func;
	struct error *err;
	bool found;

	*ret = NULL;
	if (!module)
		return NULL;
	err = pclntab_find(module->pclntab, pc, &found, &func);
	if (err || !found)
		return err;
	*ret = addr_map_get(&cache->functions, func.entry);
	if (*ret)
		return NULL;

	facts = calloc(1, sizeof(*facts));
	if (!facts)
		return &error_nomem;
	*facts = (struct function_facts){ .func = func,
					  .module = module,
					  .roles = function_roles(func.name) };
	err = addr_map_put(&cache->functions, func.entry, facts);
	if (err)
		return err;
	*ret = take(facts);
	return NULL;
}

static struct error *read_facts(struct pc_cache *cache, taddr pc, struct pc_facts **ret)
{
	struct pc_facts *facts scoped(pc_facts_freep) = NULL;
	struct function_facts *function;
	struct error *err = find_function(cache, pc, &function);

	if (err || !function)
		return err;
	if (cache->pcs.count == PC_FACTS_MAX)
		return error_new(ERROR_LIMIT, "stacks hold more than %d different pcs",
				 PC_FACTS_MAX);
	facts = calloc(1, sizeof(*facts));
	if (!facts)
		return &error_nomem;
	facts->function = function;
	facts->frame_size = -1;
	if (function->func.pcsp)
		err = pclntab_frame_size(function->module->pclntab, &function->func, pc,
					 &facts->frame_size);
	if (err)
		return err;
	err = addr_map_put(&cache->pcs, pc, facts);
	if (err)
		return err;
	*ret = take(facts);
	return NULL;
}

struct error *pc_cache_find(struct pc_cache *cache, taddr pc, struct pc_facts **ret)
{
	struct error *err;

	*ret = addr_map_get(&cache->pcs, pc);
	if (*ret || !pc)
		return NULL;
	err = read_facts(cache, pc, ret);
	return err ? error_context(err, "pc 0x%" PRIx64, pc) : NULL;
}

/*
 * Which of a function's maps holds at pc: that of the call before it, and at the entry, or where
 * none is given (in a prologue), the first (runtime/stkframe.go, getStackMap).
 */
static struct error *map_index(const struct function_facts *function, taddr pc, uint32_t *ret)
{
	int32_t index = 0;
	struct error *err = NULL;

	if (pc != function->func.entry)
		err = pclntab_pcdata(function->module->pclntab, &function->func, PCDATA_STACK_MAP,
				     pc - 1, &index);
	if (err)
		return err;
	*ret = index < 0 ? 0 : (uint32_t)index;
	return NULL;
}

/* *ret_known is false if the function has no maps of that kind, or none of that index. */
static struct error *read_map(struct pc_cache *cache, const struct function_facts *function,
			      enum pclntab_funcdata which, uint32_t index, bool *ret_known,
			      struct stack_map *ret)
{
	taddr addr;
	struct error *err = pclntab_funcdata(function->module->pclntab, &function->func, which,
					     function->module->gofunc, &addr);

	*ret_known = false;
	free(ret->bits);
	*ret = (struct stack_map){ 0 };
	if (err || !addr)
		return err;
	err = stack_map_read(cache->memory, addr, index, ret);
	if (err && error_code(err) == ERROR_CORRUPT_TARGET) {
		error_free(err);
		return NULL;
	}
	*ret_known = !err;
	return err;
}

struct error *pc_cache_read_maps(struct pc_cache *cache, taddr pc, struct pc_facts *facts)
{
	uint32_t index;
	struct error *err;

	if (facts->maps_read)
		return NULL;
	err = map_index(facts->function, pc, &index);
	if (!err)
		err = read_map(cache, facts->function, FUNCDATA_LOCALS_MAPS, index,
			       &facts->locals_known, &facts->locals);
	if (!err)
		err = read_map(cache, facts->function, FUNCDATA_ARGS_MAPS, index,
			       &facts->args_known, &facts->args);
	if (err)
		return error_context(err, "pc 0x%" PRIx64 " in %s", pc, facts->function->func.name);
	facts->maps_read = true;
	return NULL;
}

struct error *pc_cache_read_objects(struct pc_cache *cache, struct function_facts *function)
{
	taddr addr;
	struct error *err;

	if (function->objects_read)
		return NULL;
	err = pclntab_funcdata(function->module->pclntab, &function->func, FUNCDATA_STACK_OBJECTS,
			       function->module->gofunc, &addr);
	if (!err && addr)
		err = stack_object_list_read(cache->memory, cache->layout, addr,
					     function->module->rodata, &function->objects);
	if (err)
		return error_context(err, "stack objects of %s", function->func.name);
	function->objects_read = true;
	return NULL;
}

struct error *pc_cache_reflect_objects(struct pc_cache *cache, const struct stack_object_list **ret)
{
	if (!cache->reflect_objects_read) {
		/* The array is a variable of the runtime's, and so in the first module. */
		struct error *err = stack_object_list_read_reflect(
		    cache->memory, cache->layout, module_table_at(cache->modules, 0)->rodata,
		    &cache->reflect_objects);

		if (err)
			return error_context(err, "objects of a reflect call");
		cache->reflect_objects_read = true;
	}
	*ret = &cache->reflect_objects;
	return NULL;
}
