/*
 * Debugging information entries: libdwarf's calls with our errors and ownership. A Dwarf_Die or
 * Dwarf_Attribute in a scoped variable is given back at the end of its block.
 */
#ifndef AGENT_BINARY_DWARF_DIE_H
#define AGENT_BINARY_DWARF_DIE_H

#include <stdint.h>

#include "agent/binary/dwarf_object.h"

/* Cleanups; NULL is allowed. */
void die_fini(Dwarf_Die *die);
void attribute_fini(Dwarf_Attribute *attr);

/* The DIE at an offset of debug_info. What *ret held is given back. */
must_check struct error *die_at(const struct dwarf_object *object, Dwarf_Off offset,
				Dwarf_Die *ret);

/* *ret is NULL if there are no children. */
must_check struct error *die_child(const struct dwarf_object *object, Dwarf_Die parent,
				   Dwarf_Die *ret);

/* Replaces a DIE by its next sibling, by NULL at the end. */
must_check struct error *die_next(const struct dwarf_object *object, Dwarf_Die *die);

must_check struct error *die_offset(const struct dwarf_object *object, Dwarf_Die die,
				    Dwarf_Off *ret);
must_check struct error *die_tag(const struct dwarf_object *object, Dwarf_Die die, Dwarf_Half *ret);

/* In the object's sections; NULL if it has none. */
must_check struct error *die_name(const struct dwarf_object *object, Dwarf_Die die,
				  const char **ret);

/* *ret is NULL if the DIE has no such attribute. */
must_check struct error *die_attribute(const struct dwarf_object *object, Dwarf_Die die,
				       Dwarf_Half which, Dwarf_Attribute *ret);

/* The DIE of a DIE's type, which it must have. What *ret held is given back. */
must_check struct error *die_type(const struct dwarf_object *object, Dwarf_Die die, Dwarf_Die *ret);

/* Follows typedefs from *type on, which becomes what they stand for. */
must_check struct error *die_resolve(const struct dwarf_object *object, Dwarf_Die *type,
				     Dwarf_Half *ret_tag);

/* Size of a resolved type in bytes. */
must_check struct error *die_size(const struct dwarf_object *object, Dwarf_Die type, Dwarf_Half tag,
				  uint64_t *ret);

#endif
