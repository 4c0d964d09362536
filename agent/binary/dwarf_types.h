/*
 * What the DWARF of a Go executable says of the runtime's types, constants and variables, version
 * 4 and 5. The compile units of the runtime and of internal packages are walked once, when it is
 * opened; names are looked up in a hash afterwards.
 */
#ifndef AGENT_BINARY_DWARF_TYPES_H
#define AGENT_BINARY_DWARF_TYPES_H

#include "agent/binary/layout_source.h"
#include "proto/base/error.h"

struct elf_file;
struct dwarf_types;

/* ERROR_NO_DEBUG_INFO if there is no DWARF. The caller frees *ret; file may go before. */
must_check struct error *dwarf_types_open(const struct elf_file *file, struct dwarf_types **ret);
void dwarf_types_free(struct dwarf_types *types);
DEFINE_FREEP(dwarf_types, dwarf_types_free)

/*
 * Belongs to types. Paths of fields lead through structs and through the first element of arrays.
 * Addresses are link-time.
 */
struct layout_source *dwarf_types_source(struct dwarf_types *types);

#endif
