#include "agent/binary/dwarf_lists.h"

#include <inttypes.h>
#include <stdlib.h>

#include <dwarf.h>

#include "agent/binary/elf_file.h"
#include "proto/base/bytes.h"
#include "proto/base/cursor.h"

enum {
	SECTION_SIZE_MAX = 512 << 20,
	ADDRESS_SIZE = 8,
	VARINT_MAX = 10, /* bytes */
};

static struct error *read_section(const struct elf_file *file, const char *name,
				  struct dwarf_section *ret)
{
	const struct elf_section *section = elf_file_find_debug(file, name);

	if (!section || !section->size)
		return NULL;
	return elf_file_read_section(file, section, SECTION_SIZE_MAX, &ret->bytes, &ret->size);
}

struct error *dwarf_lists_read(const struct elf_file *file, struct dwarf_lists *ret)
{
	struct error *err;

	*ret = (struct dwarf_lists){ 0 };
	err = read_section(file, ".debug_loc", &ret->locations);
	if (!err)
		err = read_section(file, ".debug_ranges", &ret->ranges);
	if (!err)
		err = read_section(file, ".debug_loclists", &ret->location_lists);
	if (!err)
		err = read_section(file, ".debug_rnglists", &ret->range_lists);
	return err ? err : read_section(file, ".debug_addr", &ret->addresses);
}

void dwarf_lists_fini(struct dwarf_lists *lists)
{
	free(lists->locations.bytes);
	free(lists->ranges.bytes);
	free(lists->location_lists.bytes);
	free(lists->range_lists.bytes);
	free(lists->addresses.bytes);
	*lists = (struct dwarf_lists){ 0 };
}

/* ---- lists ---- */

struct list {
	struct dwarf_lists *lists;
	const struct dwarf_unit *unit;
	const struct dwarf_list_visitor *visitor;
	struct cursor c;
	uint64_t base;
	bool has_expressions;
};

static struct error *list_begin(struct list *l, const char *name,
				const struct dwarf_section *section, uint64_t offset)
{
	l->base = l->unit->base;
	cursor_init(&l->c, name, section->bytes, section->size);
	return cursor_seek(&l->c, offset);
}

static struct error *emit(struct list *l, uint64_t start, uint64_t end, uint64_t size)
{
	const uint8_t *expression = NULL;
	struct error *err = NULL;

	if (l->has_expressions)
		err = cursor_take(&l->c, size, &expression);
	if (err || start >= end)
		return err;
	return l->visitor->visit(l->visitor->arg, start, end, expression, size);
}

static struct error *count_entry(struct list *l)
{
	if (l->lists->walked++ < DWARF_LIST_ENTRIES_MAX)
		return NULL;
	return error_new(ERROR_LIMIT, "%s: more than %d entries", l->c.name,
			 DWARF_LIST_ENTRIES_MAX);
}

/* DWARF 4, 2.6.2 and 2.17.3: pairs of offsets, the base being set by an offset of all ones. */
static struct error *walk_pairs(struct list *l)
{
	for (;;) {
		uint64_t start, end;
		uint16_t size = 0;
		struct error *err = count_entry(l);

		if (!err)
			err = cursor_u64le(&l->c, &start);
		if (!err)
			err = cursor_u64le(&l->c, &end);
		if (err || (!start && !end))
			return err;
		if (start == UINT64_MAX) {
			l->base = end;
			continue;
		}
		if (l->has_expressions)
			err = cursor_u16le(&l->c, &size);
		if (!err)
			err = emit(l, l->base + start, l->base + end, size);
		if (err)
			return err;
	}
}

/* An address of the unit's by its index. */
static struct error *indexed_address(const struct list *l, uint64_t index, uint64_t *ret)
{
	const struct dwarf_section *addresses = &l->lists->addresses;
	uint64_t base = l->unit->addr_base;

	if (base > addresses->size || index >= (addresses->size - base) / ADDRESS_SIZE)
		return error_new(ERROR_FORMAT, "debug_addr: no address %" PRIu64, index);
	*ret = load_u64le(addresses->bytes + base + ADDRESS_SIZE * index);
	return NULL;
}

static struct error *take_indexed(struct list *l, uint64_t *ret)
{
	uint64_t index;
	struct error *err = cursor_uvarint(&l->c, &index);

	return err ? err : indexed_address(l, index, ret);
}

/* What an entry of a DWARF 5 list is, the numbers of both sections made one. */
enum entry {
	ENTRY_END,
	ENTRY_BASE_INDEXED,
	ENTRY_INDEXED_PAIR,
	ENTRY_INDEXED_LENGTH,
	ENTRY_OFFSETS,
	ENTRY_DEFAULT,
	ENTRY_BASE,
	ENTRY_ADDRESSES,
	ENTRY_LENGTH,
	ENTRY_UNKNOWN,
};

static enum entry entry_of(const struct list *l, uint8_t code)
{
	if (l->has_expressions)
		return code < ENTRY_UNKNOWN ? (enum entry)code : ENTRY_UNKNOWN;
	/* range lists have no default location: all behind it are one less */
	if (code >= ENTRY_DEFAULT)
		code++;
	return code < ENTRY_UNKNOWN ? (enum entry)code : ENTRY_UNKNOWN;
}

_Static_assert(DW_LLE_offset_pair == ENTRY_OFFSETS && DW_LLE_start_length == ENTRY_LENGTH &&
		   DW_RLE_offset_pair == ENTRY_OFFSETS && DW_RLE_base_address == ENTRY_BASE - 1 &&
		   DW_RLE_start_length == ENTRY_LENGTH - 1,
	       "numbers of DWARF 5");

/* The addresses of an entry that has some; *ret_end <= *ret_start if it has none to visit. */
static struct error *take_addresses(struct list *l, enum entry entry, uint64_t *ret_start,
				    uint64_t *ret_end)
{
	uint64_t start = 0, end = 0;
	struct error *err = NULL;

	if (entry == ENTRY_INDEXED_PAIR || entry == ENTRY_INDEXED_LENGTH)
		err = take_indexed(l, &start);
	else if (entry == ENTRY_OFFSETS)
		err = cursor_uvarint(&l->c, &start);
	else if (entry == ENTRY_ADDRESSES || entry == ENTRY_LENGTH)
		err = cursor_u64le(&l->c, &start);
	if (err)
		return err;
	if (entry == ENTRY_INDEXED_PAIR)
		err = take_indexed(l, &end);
	else if (entry == ENTRY_ADDRESSES)
		err = cursor_u64le(&l->c, &end);
	else if (entry != ENTRY_DEFAULT)
		err = cursor_uvarint(&l->c, &end);
	if (entry == ENTRY_OFFSETS) {
		start += l->base;
		end += l->base;
	} else if (entry == ENTRY_INDEXED_LENGTH || entry == ENTRY_LENGTH) {
		end += start;
	}
	*ret_start = start;
	*ret_end = end;
	return err;
}

static struct error *walk_entry(struct list *l, enum entry entry)
{
	uint64_t start, end, size = 0;
	struct error *err;

	if (entry == ENTRY_UNKNOWN)
		return error_new(ERROR_FORMAT, "%s: an entry of no known kind", l->c.name);
	if (entry == ENTRY_BASE_INDEXED)
		return take_indexed(l, &l->base);
	if (entry == ENTRY_BASE)
		return cursor_u64le(&l->c, &l->base);
	err = take_addresses(l, entry, &start, &end);
	if (!err && l->has_expressions)
		err = cursor_uvarint(&l->c, &size);
	return err ? err : emit(l, start, end, size);
}

/* DWARF 5, 2.6.2 and 2.17.3. */
static struct error *walk_entries(struct list *l)
{
	for (;;) {
		uint8_t code;
		struct error *err = count_entry(l);

		if (!err)
			err = cursor_u8(&l->c, &code);
		if (err || code == ENTRY_END)
			return err;
		err = walk_entry(l, entry_of(l, code));
		if (err)
			return err;
	}
}

struct error *dwarf_lists_locations(struct dwarf_lists *lists, const struct dwarf_unit *unit,
				    uint64_t offset, const struct dwarf_list_visitor *visitor)
{
	struct list l = {
		.lists = lists, .unit = unit, .visitor = visitor, .has_expressions = true
	};
	bool old = unit->version < 5;
	struct error *err = list_begin(&l, old ? "debug_loc" : "debug_loclists",
				       old ? &lists->locations : &lists->location_lists, offset);

	if (err)
		return err;
	return old ? walk_pairs(&l) : walk_entries(&l);
}

struct error *dwarf_lists_ranges(struct dwarf_lists *lists, const struct dwarf_unit *unit,
				 uint64_t offset, const struct dwarf_list_visitor *visitor)
{
	struct list l = { .lists = lists, .unit = unit, .visitor = visitor };
	bool old = unit->version < 5;
	struct error *err = list_begin(&l, old ? "debug_ranges" : "debug_rnglists",
				       old ? &lists->ranges : &lists->range_lists, offset);

	if (err)
		return err;
	return old ? walk_pairs(&l) : walk_entries(&l);
}

/* ---- expressions ---- */

/* The piece that is being described. */
struct place {
	struct location_piece piece;
	int64_t constant; /* to be added */
};

static struct error *take_signed(struct cursor *c, int64_t *ret)
{
	uint64_t value = 0;
	uint8_t byte = 0x80;

	for (unsigned i = 0; byte & 0x80; i++) {
		struct error *err = cursor_u8(c, &byte);

		if (err)
			return err;
		if (i == VARINT_MAX)
			return error_new(ERROR_FORMAT, "%s: a number without an end", c->name);
		value |= (uint64_t)(byte & 0x7f) << (7 * i < 63 ? 7 * i : 63);
		if (!(byte & 0x80) && byte & 0x40 && 7 * (i + 1) < 64)
			value |= UINT64_MAX << 7 * (i + 1);
	}
	*ret = (int64_t)value;
	return NULL;
}

static void set_place(struct place *place, enum location_kind kind, int64_t number)
{
	place->piece.kind = kind;
	place->piece.number = number;
	place->piece.is_address = false;
}

/* Sums of hostile numbers wrap; the index keeps only offsets that a frame can have. */
static void move_place(struct place *place, uint64_t by)
{
	place->piece.number = (int64_t)((uint64_t)place->piece.number + by);
	if (place->piece.kind != LOCATION_FRAME || place->piece.is_address)
		place->piece.kind = LOCATION_OTHER;
}

static void make_address(struct place *place)
{
	if (place->piece.kind == LOCATION_FRAME && !place->piece.is_address)
		place->piece.is_address = true;
	else
		place->piece.kind = LOCATION_OTHER;
}

/* *ret_known turns false for what is not known, with all that follows. */
static struct error *take_operation(struct cursor *c, uint8_t op, struct place *place,
				    bool *ret_known)
{
	uint64_t value = 0;
	int64_t offset = 0;
	struct error *err = NULL;

	switch (op) {
	case DW_OP_call_frame_cfa:
		set_place(place, LOCATION_FRAME, 0);
		return NULL;
	case DW_OP_fbreg:
		err = take_signed(c, &offset);
		set_place(place, LOCATION_FRAME, offset);
		return err;
	case DW_OP_addr:
		err = cursor_u64le(c, &value);
		set_place(place, LOCATION_FIXED, (int64_t)value);
		return err;
	case DW_OP_consts:
		return take_signed(c, &place->constant);
	case DW_OP_plus:
		move_place(place, (uint64_t)place->constant);
		return NULL;
	case DW_OP_plus_uconst:
		err = cursor_uvarint(c, &value);
		move_place(place, value);
		return err;
	case DW_OP_deref:
		make_address(place);
		return NULL;
	case DW_OP_regx:
		err = cursor_uvarint(c, &value);
		set_place(place, LOCATION_REGISTER, (int64_t)value);
		return err;
	default:
		*ret_known = op >= DW_OP_reg0 && op <= DW_OP_reg31;
		set_place(place, *ret_known ? LOCATION_REGISTER : LOCATION_OTHER, op - DW_OP_reg0);
		return NULL;
	}
}

/* What a DW_OP_piece says: how much of the variable is where was told before. */
static struct error *end_piece(struct cursor *c, struct place *place, struct location_piece *ret)
{
	struct error *err = cursor_uvarint(c, &place->piece.size);

	if (!err && !place->piece.size)
		err = error_new(ERROR_FORMAT, "%s: a piece of nothing", c->name);
	*ret = place->piece;
	*place = (struct place){ 0 };
	return err;
}

struct error *dwarf_expression_read(const uint8_t *expression, size_t size,
				    struct location_piece ret[LOCATION_PIECES_MAX],
				    unsigned *ret_count)
{
	struct cursor c;
	struct place place = { 0 };
	bool known = true;
	struct error *err = NULL;

	*ret_count = 0;
	cursor_init(&c, "location", expression, size);
	while (!err && known && cursor_left(&c) && *ret_count < LOCATION_PIECES_MAX) {
		uint8_t op;

		err = cursor_u8(&c, &op);
		if (!err && op != DW_OP_piece)
			err = take_operation(&c, op, &place, &known);
		else if (!err)
			err = end_piece(&c, &place, &ret[(*ret_count)++]);
	}
	if (!err && !*ret_count && known && place.piece.kind)
		ret[(*ret_count)++] = place.piece;
	return err;
}
