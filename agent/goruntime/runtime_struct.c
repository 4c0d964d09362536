/*
 * The runtime's own structs by name: from DWARF, or as far as the layout knows them.
 */
#include <stddef.h>
#include <string.h>

#include "agent/binary/type_index.h"
#include "agent/goruntime/go_type_table.h"
#include "agent/goruntime/layout.h"
#include "agent/goruntime/made_struct.h"

enum { WORD = 8 };

/* The runtime's structs that the layout knows something of. */
struct runtime_field {
	const char *name;
	size_t place; /* of the field in struct layout; 0 ends the list */
	bool is_pointer;
};

struct runtime_struct {
	const char *name;
	size_t place; /* likewise */
	struct runtime_field fields[8];
};

#define PLACE(member) offsetof(struct layout, member)

static const struct runtime_struct runtime_structs[] = {
	{ "runtime.hmap",
	  PLACE(hmap),
	  { { "count", PLACE(hmap_count), false },
	    { "flags", PLACE(hmap_flags), false },
	    { "B", PLACE(hmap_log_buckets), false },
	    { "buckets", PLACE(hmap_buckets), true },
	    { "oldbuckets", PLACE(hmap_old_buckets), true },
	    { "extra", PLACE(hmap_extra), true } } },
	{ "runtime.mapextra",
	  PLACE(map_extra),
	  { { "overflow", PLACE(map_extra_overflow), true },
	    { "oldoverflow", PLACE(map_extra_old_overflow), true },
	    { "nextOverflow", PLACE(map_extra_next_overflow), true } } },
	{ "internal/runtime/maps.Map",
	  PLACE(swiss_map),
	  { { "used", PLACE(swiss_map_count), false },
	    { "dirPtr", PLACE(swiss_map_directory), true },
	    { "dirLen", PLACE(swiss_map_directory_length), false } } },
	{ "internal/runtime/maps.table",
	  PLACE(swiss_table),
	  { { "used", PLACE(swiss_table_count), false },
	    { "index", PLACE(swiss_table_index), false },
	    { "groups.data", PLACE(swiss_table_groups), true },
	    { "groups.lengthMask", PLACE(swiss_table_length_mask), false } } },
	{ "runtime.hchan",
	  PLACE(hchan),
	  { { "qcount", PLACE(hchan_count), false },
	    { "dataqsiz", PLACE(hchan_capacity), false },
	    { "buf", PLACE(hchan_buffer), true },
	    { "elemsize", PLACE(hchan_elem_size), false },
	    { "elemtype", PLACE(hchan_elem_type), true },
	    { "sendx", PLACE(hchan_send_index), false },
	    { "recvx", PLACE(hchan_receive_index), false } } },
	{ "runtime.sudog",
	  PLACE(sudog),
	  { { "g", PLACE(sudog_g), true },
	    { "elem", PLACE(sudog_elem), true },
	    { "c", PLACE(sudog_channel), true } } },
};

enum { RUNTIME_STRUCTS = sizeof(runtime_structs) / sizeof(runtime_structs[0]) };
_Static_assert((int)RUNTIME_STRUCTS <= (int)GO_TYPES_RUNTIME_STRUCTS,
	       "each has a place in the table");

static const void *layout_member(const struct layout *layout, size_t place)
{
	return (const uint8_t *)layout + place;
}

static enum go_kind number_kind(uint32_t size)
{
	return size == 1   ? GO_KIND_UINT8
	       : size == 2 ? GO_KIND_UINT16
	       : size == 4 ? GO_KIND_UINT32
			   : GO_KIND_UINT64;
}

static struct error *add_runtime_field(struct made_struct *made, const struct runtime_field *field)
{
	const struct layout_field *place = layout_member(made->types->layout, field->place);
	enum go_kind kind = field->is_pointer ? GO_KIND_UNSAFE_POINTER : number_kind(place->size);
	type_id type;
	struct error *err;

	if (!place->size || place->size > WORD)
		return NULL;
	err = go_types_basic(made->types, kind, &type);
	return err ? err : made_struct_add(made, field->name, place->offset, type);
}

static struct error *make_runtime_struct(struct go_types *types, const struct runtime_struct *known,
					 type_id *ret)
{
	const struct layout_struct *place = layout_member(types->layout, known->place);
	struct made_struct made = { .types = types };
	size_t max = sizeof(known->fields) / sizeof(known->fields[0]);
	struct error *err;

	*ret = TYPE_UNKNOWN;
	if (!place->size)
		return NULL;
	err = made_struct_begin(&made, known->name, (uint32_t)max, ret);
	if (err || *ret == TYPE_UNKNOWN)
		return err;
	for (size_t i = 0; i < max && known->fields[i].name && !err; i++)
		err = add_runtime_field(&made, &known->fields[i]);
	made_struct_end(&made, *ret, place->size);
	return err;
}

struct error *go_types_meet_name(struct go_types *types, const char *name, type_id *ret)
{
	uint32_t number = types->index ? type_index_find_name(types->index, name) : 0;
	struct error *err = NULL;

	*ret = TYPE_UNKNOWN;
	if (!strcmp(name, "func()"))
		return go_types_basic(types, GO_KIND_FUNC, ret);
	if (number)
		err = go_types_meet_number(types, number, ret);
	for (uint32_t i = 0; i < RUNTIME_STRUCTS && !err && *ret == TYPE_UNKNOWN; i++) {
		if (strcmp(runtime_structs[i].name, name))
			continue;
		*ret = types->runtime_structs[i];
		if (*ret == TYPE_UNKNOWN)
			err = make_runtime_struct(types, &runtime_structs[i], ret);
		types->runtime_structs[i] = *ret;
	}
	return err;
}
