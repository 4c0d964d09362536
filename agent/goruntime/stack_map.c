#include "agent/goruntime/stack_map.h"

#include <inttypes.h>
#include <stdlib.h>

#include "proto/base/bytes.h"
#include "proto/base/checked.h"

enum {
	MAP_BITS_MAX = 1 << 24, /* a frame of 128 MiB */
	STACKMAP_HEADER = 8,
};

static struct error *read_bits(struct memory *memory, taddr addr, uint32_t bit_count,
			       struct stack_map *ret)
{
	uint8_t *bits scoped(freep) = NULL;
	size_t size = (bit_count + 7) / 8;
	struct error *err;

	if (bit_count > MAP_BITS_MAX)
		return error_new(ERROR_LIMIT, "0x%" PRIx64 ": stack map of %" PRIu32 " words", addr,
				 bit_count);
	bits = malloc(size ? size : 1);
	if (!bits)
		return &error_nomem;
	err = memory_read(memory, addr, bits, size);
	if (err)
		return err;
	*ret = (struct stack_map){ .bits = take(bits), .bit_count = bit_count };
	return NULL;
}

struct error *stack_map_read(struct memory *memory, taddr addr, uint32_t index,
			     struct stack_map *ret)
{
	uint8_t header[STACKMAP_HEADER];
	struct error *err = memory_read(memory, addr, header, sizeof(header));
	uint32_t count, bit_count;
	uint64_t offset;

	if (err)
		return error_context(err, "stack map");
	count = load_u32le(header);
	bit_count = load_u32le(header + 4);
	if (count && !bit_count)
		index = 0; /* nothing in any of them */
	if (index >= count || count > INT32_MAX)
		return error_new(ERROR_CORRUPT_TARGET,
				 "0x%" PRIx64 ": stack map %" PRIu32 " of %" PRIu32, addr, index,
				 count);
	if (bit_count > MAP_BITS_MAX ||
	    !checked_add(addr + sizeof(header), (uint64_t)index * ((bit_count + 7) / 8), &offset))
		return error_new(ERROR_LIMIT, "0x%" PRIx64 ": stack map of %" PRIu32 " words", addr,
				 bit_count);
	err = read_bits(memory, offset, bit_count, ret);
	return err ? error_context(err, "stack map") : NULL;
}

struct error *stack_map_read_reflect(struct memory *memory, taddr closure, taddr entry,
				     bool results_valid, bool *ret_found, struct stack_map *ret)
{
	uint8_t raw[24], vector[16];
	uint64_t words;
	struct error *err = memory_read(memory, closure, raw, sizeof(raw));

	if (err && error_code(err) == ERROR_FAULT) {
		error_free(err);
		*ret_found = false;
		return NULL;
	}
	if (err)
		return err;
	*ret_found = load_u64le(raw) == entry;
	if (!*ret_found)
		return NULL;
	err = memory_read(memory, load_u64le(raw + 8), vector, sizeof(vector));
	if (err)
		return error_context(err, "map of a reflect call");
	words = load_u32le(vector);
	if (!results_valid && load_u64le(raw + 16) / 8 < words)
		words = load_u64le(raw + 16) / 8;
	err = read_bits(memory, load_u64le(vector + 8), (uint32_t)words, ret);
	return err ? error_context(err, "map of a reflect call") : NULL;
}
