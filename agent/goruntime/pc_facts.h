/*
 * What pclntab says about a pc on a stack, kept: the same few thousand return addresses are met on
 * a hundred thousand stacks. Facts live as long as their cache. One thread.
 */
#ifndef AGENT_GORUNTIME_PC_FACTS_H
#define AGENT_GORUNTIME_PC_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/binary/pclntab.h"
#include "agent/goruntime/stack_map.h"
#include "agent/goruntime/stack_object.h"
#include "agent/target/memory.h"
#include "proto/base/error.h"

struct layout;
struct module;
struct module_table;
struct pc_cache;

enum { PC_FACTS_MAX = 1 << 20 };

struct function_facts {
	struct pclntab_func func;
	const struct module *module;
	uint32_t roles; /* of enum function_role */
	bool objects_read;
	struct stack_object_list objects;
};

struct pc_facts {
	struct function_facts *function;
	int32_t frame_size; /* bytes from sp to the return address; negative: not known */
	/* Of the call that returns to this pc, or of the entry, if maps_read: */
	bool maps_read;
	bool locals_known, args_known; /* false: no map says anything about them */
	struct stack_map locals, args;
};

must_check struct error *pc_cache_new(struct memory *memory, const struct layout *layout,
				      const struct module_table *modules, struct pc_cache **ret);
void pc_cache_free(struct pc_cache *cache);
DEFINE_FREEP(pc_cache, pc_cache_free)

/* *ret is NULL if no function holds pc. */
must_check struct error *pc_cache_find(struct pc_cache *cache, taddr pc, struct pc_facts **ret);

/* Fills in maps, if they are not yet there, of the facts that pc_cache_find gave for pc. */
must_check struct error *pc_cache_read_maps(struct pc_cache *cache, taddr pc,
					    struct pc_facts *facts);

/* Likewise the stack objects of a function. */
must_check struct error *pc_cache_read_objects(struct pc_cache *cache,
					       struct function_facts *function);

/* The objects of a frame of a reflect stub. */
must_check struct error *pc_cache_reflect_objects(struct pc_cache *cache,
						  const struct stack_object_list **ret);

#endif
