/*
 * Location lists and range lists of DWARF 4 and 5, and what location expressions say. Large
 * programs have millions of entries, most of them of registers: they are read where they lie,
 * without an object for each.
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
	uint64_t walked; /* entries of all lists so far */
};

/* ERROR_LIMIT beyond it: lists may be referred to many times, which Go does not do. */
enum { DWARF_LIST_ENTRIES_MAX = 1 << 28 };

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

must_check struct error *dwarf_lists_locations(struct dwarf_lists *lists,
					       const struct dwarf_unit *unit, uint64_t offset,
					       const struct dwarf_list_visitor *visitor);
must_check struct error *dwarf_lists_ranges(struct dwarf_lists *lists,
					    const struct dwarf_unit *unit, uint64_t offset,
					    const struct dwarf_list_visitor *visitor);

enum location_kind {
	LOCATION_NONE,
	LOCATION_FRAME,    /* number is an offset from the CFA */
	LOCATION_REGISTER, /* number is the register's */
	LOCATION_FIXED,    /* number is an address */
	LOCATION_OTHER,
};

/* Where a piece of a variable is. */
struct location_piece {
	enum location_kind kind; /* LOCATION_NONE: nowhere */
	int64_t number;
	uint64_t size;   /* 0: all of the variable */
	bool is_address; /* what is there is the variable's address */
};

enum { LOCATION_PIECES_MAX = 32 };

/*
 * All pieces of an expression, in its order. Fbreg is taken to be from the CFA, as Go's frame bases
 * are.
 */
must_check struct error *dwarf_expression_read(const uint8_t *expression, size_t size,
					       struct location_piece ret[LOCATION_PIECES_MAX],
					       unsigned *ret_count);

#endif
