/*
 * What of a type follows from its parts: the name of one that a descriptor tells of; the pointers
 * of one that DWARF alone knows, which says nothing of them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/binary/type_index.h"
#include "agent/goruntime/go_type_table.h"

enum { WORD = 8, POINTER_SIZE = 8 };

/* The last byte of its pointers that a part has in the whole. */
static uint64_t pointers_end(const struct go_types *types, uint64_t offset, type_id part)
{
	uint64_t ptr_bytes = go_type_at(types, part)->ptr_bytes;

	return ptr_bytes ? offset + ptr_bytes : 0;
}

static uint64_t struct_pointers(const struct go_types *types, const struct go_type *type)
{
	uint64_t end = 0;

	for (uint32_t i = 0; i < type->field_count; i++) {
		uint64_t of_field =
		    pointers_end(types, type->fields[i].offset, type->fields[i].type);

		end = of_field > end ? of_field : end;
	}
	return end;
}

static uint64_t find_pointers(const struct go_types *types, const struct go_type *type)
{
	switch (type->kind) {
	case GO_KIND_CHAN:
	case GO_KIND_FUNC:
	case GO_KIND_MAP:
	case GO_KIND_POINTER:
	case GO_KIND_UNSAFE_POINTER:
	case GO_KIND_SLICE:
	case GO_KIND_STRING:
		return WORD;
	case GO_KIND_INTERFACE:
		return 2 * WORD;
	case GO_KIND_STRUCT:
		return struct_pointers(types, type);
	case GO_KIND_ARRAY:
		/* The elements fill it. */
		return type->length
			   ? pointers_end(types, type->size - type->size / type->length, type->elem)
			   : 0;
	default:
		return 0;
	}
}

/* Values that are one pointer lie in an interface as they are; cmd/compile, types.IsDirectIface. */
static bool is_direct(const struct go_types *types, const struct go_type *type)
{
	switch (type->kind) {
	case GO_KIND_CHAN:
	case GO_KIND_FUNC:
	case GO_KIND_MAP:
	case GO_KIND_POINTER:
	case GO_KIND_UNSAFE_POINTER:
		return true;
	case GO_KIND_ARRAY:
		return type->length == 1 && go_type_at(types, type->elem)->direct_interface;
	case GO_KIND_STRUCT:
		return type->field_count == 1 &&
		       go_type_at(types, type->fields[0].type)->direct_interface;
	default:
		return false;
	}
}

/* Types that only the runtime's own code handles, like a map's buckets, have this before. */
static const char no_algorithms[] = "noalg.";

static struct error *name_indexed(struct go_types *types, uint32_t number, const char **ret)
{
	struct indexed_type indexed;
	struct error *err = type_index_type(types->index, number, &indexed);

	if (err)
		return err;
	*ret = indexed.name;
	if (!strncmp(*ret, no_algorithms, sizeof(no_algorithms) - 1))
		*ret += sizeof(no_algorithms) - 1;
	return NULL;
}

/* Of what we made: an array "[8]T", or a bucket "map.bucket[K]V"; others have theirs already. */
static struct error *name_made(struct go_types *types, const struct type_entry *entry,
			       const struct type_details *details, const char **ret)
{
	char length[32];
	const char *key;
	struct error *err;

	if (entry->type.kind == GO_KIND_ARRAY) {
		snprintf(length, sizeof(length), "[%" PRIu64 "]", entry->type.length);
		return go_types_join(types, length, go_type_at(types, entry->type.elem)->name, ret);
	}
	if (!details->map)
		return NULL;
	err = go_types_join(types, "map.bucket[", go_type_at(types, details->map->key)->name, &key);
	if (!err)
		err = go_types_join(types, key, "]", &key);
	return err ? err
		   : go_types_join(types, key, go_type_at(types, details->map->elem)->name, ret);
}

static struct error *find_name(struct go_types *types, struct type_entry *entry,
			       const struct type_details *details)
{
	const char *name = entry->type.name;
	struct error *err = NULL;

	if (details->origin == TYPE_OF_INDEX)
		err = name_indexed(types, details->number, &name);
	else if (details->origin == TYPE_OF_DESCRIPTOR)
		err = go_types_name(types, details, &name, &entry->is_plain);
	else
		err = name_made(types, entry, details, &name);
	if (err && !go_types_is_final(err)) {
		error_free(err);
		err = NULL;
	}
	entry->type.name = name;
	return err;
}

struct error *go_types_finish(struct go_types *types, struct type_entry *entry,
			      const struct type_details *details)
{
	struct go_type *type = &entry->type;
	taddr pointer_key = (taddr)type->elem + 1;
	type_id known;
	struct error *err = find_name(types, entry, details);

	if (details->origin != TYPE_OF_DESCRIPTOR) {
		type->ptr_bytes = find_pointers(types, type);
		type->direct_interface = is_direct(types, type);
	}
	/* One that has a name is no pointer that anything but itself would be called. */
	if (err || type->kind != GO_KIND_POINTER || details->rtype.named || !type->elem ||
	    go_types_known(&types->pointers_to, pointer_key, &known))
		return err;
	return go_types_remember(&types->pointers_to, pointer_key, details->id);
}
