#include "agent/report/mapping_list.h"

#include <stdlib.h>

#include "agent/report/address_map.h"
#include "agent/report/memory_tree.h"
#include "agent/report/message.h"
#include "agent/target/maps.h"

/* The regions of one mapping, added up by kind. */
struct holdings {
	struct usage usage[MEMORY_KIND_COUNT];
	uint64_t extent[MEMORY_KIND_COUNT]; /* of the regions, used or not */
};

/* What most of a mapping is for. */
static enum memory_kind main_kind(const struct holdings *holdings)
{
	enum memory_kind best = 0;

	for (enum memory_kind kind = 1; kind < MEMORY_KIND_COUNT; kind++) {
		uint64_t used = holdings->usage[kind].bytes, most = holdings->usage[best].bytes;

		if (used > most ||
		    (used == most && holdings->extent[kind] > holdings->extent[best]))
			best = kind;
	}
	return best;
}

static struct error *add_holding(Goheapd__Mapping *message, enum memory_kind kind, uint64_t bytes)
{
	Goheapd__Holding *holding;
	struct error *err = message_reserve((void ***)&message->holds, message->n_holds);

	if (err)
		return err;
	holding = malloc(sizeof(*holding));
	if (!holding)
		return &error_nomem;
	goheapd__holding__init(holding);
	message->holds[message->n_holds++] = holding;
	holding->bytes = bytes;
	return message_string(memory_kind_id(kind), &holding->kind);
}

static struct error *fill_holdings(Goheapd__Mapping *message, const struct holdings *holdings)
{
	struct error *err = message_string(memory_kind_id(main_kind(holdings)), &message->kind);

	for (enum memory_kind kind = 0; !err && kind < MEMORY_KIND_COUNT; kind++) {
		message->resident_bytes += holdings->usage[kind].resident;
		if (holdings->usage[kind].bytes)
			err = add_holding(message, kind, holdings->usage[kind].bytes);
	}
	return err;
}

static struct error *fill_mapping(Goheapd__Mapping *message, const struct mapping *mapping)
{
	const char perms[] = {
		mapping->read ? 'r' : '-',
		mapping->write ? 'w' : '-',
		mapping->execute ? 'x' : '-',
		mapping->shared ? 's' : 'p',
		'\0',
	};
	struct error *err = message_string(perms, &message->perms);

	message->start = mapping->start;
	message->end = mapping->end;
	if (err || !*mapping->name)
		return err;
	message->has_file = true;
	return message_text(mapping->name, &message->file);
}

static struct error *add_mapping(Goheapd__ScanResult *result, const struct mapping *mapping,
				 const struct holdings *holdings)
{
	Goheapd__Mapping *message;
	struct error *err = message_reserve((void ***)&result->mappings, result->n_mappings);

	if (err)
		return err;
	message = malloc(sizeof(*message));
	if (!message)
		return &error_nomem;
	goheapd__mapping__init(message);
	result->mappings[result->n_mappings++] = message;
	err = fill_mapping(message, mapping);
	return err ? err : fill_holdings(message, holdings);
}

struct error *mapping_list_fill(const struct maps *maps, const struct address_map *regions,
				const struct resident *resident, Goheapd__ScanResult *result)
{
	uint32_t next = 0;

	while (next < regions->count) {
		uint32_t mapping = regions->items[next].mapping;
		struct holdings holdings = { 0 };
		struct error *err;

		for (; next < regions->count && regions->items[next].mapping == mapping; next++) {
			const struct region *region = &regions->items[next];

			usage_add(&holdings.usage[region->kind],
				  memory_tree_region(resident, region));
			holdings.extent[region->kind] += region->end - region->start;
		}
		err = add_mapping(result, &maps->items[mapping], &holdings);
		if (err)
			return error_context(err, "mappings");
	}
	return NULL;
}
