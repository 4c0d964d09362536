#include "agent/report/field_path.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void append(struct field_path *path, const char *text, size_t size)
{
	if (path->is_cut || size >= FIELD_PATH_BYTES - path->size) {
		path->is_cut = true;
		return;
	}
	memcpy(path->text + path->size, text, size);
	path->size += size;
	path->text[path->size] = '\0';
}

void field_path_add_field(struct field_path *path, const char *name)
{
	if (path->size)
		append(path, ".", 1);
	append(path, name, strlen(name));
}

void field_path_add_index(struct field_path *path, uint64_t index)
{
	char text[32];

	append(path, text, (size_t)snprintf(text, sizeof(text), "[%" PRIu64 "]", index));
}

void field_path_shorten(struct field_path *path, size_t size)
{
	path->size = size;
	path->text[size] = '\0';
	path->is_cut = false;
}

/* The field that offset falls in, or NULL. Fields are sorted, and may be of no size. */
static const struct go_field *field_at(const struct go_types *types, const struct go_type *type,
				       uint64_t offset)
{
	uint32_t low = 0, high = type->field_count;
	const struct go_field *field;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (type->fields[middle].offset <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return NULL;
	field = &type->fields[low - 1];
	return offset - field->offset < go_type_at(types, field->type)->size ? field : NULL;
}

/* One step inwards; false where it ends. */
static bool step(struct field_path *path, const struct go_types *types, type_id *type,
		 uint64_t *offset)
{
	const struct go_type *outer = go_type_at(types, *type);

	if (outer->kind == GO_KIND_STRUCT) {
		const struct go_field *field = field_at(types, outer, *offset);

		if (!field)
			return false;
		field_path_add_field(path, field->name);
		*type = field->type;
		*offset -= field->offset;
		return true;
	}
	if (outer->kind == GO_KIND_ARRAY) {
		uint64_t size = go_type_at(types, outer->elem)->size;

		if (!size || *offset / size >= outer->length)
			return false;
		field_path_add_index(path, *offset / size);
		*type = outer->elem;
		*offset %= size;
		return true;
	}
	return false;
}

type_id field_path_find(struct field_path *path, const struct go_types *types,
			struct object_type type, uint64_t offset)
{
	uint64_t size = go_type_at(types, type.type)->size;
	type_id found = type.type;

	if (found == TYPE_UNKNOWN || !size || (!type.is_array && offset >= size))
		return TYPE_UNKNOWN;
	if (type.is_array) {
		field_path_add_index(path, offset / size);
		offset %= size;
	}
	for (int i = 0; i < FIELD_PATH_LEVELS && step(path, types, &found, &offset); i++)
		;
	return found;
}

bool field_type_may_point(const struct go_types *types, type_id type)
{
	switch (go_type_at(types, type)->kind) {
	case GO_KIND_INVALID:
	case GO_KIND_ARRAY:
	case GO_KIND_CHAN:
	case GO_KIND_FUNC:
	case GO_KIND_INTERFACE:
	case GO_KIND_MAP:
	case GO_KIND_POINTER:
	case GO_KIND_SLICE:
	case GO_KIND_STRING:
	case GO_KIND_STRUCT:
	case GO_KIND_UNSAFE_POINTER:
		return true;
	default:
		return false;
	}
}
