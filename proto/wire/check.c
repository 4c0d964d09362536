#include "proto/wire/check.h"

#include <inttypes.h>
#include <string.h>

#include "proto/base/cursor.h"
#include "proto/wire/limits.h"

/* How a field's value lies on the wire. */
enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

/* An element of a repeated field: its pointer or value, and the decoder's note of where it lies. */
enum { ELEMENT_COST = 64 };

/* A message that is being looked at; its cursor ends where the message does. */
struct level {
	const ProtobufCMessageDescriptor *descriptor;
	const uint8_t *end;
	uint32_t last_number; /* of the fields met so far */
};

struct check {
	struct cursor cursor; /* over all bytes; end is the innermost message's */
	struct level levels[LIMIT_MESSAGE_DEPTH];
	unsigned depth;
	uint64_t memory_left;
};

static enum wire_type wire_type_of(ProtobufCType type)
{
	switch (type) {
	case PROTOBUF_C_TYPE_FIXED64:
	case PROTOBUF_C_TYPE_SFIXED64:
	case PROTOBUF_C_TYPE_DOUBLE:
		return WIRE_FIXED64;
	case PROTOBUF_C_TYPE_FIXED32:
	case PROTOBUF_C_TYPE_SFIXED32:
	case PROTOBUF_C_TYPE_FLOAT:
		return WIRE_FIXED32;
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_BYTES:
	case PROTOBUF_C_TYPE_MESSAGE:
		return WIRE_BYTES;
	default:
		return WIRE_VARINT;
	}
}

static struct error *spend(struct check *check, uint64_t bytes)
{
	if (bytes > check->memory_left)
		return error_new(ERROR_LIMIT, "%s: the message takes too much memory",
				 check->cursor.name);
	check->memory_left -= bytes;
	return NULL;
}

/* Enters a message that ends at end. */
static struct error *enter(struct check *check, const ProtobufCMessageDescriptor *descriptor,
			   const uint8_t *end)
{
	if (check->depth == LIMIT_MESSAGE_DEPTH)
		return error_new(ERROR_LIMIT, "%s: messages nested deeper than %d",
				 check->cursor.name, LIMIT_MESSAGE_DEPTH);
	check->levels[check->depth++] = (struct level){ .descriptor = descriptor, .end = end };
	check->cursor.end = end;
	return spend(check, descriptor->sizeof_message);
}

/* Leaves the messages that end here; the cursor's end is then that of the one around them. */
static void leave_finished(struct check *check)
{
	while (check->depth && check->cursor.pos == check->levels[check->depth - 1].end) {
		check->depth--;
		if (check->depth)
			check->cursor.end = check->levels[check->depth - 1].end;
	}
}

static struct error *check_varint(struct check *check, const ProtobufCFieldDescriptor *field)
{
	uint64_t value;
	struct error *err = cursor_uvarint(&check->cursor, &value);

	if (err)
		return err;
	switch (field->type) {
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_SINT32:
		if (value > UINT32_MAX)
			break;
		return NULL;
	case PROTOBUF_C_TYPE_BOOL:
		if (value > 1)
			break;
		return NULL;
	case PROTOBUF_C_TYPE_ENUM:
		if (value > INT32_MAX ||
		    !protobuf_c_enum_descriptor_get_value(field->descriptor, (int)value))
			break;
		return NULL;
	default:
		return NULL;
	}
	return error_new(ERROR_FORMAT, "%s: %s cannot be %" PRIu64, check->cursor.name, field->name,
			 value);
}

static struct error *check_bytes(struct check *check, const ProtobufCFieldDescriptor *field)
{
	const uint8_t *value;
	uint64_t size;
	struct error *err = cursor_uvarint(&check->cursor, &size);

	if (err)
		return err;
	if (size > cursor_left(&check->cursor))
		return error_new(ERROR_FORMAT, "%s: %s ends beyond its message", check->cursor.name,
				 field->name);
	if (field->type == PROTOBUF_C_TYPE_MESSAGE)
		return enter(check, field->descriptor, check->cursor.pos + size);
	err = cursor_take(&check->cursor, size, &value);
	if (err)
		return err;
	if (field->type == PROTOBUF_C_TYPE_STRING && memchr(value, '\0', size))
		return error_new(ERROR_FORMAT, "%s: a NUL in %s", check->cursor.name, field->name);
	return spend(check, size + 1);
}

static struct error *check_value(struct check *check, const ProtobufCFieldDescriptor *field)
{
	switch (wire_type_of(field->type)) {
	case WIRE_FIXED64:
		return cursor_skip(&check->cursor, 8);
	case WIRE_FIXED32:
		return cursor_skip(&check->cursor, 4);
	case WIRE_BYTES:
		return check_bytes(check, field);
	default:
		return check_varint(check, field);
	}
}

/* Reads a key and finds its field: known, of its wire type, in order, only once unless repeated. */
static struct error *check_key(struct check *check, const ProtobufCFieldDescriptor **ret)
{
	struct level *level = &check->levels[check->depth - 1];
	const ProtobufCFieldDescriptor *field;
	uint64_t key;
	struct error *err = cursor_uvarint(&check->cursor, &key);

	if (err)
		return err;
	if (key > UINT32_MAX)
		return error_new(ERROR_FORMAT, "%s: field key 0x%" PRIx64, check->cursor.name, key);
	field = protobuf_c_message_descriptor_get_field(level->descriptor, (unsigned)(key >> 3));
	if (!field || (key & 7) != wire_type_of(field->type))
		return error_new(ERROR_FORMAT, "%s: unknown field %" PRIu64, check->cursor.name,
				 key >> 3);
	if (field->id < level->last_number ||
	    (field->id == level->last_number && field->label != PROTOBUF_C_LABEL_REPEATED))
		return error_new(ERROR_FORMAT, "%s: %s is out of order", check->cursor.name,
				 field->name);
	level->last_number = field->id;
	*ret = field;
	return NULL;
}

static struct error *check_field(struct check *check)
{
	const ProtobufCFieldDescriptor *field;
	struct error *err = check_key(check, &field);

	if (err)
		return err;
	if (field->label == PROTOBUF_C_LABEL_REPEATED) {
		err = spend(check, ELEMENT_COST);
		if (err)
			return err;
	}
	return check_value(check, field);
}

struct error *wire_check(const ProtobufCMessageDescriptor *descriptor, const void *bytes,
			 size_t size, uint64_t memory_max)
{
	struct check check = { .memory_left = memory_max };
	struct error *err;

	cursor_init(&check.cursor, descriptor->name, bytes, size);
	err = enter(&check, descriptor, check.cursor.end);
	if (err)
		return err;
	leave_finished(&check);
	while (check.depth) {
		err = check_field(&check);
		if (err)
			return err;
		leave_finished(&check);
	}
	return NULL;
}
