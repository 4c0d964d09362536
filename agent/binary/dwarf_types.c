/*
 * Go writes a compile unit for each package, and all types into one of the runtime's. Of such a
 * unit only the DIEs right below it matter here: structs, typedefs, constants, variables. Their
 * offsets are kept by name; a look-up reads the DIE again.
 */
#include "agent/binary/dwarf_types.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <dwarf.h>

#include "agent/binary/dwarf_object.h"
#include "proto/base/bytes.h"

enum {
	NAMES_MAX = 1 << 24,      /* names that are kept */
	FIRST_CAPACITY = 1 << 12, /* of the hash; a power of two */
	TYPE_CHAIN_MAX = 16,      /* typedefs in a row */
	MEMBERS_MAX = 4096,       /* of one struct: runtime.m has some 80 */
	PATH_MAX_SIZE = 256,
	POINTER_SIZE = 8,
	GO_LANGUAGE = DW_LANG_Go,
};

enum name_kind { NAME_TYPE = 1, NAME_CONSTANT, NAME_VARIABLE };

struct name {
	const char *text; /* in a section of the object */
	Dwarf_Off die;
	enum name_kind kind; /* 0: an empty place */
};

struct dwarf_types {
	struct layout_source source;
	struct dwarf_object *object;
	Dwarf_Debug debug;
	struct name *names; /* open addressing */
	uint32_t count, capacity;
};

/* A DIE that is given back at the end of its block. */
struct die {
	Dwarf_Die die;
};

static void die_fini(struct die *die)
{
	if (die->die)
		dwarf_dealloc_die(die->die);
	die->die = NULL;
}

static struct error *dwarf_failed(const struct dwarf_types *types, Dwarf_Error error,
				  const char *what)
{
	return dwarf_object_error(types->object, error, what);
}

static uint64_t hash_text(const char *text, enum name_kind kind)
{
	uint64_t hash = 0xcbf29ce484222325 ^ kind; /* FNV-1a */

	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * 0x100000001b3;
	return hash ^ hash >> 32;
}

/* The place of a name, or the empty one where it belongs. */
static struct name *find_place(struct name *names, uint32_t capacity, const char *text,
			       enum name_kind kind)
{
	uint32_t i = (uint32_t)hash_text(text, kind) & (capacity - 1);

	while (names[i].kind && (names[i].kind != kind || strcmp(names[i].text, text) != 0))
		i = (i + 1) & (capacity - 1);
	return &names[i];
}

static struct error *grow_names(struct dwarf_types *types)
{
	uint32_t capacity = types->capacity ? types->capacity * 2 : FIRST_CAPACITY;
	struct name *names;

	if (capacity > NAMES_MAX)
		return error_new(ERROR_LIMIT, "more than %d names in DWARF", NAMES_MAX / 2);
	names = calloc(capacity, sizeof(*names));
	if (!names)
		return &error_nomem;
	for (uint32_t i = 0; i < types->capacity; i++) {
		const struct name *name = &types->names[i];

		if (name->kind)
			*find_place(names, capacity, name->text, name->kind) = *name;
	}
	free(types->names);
	types->names = names;
	types->capacity = capacity;
	return NULL;
}

/* The first of several DIEs with one name stays: a struct comes before its typedef. */
static struct error *add_name(struct dwarf_types *types, const char *text, enum name_kind kind,
			      Dwarf_Off die)
{
	struct name *place;

	if (types->count >= types->capacity / 2) {
		struct error *err = grow_names(types);

		if (err)
			return err;
	}
	place = find_place(types->names, types->capacity, text, kind);
	if (place->kind)
		return NULL;
	*place = (struct name){ text, die, kind };
	types->count++;
	return NULL;
}

static enum name_kind kind_of_tag(Dwarf_Half tag)
{
	switch (tag) {
	case DW_TAG_structure_type:
	case DW_TAG_typedef:
		return NAME_TYPE;
	case DW_TAG_constant:
		return NAME_CONSTANT;
	case DW_TAG_variable:
		return NAME_VARIABLE;
	default:
		return 0;
	}
}

static struct error *index_die(struct dwarf_types *types, Dwarf_Die die, Dwarf_Off offset)
{
	Dwarf_Error error = NULL;
	Dwarf_Half tag;
	char *text;
	enum name_kind kind;
	int status;

	if (dwarf_tag(die, &tag, &error) != DW_DLV_OK)
		return dwarf_failed(types, error, "DWARF tag");
	kind = kind_of_tag(tag);
	if (!kind)
		return NULL;
	status = dwarf_diename(die, &text, &error);
	if (status == DW_DLV_ERROR)
		return dwarf_failed(types, error, "DWARF name");
	if (status != DW_DLV_OK)
		return NULL;
	return add_name(types, text, kind, offset);
}

/*
 * Replaces a DIE by its next sibling, at the end by none. Offsets must grow, or a bad sibling
 * attribute could send the walk round for ever.
 */
static struct error *next_sibling(const struct dwarf_types *types, struct die *die)
{
	Dwarf_Error error = NULL;
	Dwarf_Off before = 0, after = 0;
	Dwarf_Die next = NULL;
	int status = dwarf_siblingof_b(types->debug, die->die, 1, &next, &error);

	if (status == DW_DLV_ERROR)
		return dwarf_failed(types, error, "DWARF sibling");
	if (status == DW_DLV_OK &&
	    (dwarf_dieoffset(die->die, &before, &error) != DW_DLV_OK ||
	     dwarf_dieoffset(next, &after, &error) != DW_DLV_OK || after <= before)) {
		dwarf_dealloc_die(next);
		return dwarf_failed(types, error, "DWARF sibling order");
	}
	die_fini(die);
	die->die = next;
	return NULL;
}

static struct error *first_child(const struct dwarf_types *types, Dwarf_Die parent, struct die *ret)
{
	Dwarf_Error error = NULL;

	if (dwarf_child(parent, &ret->die, &error) == DW_DLV_ERROR)
		return dwarf_failed(types, error, "DWARF child");
	return NULL;
}

static struct error *index_children(struct dwarf_types *types, Dwarf_Die unit)
{
	struct die die scoped(die_fini) = { NULL };
	struct error *err = first_child(types, unit, &die);

	while (!err && die.die) {
		Dwarf_Error error = NULL;
		Dwarf_Off offset;

		if (dwarf_dieoffset(die.die, &offset, &error) != DW_DLV_OK)
			return dwarf_failed(types, error, "DWARF offset");
		err = index_die(types, die.die, offset);
		if (!err)
			err = next_sibling(types, &die);
	}
	return err;
}

/* Packages whose units are worth a walk. */
static bool is_runtime_package(const char *name)
{
	return !strcmp(name, "runtime") || !strncmp(name, "runtime/", strlen("runtime/")) ||
	       !strncmp(name, "internal/", strlen("internal/"));
}

static struct error *index_unit(struct dwarf_types *types, Dwarf_Die unit)
{
	Dwarf_Error error = NULL;
	Dwarf_Unsigned language = 0;
	char *name;
	int status = dwarf_srclang(unit, &language, &error);

	if (status == DW_DLV_OK)
		status = dwarf_diename(unit, &name, &error);
	if (status == DW_DLV_ERROR)
		return dwarf_failed(types, error, "DWARF unit");
	if (status != DW_DLV_OK || language != GO_LANGUAGE || !is_runtime_package(name))
		return NULL;
	return index_children(types, unit);
}

static struct error *index_units(struct dwarf_types *types)
{
	for (;;) {
		Dwarf_Error error = NULL;
		struct die unit scoped(die_fini) = { NULL };
		struct error *err;
		int status = dwarf_next_cu_header_d(types->debug, 1, NULL, NULL, NULL, NULL, NULL,
						    NULL, NULL, NULL, NULL, NULL, &error);

		if (status == DW_DLV_NO_ENTRY)
			return NULL;
		if (status == DW_DLV_OK)
			status = dwarf_siblingof_b(types->debug, NULL, 1, &unit.die, &error);
		if (status == DW_DLV_ERROR)
			return dwarf_failed(types, error, "DWARF unit");
		if (status != DW_DLV_OK)
			continue;
		err = index_unit(types, unit.die);
		if (err)
			return err;
	}
}

static struct error *die_at(const struct dwarf_types *types, Dwarf_Off offset, struct die *ret)
{
	Dwarf_Error error = NULL;
	Dwarf_Die die;

	if (dwarf_offdie_b(types->debug, offset, 1, &die, &error) != DW_DLV_OK)
		return dwarf_failed(types, error, "DWARF reference");
	die_fini(ret);
	ret->die = die;
	return NULL;
}

static struct error *tag_of(const struct dwarf_types *types, Dwarf_Die die, Dwarf_Half *ret)
{
	Dwarf_Error error = NULL;

	if (dwarf_tag(die, ret, &error) != DW_DLV_OK)
		return dwarf_failed(types, error, "DWARF tag");
	return NULL;
}

/* *ret is NULL if the DIE has no such attribute; else the caller deallocates it. */
static struct error *attribute(const struct dwarf_types *types, Dwarf_Die die, Dwarf_Half which,
			       Dwarf_Attribute *ret)
{
	Dwarf_Error error = NULL;

	*ret = NULL;
	if (dwarf_attr(die, which, ret, &error) == DW_DLV_ERROR)
		return dwarf_failed(types, error, "DWARF attribute");
	return NULL;
}

static void attribute_fini(Dwarf_Attribute *attr)
{
	if (*attr)
		dwarf_dealloc_attribute(*attr);
}

/* The DIE of a DIE's type. */
static struct error *type_of(const struct dwarf_types *types, Dwarf_Die die, struct die *ret)
{
	Dwarf_Attribute attr scoped(attribute_fini) = NULL;
	Dwarf_Error error = NULL;
	Dwarf_Off offset;
	struct error *err = attribute(types, die, DW_AT_type, &attr);

	if (err)
		return err;
	if (!attr)
		return error_new(ERROR_FORMAT, "DWARF: a type is missing");
	if (dwarf_global_formref(attr, &offset, &error) != DW_DLV_OK)
		return dwarf_failed(types, error, "DWARF type");
	return die_at(types, offset, ret);
}

/* Follows typedefs. */
static struct error *resolve_type(const struct dwarf_types *types, struct die *type,
				  Dwarf_Half *ret_tag)
{
	for (int i = 0; i < TYPE_CHAIN_MAX; i++) {
		struct error *err = tag_of(types, type->die, ret_tag);

		if (err)
			return err;
		if (*ret_tag != DW_TAG_typedef)
			return NULL;
		err = type_of(types, type->die, type);
		if (err)
			return err;
	}
	return error_new(ERROR_LIMIT, "DWARF: more than %d typedefs in a row", TYPE_CHAIN_MAX);
}

/* Pointers and functions, which Go leaves without a size, are words. */
static struct error *size_of(const struct dwarf_types *types, Dwarf_Die type, Dwarf_Half tag,
			     uint64_t *ret)
{
	Dwarf_Error error = NULL;
	Dwarf_Unsigned size;
	int status = dwarf_bytesize(type, &size, &error);

	if (status == DW_DLV_ERROR)
		return dwarf_failed(types, error, "DWARF size");
	if (status == DW_DLV_OK)
		*ret = size;
	else if (tag == DW_TAG_pointer_type || tag == DW_TAG_subroutine_type)
		*ret = POINTER_SIZE;
	else
		return error_new(ERROR_FORMAT, "DWARF: a type without a size");
	return NULL;
}

/* Size of a variable or member. */
static struct error *size_of_typed(const struct dwarf_types *types, Dwarf_Die die, uint64_t *ret)
{
	struct die type scoped(die_fini) = { NULL };
	Dwarf_Half tag;
	struct error *err = type_of(types, die, &type);

	if (!err)
		err = resolve_type(types, &type, &tag);
	if (!err)
		err = size_of(types, type.die, tag, ret);
	return err;
}

static struct error *member_offset(const struct dwarf_types *types, Dwarf_Die member, uint64_t *ret)
{
	Dwarf_Attribute attr scoped(attribute_fini) = NULL;
	Dwarf_Error error = NULL;
	Dwarf_Unsigned value;
	struct error *err = attribute(types, member, DW_AT_data_member_location, &attr);

	if (err)
		return err;
	*ret = 0;
	if (!attr)
		return NULL;
	if (dwarf_formudata(attr, &value, &error) != DW_DLV_OK)
		return dwarf_failed(types, error, "DWARF member offset");
	*ret = value;
	return NULL;
}

static struct error *has_name(const struct dwarf_types *types, Dwarf_Die die, const char *name,
			      bool *ret)
{
	Dwarf_Error error = NULL;
	char *text;
	int status = dwarf_diename(die, &text, &error);

	if (status == DW_DLV_ERROR)
		return dwarf_failed(types, error, "DWARF name");
	*ret = status == DW_DLV_OK && !strcmp(text, name);
	return NULL;
}

/* ret->die stays NULL if the struct has no such member. */
static struct error *find_member(const struct dwarf_types *types, Dwarf_Die type, const char *name,
				 struct die *ret)
{
	struct die die scoped(die_fini) = { NULL };
	struct error *err = first_child(types, type, &die);

	for (int i = 0; !err && die.die; i++) {
		Dwarf_Half tag;
		bool same = false;

		if (i == MEMBERS_MAX)
			return error_new(ERROR_LIMIT, "DWARF: more than %d members", MEMBERS_MAX);
		err = tag_of(types, die.die, &tag);
		if (!err && tag == DW_TAG_member)
			err = has_name(types, die.die, name, &same);
		if (same) {
			*ret = (struct die){ take(die.die) };
			return NULL;
		}
		if (!err)
			err = next_sibling(types, &die);
	}
	return err;
}

/* Goes from a type to the struct it is, or whose array it is; *ret_is_struct says if it is one. */
static struct error *enter_struct(const struct dwarf_types *types, struct die *type,
				  bool *ret_is_struct)
{
	Dwarf_Half tag;
	struct error *err = resolve_type(types, type, &tag);

	for (int i = 0; !err && tag == DW_TAG_array_type && i < TYPE_CHAIN_MAX; i++) {
		err = type_of(types, type->die, type);
		if (!err)
			err = resolve_type(types, type, &tag);
	}
	if (!err)
		*ret_is_struct = tag == DW_TAG_structure_type;
	return err;
}

/*
 * Steps from the type along one name: adds the member's offset, gives its size, and makes type the
 * member's. *ret_found is false if there is no such member.
 */
static struct error *step_into(const struct dwarf_types *types, struct die *type, const char *name,
			       uint64_t *offset, uint64_t *ret_size, bool *ret_found)
{
	struct die member scoped(die_fini) = { NULL };
	uint64_t own_offset = 0;
	bool is_struct = false;
	struct error *err = enter_struct(types, type, &is_struct);

	*ret_found = false;
	if (err || !is_struct)
		return err;
	err = find_member(types, type->die, name, &member);
	if (err || !member.die)
		return err;
	err = member_offset(types, member.die, &own_offset);
	if (!err)
		err = size_of_typed(types, member.die, ret_size);
	if (!err)
		err = type_of(types, member.die, type);
	if (!err && __builtin_add_overflow(*offset, own_offset, offset))
		err = error_new(ERROR_FORMAT, "DWARF: member offset out of range");
	*ret_found = !err;
	return err;
}

static struct error *walk_path(const struct dwarf_types *types, struct die *type, const char *path,
			       uint64_t *ret_offset, uint64_t *ret_size, bool *ret_found)
{
	char buffer[PATH_MAX_SIZE];
	char *rest = buffer, *name;
	struct error *err = NULL;

	if (strlen(path) >= sizeof(buffer))
		return error_new(ERROR_LIMIT, "a field path of %zu bytes", strlen(path));
	strcpy(buffer, path);
	*ret_offset = 0;
	*ret_found = true;
	while (!err && *ret_found && (name = strsep(&rest, ".")))
		err = step_into(types, type, name, ret_offset, ret_size, ret_found);
	return err;
}

/* The DIE of a name; false without an error if there is none. */
static bool find_die(const struct dwarf_types *types, const char *text, enum name_kind kind,
		     struct die *ret, struct error **ret_err)
{
	const struct name *name;

	if (!types->capacity)
		return false;
	name = find_place(types->names, types->capacity, text, kind);
	if (!name->kind)
		return false;
	*ret_err = die_at(types, name->die, ret);
	return !*ret_err;
}

static struct dwarf_types *types_of(struct layout_source *source)
{
	return (struct dwarf_types *)((char *)source - offsetof(struct dwarf_types, source));
}

static bool source_find_struct(struct layout_source *source, const char *name, uint32_t *ret_size,
			       struct error **ret_err)
{
	const struct dwarf_types *types = types_of(source);
	struct die type scoped(die_fini) = { NULL };
	Dwarf_Half tag;
	uint64_t size = 0;

	if (!find_die(types, name, NAME_TYPE, &type, ret_err))
		return false;
	*ret_err = resolve_type(types, &type, &tag);
	if (*ret_err || tag != DW_TAG_structure_type)
		return false;
	*ret_err = size_of(types, type.die, tag, &size);
	if (!*ret_err && size > UINT32_MAX)
		*ret_err = error_new(ERROR_FORMAT, "DWARF: a struct of %" PRIu64 " bytes", size);
	if (*ret_err || !size)
		return false;
	*ret_size = (uint32_t)size;
	return true;
}

static bool source_find_field(struct layout_source *source, const char *name, const char *path,
			      uint32_t *ret_offset, uint32_t *ret_size, struct error **ret_err)
{
	const struct dwarf_types *types = types_of(source);
	struct die type scoped(die_fini) = { NULL };
	uint64_t offset = 0, size = 0;
	bool found = false;

	if (!find_die(types, name, NAME_TYPE, &type, ret_err))
		return false;
	*ret_err = walk_path(types, &type, path, &offset, &size, &found);
	if (*ret_err || !found)
		return false;
	if (offset > UINT32_MAX || size > UINT32_MAX) {
		*ret_err = error_new(ERROR_FORMAT, "DWARF: %s.%s is out of range", name, path);
		return false;
	}
	*ret_offset = (uint32_t)offset;
	*ret_size = (uint32_t)size;
	return true;
}

static bool source_find_constant(struct layout_source *source, const char *name, int64_t *ret,
				 struct error **ret_err)
{
	const struct dwarf_types *types = types_of(source);
	struct die die scoped(die_fini) = { NULL };
	Dwarf_Attribute attr scoped(attribute_fini) = NULL;
	Dwarf_Error error = NULL;
	Dwarf_Signed value;

	if (!find_die(types, name, NAME_CONSTANT, &die, ret_err))
		return false;
	*ret_err = attribute(types, die.die, DW_AT_const_value, &attr);
	if (*ret_err || !attr)
		return false;
	/* Go writes every integer constant as DW_FORM_sdata (cmd/internal/dwarf, PutIntConst) */
	if (dwarf_formsdata(attr, &value, &error) != DW_DLV_OK) {
		*ret_err = dwarf_failed(types, error, "DWARF constant");
		return false;
	}
	*ret = value;
	return true;
}

/* The bytes of a location, in either form that holds them. */
static struct error *location_of(const struct dwarf_types *types, Dwarf_Die die, uint8_t copy[9],
				 size_t *ret_size)
{
	Dwarf_Attribute attr scoped(attribute_fini) = NULL;
	Dwarf_Error error = NULL;
	Dwarf_Block *block;
	Dwarf_Unsigned size;
	Dwarf_Ptr bytes;
	struct error *err = attribute(types, die, DW_AT_location, &attr);

	*ret_size = 0;
	if (err || !attr)
		return err;
	if (dwarf_formexprloc(attr, &size, &bytes, &error) == DW_DLV_OK) {
		memcpy(copy, bytes, size < 9 ? size : 9);
		*ret_size = size;
		return NULL;
	}
	if (error)
		dwarf_dealloc_error(types->debug, error);
	error = NULL;
	if (dwarf_formblock(attr, &block, &error) != DW_DLV_OK)
		return dwarf_failed(types, error, "DWARF location");
	memcpy(copy, block->bl_data, block->bl_len < 9 ? block->bl_len : 9);
	*ret_size = block->bl_len;
	dwarf_dealloc(types->debug, block, DW_DLA_BLOCK);
	return NULL;
}

/* A variable of a fixed address: all of its location is DW_OP_addr. */
static bool source_find_global(struct layout_source *source, const char *name, taddr *ret_addr,
			       uint64_t *ret_size, struct error **ret_err)
{
	const struct dwarf_types *types = types_of(source);
	struct die die scoped(die_fini) = { NULL };
	uint8_t location[9];
	size_t location_size;
	uint64_t size = 0;

	if (!find_die(types, name, NAME_VARIABLE, &die, ret_err))
		return false;
	*ret_err = location_of(types, die.die, location, &location_size);
	if (*ret_err || location_size != sizeof(location) || location[0] != DW_OP_addr)
		return false;
	*ret_err = size_of_typed(types, die.die, &size);
	if (*ret_err || !size)
		return false;
	*ret_addr = load_u64le(location + 1);
	*ret_size = size;
	return true;
}

struct error *dwarf_types_open(const struct elf_file *file, struct dwarf_types **ret)
{
	struct dwarf_types *types scoped(dwarf_types_freep) = calloc(1, sizeof(*types));
	struct error *err;

	if (!types)
		return &error_nomem;
	types->source = (struct layout_source){
		.find_struct = source_find_struct,
		.find_field = source_find_field,
		.find_constant = source_find_constant,
		.find_global = source_find_global,
	};
	err = dwarf_object_open(file, &types->object);
	if (err)
		return err;
	types->debug = dwarf_object_debug(types->object);
	err = index_units(types);
	if (err)
		return err;
	*ret = take(types);
	return NULL;
}

void dwarf_types_free(struct dwarf_types *types)
{
	if (!types)
		return;
	free(types->names);
	dwarf_object_free(types->object);
	free(types);
}

struct layout_source *dwarf_types_source(struct dwarf_types *types)
{
	return &types->source;
}
