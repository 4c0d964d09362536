/*
 * Types as the collector lays them over an object: the mask of a type, again and again from the
 * object's start to its end (runtime/mbitmap.go, the tiling of typePointers, since go1.22). A set
 * of tiles remembers the types it met; it serves one thread.
 */
#ifndef AGENT_GORUNTIME_GTYPE_TILE_H
#define AGENT_GORUNTIME_GTYPE_TILE_H

#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

struct layout;
struct gtype_tile;
struct gtype_tiles;

must_check struct error *gtype_tiles_new(struct memory *memory, const struct layout *layout,
					 struct gtype_tiles **ret);
void gtype_tiles_free(struct gtype_tiles *tiles);
DEFINE_FREEP(gtype_tiles, gtype_tiles_free)

/*
 * The tile of the type at addr, which belongs to the set. NULL for what is not a readable type of
 * at most max_size bytes; the error is that memory ran out or that the target is gone.
 */
must_check struct error *gtype_tiles_find(struct gtype_tiles *tiles, taddr addr, uint64_t max_size,
					  const struct gtype_tile **ret);

/*
 * Sets in mask, from bit to on, the pointer bits of count words of an endless row of tiles, of
 * which the first is word from of that row.
 */
void gtype_tile_paint(const struct gtype_tile *tile, uint64_t from, uint64_t count, uint64_t *mask,
		      uint64_t to);

#endif
