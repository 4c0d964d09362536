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

#include "agent/binary/dwarf_die.h"
#include "agent/binary/dwarf_names.h"
#include "agent/binary/dwarf_object.h"
#include "proto/base/bytes.h"

enum {
	MEMBERS_MAX = 4096, /* of one struct: runtime.m has some 80 */
	ARRAYS_MAX = 16,    /* of arrays */
	PATH_MAX_SIZE = 256,
	ADDR_LOCATION_SIZE = 9, /* DW_OP_addr and an address */
};

struct dwarf_types {
	struct layout_source source;
	struct dwarf_object *object;
	struct dwarf_names names;
};

static enum dwarf_name_kind kind_of_tag(Dwarf_Half tag)
{
	switch (tag) {
	case DW_TAG_structure_type:
	case DW_TAG_typedef:
		return DWARF_NAME_TYPE;
	case DW_TAG_constant:
		return DWARF_NAME_CONSTANT;
	case DW_TAG_variable:
		return DWARF_NAME_VARIABLE;
	default:
		return DWARF_NAME_NONE;
	}
}

/* A struct comes before a typedef of the same name, and the first stays. */
static struct error *index_die(struct dwarf_types *types, Dwarf_Die die)
{
	enum dwarf_name_kind kind;
	const char *name;
	Dwarf_Half tag;
	Dwarf_Off offset;
	struct error *err = die_tag(types->object, die, &tag);

	kind = err ? DWARF_NAME_NONE : kind_of_tag(tag);
	if (!kind)
		return err;
	err = die_name(types->object, die, &name);
	if (err || !name)
		return err;
	err = die_offset(types->object, die, &offset);
	return err ? err : dwarf_names_add(&types->names, name, kind, offset);
}

static struct error *index_children(struct dwarf_types *types, Dwarf_Die unit)
{
	Dwarf_Die die scoped(die_fini) = NULL;
	struct error *err = die_child(types->object, unit, &die);

	while (!err && die) {
		err = index_die(types, die);
		if (!err)
			err = die_next(types->object, &die);
	}
	return err;
}

/* Packages whose units are worth a walk. */
static bool is_runtime_package(const char *name)
{
	return !strcmp(name, "runtime") || !strncmp(name, "runtime/", strlen("runtime/")) ||
	       !strncmp(name, "internal/", strlen("internal/"));
}

static struct error *index_unit(struct dwarf_types *types, Dwarf_Die unit, uint64_t abbrev_offset)
{
	struct error *err;
	Dwarf_Error error = NULL;
	Dwarf_Unsigned language = 0;
	char *name;
	int status = dwarf_srclang(unit, &language, &error);

	if (status == DW_DLV_OK)
		status = dwarf_diename(unit, &name, &error);
	if (status == DW_DLV_ERROR)
		return dwarf_object_error(types->object, error, "DWARF unit");
	if (status != DW_DLV_OK || language != DW_LANG_Go || !is_runtime_package(name))
		return NULL;
	err = dwarf_object_check_abbrevs(types->object, abbrev_offset);
	return err ? err : index_children(types, unit);
}

static struct error *index_units(struct dwarf_types *types)
{
	Dwarf_Debug debug = dwarf_object_debug(types->object);

	for (;;) {
		Dwarf_Error error = NULL;
		Dwarf_Die unit scoped(die_fini) = NULL;
		Dwarf_Off abbrev_offset;
		struct error *err;
		int status = dwarf_next_cu_header_d(debug, 1, NULL, NULL, &abbrev_offset, NULL,
						    NULL, NULL, NULL, NULL, NULL, NULL, &error);

		if (status == DW_DLV_NO_ENTRY)
			return NULL;
		if (status == DW_DLV_OK)
			status = dwarf_siblingof_b(debug, NULL, 1, &unit, &error);
		if (status == DW_DLV_ERROR)
			return dwarf_object_error(types->object, error, "DWARF unit");
		if (status != DW_DLV_OK)
			continue;
		err = index_unit(types, unit, abbrev_offset);
		if (err)
			return err;
	}
}

/* Size of a variable or member. */
static struct error *typed_size(const struct dwarf_types *types, Dwarf_Die die, uint64_t *ret)
{
	Dwarf_Die type scoped(die_fini) = NULL;
	Dwarf_Half tag;
	struct error *err = die_type(types->object, die, &type);

	if (!err)
		err = die_resolve(types->object, &type, &tag);
	if (!err)
		err = die_size(types->object, type, tag, ret);
	return err;
}

static struct error *member_offset(const struct dwarf_types *types, Dwarf_Die member, uint64_t *ret)
{
	Dwarf_Attribute attr scoped(attribute_fini) = NULL;
	Dwarf_Error error = NULL;
	Dwarf_Unsigned value;
	struct error *err = die_attribute(types->object, member, DW_AT_data_member_location, &attr);

	if (err)
		return err;
	*ret = 0;
	if (!attr)
		return NULL;
	if (dwarf_formudata(attr, &value, &error) != DW_DLV_OK)
		return dwarf_object_error(types->object, error, "DWARF member offset");
	*ret = value;
	return NULL;
}

/* Whether a DIE is a member of that name. */
static struct error *is_member(const struct dwarf_types *types, Dwarf_Die die, const char *name,
			       bool *ret)
{
	Dwarf_Half tag;
	const char *own = NULL;
	struct error *err = die_tag(types->object, die, &tag);

	if (!err && tag == DW_TAG_member)
		err = die_name(types->object, die, &own);
	*ret = own && !strcmp(own, name);
	return err;
}

/* *ret stays NULL if the struct has no such member. */
static struct error *find_member(const struct dwarf_types *types, Dwarf_Die type, const char *name,
				 Dwarf_Die *ret)
{
	Dwarf_Die die scoped(die_fini) = NULL;
	struct error *err = die_child(types->object, type, &die);

	for (int i = 0; !err && die; i++) {
		bool found;

		if (i == MEMBERS_MAX)
			return error_new(ERROR_LIMIT, "DWARF: more than %d members", MEMBERS_MAX);
		err = is_member(types, die, name, &found);
		if (!err && found) {
			*ret = take(die);
			return NULL;
		}
		if (!err)
			err = die_next(types->object, &die);
	}
	return err;
}

/* Goes from a type to the struct it is, or whose array it is; *ret_is_struct says if it is one. */
static struct error *enter_struct(const struct dwarf_types *types, Dwarf_Die *type,
				  bool *ret_is_struct)
{
	Dwarf_Half tag;
	struct error *err = die_resolve(types->object, type, &tag);

	for (int i = 0; !err && tag == DW_TAG_array_type && i < ARRAYS_MAX; i++) {
		err = die_type(types->object, *type, type);
		if (!err)
			err = die_resolve(types->object, type, &tag);
	}
	if (!err)
		*ret_is_struct = tag == DW_TAG_structure_type;
	return err;
}

/*
 * Steps from the type along one name: adds the member's offset, gives its size, and makes type the
 * member's. *ret_found is false if there is no such member.
 */
static struct error *step_into(const struct dwarf_types *types, Dwarf_Die *type, const char *name,
			       uint64_t *offset, uint64_t *ret_size, bool *ret_found)
{
	Dwarf_Die member scoped(die_fini) = NULL;
	uint64_t own_offset = 0;
	bool is_struct = false;
	struct error *err = enter_struct(types, type, &is_struct);

	*ret_found = false;
	if (err || !is_struct)
		return err;
	err = find_member(types, *type, name, &member);
	if (err || !member)
		return err;
	err = member_offset(types, member, &own_offset);
	if (!err)
		err = typed_size(types, member, ret_size);
	if (!err)
		err = die_type(types->object, member, type);
	if (!err && __builtin_add_overflow(*offset, own_offset, offset))
		err = error_new(ERROR_FORMAT, "DWARF: member offset out of range");
	*ret_found = !err;
	return err;
}

static struct error *walk_path(const struct dwarf_types *types, Dwarf_Die *type, const char *path,
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
static bool find_die(const struct dwarf_types *types, const char *text, enum dwarf_name_kind kind,
		     Dwarf_Die *ret, struct error **ret_err)
{
	uint64_t offset;

	if (!dwarf_names_find(&types->names, text, kind, &offset))
		return false;
	*ret_err = die_at(types->object, offset, ret);
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
	Dwarf_Die type scoped(die_fini) = NULL;
	Dwarf_Half tag;
	uint64_t size = 0;

	if (!find_die(types, name, DWARF_NAME_TYPE, &type, ret_err))
		return false;
	*ret_err = die_resolve(types->object, &type, &tag);
	if (*ret_err || tag != DW_TAG_structure_type)
		return false;
	*ret_err = die_size(types->object, type, tag, &size);
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
	Dwarf_Die type scoped(die_fini) = NULL;
	uint64_t offset = 0, size = 0;
	bool found = false;

	if (!find_die(types, name, DWARF_NAME_TYPE, &type, ret_err))
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
	Dwarf_Die die scoped(die_fini) = NULL;
	Dwarf_Attribute attr scoped(attribute_fini) = NULL;
	Dwarf_Error error = NULL;
	Dwarf_Signed value;

	if (!find_die(types, name, DWARF_NAME_CONSTANT, &die, ret_err))
		return false;
	*ret_err = die_attribute(types->object, die, DW_AT_const_value, &attr);
	if (*ret_err || !attr)
		return false;
	/* Go writes every integer constant as DW_FORM_sdata (cmd/internal/dwarf, PutIntConst) */
	if (dwarf_formsdata(attr, &value, &error) != DW_DLV_OK) {
		*ret_err = dwarf_object_error(types->object, error, "DWARF constant");
		return false;
	}
	*ret = value;
	return true;
}

struct location {
	uint8_t bytes[ADDR_LOCATION_SIZE]; /* the first of them */
	uint64_t size;
};

static void copy_location(const void *bytes, uint64_t size, struct location *ret)
{
	memcpy(ret->bytes, bytes, size < sizeof(ret->bytes) ? size : sizeof(ret->bytes));
	ret->size = size;
}

/* Go writes blocks of one length byte; the form that is meant for expressions is read as well. */
static struct error *read_location(const struct dwarf_types *types, Dwarf_Attribute attr,
				   struct location *ret)
{
	Dwarf_Error error = NULL;
	Dwarf_Block *block;
	Dwarf_Unsigned size;
	Dwarf_Ptr bytes;
	Dwarf_Half form;
	int status = dwarf_whatform(attr, &form, &error);

	if (status == DW_DLV_OK && form == DW_FORM_exprloc) {
		status = dwarf_formexprloc(attr, &size, &bytes, &error);
		if (status == DW_DLV_OK)
			copy_location(bytes, size, ret);
	} else if (status == DW_DLV_OK && (form == DW_FORM_block1 || form == DW_FORM_block)) {
		status = dwarf_formblock(attr, &block, &error);
		if (status == DW_DLV_OK) {
			copy_location(block->bl_data, block->bl_len, ret);
			dwarf_dealloc(dwarf_object_debug(types->object), block, DW_DLA_BLOCK);
		}
	}
	return status == DW_DLV_OK ? NULL
				   : dwarf_object_error(types->object, error, "DWARF location");
}

/* Size 0 if there is no location, or a list of them. */
static struct error *location_of(const struct dwarf_types *types, Dwarf_Die die,
				 struct location *ret)
{
	Dwarf_Attribute attr scoped(attribute_fini) = NULL;
	struct error *err = die_attribute(types->object, die, DW_AT_location, &attr);

	ret->size = 0;
	return err || !attr ? err : read_location(types, attr, ret);
}

/* A variable of a fixed address: all of its location is DW_OP_addr. */
static bool source_find_global(struct layout_source *source, const char *name, taddr *ret_addr,
			       uint64_t *ret_size, struct error **ret_err)
{
	const struct dwarf_types *types = types_of(source);
	Dwarf_Die die scoped(die_fini) = NULL;
	struct location location;
	uint64_t size = 0;

	if (!find_die(types, name, DWARF_NAME_VARIABLE, &die, ret_err))
		return false;
	*ret_err = location_of(types, die, &location);
	if (*ret_err || location.size != ADDR_LOCATION_SIZE || location.bytes[0] != DW_OP_addr)
		return false;
	*ret_err = typed_size(types, die, &size);
	if (*ret_err || !size)
		return false;
	*ret_addr = load_u64le(location.bytes + 1);
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
	dwarf_names_fini(&types->names);
	dwarf_object_free(types->object);
	free(types);
}

struct layout_source *dwarf_types_source(struct dwarf_types *types)
{
	return &types->source;
}
