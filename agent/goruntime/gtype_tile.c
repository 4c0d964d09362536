#include "agent/goruntime/gtype_tile.h"

#include <stdbool.h>
#include <stdlib.h>

#include "agent/goruntime/bitmap.h"
#include "agent/goruntime/gtype.h"

enum {
	WORD = 8,
	FIRST_BUCKETS = 256,
	PERIOD_MIN = 512,         /* words: smaller types are laid out several times in a tile */
	MASKS_SIZE_MAX = 1 << 28, /* bytes of all masks */
	TILES_MAX = 1 << 20,
};

struct gtype_tile {
	taddr type;         /* 0: an empty place */
	uint64_t size;      /* of the type; UINT64_MAX if it cannot be read */
	uint64_t period;    /* words from one tile to the next */
	uint64_t bit_count; /* of mask: the words of a period up to the last pointer */
	uint64_t *mask;
};

/* Open addressing, at most half full; places do not move, so that tiles can be lent. */
struct gtype_tiles {
	struct memory *memory;
	const struct layout *layout;
	struct gtype_tile **buckets;
	size_t bucket_count, count;
	uint64_t masks_size;
};

struct error *gtype_tiles_new(struct memory *memory, const struct layout *layout,
			      struct gtype_tiles **ret)
{
	struct gtype_tiles *tiles scoped(gtype_tiles_freep) = calloc(1, sizeof(*tiles));

	if (!tiles)
		return &error_nomem;
	tiles->memory = memory;
	tiles->layout = layout;
	tiles->buckets = calloc(FIRST_BUCKETS, sizeof(struct gtype_tile *));
	if (!tiles->buckets)
		return &error_nomem;
	tiles->bucket_count = FIRST_BUCKETS;
	*ret = take(tiles);
	return NULL;
}

static void tile_free(struct gtype_tile *tile)
{
	if (!tile)
		return;
	free(tile->mask);
	free(tile);
}
DEFINE_FREEP(gtype_tile, tile_free)

void gtype_tiles_free(struct gtype_tiles *tiles)
{
	if (!tiles)
		return;
	for (size_t i = 0; i < tiles->bucket_count; i++)
		tile_free(tiles->buckets[i]);
	free(tiles->buckets);
	free(tiles);
}

/* Where the tile of a type is, or would be. */
static struct gtype_tile **bucket_of(struct gtype_tile **buckets, size_t count, taddr type)
{
	size_t i = (type * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (count - 1);

	while (buckets[i] && buckets[i]->type != type)
		i = (i + 1) & (count - 1);
	return &buckets[i];
}

static struct error *grow(struct gtype_tiles *tiles)
{
	size_t count = 2 * tiles->bucket_count;
	struct gtype_tile **buckets = calloc(count, sizeof(struct gtype_tile *));

	if (!buckets)
		return &error_nomem;
	for (size_t i = 0; i < tiles->bucket_count; i++)
		if (tiles->buckets[i])
			*bucket_of(buckets, count, tiles->buckets[i]->type) = tiles->buckets[i];
	free(tiles->buckets);
	tiles->buckets = buckets;
	tiles->bucket_count = count;
	return NULL;
}

/* Makes the tile of a type that was read: its mask, as often as fits into a period. */
static struct error *make_mask(struct gtype_tiles *tiles, const struct gtype *type,
			       struct gtype_tile *tile)
{
	uint64_t words = type->size / WORD, bits = type->ptr_bytes / WORD, times = 1, size;
	struct error *err;

	if (words < PERIOD_MIN && bits)
		times = (PERIOD_MIN + words - 1) / words;
	tile->bit_count = bits ? (times - 1) * words + bits : 0;
	size = bitmap_words(tile->bit_count) * sizeof(*tile->mask);
	if (size > MASKS_SIZE_MAX - tiles->masks_size)
		return error_new(ERROR_LIMIT, "type masks of more than %d bytes", MASKS_SIZE_MAX);
	tile->mask = calloc(1, size + 1);
	if (!tile->mask)
		return &error_nomem;
	err = gtype_mask_read(tiles->memory, tiles->layout, type, tile->mask);
	if (err)
		return err;
	if (bits)
		bitmap_repeat(tile->mask, 0, words, tile->bit_count);
	tile->period = words * times;
	tile->size = type->size;
	tiles->masks_size += size;
	return NULL;
}

/* What went wrong with a type alone, rather than with us or the target. */
static bool is_about_type(const struct error *err)
{
	return error_code(err) == ERROR_FAULT || error_code(err) == ERROR_FORMAT ||
	       error_code(err) == ERROR_LIMIT;
}

/* A tile that says that its type cannot be read is remembered too. */
static struct error *make_tile(struct gtype_tiles *tiles, taddr addr, uint64_t max_size,
			       struct gtype_tile **ret)
{
	struct gtype_tile *tile scoped(tile_freep) = calloc(1, sizeof(*tile));
	struct gtype type;
	struct error *err;

	if (!tile)
		return &error_nomem;
	tile->type = addr;
	tile->size = UINT64_MAX;
	err = gtype_read(tiles->memory, tiles->layout, addr, &type);
	if (!err && type.size > max_size)
		return NULL; /* a larger object may have it */
	if (!err && type.size < WORD)
		err = error_new(ERROR_FORMAT, "a type without a word");
	if (!err)
		err = make_mask(tiles, &type, tile);
	if (err && !is_about_type(err))
		return err;
	error_free(err);
	*ret = take(tile);
	return NULL;
}

struct error *gtype_tiles_find(struct gtype_tiles *tiles, taddr addr, uint64_t max_size,
			       const struct gtype_tile **ret)
{
	struct gtype_tile **bucket = bucket_of(tiles->buckets, tiles->bucket_count, addr);
	struct error *err;

	if (!*bucket) {
		if (!addr || tiles->count >= TILES_MAX) {
			*ret = NULL;
			return NULL;
		}
		if (2 * tiles->count >= tiles->bucket_count) {
			err = grow(tiles);
			if (err)
				return err;
			bucket = bucket_of(tiles->buckets, tiles->bucket_count, addr);
		}
		err = make_tile(tiles, addr, max_size, bucket);
		if (err)
			return err;
		tiles->count += *bucket != NULL;
	}
	*ret = *bucket && (*bucket)->size <= max_size ? *bucket : NULL;
	return NULL;
}

void gtype_tile_paint(const struct gtype_tile *tile, uint64_t from, uint64_t count, uint64_t *mask,
		      uint64_t to)
{
	uint64_t k = from % tile->period;

	while (count) {
		uint64_t left = tile->period - k, bits = 0;

		if (left > count)
			left = count;
		if (k < tile->bit_count)
			bits = tile->bit_count - k < left ? tile->bit_count - k : left;
		bitmap_or_range(mask, to, tile->mask, k, bits);
		to += left;
		count -= left;
		k = 0;
	}
}
