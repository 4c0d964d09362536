#include "proto/base/bytes.h"

#include <stdlib.h>

enum { FIRST_CAPACITY = 256 };

void bytes_init(struct bytes *bytes, size_t limit)
{
	*bytes = (struct bytes){ .limit = limit };
}

void bytes_fini(struct bytes *bytes)
{
	free(bytes->data);
	bytes->data = NULL;
	bytes->size = bytes->capacity = 0;
}

/* Doubles, within the limit, until size bytes more fit. */
static struct error *make_room(struct bytes *bytes, size_t size)
{
	size_t need = bytes->size + size;
	size_t capacity = bytes->capacity ? bytes->capacity : FIRST_CAPACITY;
	uint8_t *data;

	while (capacity < need)
		capacity = capacity > bytes->limit / 2 ? bytes->limit : capacity * 2;
	data = realloc(bytes->data, capacity);
	if (!data)
		return &error_nomem;
	bytes->data = data;
	bytes->capacity = capacity;
	return NULL;
}

struct error *bytes_extend(struct bytes *bytes, size_t size, uint8_t **ret)
{
	struct error *err;

	if (size > bytes->limit - bytes->size)
		return error_new(ERROR_LIMIT, "more than %zu bytes", bytes->limit);
	if (size > bytes->capacity - bytes->size) {
		err = make_room(bytes, size);
		if (err)
			return err;
	}
	*ret = bytes->data + bytes->size;
	bytes->size += size;
	return NULL;
}

struct error *bytes_append(struct bytes *bytes, const void *data, size_t size)
{
	uint8_t *room;
	struct error *err;

	if (!size)
		return NULL;
	err = bytes_extend(bytes, size, &room);
	if (err)
		return err;
	memcpy(room, data, size);
	return NULL;
}
