/*
 * What agent/binary and the layout say of an executable, for tests to compare with other sources:
 *
 *	binary_facts layout FILE      build info, then every entry of the layout, which has been
 *	                              through an index on its way
 *	binary_facts functions FILE   entry, end and name of every function of the pclntab
 *	binary_facts frames FILE      every pc at which the size of a frame changes, and the size
 *	binary_facts references FILE  for each function of the runtime what it says of which global:
 *	                              global, function, offset in it, width of the access
 *	binary_facts lines FILE       for each pc on stdin: the pc, then innermost function, line,
 *file
 *
 * Addresses are link-time. Where the file cannot be used the exit code is 1 and one line is
 * printed: the number of the error code, then its message.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/binary/build_info.h"
#include "agent/binary/data_ref.h"
#include "agent/binary/dwarf_types.h"
#include "agent/binary/elf_file.h"
#include "agent/binary/index.h"
#include "agent/binary/pclntab.h"
#include "agent/goruntime/layout.h"
#include "proto/base/bytes.h"
#include "proto/base/cursor.h"

enum { PCLNTAB_LIMIT = 256 << 20, TREE_MAX = 64 << 10 };

struct facts {
	int fd;
	struct elf_file *elf;
	struct build_info *info;
	struct layout *layout;
	uint8_t *pclntab_bytes;
	struct pclntab *pclntab;
	taddr gofunc;
};

/* Stores the layout in an index and loads it again. */
static struct error *through_index(struct facts *facts)
{
	struct bytes stored scoped(bytes_fini), index scoped(bytes_fini);
	struct index_key key = { 0 };
	const uint8_t *bytes;
	size_t size;
	struct cursor c;
	struct error *err = index_file_key_read(facts->fd, &key.executable);

	bytes_init(&stored, INDEX_SIZE_MAX);
	bytes_init(&index, INDEX_SIZE_MAX);
	if (err)
		return err;
	index_key_set_build_id(&key, facts->elf);
	err = layout_store(facts->layout, &stored);
	if (!err)
		err = index_encode(INDEX_LAYOUT, &key, &stored, &index);
	if (!err)
		err = index_decode(INDEX_LAYOUT, index.data, index.size, &key, &bytes, &size);
	if (err)
		return err;
	layout_free(facts->layout);
	facts->layout = NULL;
	cursor_init(&c, "layout", bytes, size);
	return layout_load(&c, &facts->layout);
}

static struct error *read_layout(struct facts *facts)
{
	struct dwarf_types *types scoped(dwarf_types_freep) = NULL;
	struct error *err = dwarf_types_open(facts->elf, &types);

	if (!err)
		err = layout_read(dwarf_types_source(types), facts->info->version, &facts->layout);
	return err ? err : through_index(facts);
}

/* The bases of moduledata, as the linker filled them in. */
static struct error *read_bases(struct facts *facts, taddr *ret_text)
{
	const struct layout *layout = facts->layout;
	taddr module = layout->global_firstmoduledata.addr;
	struct error *err =
	    elf_file_read_pointer(facts->elf, module + layout->moduledata_text.offset, ret_text);

	if (!err && layout_has(layout, moduledata_gofunc))
		err = elf_file_read_pointer(facts->elf, module + layout->moduledata_gofunc.offset,
					    &facts->gofunc);
	return err;
}

static struct error *read_pclntab(struct facts *facts)
{
	const struct elf_section *section = elf_file_find_section(facts->elf, ".gopclntab");
	size_t size;
	taddr text;
	struct error *err = read_bases(facts, &text);

	if (err)
		return err;
	if (!section)
		return error_new(ERROR_FORMAT, "no pclntab section");
	err =
	    elf_file_read_section(facts->elf, section, PCLNTAB_LIMIT, &facts->pclntab_bytes, &size);
	if (!err)
		err = elf_file_relocate(facts->elf, section->addr, facts->pclntab_bytes, size);
	return err ? err : pclntab_open(facts->pclntab_bytes, size, text, 0, &facts->pclntab);
}

static struct error *read_facts(const char *path, struct facts *facts)
{
	struct error *err;

	facts->fd = open(path, O_RDONLY | O_CLOEXEC);
	err = elf_file_open_any(facts->fd, &facts->elf);
	if (!err)
		err = build_info_read(facts->elf, &facts->info);
	if (!err && !facts->info)
		err = error_new(ERROR_NOT_GO, "no build info");
	return err ? err : read_layout(facts);
}

static void free_facts(struct facts *facts)
{
	pclntab_free(facts->pclntab);
	free(facts->pclntab_bytes);
	layout_free(facts->layout);
	build_info_free(facts->info);
	elf_file_free(facts->elf);
	closep(&facts->fd);
}

static struct error *print_layout(struct facts *facts)
{
	const struct layout *l = facts->layout;

	printf("version %s\nmodule %s\n", facts->info->version, facts->info->module);
#define STRUCT(id, names, need) printf("struct %s %" PRIu32 "\n", #id, l->id.size);
#define FIELD(type, id, paths, need)                                                               \
	printf("field %s.%s %" PRIu32 " %" PRIu32 "\n", #type, #id, l->type##_##id.offset,         \
	       l->type##_##id.size);
#define CONSTANT(id, names, need)                                                                  \
	printf("constant %s %d %" PRId64 "\n", #id, l->const_##id.known, l->const_##id.value);
#define GLOBAL(id, names, need)                                                                    \
	printf("global %s %" PRIx64 " %" PRIu64 "\n", #id, l->global_##id.addr,                    \
	       l->global_##id.size);
#include "agent/goruntime/layout.def"
#undef STRUCT
#undef FIELD
#undef CONSTANT
#undef GLOBAL
	return NULL;
}

static struct error *print_functions(struct facts *facts)
{
	struct error *err = NULL;

	for (uint32_t i = 0; !err && i < pclntab_func_count(facts->pclntab); i++) {
		struct pclntab_func func;

		err = pclntab_at(facts->pclntab, i, &func);
		if (!err)
			printf("%" PRIx64 " %" PRIx64 " %s\n", func.entry, func.end, func.name);
	}
	return err;
}

/* Functions are padded at their end, where the table says nothing. */
static void print_frames_of(const struct facts *facts, const struct pclntab_func *func)
{
	int32_t before = INT32_MIN;

	for (taddr pc = func->entry; func->pcsp && pc < func->end; pc++) {
		int32_t size;
		struct error *err = pclntab_frame_size(facts->pclntab, func, pc, &size);

		if (err) {
			error_free(err);
			return;
		}
		if (size != before)
			printf("%" PRIx64 " %" PRId32 "\n", pc, size);
		before = size;
	}
}

static struct error *print_frames(struct facts *facts)
{
	struct error *err = NULL;

	for (uint32_t i = 0; !err && i < pclntab_func_count(facts->pclntab); i++) {
		struct pclntab_func func;

		err = pclntab_at(facts->pclntab, i, &func);
		if (!err)
			print_frames_of(facts, &func);
	}
	return err;
}

/* All of the tree that the file has, at most what any function needs. */
static size_t read_tree(const struct facts *facts, taddr addr, uint8_t *tree)
{
	for (size_t size = addr ? TREE_MAX : 0; size; size /= 2) {
		struct error *err = elf_file_read_addr(facts->elf, addr, tree, size);

		if (!err)
			return size;
		error_free(err);
	}
	return 0;
}

static struct error *print_line(const struct facts *facts, taddr pc)
{
	static uint8_t tree[TREE_MAX];
	struct pclntab_line lines[PCLNTAB_LINES_MAX];
	struct pclntab_func func;
	uint32_t count;
	taddr tree_addr;
	bool found;
	struct error *err = pclntab_find(facts->pclntab, pc, &found, &func);

	if (!err && !found)
		err = error_new(ERROR_FORMAT, "no function at %" PRIx64, pc);
	if (!err)
		err = pclntab_funcdata(facts->pclntab, &func, FUNCDATA_INLINE_TREE, facts->gofunc,
				       &tree_addr);
	if (!err)
		err = pclntab_lines(facts->pclntab, &func, pc, false, tree,
				    read_tree(facts, tree_addr, tree), lines, &count);
	if (!err)
		printf("%" PRIx64 "\t%" PRIx64 "\t%s\t%" PRIu32 "\t%s\n", pc, func.entry,
		       lines[0].function, lines[0].line, lines[0].file ? lines[0].file : "?");
	return err;
}

/* Closures, and bodies made for certain types, have names that come and go. */
static bool is_steady_name(const char *name)
{
	return !strncmp(name, "runtime.", strlen("runtime.")) && !strchr(name, '[') &&
	       !strstr(name, ".func") && !strstr(name, "-fm");
}

static void print_reference(struct facts *facts, const char *function, const struct data_ref *ref)
{
	for (enum layout_global_id id = 0; id < LAYOUT_GLOBAL_COUNT; id++) {
		const struct layout_global *global = layout_global(facts->layout, id);

		if (ref->addr - global->addr < global->size)
			printf("%s %s %" PRIu64 " %d\n", layout_global_name(id), function,
			       ref->addr - global->addr, ref->width);
	}
}

static struct error *print_references_of(struct facts *facts, const struct pclntab_func *func)
{
	size_t size = func->end - func->entry, count;
	uint8_t *code scoped(freep) = malloc(size + 1);
	struct data_ref *refs scoped(freep) = NULL;
	struct error *err =
	    code ? elf_file_read_addr(facts->elf, func->entry, code, size) : &error_nomem;

	if (!err)
		err = data_ref_read(code, size, func->entry, &refs, &count);
	for (size_t i = 0; !err && i < count; i++)
		print_reference(facts, func->name, &refs[i]);
	return err;
}

static struct error *print_references(struct facts *facts)
{
	struct error *err = NULL;

	for (uint32_t i = 0; !err && i < pclntab_func_count(facts->pclntab); i++) {
		struct pclntab_func func;

		err = pclntab_at(facts->pclntab, i, &func);
		if (!err && is_steady_name(func.name))
			err = print_references_of(facts, &func);
	}
	return err;
}

static struct error *print_lines(struct facts *facts)
{
	struct error *err = NULL;
	taddr pc;

	while (!err && scanf("%" SCNx64, &pc) == 1)
		err = print_line(facts, pc);
	return err;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		struct error *(*print)(struct facts *facts);
		bool needs_pclntab;
	} commands[] = {
		{ "layout", print_layout, false },        { "functions", print_functions, true },
		{ "frames", print_frames, true },         { "lines", print_lines, true },
		{ "references", print_references, true },
	};
	struct facts facts = { .fd = -1 };
	struct error *err = NULL;
	bool known = false;

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (argc != 3 || strcmp(argv[1], commands[i].name) != 0)
			continue;
		known = true;
		err = read_facts(argv[2], &facts);
		if (!err && commands[i].needs_pclntab)
			err = read_pclntab(&facts);
		if (!err)
			err = commands[i].print(&facts);
	}
	if (!known)
		fprintf(stderr,
			"usage: binary_facts layout|functions|frames|lines|references FILE\n");
	if (err) {
		printf("%d %s\n", error_code(err), error_message(err));
		error_free(err);
		known = false;
	}
	free_facts(&facts);
	return !known;
}
