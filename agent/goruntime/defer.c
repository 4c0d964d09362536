#include "agent/goruntime/defer.h"

#include <inttypes.h>
#include <stdlib.h>

#include "agent/goruntime/function_role.h"
#include "agent/goruntime/layout.h"
#include "agent/goruntime/pc_facts.h"
#include "agent/goruntime/stack_scan.h"
#include "proto/base/bytes.h"

struct defer_record {
	uint64_t size; /* of the arguments that follow the record */
	uint64_t heap, fn, link;
};

static struct error *read_record(struct memory *memory, const struct layout *layout, taddr addr,
				 struct defer_record *ret)
{
	struct error *err;

	*ret = (struct defer_record){ 0 };
	err = layout_read_field(memory, addr, layout->defer_heap, &ret->heap);
	if (!err)
		err = layout_read_field(memory, addr, layout->defer_fn, &ret->fn);
	if (!err)
		err = layout_read_field(memory, addr, layout->defer_link, &ret->link);
	if (!err && layout_has(layout, defer_size))
		err = layout_read_field(memory, addr, layout->defer_size, &ret->size);
	return err;
}

/* The map of the deferred function's arguments at its entry; none if its arguments are unknown. */
static struct error *args_map(struct memory *memory, struct pc_cache *cache, taddr fn,
			      struct stack_map *ret_owned, const struct stack_map **ret)
{
	struct pc_facts *facts = NULL;
	taddr entry;
	struct error *err = memory_u64(memory, fn, &entry);
	bool found;

	*ret = ret_owned;
	if (!err)
		err = pc_cache_find(cache, entry, &facts);
	if (err || !facts || !facts->function->func.args)
		return err;
	if (facts->function->roles & ROLE_REFLECT_STUB)
		return stack_map_read_reflect(memory, fn, entry, false, &found, ret_owned);
	err = pc_cache_read_maps(cache, entry, facts);
	if (!err)
		*ret = &facts->args;
	return err;
}

/* Before closures took their place (to go1.17): they lie right after the record. */
static struct error *scan_args(struct memory *memory, struct pc_cache *cache, taddr args,
			       const struct defer_record *record, struct stack_scan_state *scan)
{
	struct stack_map owned = { 0 };
	const struct stack_map *map;
	struct error *err = args_map(memory, cache, record->fn, &owned, &map);

	for (uint32_t i = 0; !err && i < map->bit_count && 8 * (uint64_t)(i + 1) <= record->size;
	     i++) {
		uint64_t word;

		if (!stack_map_has(map, i))
			continue;
		err = memory_u64(memory, args + 8 * (uint64_t)i, &word);
		if (!err)
			err = stack_scan_word(scan, ROOT_GOROUTINE, args + 8 * (uint64_t)i, word);
	}
	free(owned.bits);
	return err;
}

static struct error *scan_record(struct memory *memory, const struct layout *layout,
				 struct pc_cache *cache, taddr addr, taddr slot,
				 const struct defer_record *record, struct stack_scan_state *scan)
{
	struct error *err =
	    stack_scan_word(scan, ROOT_GOROUTINE, addr + layout->defer_fn.offset, record->fn);

	if (!err)
		err = stack_scan_word(scan, ROOT_GOROUTINE, addr + layout->defer_link.offset,
				      record->link);
	if (!err && record->heap)
		err = stack_scan_word(scan, ROOT_GOROUTINE, slot, addr);
	if (!err && record->size && record->fn)
		err = scan_args(memory, cache, addr + layout->defer.size, record, scan);
	return err;
}

struct error *defer_roots(struct memory *memory, const struct layout *layout,
			  struct pc_cache *cache, taddr first, struct stack_scan_state *scan)
{
	taddr addr = first, slot = 0; /* of the word that led to addr */

	for (unsigned i = 0; addr; i++) {
		struct defer_record record;
		struct error *err;

		if (i == DEFERS_MAX)
			return error_new(ERROR_LIMIT, "more than %d defer records", DEFERS_MAX);
		err = read_record(memory, layout, addr, &record);
		if (!err)
			err = scan_record(memory, layout, cache, addr, slot, &record, scan);
		if (err)
			return error_context(err, "defer record 0x%" PRIx64, addr);
		slot = addr + layout->defer_link.offset;
		addr = record.link;
	}
	return NULL;
}
