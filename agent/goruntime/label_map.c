/*
 * Labels as a map of strings (to go1.23): g.labels points to a variable that holds a map
 * (runtime/pprof/label.go, labelMap; runtime/map.go). A map that grows keeps its old buckets until
 * each has been evacuated, bit by bit as it is written to; one that is not written to any more
 * stays as it is, so that the labels of a goroutine may be in both for good.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "agent/goruntime/label_raw.h"
#include "agent/goruntime/layout.h"
#include "proto/base/bytes.h"

enum {
	STRING_SIZE = 16,
	HEADER_SIZE_MAX = 256,
	BUCKET_SIZE_MAX = 4096,
	LOG_BUCKETS_MAX = 12, /* 1,024 labels take 256 buckets */
	BUCKETS_MAX = 1 << 14,
	/* runtime/map.go; unchanged from go1.15 to go1.23. */
	FLAG_SAME_SIZE_GROW = 8,
	TOP_HASH_EVACUATED_FIRST = 2,
	TOP_HASH_EVACUATED_LAST = 4,
	TOP_HASH_MIN = 5,
};

struct map_reader {
	struct memory *memory;
	const struct layout *layout;
	struct raw_labels *labels;
	uint32_t buckets_read;
	uint8_t bucket[BUCKET_SIZE_MAX];
};

bool label_map_known(const struct layout *l)
{
	uint32_t slots = l->string_map_bucket_top_hashes.size;

	return slots && l->string_map_bucket_keys.size == slots * STRING_SIZE &&
	       l->string_map_bucket_values.size == slots * STRING_SIZE &&
	       l->string_map_bucket_overflow.size == 8 &&
	       l->string_map_bucket.size <= BUCKET_SIZE_MAX &&
	       l->string_map.size <= HEADER_SIZE_MAX && l->string_map_count.size == 8 &&
	       l->string_map_log_buckets.size == 1 && l->string_map_flags.size == 1 &&
	       l->string_map_buckets.size == 8 && l->string_map_old_buckets.size == 8;
}

static struct error *read_bucket(struct map_reader *reader, taddr addr)
{
	if (reader->buckets_read++ == BUCKETS_MAX)
		return error_new(ERROR_LIMIT, "a map of more than %d buckets", BUCKETS_MAX);
	return memory_read(reader->memory, addr, reader->bucket,
			   reader->layout->string_map_bucket.size);
}

static struct error *add_slots(struct map_reader *reader)
{
	const struct layout *l = reader->layout;
	const uint8_t *top_hashes = reader->bucket + l->string_map_bucket_top_hashes.offset;
	const uint8_t *keys = reader->bucket + l->string_map_bucket_keys.offset;
	const uint8_t *values = reader->bucket + l->string_map_bucket_values.offset;
	struct error *err = NULL;

	for (uint32_t i = 0; i < l->string_map_bucket_top_hashes.size && !err; i++)
		if (top_hashes[i] >= TOP_HASH_MIN)
			err = raw_labels_add(reader->labels, keys + i * STRING_SIZE,
					     values + i * STRING_SIZE);
	return err;
}

/* Its entries have moved to the new buckets. */
static bool is_evacuated(const struct map_reader *reader)
{
	uint8_t first = reader->bucket[reader->layout->string_map_bucket_top_hashes.offset];

	return first >= TOP_HASH_EVACUATED_FIRST && first <= TOP_HASH_EVACUATED_LAST;
}

/* A bucket and those that overflow from it. */
static struct error *read_chain(struct map_reader *reader, taddr bucket, bool old)
{
	struct error *err = read_bucket(reader, bucket);

	if (!err && old && is_evacuated(reader))
		return NULL;
	while (!err) {
		err = add_slots(reader);
		if (err)
			return err;
		bucket =
		    load_u64le(reader->bucket + reader->layout->string_map_bucket_overflow.offset);
		if (!bucket)
			return NULL;
		err = read_bucket(reader, bucket);
	}
	return err;
}

static struct error *read_buckets(struct map_reader *reader, taddr buckets, uint64_t count,
				  bool old)
{
	struct error *err = NULL;

	for (uint64_t i = 0; i < count && !err; i++)
		err = read_chain(reader, buckets + i * reader->layout->string_map_bucket.size, old);
	return err;
}

static struct error *read_map(struct map_reader *reader, const uint8_t *map)
{
	const struct layout *l = reader->layout;
	uint64_t count = load_u64le(map + l->string_map_count.offset);
	uint8_t flags = map[l->string_map_flags.offset];
	uint8_t log_buckets = map[l->string_map_log_buckets.offset];
	taddr buckets = load_u64le(map + l->string_map_buckets.offset);
	taddr old_buckets = load_u64le(map + l->string_map_old_buckets.offset);
	bool halved = !(flags & FLAG_SAME_SIZE_GROW);
	struct error *err = NULL;

	if (!count)
		return NULL;
	if (count > LABELS_MAX)
		return error_new(ERROR_LIMIT, "%" PRIu64 " labels", count);
	if (log_buckets > LOG_BUCKETS_MAX || (old_buckets && halved && !log_buckets))
		return error_new(ERROR_CORRUPT_TARGET, "a map of 2^%u buckets", log_buckets);
	reader->labels->step = LABEL_ARRAY_MISSING;
	err = read_buckets(reader, buckets, UINT64_C(1) << log_buckets, false);
	if (!err && old_buckets)
		err =
		    read_buckets(reader, old_buckets, UINT64_C(1) << (log_buckets - halved), true);
	if (!err && reader->labels->count != count)
		err = error_new(ERROR_CORRUPT_TARGET, "a map of %" PRIu64 " labels holds %" PRIu32,
				count, reader->labels->count);
	return err;
}

struct error *label_map_read(struct memory *memory, const struct layout *layout, taddr addr,
			     struct raw_labels *ret)
{
	struct map_reader reader = { .memory = memory, .layout = layout, .labels = ret };
	uint8_t map[HEADER_SIZE_MAX];
	taddr header;
	struct error *err;

	ret->step = LABEL_OBJECT_MISSING;
	err = memory_u64(memory, addr, &header);
	if (err || !header)
		return err;
	err = memory_read(memory, header, map, layout->string_map.size);
	return err ? err : read_map(&reader, map);
}
