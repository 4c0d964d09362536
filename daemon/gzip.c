#include "daemon/gzip.h"

#include <zlib.h>

enum { CHUNK = 64 << 10, GZIP_WINDOW = 15 + 16, MEMORY_LEVEL = 8 };

typedef int step_function(z_stream *stream, int flush);

/* Runs a stream to its end; *ret_left is how much of the input is behind it. */
static struct error *run(z_stream *stream, step_function *step, struct bytes *ret)
{
	int status = Z_OK;

	while (status == Z_OK) {
		uint8_t *room;
		struct error *err = bytes_extend(ret, CHUNK, &room);

		if (err)
			return err;
		stream->next_out = room;
		stream->avail_out = CHUNK;
		status = step(stream, Z_FINISH);
		ret->size -= stream->avail_out;
		if (status == Z_BUF_ERROR && stream->avail_out == 0)
			status = Z_OK; /* only the room was too small */
	}
	if (status == Z_MEM_ERROR)
		return &error_nomem;
	if (status != Z_STREAM_END)
		return error_new(ERROR_FORMAT, "gzip: %s",
				 stream->msg ? stream->msg : "the data ends too early");
	return NULL;
}

static struct error *begin(int status)
{
	return status == Z_OK ? NULL : &error_nomem;
}

static bool fits(size_t size)
{
	return size <= UINT32_MAX;
}

struct error *gzip_pack(const void *data, size_t size, struct bytes *ret)
{
	z_stream stream = { .next_in = (uint8_t *)(uintptr_t)data, .avail_in = (unsigned)size };
	struct error *err;

	if (!fits(size))
		return error_new(ERROR_LIMIT, "gzip: %zu bytes are too much", size);
	err = begin(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW,
				 MEMORY_LEVEL, Z_DEFAULT_STRATEGY));
	if (err)
		return err;
	err = run(&stream, deflate, ret);
	deflateEnd(&stream);
	return err;
}

struct error *gzip_unpack(const void *data, size_t size, struct bytes *ret)
{
	z_stream stream = { .next_in = (uint8_t *)(uintptr_t)data, .avail_in = (unsigned)size };
	struct error *err;

	if (!fits(size))
		return error_new(ERROR_LIMIT, "gzip: %zu bytes are too much", size);
	err = begin(inflateInit2(&stream, GZIP_WINDOW));
	if (err)
		return err;
	err = run(&stream, inflate, ret);
	if (!err && stream.avail_in)
		err = error_new(ERROR_FORMAT, "gzip: %u bytes follow its end", stream.avail_in);
	inflateEnd(&stream);
	return err;
}
