/*
 * What a debugging information entry of a Go program says, read in one go: those of its attributes
 * that matter for types and variables.
 */
#ifndef AGENT_BINARY_DWARF_FACTS_H
#define AGENT_BINARY_DWARF_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/binary/dwarf_die.h"

struct dwarf_facts {
	Dwarf_Half tag;
	uint64_t offset;  /* of the entry in debug_info */
	const char *name; /* in the object's sections, or NULL */
	/* Entries that are referred to, by offset; 0: none. */
	uint64_t type, elem, key, origin;
	uint64_t size, count, kind, runtime_type, member_offset, closure_offset;
	uint64_t low, high; /* of a function or block: [low, high); high is 0 if it has none */
	uint64_t ranges;    /* offset of a list of ranges */
	uint64_t addr_base; /* of a unit */
	uint64_t line;      /* of a variable's declaration */
	/* A location: an expression in the object's sections, or the offset of a list. */
	const uint8_t *expression;
	size_t expression_size;
	uint64_t location_list;
	bool has_size, has_ranges, has_location_list, is_abstract;
	bool is_result; /* a parameter that is one */
};

/* Says which field of a closure a variable is; since go1.23. */
enum { DWARF_AT_GO_CLOSURE_OFFSET = 0x2907 };

must_check struct error *dwarf_facts_read(const struct dwarf_object *object, Dwarf_Die die,
					  struct dwarf_facts *ret);

#endif
