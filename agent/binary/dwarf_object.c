#include "agent/binary/dwarf_object.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <dwarf.h>

#include "agent/binary/elf_file.h"
#include "proto/base/cursor.h"

/* All of a large program's debug_info is some 100 MB; the rest of what is read is far smaller. */
enum { SECTION_SIZE_MAX = 512 << 20 };

/* What types, constants and variables need; lines, locations and frames stay unread. */
static const char *const section_names[] = {
	".debug_info",        ".debug_abbrev", ".debug_str",   ".debug_line_str",
	".debug_str_offsets", ".debug_addr",   ".debug_types",
};

enum { SECTION_COUNT = sizeof(section_names) / sizeof(section_names[0]) };

struct dwarf_object {
	Dwarf_Obj_Access_Interface access;
	Dwarf_Debug debug;
	/* Those the file has, by their uncompressed names. */
	struct {
		const char *name;
		uint8_t *bytes;
		size_t size;
	} sections[SECTION_COUNT];
	unsigned count;
};

/* Section 0 is ELF's null section to libdwarf, so ours begin at 1. */
static int get_section_info(void *arg, Dwarf_Half index, Dwarf_Obj_Access_Section *ret, int *error)
{
	const struct dwarf_object *object = arg;

	(void)error;
	if (index > object->count)
		return DW_DLV_NO_ENTRY;
	*ret = (Dwarf_Obj_Access_Section){ .name = "" };
	if (index) {
		ret->name = object->sections[index - 1].name;
		ret->size = object->sections[index - 1].size;
	}
	return DW_DLV_OK;
}

static int load_section(void *arg, Dwarf_Half index, Dwarf_Small **ret, int *error)
{
	const struct dwarf_object *object = arg;

	(void)error;
	if (!index || index > object->count)
		return DW_DLV_NO_ENTRY;
	*ret = object->sections[index - 1].bytes;
	return DW_DLV_OK;
}

static Dwarf_Endianness get_byte_order(void *arg)
{
	(void)arg;
	return DW_OBJECT_LSB;
}

static Dwarf_Small get_word_size(void *arg)
{
	(void)arg;
	return 8;
}

static Dwarf_Unsigned get_section_count(void *arg)
{
	const struct dwarf_object *object = arg;

	return object->count + 1;
}

static const Dwarf_Obj_Access_Methods methods = {
	.get_section_info = get_section_info,
	.get_byte_order = get_byte_order,
	.get_length_size = get_word_size,
	.get_pointer_size = get_word_size,
	.get_section_count = get_section_count,
	.load_section = load_section,
};

static struct error *read_sections(struct dwarf_object *object, const struct elf_file *file)
{
	for (unsigned i = 0; i < SECTION_COUNT; i++) {
		const struct elf_section *section = elf_file_find_debug(file, section_names[i]);
		struct error *err;

		if (!section || !section->size)
			continue;
		err = elf_file_read_section(file, section, SECTION_SIZE_MAX,
					    &object->sections[object->count].bytes,
					    &object->sections[object->count].size);
		if (err)
			return err;
		object->sections[object->count++].name = section_names[i];
	}
	return NULL;
}

struct error *dwarf_object_open(const struct elf_file *file, struct dwarf_object **ret)
{
	struct dwarf_object *object scoped(dwarf_object_freep) = NULL;
	Dwarf_Error error = NULL;
	struct error *err;
	int status;

	if (!elf_file_has_dwarf(file))
		return error_new(ERROR_NO_DEBUG_INFO,
				 "the executable has no DWARF: it was built with -ldflags=-w or -s "
				 "or was stripped; build it without them");
	object = calloc(1, sizeof(*object));
	if (!object)
		return &error_nomem;
	err = read_sections(object, file);
	if (err)
		return err;
	object->access = (Dwarf_Obj_Access_Interface){ .object = object, .methods = &methods };
	status = dwarf_object_init_b(&object->access, NULL, NULL, DW_GROUPNUMBER_ANY,
				     &object->debug, &error);
	if (status == DW_DLV_ERROR)
		return dwarf_object_error(object, error, "DWARF");
	if (status != DW_DLV_OK)
		return error_new(ERROR_NO_DEBUG_INFO, "the executable's DWARF is empty");
	*ret = take(object);
	return NULL;
}

void dwarf_object_free(struct dwarf_object *object)
{
	Dwarf_Error error = NULL;

	if (!object)
		return;
	if (object->debug)
		dwarf_object_finish(object->debug, &error);
	for (unsigned i = 0; i < SECTION_COUNT; i++)
		free(object->sections[i].bytes);
	free(object);
}

Dwarf_Debug dwarf_object_debug(const struct dwarf_object *object)
{
	return object->debug;
}

/* What is looked for in abbreviations. */
struct abbrev_search {
	uint64_t attribute;
	bool found;
};

/* One abbreviation; *ret_end after the last. */
static struct error *search_abbrev(struct cursor *c, struct abbrev_search *search, bool *ret_end)
{
	uint64_t code, tag, attribute, form, value;
	struct error *err = cursor_uvarint(c, &code);

	*ret_end = !err && !code;
	if (err || !code)
		return err;
	err = cursor_uvarint(c, &tag);
	if (!err)
		err = cursor_skip(c, 1); /* has children */
	do {
		if (!err)
			err = cursor_uvarint(c, &attribute);
		if (!err)
			err = cursor_uvarint(c, &form);
		if (!err && form == DW_FORM_implicit_const)
			err = cursor_uvarint(c, &value);
		if (!err && attribute == search->attribute)
			search->found = true;
	} while (!err && (attribute || form));
	return err;
}

struct error *dwarf_object_has_attribute(const struct dwarf_object *object, uint64_t offset,
					 uint64_t attribute, bool *ret)
{
	struct abbrev_search search = { .attribute = attribute };

	for (unsigned i = 0; i < object->count; i++) {
		struct cursor c;
		struct error *err;
		bool end = false;

		if (strcmp(object->sections[i].name, ".debug_abbrev") != 0)
			continue;
		cursor_init(&c, "debug_abbrev", object->sections[i].bytes,
			    object->sections[i].size);
		err = cursor_seek(&c, offset);
		while (!err && !end)
			err = search_abbrev(&c, &search, &end);
		*ret = search.found;
		return err;
	}
	return error_new(ERROR_FORMAT, "DWARF without abbreviations");
}

struct error *dwarf_object_check_abbrevs(const struct dwarf_object *object, uint64_t offset)
{
	bool found = false;
	struct error *err = dwarf_object_has_attribute(object, offset, DW_AT_sibling, &found);

	if (!err && found)
		err = error_new(ERROR_FORMAT, "DWARF of Go's with sibling attributes");
	return err;
}

struct error *dwarf_object_error(const struct dwarf_object *object, Dwarf_Error error,
				 const char *what)
{
	struct error *err =
	    error_new(ERROR_FORMAT, "%s: %s", what, error ? dwarf_errmsg(error) : "missing");

	if (error)
		dwarf_dealloc_error(object->debug, error);
	return err;
}
