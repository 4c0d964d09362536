#include "agent/goruntime/made_struct.h"

#include <stdlib.h>
#include <string.h>

#include "agent/binary/type_index.h"
#include "agent/goruntime/go_type_table.h"

enum { WORD = 8 };

/* Basic types that something is made of. */
static const struct {
	const char *name;
	uint8_t size, ptr_bytes;
} basics[] = {
	[GO_KIND_UINT8] = { "uint8", 1, 0 },
	[GO_KIND_UINT16] = { "uint16", 2, 0 },
	[GO_KIND_UINT32] = { "uint32", 4, 0 },
	[GO_KIND_UINT64] = { "uint64", 8, 0 },
	[GO_KIND_UINTPTR] = { "uintptr", 8, 0 },
	[GO_KIND_FUNC] = { "func()", 8, 8 },
	[GO_KIND_UNSAFE_POINTER] = { "unsafe.Pointer", 8, 8 },
};

static struct error *make_basic(struct go_types *types, enum go_kind kind, type_id *ret)
{
	struct error *err = go_types_add(types, ret);
	struct go_type *type;

	if (err || *ret == TYPE_UNKNOWN)
		return err;
	type = &go_types_entry(types, *ret)->type;
	type->name = basics[kind].name;
	type->size = basics[kind].size;
	type->ptr_bytes = basics[kind].ptr_bytes;
	type->direct_interface = basics[kind].ptr_bytes != 0;
	type->kind = kind;
	return NULL;
}

struct error *go_types_basic(struct go_types *types, enum go_kind kind, type_id *ret)
{
	struct error *err = NULL;
	uint32_t number;

	*ret = types->basic[kind];
	if (*ret)
		return NULL;
	number = types->index ? type_index_find_name(types->index, basics[kind].name) : 0;
	if (number)
		err = go_types_meet_number(types, number, ret);
	if (!err && go_types_entry(types, *ret)->type.kind != kind)
		err = make_basic(types, kind, ret);
	if (!err)
		types->basic[kind] = *ret;
	return err;
}

struct error *go_types_join(struct go_types *types, const char *before, const char *after,
			    const char **ret)
{
	size_t first = strlen(before), second = strlen(after);
	void *name;
	struct error *err = text_pool_take(&types->pool, first + second + 1, &name);

	if (err)
		return err;
	memcpy(name, before, first);
	memcpy((char *)name + first, after, second);
	*ret = name;
	return NULL;
}

static struct error *make_pointer(struct go_types *types, type_id elem, type_id *ret)
{
	const char *name;
	struct error *err = go_types_join(types, "*", go_type_at(types, elem)->name, &name);
	struct go_type *type;

	if (!err)
		err = go_types_add(types, ret);
	if (err || *ret == TYPE_UNKNOWN)
		return err;
	type = &go_types_entry(types, *ret)->type;
	type->name = name;
	type->size = type->ptr_bytes = WORD;
	type->elem = elem;
	type->kind = GO_KIND_POINTER;
	type->direct_interface = true;
	return NULL;
}

struct error *go_types_meet_pointer(struct go_types *types, uint64_t key, type_id *ret)
{
	struct error *err;

	*ret = TYPE_UNKNOWN;
	if (key > types->count || go_types_known(&types->pointers_to, key, ret))
		return NULL;
	err = make_pointer(types, (type_id)(key - 1), ret);
	if (err && go_types_is_final(err))
		return err;
	error_free(err);
	return go_types_remember(&types->pointers_to, key, *ret);
}

struct error *made_struct_begin(struct made_struct *made, const char *name, uint32_t capacity,
				type_id *ret)
{
	struct go_types *types = made->types;
	struct type_details *details = NULL;
	struct go_field *fields;
	struct error *err = go_types_fields(types, capacity, &fields);

	*ret = TYPE_UNKNOWN;
	if (!err && fields)
		err = go_types_add_details(types, ret, &details);
	if (err || !details)
		return err;
	details->origin = TYPE_MADE;
	made->place = (uint32_t)(details - types->details);
	made->fields = fields;
	made->capacity = capacity;
	go_types_entry(types, *ret)->type.name = name;
	go_types_entry(types, *ret)->type.kind = GO_KIND_STRUCT;
	return NULL;
}

struct error *made_struct_add(struct made_struct *made, const char *name, uint64_t offset,
			      type_id type)
{
	uint64_t size = go_type_at(made->types, type)->size;

	if (made->count == made->capacity || offset < made->end || size > UINT32_MAX ||
	    offset > UINT32_MAX)
		return NULL;
	made->fields[made->count++] = (struct go_field){ name, offset, type };
	made->end = offset + size;
	return go_types_add_part(made->types, made->place, made->capacity, type);
}

void made_struct_end(struct made_struct *made, type_id id, uint64_t size)
{
	struct go_type *type = &go_types_entry(made->types, id)->type;

	type->fields = made->fields;
	type->field_count = made->count;
	type->size = size > made->end ? size : (made->end + WORD - 1) & ~(uint64_t)(WORD - 1);
}

static struct error *add_refined(struct made_struct *made, const struct go_type *type,
				 uint32_t field, type_id of_field)
{
	struct error *err = NULL;

	for (uint32_t i = 0; i < type->field_count && !err; i++)
		err = made_struct_add(made, type->fields[i].name, type->fields[i].offset,
				      i == field ? of_field : type->fields[i].type);
	return err;
}

struct error *go_types_meet_refined(struct go_types *types, uint64_t key, type_id *ret)
{
	const uint64_t mask = (1 << GO_TYPES_BITS) - 1;
	type_id id = (type_id)((key - 1) >> 2 * GO_TYPES_BITS);
	type_id of_field = (type_id)((key - 1) & mask);
	uint32_t field = (uint32_t)((key - 1) >> GO_TYPES_BITS & mask);
	struct made_struct made = { .types = types };
	const struct go_type *type = go_type_at(types, id);
	struct error *err;

	*ret = TYPE_UNKNOWN;
	if (go_types_known(&types->refined, key, ret))
		return NULL;
	err = made_struct_begin(&made, type->name, type->field_count + 1, ret);
	if (!err && *ret != TYPE_UNKNOWN)
		err = add_refined(&made, type, field, of_field);
	if (err)
		return err;
	if (*ret != TYPE_UNKNOWN)
		made_struct_end(&made, *ret, type->size);
	return go_types_remember(&types->refined, key, *ret);
}
