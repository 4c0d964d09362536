/*
 * An address space as a list of regions that do not overlap, each of one kind. It begins with the
 * mappings, as far as they tell by themselves what they are for, and is painted over layer by
 * layer by who knows better: the sections of modules, the runtime's own tables, the heap. Paint
 * stays only where something is mapped.
 */
#ifndef AGENT_REPORT_ADDRESS_MAP_H
#define AGENT_REPORT_ADDRESS_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/report/memory_kind.h"
#include "agent/target/memory.h"
#include "proto/base/error.h"

struct maps;

struct region {
	taddr start, end;
	enum memory_kind kind;
	uint32_t mapping; /* index in the maps */
	bool accessible;  /* the mapping can be read, written or executed */
};

struct address_map {
	struct region *items; /* by address */
	uint32_t count;
};

/* What the mappings are by themselves. The caller gives *ret back with _fini. */
must_check struct error *address_map_init(const struct maps *maps, struct address_map *ret);
void address_map_fini(struct address_map *map);

/* One layer of paint, filled in any order. All zero is an empty layer. */
struct paint {
	taddr start, end;
	enum memory_kind kind;
};

struct paint_layer {
	struct paint *items;
	uint32_t count, capacity;
};

/* An empty range is no paint. */
must_check struct error *paint_add(struct paint_layer *layer, taddr start, taddr end,
				   enum memory_kind kind);
void paint_fini(struct paint_layer *layer);

/* Where paints of one layer overlap, the one that begins first stays. Sorts the layer. */
must_check struct error *address_map_paint(struct address_map *map, struct paint_layer *layer);

/* The region that holds addr, or NULL. */
const struct region *address_map_find(const struct address_map *map, taddr addr);

#endif
