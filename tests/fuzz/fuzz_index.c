/* Index files whose checksum is right, and the layouts in them. */
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "agent/binary/index.h"
#include "agent/goruntime/layout.h"
#include "proto/base/bytes.h"
#include "proto/base/cursor.h"
#include "tests/fuzz/fuzz.h"

/* As agent/binary/index.c lays it out. */
enum { CHECKSUM_OFFSET = 12, SIZE_OFFSET = 16, HEADER_SIZE = 24 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct index_key key = { { 1, 2, 3, 4, 5 }, { 6, 7, 8, 9, 10 }, "id", 2 };
	struct layout *layout = NULL;
	const uint8_t *stored;
	size_t stored_size;
	uint8_t *copy = malloc(size + 1);
	struct error *err;

	if (!copy)
		return 0;
	memcpy(copy, data, size);
	if (size >= HEADER_SIZE) {
		store_u64le(copy + SIZE_OFFSET, size - HEADER_SIZE);
		store_u32le(copy + CHECKSUM_OFFSET,
			    (uint32_t)crc32_z(0, copy + SIZE_OFFSET, size - SIZE_OFFSET));
	}
	err = index_decode(INDEX_LAYOUT, copy, size, &key, &stored, &stored_size);
	if (!err) {
		struct cursor c;

		cursor_init(&c, "layout", stored, stored_size);
		err = layout_load(&c, &layout);
	}
	error_free(err);
	layout_free(layout);
	free(copy);
	return 0;
}
