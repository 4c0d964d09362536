/*
 * Contents of sections: plain, compressed as SHF_COMPRESSED says, or in the older way of a name
 * that begins with ".zdebug" ("ZLIB", a big-endian size, the stream; go1.15).
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <elf.h>
#include <zlib.h>

#include "agent/binary/elf_file.h"
#include "proto/base/bytes.h"

enum { ZDEBUG_HEADER_SIZE = 12 };

static struct error *read_raw(const struct elf_file *file, const struct elf_section *section,
			      uint64_t limit, uint8_t **ret)
{
	uint8_t *bytes scoped(freep) = NULL;
	struct error *err;

	if (section->type == SHT_NOBITS)
		return error_new(ERROR_FORMAT, "section %.64s has no content", section->name);
	if (section->size > limit)
		return error_new(ERROR_LIMIT, "section %.64s has %" PRIu64 " bytes", section->name,
				 section->size);
	bytes = malloc(section->size ? section->size : 1);
	if (!bytes)
		return &error_nomem;
	err = elf_file_read_at(file, section->offset, bytes, section->size);
	if (err)
		return error_context(err, "section %.64s", section->name);
	*ret = take(bytes);
	return NULL;
}

static uint64_t load_u64be(const uint8_t *p)
{
	return __builtin_bswap64(load_u64le(p));
}

/* Where the zlib stream of a compressed section begins and what comes out of it. */
static struct error *stream_of(const struct elf_section *section, const uint8_t *raw,
			       size_t *ret_header_size, uint64_t *ret_size)
{
	if (section->compressed) {
		Elf64_Chdr header;

		if (section->size < sizeof(header))
			return error_new(ERROR_FORMAT, "section %.64s: truncated", section->name);
		memcpy(&header, raw, sizeof(header));
		if (header.ch_type != ELFCOMPRESS_ZLIB)
			return error_new(ERROR_UNSUPPORTED,
					 "section %.64s is compressed in way %" PRIu32,
					 section->name, header.ch_type);
		*ret_header_size = sizeof(header);
		*ret_size = header.ch_size;
		return NULL;
	}
	if (section->size < ZDEBUG_HEADER_SIZE || memcmp(raw, "ZLIB", 4) != 0)
		return error_new(ERROR_FORMAT, "section %.64s: no ZLIB mark", section->name);
	*ret_header_size = ZDEBUG_HEADER_SIZE;
	*ret_size = load_u64be(raw + 4);
	return NULL;
}

/* Unlike uncompress of zlib this takes sizes beyond 32 bits on every system. */
static bool inflate_all(const uint8_t *in, uint64_t in_size, uint8_t *out, uint64_t out_size)
{
	z_stream stream = { .next_in = (Bytef *)(uintptr_t)in, .next_out = out };
	int status;

	if (inflateInit(&stream) != Z_OK)
		return false;
	do {
		uint64_t in_left = in_size - stream.total_in;
		uint64_t out_left = out_size - stream.total_out;

		stream.avail_in = in_left < UINT32_MAX ? (uInt)in_left : UINT32_MAX;
		stream.avail_out = out_left < UINT32_MAX ? (uInt)out_left : UINT32_MAX;
		status = inflate(&stream, Z_NO_FLUSH);
	} while (status == Z_OK);
	inflateEnd(&stream);
	return status == Z_STREAM_END && stream.total_out == out_size;
}

struct error *elf_file_read_section(const struct elf_file *file, const struct elf_section *section,
				    uint64_t limit, uint8_t **ret, size_t *ret_size)
{
	uint8_t *raw scoped(freep) = NULL;
	uint8_t *bytes scoped(freep) = NULL;
	size_t header_size;
	uint64_t size;
	struct error *err = read_raw(file, section, limit, &raw);

	if (err)
		return err;
	if (!section->compressed && strncmp(section->name, ".zdebug", strlen(".zdebug")) != 0) {
		*ret_size = section->size;
		*ret = take(raw);
		return NULL;
	}
	err = stream_of(section, raw, &header_size, &size);
	if (err)
		return err;
	if (size > limit)
		return error_new(ERROR_LIMIT, "section %.64s inflates to %" PRIu64 " bytes",
				 section->name, size);
	bytes = malloc(size ? size : 1);
	if (!bytes)
		return &error_nomem;
	if (!inflate_all(raw + header_size, section->size - header_size, bytes, size))
		return error_new(ERROR_FORMAT, "section %.64s: bad zlib stream", section->name);
	*ret_size = size;
	*ret = take(bytes);
	return NULL;
}
