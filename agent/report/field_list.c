/*
 * Types nest, and a hostile target's may without end: the way inwards is a stack with a limit, and
 * so is the number of rows.
 */
#include "agent/report/field_list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/report/analysed.h"
#include "agent/report/field_path.h"
#include "agent/report/field_value.h"
#include "agent/report/message.h"

enum { STEPS_MAX = 1 << 18 };

/* A struct or an array whose parts are listed one after the other. */
struct level {
	const struct go_type *type; /* NULL: the array that the object is */
	type_id elem;               /* of an array */
	uint64_t offset, next, count;
	size_t path_size; /* of the way to it */
};

struct walk {
	const struct field_list_input *input;
	const struct go_types *types;
	Goheapd__Object *message;
	struct field_path path;
	struct level levels[FIELD_PATH_LEVELS];
	unsigned depth;
	uint32_t steps; /* arrays of nothing have no rows, and may have no end */
	bool *unread;
};

static struct error *field_new(const struct walk *walk, const char *type, uint64_t offset,
			       Goheapd__ObjectField **ret)
{
	Goheapd__ObjectField *field = malloc(sizeof(*field));
	struct error *err;

	if (!field)
		return &error_nomem;
	goheapd__object_field__init(field);
	field->offset = offset;
	err = message_bytes(walk->path.text, walk->path.size, &field->name);
	if (!err)
		err = message_text(type, &field->type);
	if (err)
		goheapd__object_field__free_unpacked(field, NULL);
	else
		*ret = field;
	return err;
}

/* NULL in *ret: there are too many already. */
static struct error *add_field(struct walk *walk, const char *type, uint64_t offset,
			       Goheapd__ObjectField **ret)
{
	Goheapd__Object *message = walk->message;
	struct error *err;

	*ret = NULL;
	if (message->n_fields == FIELD_LIST_MAX) {
		message->fields_cut = true;
		return NULL;
	}
	err = message_reserve((void ***)&message->fields, message->n_fields);
	if (!err)
		err = field_new(walk, type, offset, ret);
	if (!err)
		message->fields[message->n_fields++] = *ret;
	return err;
}

static void note_unread(struct walk *walk, const Goheapd__ObjectField *field)
{
	if (field->missing && strcmp(field->missing, field_not_kept) == 0)
		*walk->unread = true;
}

static bool fits(const struct walk *walk, uint64_t offset, uint64_t size)
{
	return offset <= walk->input->size && size <= walk->input->size - offset;
}

static struct error *list_leaf(struct walk *walk, type_id id, uint64_t offset)
{
	const struct go_type *type = go_type_at(walk->types, id);
	Goheapd__ObjectField *field;
	struct error *err = add_field(walk, type->name, offset, &field);

	if (err || !field)
		return err;
	if (!fits(walk, offset, type->size))
		return message_string(field_is_outside, &field->missing);
	err = field_value_read(walk->input, id, walk->input->address + offset, field);
	if (!err)
		note_unread(walk, field);
	return err;
}

/* Bytes are no rows of their own: they are contents. */
static bool is_bytes(const struct go_types *types, type_id elem)
{
	return go_type_at(types, elem)->kind == GO_KIND_UINT8;
}

static bool has_parts(const struct go_types *types, const struct go_type *type)
{
	if (type->kind == GO_KIND_STRUCT)
		return type->field_count > 0;
	return type->kind == GO_KIND_ARRAY && !is_bytes(types, type->elem);
}

static void enter(struct walk *walk, struct level level)
{
	level.path_size = walk->path.size;
	walk->levels[walk->depth++] = level;
}

static struct error *list_part(struct walk *walk, type_id id, uint64_t offset)
{
	const struct go_type *type = go_type_at(walk->types, id);
	bool is_struct = type->kind == GO_KIND_STRUCT;

	if (!has_parts(walk->types, type))
		return list_leaf(walk, id, offset);
	if (walk->depth == FIELD_PATH_LEVELS || walk->path.is_cut) {
		walk->message->fields_cut = true;
		return NULL;
	}
	enter(walk, (struct level){ .type = type,
				    .elem = type->elem,
				    .offset = offset,
				    .count = is_struct ? type->field_count : type->length });
	return NULL;
}

/* The next part of the innermost level, or the way back out of it. */
static struct error *step(struct walk *walk)
{
	struct level *level = &walk->levels[walk->depth - 1];
	uint64_t number = level->next++;
	const struct go_field *field;

	field_path_shorten(&walk->path, level->path_size);
	if (++walk->steps > STEPS_MAX) {
		walk->message->fields_cut = true;
		return NULL;
	}
	if (number >= level->count) {
		walk->depth--;
		return NULL;
	}
	if (level->type && level->type->kind == GO_KIND_STRUCT) {
		field = &level->type->fields[number];
		field_path_add_field(&walk->path, field->name);
		return list_part(walk, field->type, level->offset + field->offset);
	}
	field_path_add_index(&walk->path, number);
	return list_part(walk, level->elem,
			 level->offset + number * go_type_at(walk->types, level->elem)->size);
}

/* An array that is as long as the object's room allows. */
static struct error *begin_array(struct walk *walk)
{
	type_id elem = walk->input->type.type;
	const struct go_type *type = go_type_at(walk->types, elem);
	uint64_t count = type->size ? walk->input->size / type->size : 0;
	char name[64];
	Goheapd__ObjectField *field;
	struct error *err;

	if (!is_bytes(walk->types, elem)) {
		enter(walk, (struct level){ .elem = elem, .count = count });
		return NULL;
	}
	snprintf(name, sizeof(name), "[%" PRIu64 "]uint8", count);
	err = add_field(walk, name, 0, &field);
	if (!err)
		err = field_value_bytes(walk->input, walk->input->address, count, field);
	if (!err)
		note_unread(walk, field);
	return err;
}

struct error *field_list_fill(const struct field_list_input *input, Goheapd__Object *message,
			      bool *ret_unread)
{
	struct walk *walk scoped(freep) = calloc(1, sizeof(*walk));
	struct error *err;

	if (!walk)
		return &error_nomem;
	*walk = (struct walk){ .input = input,
			       .types = input->analysed->types,
			       .message = message,
			       .unread = ret_unread };
	*ret_unread = false;
	message->has_fields_cut = true;
	if (input->type.type == TYPE_UNKNOWN)
		return NULL;
	err = input->type.is_array ? begin_array(walk) : list_part(walk, input->type.type, 0);
	/* what is left when the rows are full is left out */
	while (!err && walk->depth && !message->fields_cut)
		err = step(walk);
	return err;
}
