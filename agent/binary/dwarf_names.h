/*
 * Where the DIEs of named types, constants and variables are: a hash that is only added to.
 */
#ifndef AGENT_BINARY_DWARF_NAMES_H
#define AGENT_BINARY_DWARF_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/error.h"

enum dwarf_name_kind { DWARF_NAME_NONE, DWARF_NAME_TYPE, DWARF_NAME_CONSTANT, DWARF_NAME_VARIABLE };

struct dwarf_name; /* private */

struct dwarf_names {
	struct dwarf_name *places; /* open addressing */
	uint32_t count, capacity;  /* capacity is 0 or a power of two */
};

/* An empty hash is all zeros. */
void dwarf_names_fini(struct dwarf_names *names);

/* The text is borrowed. The first of several DIEs with one name and kind stays. */
must_check struct error *dwarf_names_add(struct dwarf_names *names, const char *text,
					 enum dwarf_name_kind kind, uint64_t die);

bool dwarf_names_find(const struct dwarf_names *names, const char *text, enum dwarf_name_kind kind,
		      uint64_t *ret_die);

#endif
