/*
 * The facts of types whose parts are met: from descriptors, or from DWARF. Parts lie inside of the
 * whole, whatever the target says; one that would not is not known.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/binary/type_index.h"
#include "agent/goruntime/go_type_table.h"
#include "agent/goruntime/layout.h"
#include "agent/goruntime/module.h"
#include "proto/base/checked.h"

struct error *go_types_fields(struct go_types *types, uint32_t count, struct go_field **ret)
{
	void *fields;
	struct error *err;

	*ret = NULL;
	if (!count || types->field_count + count > GO_TYPES_FIELDS_MAX)
		return NULL;
	err = text_pool_take(&types->pool, count * sizeof(**ret), &fields);
	if (err && !go_types_is_final(err)) {
		error_free(err);
		return NULL;
	}
	if (err)
		return err;
	types->field_count += count;
	*ret = fields;
	return NULL;
}

static bool fits(const struct go_types *types, const struct go_type *whole, uint64_t offset,
		 type_id part)
{
	return offset <= whole->size &&
	       go_types_entry(types, part)->type.size <= whole->size - offset;
}

/* An array's elements fill it. */
static void check_array(const struct go_types *types, struct go_type *array)
{
	uint64_t size;

	if (!checked_mul(go_types_entry(types, array->elem)->type.size, array->length, &size) ||
	    size != array->size) {
		array->elem = TYPE_UNKNOWN;
		array->length = 0;
	}
}

/* The i-th part of a descriptor's name: a field, a parameter, a method. */
static struct error *meet_item(struct go_types *types, const struct rtype *rtype, uint32_t i,
			       type_id *ret)
{
	struct rtype_field field;
	taddr addr = 0, name;
	struct error *err;

	if (rtype->kind == GO_KIND_STRUCT) {
		err = rtype_field(&types->source, rtype, i, &field);
		addr = err ? 0 : field.type;
	} else if (rtype->kind == GO_KIND_FUNC) {
		err = rtype_parameter(&types->source, rtype, i, &addr);
	} else {
		err = rtype_method(&types->source, rtype, i, &name, &addr);
	}
	*ret = TYPE_UNKNOWN;
	if (err && !go_types_is_final(err)) {
		error_free(err);
		return NULL;
	}
	return err ? err : go_types_meet_descriptor(types, addr, ret);
}

static struct error *meet_items(struct go_types *types, uint32_t place, const struct rtype *rtype)
{
	uint32_t count = rtype->item_count + rtype->out_count;
	struct error *err = NULL;

	for (uint32_t i = 0; i < count && !err; i++) {
		type_id part;

		err = meet_item(types, rtype, i, &part);
		if (!err)
			err = go_types_add_part(types, place, count, part);
	}
	return err;
}

static struct error *copy_field_name(struct go_types *types, taddr name, const char **ret)
{
	char *text scoped(freep) = NULL;
	struct error *err = rtype_text(&types->source, name, &text, NULL);

	if (!err)
		err = text_pool_copy(&types->pool, text, strlen(text), ret);
	if (err && !go_types_is_final(err)) {
		error_free(err);
		*ret = "?";
		return NULL;
	}
	return err;
}

/* False at a field that ends the list: the target's contradicts itself from there on. */
static struct error *fill_field(struct go_types *types, const struct go_type *whole,
				const struct rtype *rtype, uint32_t i, type_id part,
				struct go_field *ret, bool *ret_good)
{
	struct rtype_field field;
	struct error *err = rtype_field(&types->source, rtype, i, &field);

	*ret_good = !err && fits(types, whole, field.offset, part);
	if (err && !go_types_is_final(err)) {
		error_free(err);
		return NULL;
	}
	if (err || !*ret_good)
		return err;
	ret->offset = field.offset;
	ret->type = part;
	return copy_field_name(types, field.name, &ret->name);
}

static struct error *fill_fields(struct go_types *types, struct go_type *type, uint32_t place,
				 const struct rtype *rtype)
{
	struct go_field *fields;
	struct error *err = go_types_fields(types, rtype->item_count, &fields);

	if (err || !fields)
		return err;
	for (uint32_t i = 0; i < rtype->item_count; i++) {
		bool good;

		err = fill_field(types, type, rtype, i, types->details[place].parts[i], &fields[i],
				 &good);
		if (err || !good || (i && fields[i].offset < fields[i - 1].offset))
			break;
		type->field_count = i + 1;
	}
	type->fields = fields;
	return err;
}

/* Where nobody describes it, it follows from keys and values. */
static struct error *meet_bucket(struct go_types *types, const struct rtype *rtype,
				 struct go_type *type)
{
	bool described = module_table_find_types(types->modules, rtype->addr) ||
			 !layout_has(types->layout, map_type_bucket);
	struct error *err = NULL;

	if (described)
		err = go_types_meet_descriptor(types, rtype->bucket, &type->bucket);
	if (!err && type->bucket == TYPE_UNKNOWN)
		err = go_types_make_bucket(types, type);
	return err;
}

static struct error *meet_parts(struct go_types *types, uint32_t place, const struct rtype *rtype,
				struct go_type *type)
{
	struct error *err = go_types_meet_descriptor(types, rtype->elem, &type->elem);

	if (!err)
		err = go_types_meet_descriptor(types, rtype->key, &type->key);
	if (!err && rtype->kind == GO_KIND_MAP)
		err = meet_bucket(types, rtype, type);
	if (!err && rtype->key)
		err = go_types_add_part(types, place, 2, type->key);
	if (!err && rtype->elem)
		err = go_types_add_part(types, place, 2, type->elem);
	return err;
}

struct error *go_types_fill_descriptor(struct go_types *types, uint32_t place)
{
	struct rtype rtype = types->details[place].rtype;
	struct go_type *type = &go_types_entry(types, types->details[place].id)->type;
	struct error *err = NULL;

	if (types->part_count > GO_TYPES_PARTS_MAX)
		return NULL;
	switch (rtype.kind) {
	case GO_KIND_STRUCT:
		err = meet_items(types, place, &rtype);
		return err ? err : fill_fields(types, type, place, &rtype);
	case GO_KIND_FUNC:
	case GO_KIND_INTERFACE:
		/* Of use for a name alone. */
		return rtype.named ? NULL : meet_items(types, place, &rtype);
	default:
		err = meet_parts(types, place, &rtype, type);
		if (!err && rtype.kind == GO_KIND_ARRAY)
			check_array(types, type);
		return err;
	}
}

static struct error *fill_indexed_fields(struct go_types *types, struct go_type *type,
					 uint32_t place, const struct indexed_type *indexed)
{
	struct go_field *fields = NULL;
	struct error *err = NULL;

	if (indexed->field_count <= RTYPE_FIELDS_MAX)
		err = go_types_fields(types, indexed->field_count, &fields);
	for (uint32_t i = 0; i < indexed->field_count && fields && !err; i++) {
		struct indexed_field field;
		type_id part = TYPE_UNKNOWN;

		err = type_index_field(types->index, indexed->first_field + i, &field);
		if (!err)
			err = go_types_meet_number(types, field.type, &part);
		if (!err)
			err = go_types_add_part(types, place, indexed->field_count, part);
		if (err || !fits(types, type, field.offset, part) ||
		    (i && field.offset < fields[i - 1].offset))
			break;
		fields[i] = (struct go_field){ field.name, field.offset, part };
		type->field_count = i + 1;
	}
	type->fields = fields;
	return err;
}

/* The artificial struct that DWARF has for a map's slots, by its parts' names. */
static struct error *find_bucket(struct go_types *types, const struct indexed_type *map,
				 type_id *ret)
{
	static const char *const forms[] = { "group<", "bucket<" };
	struct indexed_type key, elem;
	struct error *err = type_index_type(types->index, map->key, &key);
	uint32_t number = 0;

	if (!err)
		err = type_index_type(types->index, map->elem, &elem);
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]) && !err && !number; i++) {
		size_t size = strlen(forms[i]) + strlen(key.name) + strlen(elem.name) + 3;
		char *name scoped(freep) = malloc(size);

		if (!name)
			return &error_nomem;
		strcpy(stpcpy(stpcpy(stpcpy(stpcpy(name, forms[i]), key.name), ","), elem.name),
		       ">");
		number = type_index_find_name(types->index, name);
	}
	if (!err && number)
		err = go_types_meet_number(types, number, ret);
	return err;
}

/* runtime/map.go, internal/abi/map.go: keys and values of more than 128 bytes lie elsewhere. */
enum { MAP_INLINE_MAX = 128 };

static struct error *fill_indexed_map(struct go_types *types, struct go_type *type,
				      const struct indexed_type *indexed)
{
	struct error *err = find_bucket(types, indexed, &type->bucket);

	type->indirect_key = go_types_entry(types, type->key)->type.size > MAP_INLINE_MAX;
	type->indirect_elem = go_types_entry(types, type->elem)->type.size > MAP_INLINE_MAX;
	return err || type->bucket ? err : go_types_make_bucket(types, type);
}

static struct error *fill_indexed(struct go_types *types, struct go_type *type, uint32_t place,
				  const struct indexed_type *indexed)
{
	struct error *err;

	if (type->kind == GO_KIND_STRUCT)
		return fill_indexed_fields(types, type, place, indexed);
	err = go_types_meet_number(types, indexed->elem, &type->elem);
	if (!err)
		err = go_types_meet_number(types, indexed->key, &type->key);
	if (err)
		return err;
	if (type->kind == GO_KIND_MAP)
		return fill_indexed_map(types, type, indexed);
	if (type->kind != GO_KIND_ARRAY)
		return NULL;
	check_array(types, type);
	return go_types_add_part(types, place, 1, type->elem);
}

struct error *go_types_fill_number(struct go_types *types, uint32_t place)
{
	struct go_type *type = &go_types_entry(types, types->details[place].id)->type;
	struct indexed_type indexed;
	struct error *err = type_index_type(types->index, types->details[place].number, &indexed);

	if (!err && types->part_count <= GO_TYPES_PARTS_MAX)
		err = fill_indexed(types, type, place, &indexed);
	if (err && !go_types_is_final(err)) {
		error_free(err);
		return NULL;
	}
	return err;
}
