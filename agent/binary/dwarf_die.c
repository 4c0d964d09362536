#include "agent/binary/dwarf_die.h"

#include <dwarf.h>

enum {
	TYPE_CHAIN_MAX = 16, /* typedefs in a row */
	POINTER_SIZE = 8,
};

void die_fini(Dwarf_Die *die)
{
	if (*die)
		dwarf_dealloc_die(*die);
	*die = NULL;
}

void attribute_fini(Dwarf_Attribute *attr)
{
	if (*attr)
		dwarf_dealloc_attribute(*attr);
}

/* Offsets must grow, or a bad sibling attribute could send the walk round for ever. */
struct error *die_next(const struct dwarf_object *object, Dwarf_Die *die)
{
	Dwarf_Error error = NULL;
	Dwarf_Off before = 0, after = 0;
	Dwarf_Die next = NULL;
	int status = dwarf_siblingof_b(dwarf_object_debug(object), *die, 1, &next, &error);

	if (status == DW_DLV_ERROR)
		return dwarf_object_error(object, error, "DWARF sibling");
	if (status == DW_DLV_OK &&
	    (dwarf_dieoffset(*die, &before, &error) != DW_DLV_OK ||
	     dwarf_dieoffset(next, &after, &error) != DW_DLV_OK || after <= before)) {
		dwarf_dealloc_die(next);
		return dwarf_object_error(object, error, "DWARF sibling order");
	}
	die_fini(die);
	*die = next;
	return NULL;
}

struct error *die_child(const struct dwarf_object *object, Dwarf_Die parent, Dwarf_Die *ret)
{
	Dwarf_Error error = NULL;

	if (dwarf_child(parent, ret, &error) == DW_DLV_ERROR)
		return dwarf_object_error(object, error, "DWARF child");
	return NULL;
}

struct error *die_at(const struct dwarf_object *object, Dwarf_Off offset, Dwarf_Die *ret)
{
	Dwarf_Error error = NULL;
	Dwarf_Die die;

	if (dwarf_offdie_b(dwarf_object_debug(object), offset, 1, &die, &error) != DW_DLV_OK)
		return dwarf_object_error(object, error, "DWARF reference");
	die_fini(ret);
	*ret = die;
	return NULL;
}

struct error *die_offset(const struct dwarf_object *object, Dwarf_Die die, Dwarf_Off *ret)
{
	Dwarf_Error error = NULL;

	if (dwarf_dieoffset(die, ret, &error) != DW_DLV_OK)
		return dwarf_object_error(object, error, "DWARF offset");
	return NULL;
}

struct error *die_name(const struct dwarf_object *object, Dwarf_Die die, const char **ret)
{
	Dwarf_Error error = NULL;
	char *name = NULL;

	if (dwarf_diename(die, &name, &error) == DW_DLV_ERROR)
		return dwarf_object_error(object, error, "DWARF name");
	*ret = name;
	return NULL;
}

struct error *die_tag(const struct dwarf_object *object, Dwarf_Die die, Dwarf_Half *ret)
{
	Dwarf_Error error = NULL;

	if (dwarf_tag(die, ret, &error) != DW_DLV_OK)
		return dwarf_object_error(object, error, "DWARF tag");
	return NULL;
}

struct error *die_attribute(const struct dwarf_object *object, Dwarf_Die die, Dwarf_Half which,
			    Dwarf_Attribute *ret)
{
	Dwarf_Error error = NULL;

	*ret = NULL;
	if (dwarf_attr(die, which, ret, &error) == DW_DLV_ERROR)
		return dwarf_object_error(object, error, "DWARF attribute");
	return NULL;
}

struct error *die_type(const struct dwarf_object *object, Dwarf_Die die, Dwarf_Die *ret)
{
	Dwarf_Attribute attr scoped(attribute_fini) = NULL;
	Dwarf_Error error = NULL;
	Dwarf_Off offset;
	struct error *err = die_attribute(object, die, DW_AT_type, &attr);

	if (err)
		return err;
	if (!attr)
		return error_new(ERROR_FORMAT, "DWARF: a type is missing");
	if (dwarf_global_formref(attr, &offset, &error) != DW_DLV_OK)
		return dwarf_object_error(object, error, "DWARF type");
	return die_at(object, offset, ret);
}

struct error *die_resolve(const struct dwarf_object *object, Dwarf_Die *type, Dwarf_Half *ret_tag)
{
	for (int i = 0; i < TYPE_CHAIN_MAX; i++) {
		struct error *err = die_tag(object, *type, ret_tag);

		if (err)
			return err;
		if (*ret_tag != DW_TAG_typedef)
			return NULL;
		err = die_type(object, *type, type);
		if (err)
			return err;
	}
	return error_new(ERROR_LIMIT, "DWARF: more than %d typedefs in a row", TYPE_CHAIN_MAX);
}

/* Pointers and functions, which Go leaves without a size, are words. */
struct error *die_size(const struct dwarf_object *object, Dwarf_Die type, Dwarf_Half tag,
		       uint64_t *ret)
{
	Dwarf_Error error = NULL;
	Dwarf_Unsigned size;
	int status = dwarf_bytesize(type, &size, &error);

	if (status == DW_DLV_ERROR)
		return dwarf_object_error(object, error, "DWARF size");
	if (status == DW_DLV_OK)
		*ret = size;
	else if (tag == DW_TAG_pointer_type || tag == DW_TAG_subroutine_type)
		*ret = POINTER_SIZE;
	else
		return error_new(ERROR_FORMAT, "DWARF: a type without a size");
	return NULL;
}
