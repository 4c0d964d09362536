/*
 * The bucket of a map to go1.23, made up from its keys and values as the compiler makes it: of maps
 * that reflect makes there is no description, nor where DWARF knows the map alone.
 *
 *	[8]uint8 | [8]key | [8]elem | overflow
 *
 * What is larger than a slot may be has a pointer there. cmd/compile/internal/reflectdata,
 *MapBucketType.
 */
#include <stdlib.h>

#include "agent/goruntime/go_type_table.h"
#include "agent/goruntime/layout.h"
#include "agent/goruntime/made_struct.h"

enum { SLOTS = 8, WORD = 8, INLINE_MAX = 128 };

static struct error *make_array(struct go_types *types, type_id elem, type_id *ret)
{
	struct type_details *details;
	struct error *err = go_types_add_details(types, ret, &details);
	struct go_type *array;

	if (err || !details)
		return err;
	details->origin = TYPE_MADE;
	array = &go_types_entry(types, *ret)->type;
	array->kind = GO_KIND_ARRAY;
	array->elem = elem;
	array->length = SLOTS;
	array->size = SLOTS * go_type_at(types, elem)->size;
	return go_types_add_part(types, (uint32_t)(details - types->details), 1, elem);
}

/* The type of the array that a map's keys or values lie in; the caller knows that they fit. */
static struct error *slots_of(struct go_types *types, type_id type, bool indirect, type_id *ret)
{
	struct error *err = NULL;

	if (indirect)
		err = go_types_basic(types, GO_KIND_UNSAFE_POINTER, &type);
	return err ? err : make_array(types, type, ret);
}

static struct error *add_slots(struct made_struct *made, const char *name, type_id type,
			       bool indirect)
{
	type_id slots;
	struct error *err = slots_of(made->types, type, indirect, &slots);

	return err ? err : made_struct_add(made, name, made->end, slots);
}

static bool is_slot(const struct go_types *types, type_id type, bool indirect)
{
	return type != TYPE_UNKNOWN && (indirect || go_type_at(types, type)->size <= INLINE_MAX);
}

struct error *go_types_make_bucket(struct go_types *types, struct go_type *map)
{
	struct made_struct made = { .types = types };
	type_id byte, pointer, bucket;
	struct error *err;

	if (!layout_has(types->layout, map_type_bucket) ||
	    !is_slot(types, map->key, map->indirect_key) ||
	    !is_slot(types, map->elem, map->indirect_elem))
		return NULL;
	err = go_types_basic(types, GO_KIND_UINT8, &byte);
	if (!err)
		err = go_types_basic(types, GO_KIND_UNSAFE_POINTER, &pointer);
	if (!err)
		err = made_struct_begin(&made, "map.bucket", 6, &bucket);
	if (err || bucket == TYPE_UNKNOWN)
		return err;
	err = add_slots(&made, "topbits", byte, false);
	if (!err)
		err = add_slots(&made, "keys", map->key, map->indirect_key);
	if (!err)
		err = add_slots(&made, "elems", map->elem, map->indirect_elem);
	if (!err)
		err = made_struct_add(&made, "overflow",
				      (made.end + WORD - 1) & ~(uint64_t)(WORD - 1), pointer);
	if (err)
		return err;
	made_struct_end(&made, bucket, 0);
	types->details[made.place].map = map;
	map->bucket = bucket;
	/* For its name. */
	err = go_types_add_part(types, made.place, made.capacity, map->key);
	return err ? err : go_types_add_part(types, made.place, made.capacity, map->elem);
}
