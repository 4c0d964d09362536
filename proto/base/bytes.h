/*
 * A growing byte buffer with a maximum that is fixed at its beginning, and loads of fixed-width
 * numbers from bytes already known to be there.
 */
#ifndef PROTO_BASE_BYTES_H
#define PROTO_BASE_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "proto/base/error.h"

/* Owned by the caller; data is NULL while size is 0. */
struct bytes {
	uint8_t *data;
	size_t size;
	size_t capacity;
	size_t limit; /* ERROR_LIMIT beyond it */
};

void bytes_init(struct bytes *bytes, size_t limit);
void bytes_fini(struct bytes *bytes);

/* Appends size bytes and points *ret at them, uninitialised, until the next call on bytes. */
must_check struct error *bytes_extend(struct bytes *bytes, size_t size, uint8_t **ret);
must_check struct error *bytes_append(struct bytes *bytes, const void *data, size_t size);

/* Little-endian loads, at any alignment; the caller has checked the bounds. */
static inline uint16_t load_u16le(const void *p)
{
	const uint8_t *b = p;

	return (uint16_t)(b[0] | b[1] << 8);
}

static inline uint32_t load_u32le(const void *p)
{
	const uint8_t *b = p;

	return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static inline uint64_t load_u64le(const void *p)
{
	return load_u32le(p) | (uint64_t)load_u32le((const uint8_t *)p + 4) << 32;
}

/* A little-endian number of 1, 2, 4 or 8 bytes, zero-extended; 0 for any other width. */
static inline uint64_t load_uint_le(const void *p, size_t width)
{
	switch (width) {
	case 1:
		return *(const uint8_t *)p;
	case 2:
		return load_u16le(p);
	case 4:
		return load_u32le(p);
	case 8:
		return load_u64le(p);
	default:
		return 0;
	}
}

static inline void store_u32le(void *p, uint32_t v)
{
	uint8_t *b = p;

	for (int i = 0; i < 4; i++)
		b[i] = (uint8_t)(v >> 8 * i);
}

static inline void store_u64le(void *p, uint64_t v)
{
	store_u32le(p, (uint32_t)v);
	store_u32le((uint8_t *)p + 4, (uint32_t)(v >> 32));
}

#endif
