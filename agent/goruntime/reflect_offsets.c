/*
 * The map's key is an int32 and its value a pointer, which fixes where a bucket or a group of the
 * runtime's maps has them: no descriptor is needed to read it.
 *
 *	bucket (to go1.23)       8 top hashes | 8 keys | 8 values | overflow
 *	group of slots           8 control bytes | 8 times (key, 4 unused, value)
 *	group of split slots     8 control bytes | 8 keys | 8 values
 *
 * runtime/map.go; internal/runtime/maps/group.go, map.go, table.go.
 */
#include "agent/goruntime/reflect_offsets.h"

#include <stdlib.h>

#include "agent/goruntime/go_version.h"
#include "agent/goruntime/layout.h"
#include "agent/goruntime/type_memory.h"
#include "proto/base/bytes.h"

enum {
	WORD = 8,
	SLOTS = 8, /* of a bucket or group */
	KEY_SIZE = 4,
	SLOT_SIZE = 16,
	BUCKET_SIZE = WORD + SLOTS * (KEY_SIZE + WORD) + WORD,
	GROUP_SIZE = WORD + SLOTS * SLOT_SIZE,
	BLOCKS_MAX = 1 << 17, /* buckets or groups, of a million names */
	TABLES_MAX = 1 << 16,
	TOP_HASH_MIN = 5,     /* runtime/map.go, minTopHash: lesser ones say why it is empty */
	CONTROL_EMPTY = 0x80, /* set in the control byte of a slot that is not full */
	NAME_BYTES = 4096,    /* that are kept of what an entry points to, at least */
};

struct reader {
	struct type_memory *memory;
	const struct layout *layout;
	struct addr_map *addrs;
	uint32_t blocks_read;
};

/* Where a block keeps its keys and values. */
struct geometry {
	uint32_t size;
	uint32_t keys, key_stride, values, value_stride;
};

static const struct geometry bucket_geometry = { BUCKET_SIZE, WORD, KEY_SIZE,
						 WORD + SLOTS *KEY_SIZE, WORD };
static const struct geometry slot_geometry = { GROUP_SIZE, WORD, SLOT_SIZE, 2 * WORD, SLOT_SIZE };
static const struct geometry split_geometry = { WORD + SLOTS * (KEY_SIZE + WORD), WORD, KEY_SIZE,
						WORD + SLOTS *KEY_SIZE, WORD };

void reflect_offsets_fini(struct reflect_offsets *offsets)
{
	addr_map_fini(&offsets->addrs);
}

static taddr key_of(uint32_t number)
{
	return UINT64_C(1) << 32 | number;
}

static struct error *add_slot(struct reader *reader, const struct geometry *geometry,
			      const uint8_t *block, uint32_t slot)
{
	uint32_t number = load_u32le(block + geometry->keys + slot * geometry->key_stride);
	taddr addr = load_u64le(block + geometry->values + slot * geometry->value_stride);

	return addr_map_put(reader->addrs, key_of(number), (void *)(uintptr_t)addr);
}

static struct error *read_block(struct reader *reader, const struct geometry *geometry, taddr addr,
				bool is_bucket, uint8_t *block)
{
	struct error *err;

	if (reader->blocks_read++ == BLOCKS_MAX)
		return error_new(ERROR_LIMIT, "more than %d blocks of a map", BLOCKS_MAX);
	err = type_memory_read(reader->memory, addr, block, geometry->size);
	for (uint32_t i = 0; i < SLOTS && !err; i++)
		if (is_bucket ? block[i] >= TOP_HASH_MIN : !(block[i] & CONTROL_EMPTY))
			err = add_slot(reader, geometry, block, i);
	return err;
}

static struct error *read_buckets(struct reader *reader, taddr buckets, uint64_t count)
{
	struct error *err = NULL;

	for (uint64_t i = 0; i < count && buckets && !err; i++) {
		taddr bucket = buckets + i * BUCKET_SIZE;
		uint8_t block[BUCKET_SIZE];

		while (bucket && !err) {
			err = read_block(reader, &bucket_geometry, bucket, true, block);
			if (!err)
				bucket = load_u64le(block + BUCKET_SIZE - WORD);
		}
	}
	return err;
}

static struct error *read_number(struct reader *reader, taddr addr, struct layout_field field,
				 uint64_t *ret)
{
	uint8_t bytes[WORD];
	struct error *err;

	if (!field.size || field.size > WORD)
		return error_new(ERROR_UNSUPPORTED, "maps of this layout");
	err = type_memory_read(reader->memory, addr + field.offset, bytes, field.size);
	if (!err)
		*ret = load_uint_le(bytes, field.size);
	return err;
}

/* What was evacuated from old buckets is not full there any more. */
static struct error *read_hmap(struct reader *reader, taddr map)
{
	const struct layout *l = reader->layout;
	uint64_t log_buckets, buckets, old_buckets;
	struct error *err = read_number(reader, map, l->hmap_log_buckets, &log_buckets);

	if (!err)
		err = read_number(reader, map, l->hmap_buckets, &buckets);
	if (!err)
		err = read_number(reader, map, l->hmap_old_buckets, &old_buckets);
	if (!err && log_buckets > 32)
		err = error_new(ERROR_FORMAT, "a map of too many buckets");
	if (!err)
		err = read_buckets(reader, buckets, UINT64_C(1) << log_buckets);
	/* Half as many or, if it grows in place, as many. */
	if (!err && log_buckets)
		err = read_buckets(reader, old_buckets, UINT64_C(1) << (log_buckets - 1));
	return err;
}

static struct error *read_groups(struct reader *reader, taddr groups, uint64_t count)
{
	bool split = go_version_has_experiment(reader->layout->version, "mapsplitgroup");
	const struct geometry *geometry = split ? &split_geometry : &slot_geometry;
	struct error *err = NULL;

	for (uint64_t i = 0; i < count && !err; i++) {
		uint8_t block[GROUP_SIZE];

		err = read_block(reader, geometry, groups + i * geometry->size, false, block);
	}
	return err;
}

/* A table may stand in the directory many times in a row. */
static struct error *read_tables(struct reader *reader, taddr directory, uint64_t length)
{
	const struct layout *l = reader->layout;
	taddr last = 0;
	struct error *err = NULL;

	if (length > TABLES_MAX)
		return error_new(ERROR_LIMIT, "a map of too many tables");
	for (uint64_t i = 0; i < length && !err; i++) {
		uint64_t table, groups, mask;

		err = type_memory_u64(reader->memory, directory + i * WORD, &table);
		if (err || table == last)
			continue;
		last = table;
		err = read_number(reader, table, l->swiss_table_groups, &groups);
		if (!err)
			err = read_number(reader, table, l->swiss_table_length_mask, &mask);
		if (!err)
			err =
			    read_groups(reader, groups, mask < BLOCKS_MAX ? mask + 1 : BLOCKS_MAX);
	}
	return err;
}

static struct error *read_swiss(struct reader *reader, taddr map)
{
	const struct layout *l = reader->layout;
	uint64_t directory, length;
	struct error *err = read_number(reader, map, l->swiss_map_directory, &directory);

	if (!err)
		err = read_number(reader, map, l->swiss_map_directory_length, &length);
	if (err || !directory)
		return err;
	return length ? read_tables(reader, directory, length) : read_groups(reader, directory, 1);
}

/* {lock, next, m, minv}: the type has no name, and its lock has not always one size. */
static struct error *read_map(struct reader *reader)
{
	const struct layout *l = reader->layout;
	taddr map = 0;
	struct error *err = NULL;

	if (l->global_reflect_offsets.size < 4 * WORD)
		return NULL;
	err = type_memory_u64(
	    reader->memory,
	    l->global_reflect_offsets.addr + l->global_reflect_offsets.size - 2 * WORD, &map);
	if (err || !map)
		return err;
	return layout_has(l, swiss_map) ? read_swiss(reader, map) : read_hmap(reader, map);
}

/* A map that cannot be read to its end tells as much as was read. */
static struct error *read_once(struct reflect_offsets *offsets, struct type_memory *memory,
			       const struct layout *layout)
{
	struct reader reader = { .memory = memory, .layout = layout, .addrs = &offsets->addrs };
	struct error *err;

	if (offsets->is_read)
		return NULL;
	err = read_map(&reader);
	if (err && error_code(err) != ERROR_NOMEM && error_code(err) != ERROR_GONE) {
		error_free(err);
		err = NULL;
	}
	offsets->is_read = !err;
	return err;
}

struct error *reflect_offsets_find(struct reflect_offsets *offsets, struct type_memory *memory,
				   const struct layout *layout, int32_t number, taddr *ret)
{
	struct error *err = read_once(offsets, memory, layout);

	if (!err)
		*ret = (uintptr_t)addr_map_get(&offsets->addrs, key_of((uint32_t)number));
	return err;
}

struct error *reflect_offsets_keep(struct reflect_offsets *offsets, struct type_memory *memory,
				   const struct layout *layout)
{
	struct error *err = read_once(offsets, memory, layout);

	for (size_t i = 0; i < offsets->addrs.capacity && !err; i++) {
		taddr addr = (uintptr_t)offsets->addrs.entries[i].value;

		if (offsets->addrs.entries[i].key && addr < UINT64_MAX - NAME_BYTES)
			err = type_memory_keep(memory, addr, addr + NAME_BYTES);
	}
	return err;
}
