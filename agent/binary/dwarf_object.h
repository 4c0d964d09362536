/*
 * DWARF of an executable as a libdwarf session. libdwarf opens and decompresses nothing itself: it
 * gets, through its object-access interface, sections that elf_file has read within our limits.
 */
#ifndef AGENT_BINARY_DWARF_OBJECT_H
#define AGENT_BINARY_DWARF_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include <libdwarf.h>

#include "proto/base/error.h"

struct elf_file;
struct dwarf_object;

/* ERROR_NO_DEBUG_INFO if the executable has no DWARF. The caller frees *ret; file may go before. */
must_check struct error *dwarf_object_open(const struct elf_file *file, struct dwarf_object **ret);
void dwarf_object_free(struct dwarf_object *object);
DEFINE_FREEP(dwarf_object, dwarf_object_free)

/* Belongs to the object. */
Dwarf_Debug dwarf_object_debug(const struct dwarf_object *object);

/*
 * ERROR_FORMAT if the abbreviations at an offset of debug_abbrev have sibling attributes, which Go
 * does not write: libdwarf follows them wherever they lead, round and round if they lead back.
 */
must_check struct error *dwarf_object_check_abbrevs(const struct dwarf_object *object,
						    uint64_t offset);

/* Whether entries with those abbreviations can have an attribute. */
must_check struct error *dwarf_object_has_attribute(const struct dwarf_object *object,
						    uint64_t offset, uint64_t attribute, bool *ret);

/* Consumes a libdwarf error, which may be NULL, and says it in ours: ERROR_FORMAT. */
must_check struct error *dwarf_object_error(const struct dwarf_object *object, Dwarf_Error error,
					    const char *what);

#endif
