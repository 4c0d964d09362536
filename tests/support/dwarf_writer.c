/*
 * Package main:    type main.T struct, 8 bytes
 *                  func main.f.func1, a closure with the variables p *main.T, &x *main.T, which it
 *                  captures, and n uintptr; r *main.T, its parameter, in RAX; p.ptr, which lies
 *                  where p does, and e.data, of which there is no whole, *main.T
 * Package runtime: type runtime.inner struct { value uint64 at 8 }, 16 bytes
 *                  type runtime.alias = runtime.inner
 *                  type runtime.outer struct { in alias at 16; arr [4]inner at 32; ptr *outer at
 * 96; f func() at 104 }, 112 bytes const runtime.answer = -42 var runtime.v outer
 */
#include "tests/support/dwarf_writer.h"

#include <assert.h>
#include <string.h>

#include <dwarf.h>

#include "proto/base/bytes.h"

enum abbrev {
	ABBREV_UNIT = 1,
	ABBREV_STRUCT,
	ABBREV_MEMBER,
	ABBREV_TYPEDEF,
	ABBREV_BASE,
	ABBREV_POINTER,
	ABBREV_ARRAY,
	ABBREV_CONSTANT,
	ABBREV_VARIABLE,
	ABBREV_FUNC,
	ABBREV_SUBPROGRAM,
	ABBREV_LOCAL,
	ABBREV_CAPTURED,
	ABBREV_POINTER_TO,
	ABBREV_PARAM,
};

enum { AT_GO_KIND = 0x2900, AT_CLOSURE_OFFSET = 0x2907, ATTRIBUTES = 5 };
enum { KIND_UINT64 = 11, KIND_UINTPTR };

static const struct {
	uint8_t code, tag, has_children;
	uint16_t attributes[ATTRIBUTES][2]; /* attribute and form */
} abbrevs[] = {
	{ ABBREV_UNIT,
	  DW_TAG_compile_unit,
	  1,
	  { { DW_AT_name, DW_FORM_string }, { DW_AT_language, DW_FORM_data1 } } },
	{ ABBREV_STRUCT,
	  DW_TAG_structure_type,
	  1,
	  { { DW_AT_name, DW_FORM_string }, { DW_AT_byte_size, DW_FORM_udata } } },
	{ ABBREV_MEMBER,
	  DW_TAG_member,
	  0,
	  { { DW_AT_name, DW_FORM_string },
	    { DW_AT_data_member_location, DW_FORM_udata },
	    { DW_AT_type, DW_FORM_ref_addr } } },
	{ ABBREV_TYPEDEF,
	  DW_TAG_typedef,
	  0,
	  { { DW_AT_name, DW_FORM_string }, { DW_AT_type, DW_FORM_ref_addr } } },
	{ ABBREV_BASE,
	  DW_TAG_base_type,
	  0,
	  { { DW_AT_name, DW_FORM_string },
	    { DW_AT_byte_size, DW_FORM_udata },
	    { AT_GO_KIND, DW_FORM_data1 } } },
	{ ABBREV_POINTER, DW_TAG_pointer_type, 0, { { 0 } } },
	{ ABBREV_ARRAY,
	  DW_TAG_array_type,
	  0,
	  { { DW_AT_byte_size, DW_FORM_udata }, { DW_AT_type, DW_FORM_ref_addr } } },
	{ ABBREV_CONSTANT,
	  DW_TAG_constant,
	  0,
	  { { DW_AT_name, DW_FORM_string }, { DW_AT_const_value, DW_FORM_sdata } } },
	{ ABBREV_VARIABLE,
	  DW_TAG_variable,
	  0,
	  { { DW_AT_name, DW_FORM_string },
	    { DW_AT_location, DW_FORM_block1 },
	    { DW_AT_type, DW_FORM_ref_addr } } },
	{ ABBREV_FUNC, DW_TAG_subroutine_type, 0, { { 0 } } },
	{ ABBREV_SUBPROGRAM,
	  DW_TAG_subprogram,
	  1,
	  { { DW_AT_name, DW_FORM_string },
	    { DW_AT_low_pc, DW_FORM_addr },
	    { DW_AT_high_pc, DW_FORM_addr } } },
	{ ABBREV_LOCAL,
	  DW_TAG_variable,
	  0,
	  { { DW_AT_name, DW_FORM_string },
	    { DW_AT_type, DW_FORM_ref_addr },
	    { DW_AT_location, DW_FORM_block1 } } },
	{ ABBREV_CAPTURED,
	  DW_TAG_variable,
	  0,
	  { { DW_AT_name, DW_FORM_string },
	    { DW_AT_type, DW_FORM_ref_addr },
	    { AT_CLOSURE_OFFSET, DW_FORM_udata },
	    { DW_AT_location, DW_FORM_block1 } } },
	{ ABBREV_PARAM,
	  DW_TAG_formal_parameter,
	  0,
	  { { DW_AT_name, DW_FORM_string },
	    { DW_AT_type, DW_FORM_ref_addr },
	    { DW_AT_location, DW_FORM_block1 } } },
	{ ABBREV_POINTER_TO,
	  DW_TAG_pointer_type,
	  0,
	  { { DW_AT_name, DW_FORM_string }, { DW_AT_type, DW_FORM_ref_addr } } },
};

static uint8_t *put_number(uint8_t *p, unsigned value)
{
	for (; value > 0x7f; value >>= 7)
		*p++ = (uint8_t)(value | 0x80);
	*p++ = (uint8_t)value;
	return p;
}

/* Every abbreviation ends in two zeros, the list in one more. */
static void put_abbrevs(struct dwarf_writer *w)
{
	uint8_t *p = w->abbrev;

	for (size_t i = 0; i < sizeof(abbrevs) / sizeof(abbrevs[0]); i++) {
		*p++ = abbrevs[i].code;
		*p++ = abbrevs[i].tag;
		*p++ = abbrevs[i].has_children;
		for (size_t j = 0; j < ATTRIBUTES && abbrevs[i].attributes[j][0]; j++) {
			p = put_number(p, abbrevs[i].attributes[j][0]);
			p = put_number(p, abbrevs[i].attributes[j][1]);
		}
		*p++ = 0;
		*p++ = 0;
	}
	*p++ = 0;
	w->abbrev_size = (size_t)(p - w->abbrev);
	assert(w->abbrev_size <= sizeof(w->abbrev));
}

static size_t put(struct dwarf_writer *w, const void *bytes, size_t size)
{
	size_t at = w->info_size;

	assert(at + size <= sizeof(w->info));
	memcpy(w->info + at, bytes, size);
	w->info_size += size;
	return at;
}

static size_t put_u8(struct dwarf_writer *w, unsigned value)
{
	return put(w, &(uint8_t){ (uint8_t)value }, 1);
}

static size_t put_u32(struct dwarf_writer *w, size_t value)
{
	uint8_t raw[4];

	store_u32le(raw, (uint32_t)value);
	return put(w, raw, sizeof(raw));
}

/* A DIE with a name. */
static size_t put_die(struct dwarf_writer *w, enum abbrev abbrev, const char *name)
{
	size_t at = put_u8(w, abbrev);

	put(w, name, strlen(name) + 1);
	return at;
}

static size_t put_type(struct dwarf_writer *w, const char *name, unsigned size)
{
	size_t at = put_die(w, ABBREV_STRUCT, name);

	put_u8(w, size);
	return at;
}

static size_t put_base(struct dwarf_writer *w, const char *name, unsigned kind)
{
	size_t at = put_die(w, ABBREV_BASE, name);

	put_u8(w, 8);
	put_u8(w, kind);
	return at;
}

static void end_type(struct dwarf_writer *w)
{
	put_u8(w, 0);
}

static void put_member(struct dwarf_writer *w, const char *name, unsigned offset, size_t type)
{
	put_die(w, ABBREV_MEMBER, name);
	put_u8(w, offset);
	put_u32(w, type);
}

static size_t begin_unit(struct dwarf_writer *w, unsigned version, const char *name)
{
	size_t at = put_u32(w, 0);

	put_u8(w, version);
	put_u8(w, 0);
	if (version == 5) {
		put_u8(w, DW_UT_compile);
		put_u8(w, 8);
	}
	put_u32(w, 0); /* the abbreviations */
	if (version == 4)
		put_u8(w, 8);
	put_die(w, ABBREV_UNIT, name);
	put_u8(w, DW_LANG_Go);
	return at;
}

static void end_unit(struct dwarf_writer *w, size_t at)
{
	put_u8(w, 0);
	store_u32le(w->info + at, (uint32_t)(w->info_size - at - 4));
}

static void put_variable(struct dwarf_writer *w, size_t type)
{
	uint8_t location[9] = { DW_OP_addr };

	store_u64le(location + 1, DWARF_WRITER_VARIABLE);
	put_die(w, ABBREV_VARIABLE, "runtime.v");
	put_u8(w, sizeof(location));
	put(w, location, sizeof(location));
	put_u32(w, type);
}

static void put_addr(struct dwarf_writer *w, uint64_t addr)
{
	uint8_t raw[8];

	store_u64le(raw, addr);
	put(w, raw, sizeof(raw));
}

/* A variable at an offset from the CFA that one byte holds. */
static void put_local(struct dwarf_writer *w, const char *name, size_t type,
		      unsigned closure_offset, int offset)
{
	put_die(w, closure_offset ? ABBREV_CAPTURED : ABBREV_LOCAL, name);
	put_u32(w, type);
	if (closure_offset)
		put_u8(w, closure_offset);
	put_u8(w, 2);
	put_u8(w, DW_OP_fbreg);
	put_u8(w, offset & 0x7f);
}

static void put_main(struct dwarf_writer *w)
{
	size_t type = put_type(w, "main.T", 8), pointer, word;

	end_type(w);
	pointer = put_die(w, ABBREV_POINTER_TO, "*main.T");
	put_u32(w, type);
	word = put_base(w, "uintptr", KIND_UINTPTR);
	put_die(w, ABBREV_SUBPROGRAM, "main.f.func1");
	put_addr(w, DWARF_WRITER_FUNCTION);
	put_addr(w, DWARF_WRITER_FUNCTION + 0x100);
	put_local(w, "p.ptr", pointer, 0, -16);
	put_local(w, "e.data", pointer, 0, -40);
	put_local(w, "p", pointer, 0, -16);
	put_local(w, "&x", pointer, 8, -24);
	put_local(w, "n", word, 16, -32);
	put_die(w, ABBREV_PARAM, "r");
	put_u32(w, pointer);
	put_u8(w, 1);
	put_u8(w, DW_OP_reg0);
	put_u8(w, 0);
}

static void put_runtime(struct dwarf_writer *w)
{
	size_t word, inner, alias, array, pointer, func, outer;

	word = put_base(w, "uint64", KIND_UINT64);
	inner = put_type(w, "runtime.inner", 16);
	put_member(w, "value", 8, word);
	end_type(w);
	alias = put_die(w, ABBREV_TYPEDEF, "runtime.alias");
	w->typedef_place = put_u32(w, inner);
	array = put_u8(w, ABBREV_ARRAY);
	put_u8(w, 64);
	put_u32(w, inner);
	pointer = put_u8(w, ABBREV_POINTER);
	func = put_u8(w, ABBREV_FUNC);
	outer = put_type(w, "runtime.outer", 112);
	put_member(w, "in", 16, alias);
	put_member(w, "arr", 32, array);
	put_member(w, "ptr", 96, pointer);
	put_member(w, "f", 104, func);
	end_type(w);
	put_die(w, ABBREV_CONSTANT, "runtime.answer");
	put_u8(w, -42 & 0x7f);
	put_variable(w, outer);
}

void dwarf_writer_make(struct dwarf_writer *w, unsigned version)
{
	size_t unit;

	memset(w, 0, sizeof(*w));
	put_abbrevs(w);
	unit = begin_unit(w, version, "main");
	put_main(w);
	end_unit(w, unit);
	unit = begin_unit(w, version, "runtime");
	put_runtime(w);
	end_unit(w, unit);
}

void dwarf_writer_elf(const struct dwarf_writer *w, struct elf_writer *elf)
{
	elf_writer_init(elf, ET_EXEC);
	elf_writer_section(elf, ".debug_abbrev", SHT_PROGBITS, 0, 0, w->abbrev, w->abbrev_size);
	elf_writer_section(elf, ".debug_info", SHT_PROGBITS, 0, 0, w->info, w->info_size);
	elf_writer_finish(elf);
}
