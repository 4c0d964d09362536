#include "agent/goruntime/layout_discover.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/binary/data_ref.h"
#include "agent/binary/elf_file.h"
#include "agent/binary/pclntab.h"
#include "agent/goruntime/anchor.h"
#include "agent/goruntime/global_find.h"
#include "agent/goruntime/module.h"

static size_t list_segments(const struct layout_program *program,
			    struct anchor_segment segments[ELF_FILE_SEGMENTS_MAX])
{
	uint32_t count = elf_file_segment_count(program->file);

	for (uint32_t i = 0; i < count; i++) {
		const struct elf_segment *segment = elf_file_segment(program->file, i);
		taddr start = segment->addr + program->load_bias;

		segments[i] = (struct anchor_segment){ start, start + segment->file_size,
						       segment->writable, segment->executable };
	}
	return count;
}

static struct error *find_moduledata(const struct layout_program *program,
				     const struct layout *layout, taddr *ret)
{
	const struct elf_section *pclntab = elf_file_find_section(program->file, ".gopclntab");
	struct anchor_segment segments[ELF_FILE_SEGMENTS_MAX];

	return anchor_find(program->memory, segments, list_segments(program, segments),
			   pclntab ? pclntab->addr + program->load_bias : 0, layout, ret);
}

/* A layout with its firstmoduledata, and the modules as it reads them. */
static struct error *open_modules(const struct layout_program *program,
				  const struct layout_table_entry *entry,
				  struct layout **ret_layout, struct module_table **ret_modules)
{
	struct layout *layout scoped(layout_freep) = NULL;
	struct error *err = layout_copy(entry->layout, &layout);

	if (!err)
		err = find_moduledata(program, layout, &layout->global_firstmoduledata.addr);
	if (!err)
		err = module_table_read(program->memory, layout, ret_modules);
	if (err)
		return err;
	*ret_layout = take(layout);
	return NULL;
}

/* ---- the version of a program whose build info cannot be read ---- */

/* The version at a Go string's header, if there is one. */
static bool read_version(struct memory *memory, taddr header, char ret[LAYOUT_VERSION_SIZE])
{
	char *text scoped(freep) = NULL;
	size_t size;
	struct error *err = memory_go_string(memory, header, LAYOUT_VERSION_SIZE - 1, &text, &size);

	if (err) {
		error_free(err);
		return false;
	}
	if (strlen(text) != size || !strstr(text, "go1."))
		return false;
	memcpy(ret, text, size + 1);
	return true;
}

/*
 * runtime.schedinit looks at runtime.buildVersion, to set it if it is empty (runtime/proc.go): the
 * one string it refers to that is a version.
 */
static struct error *find_version(struct memory *memory, const struct module *module,
				  char ret[LAYOUT_VERSION_SIZE])
{
	struct pclntab_func func;
	struct data_ref *refs scoped(freep) = NULL;
	uint8_t *code scoped(freep) = NULL;
	size_t count = 0, size;
	bool found;
	struct error *err = pclntab_find_name(module->pclntab, "runtime.schedinit", &found, &func);

	if (err || !found)
		return err ? err : error_new(ERROR_UNSUPPORTED, "no function runtime.schedinit");
	size = func.end - func.entry;
	if (size > DATA_REF_FUNCTION_MAX)
		size = DATA_REF_FUNCTION_MAX;
	code = malloc(size);
	if (!code)
		return &error_nomem;
	err = memory_read_bulk(memory, func.entry, code, size);
	if (!err)
		err = data_ref_read(code, size, func.entry, &refs, &count);
	for (size_t i = 0; !err && i < count; i++)
		if (read_version(memory, refs[i].addr, ret))
			return NULL;
	return err ? err : error_new(ERROR_UNSUPPORTED, "runtime.schedinit knows no version");
}

/* With whatever layout fits its moduledata. */
static struct error *learn_version(const struct layout_program *program,
				   char ret[LAYOUT_VERSION_SIZE])
{
	size_t count;
	const struct layout_table_entry *entries =
	    layout_table_entries(elf_file_arch(program->file), &count);
	struct error *err = NULL;

	for (size_t i = 0; i < count; i++) {
		struct layout *layout scoped(layout_freep) = NULL;
		struct module_table *modules scoped(module_table_freep) = NULL;

		error_free(err);
		err = open_modules(program, &entries[i], &layout, &modules);
		if (!err)
			err = find_version(program->memory, module_table_at(modules, 0), ret);
		if (!err || error_code(err) == ERROR_NOMEM || error_code(err) == ERROR_GONE)
			return err;
	}
	return error_context(err, "the version of Go");
}

/* ---- the layout ---- */

static struct error *find_globals(const struct layout_program *program, const char *version,
				  const struct layout_table_entry *entry, struct layout **ret)
{
	struct layout *layout scoped(layout_freep) = NULL;
	struct module_table *modules scoped(module_table_freep) = NULL;
	struct error *err = open_modules(program, entry, &layout, &modules);

	if (!err)
		err = global_find(program->memory, module_table_at(modules, 0), entry->refs,
				  entry->ref_count, layout);
	if (err)
		return err;
	snprintf(layout->version, sizeof(layout->version), "%s", version);
	err = layout_complete_globals(layout);
	if (err)
		return err;
	*ret = take(layout);
	return NULL;
}

struct error *layout_doubt(struct error *err, const char *version, const char *table_version)
{
	if (!err)
		return NULL;
	switch (error_code(err)) {
	case ERROR_CORRUPT_TARGET:
	case ERROR_FAULT:
	case ERROR_FORMAT:
	case ERROR_LIMIT:
	case ERROR_UNSUPPORTED:
		return error_context(error_recode(err, ERROR_UNSUPPORTED),
				     "nothing is known of %s, and the layout of %s does not fit it",
				     version, table_version);
	default:
		return err;
	}
}

struct error *layout_discover(const struct layout_program *program, struct layout **ret,
			      struct layout_found *ret_found)
{
	char version[LAYOUT_VERSION_SIZE];
	const struct layout_table_entry *entry;
	enum layout_match match;
	struct error *err = NULL;

	snprintf(version, sizeof(version), "%s", program->version);
	if (!version[0])
		err = learn_version(program, version);
	if (err)
		return err;
	match = layout_table_find(elf_file_arch(program->file), version, &entry);
	if (match == LAYOUT_MATCH_NONE)
		return error_new(ERROR_UNSUPPORTED, "no layout is known of %s", version);
	err = find_globals(program, version, entry, ret);
	if (err && match == LAYOUT_MATCH_NEAREST)
		return layout_doubt(err, version, entry->version);
	if (err)
		return error_context(err, "with the layout of %s", entry->version);
	*ret_found = (struct layout_found){ entry->version, match };
	return NULL;
}
