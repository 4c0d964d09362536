/*
 * Location lists and range lists of DWARF 4 and 5, and what location expressions say of places in
 * a frame. Large programs have millions of entries, most of them of registers: they are read where
 * they lie, without an object for each.
 */
#ifndef AGENT_BINARY_DWARF_LISTS_H
#define AGENT_BINARY_DWARF_LISTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/error.h"

struct elf_file;

struct dwarf_section {
	uint8_t *bytes;
	size_t size;
};

struct dwarf_lists {
	struct dwarf_section locations, ranges;           /* DWARF 4 */
	struct dwarf_section location_lists, range_lists; /* DWARF 5 */
	struct dwarf_section addresses;
};

/* Reads the sections that there are. Give *ret back with dwarf_lists_fini, also after an error. */
must_check struct error *dwarf_lists_read(const struct elf_file *file, struct dwarf_lists *ret);
void dwarf_lists_fini(struct dwarf_lists *lists);

/* What a compile unit says of its lists. */
struct dwarf_unit {
	unsigned version;
	uint64_t base;      /* the unit's lowest address */
	uint64_t addr_base; /* of its part of debug_addr */
};

/* Called for each entry; of a range list without an expression. An error ends the list. */
struct dwarf_list_visitor {
	struct error *(*visit)(void *arg, uint64_t start, uint64_t end, const uint8_t *expression,
			       size_t size);
	void *arg;
};

must_check struct error *dwarf_lists_locations(const struct dwarf_lists *lists,
					       const struct dwarf_unit *unit, uint64_t offset,
					       const struct dwarf_list_visitor *visitor);
must_check struct error *dwarf_lists_ranges(const struct dwarf_lists *lists,
					    const struct dwarf_unit *unit, uint64_t offset,
					    const struct dwarf_list_visitor *visitor);

/* A piece of a variable that lies in the frame. */
struct frame_piece {
	int64_t offset;        /* from the CFA */
	uint64_t size;         /* 0: all of the variable */
	uint64_t piece_offset; /* in the variable */
	bool is_address;       /* what lies there is the variable's address */
};

enum { FRAME_PIECES_MAX = 32 };

/*
 * The pieces that an expression places in the frame, of those it has; the rest lies in registers or
 * nowhere. Fbreg is taken to be from the CFA, as Go's frame bases are. *ret_address is the fixed
 * address that the whole variable has, or 0.
 */
must_check struct error *dwarf_expression_read(const uint8_t *expression, size_t size,
					       struct frame_piece ret[FRAME_PIECES_MAX],
					       unsigned *ret_count, uint64_t *ret_address);

#endif
