/*
 * For tests: what a layout takes from the DWARF of an executable, one entry a line, and what
 * becomes of the layout where one of them is missing:
 *
 *   layout_facts EXE             KIND NAME, for all that was found
 *   layout_facts EXE missing     KIND NAME: what comes of it where just that is missing: the error,
 *                                "the same layout" or "another layout"
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/binary/build_info.h"
#include "agent/binary/dwarf_types.h"
#include "agent/binary/elf_file.h"
#include "agent/goruntime/layout.h"

enum { NAMES_MAX = 1024, NAME_SIZE = 256 };

/* Passes on what another source has, but for one name. */
struct sieve {
	struct layout_source base;
	struct layout_source *source;
	char found[NAMES_MAX][NAME_SIZE];
	unsigned found_count;
	const char *hidden; /* NULL: nothing */
};

/* Whether a name that the source has may be told. */
static bool tell(struct sieve *sieve, const char *kind, const char *type, const char *name)
{
	char text[NAME_SIZE];

	snprintf(text, sizeof(text), "%s %s%s%s", kind, type, *type ? "." : "", name);
	if (sieve->hidden && !strcmp(sieve->hidden, text))
		return false;
	for (unsigned i = 0; i < sieve->found_count; i++)
		if (!strcmp(sieve->found[i], text))
			return true;
	if (sieve->found_count < NAMES_MAX)
		strcpy(sieve->found[sieve->found_count++], text);
	return true;
}

static bool find_struct(struct layout_source *base, const char *type, uint32_t *ret,
			struct error **ret_err)
{
	struct sieve *sieve = (struct sieve *)base;
	uint32_t size;

	if (!sieve->source->find_struct(sieve->source, type, &size, ret_err) ||
	    !tell(sieve, "struct", "", type))
		return false;
	*ret = size;
	return true;
}

static bool find_field(struct layout_source *base, const char *type, const char *path,
		       uint32_t *ret_offset, uint32_t *ret_size, struct error **ret_err)
{
	struct sieve *sieve = (struct sieve *)base;
	uint32_t offset, size;

	if (!sieve->source->find_field(sieve->source, type, path, &offset, &size, ret_err) ||
	    !tell(sieve, "field", type, path))
		return false;
	*ret_offset = offset;
	*ret_size = size;
	return true;
}

static bool find_constant(struct layout_source *base, const char *name, int64_t *ret,
			  struct error **ret_err)
{
	struct sieve *sieve = (struct sieve *)base;
	int64_t value;

	if (!sieve->source->find_constant(sieve->source, name, &value, ret_err) ||
	    !tell(sieve, "constant", "", name))
		return false;
	*ret = value;
	return true;
}

static bool find_global(struct layout_source *base, const char *name, taddr *ret_addr,
			uint64_t *ret_size, struct error **ret_err)
{
	struct sieve *sieve = (struct sieve *)base;
	uint64_t size;
	taddr addr;

	if (!sieve->source->find_global(sieve->source, name, &addr, &size, ret_err) ||
	    !tell(sieve, "global", "", name))
		return false;
	*ret_addr = addr;
	*ret_size = size;
	return true;
}

/* What becomes of a layout without one name; one that comes out as it was has found it by another.
 */
static void print_without(struct sieve *sieve, const struct layout *whole, const char *hidden)
{
	struct layout *layout = NULL;
	struct error *err;

	sieve->hidden = hidden;
	err = layout_read(&sieve->base, whole->version, &layout);
	if (err)
		printf("%s: %s\n", hidden, error_message(err));
	else
		printf("%s: %s\n", hidden,
		       memcmp(layout, whole, sizeof(*whole)) ? "another layout"
							     : "the same layout");
	error_free(err);
	layout_free(layout);
}

static struct error *print_facts(struct layout_source *source, const char *version, bool missing)
{
	struct sieve *sieve scoped(freep) = calloc(1, sizeof(*sieve));
	struct layout *layout scoped(layout_freep) = NULL;
	unsigned count;
	struct error *err;

	if (!sieve)
		return &error_nomem;
	sieve->base = (struct layout_source){ find_struct, find_field, find_constant, find_global };
	sieve->source = source;
	err = layout_read(&sieve->base, version, &layout);
	if (err)
		return err;
	count = sieve->found_count;
	for (unsigned i = 0; i < count; i++) {
		char name[NAME_SIZE];

		strcpy(name, sieve->found[i]);
		if (missing)
			print_without(sieve, layout, name);
		else
			puts(name);
	}
	return NULL;
}

static struct error *run(const char *path, bool missing)
{
	int fd scoped(closep) = open(path, O_RDONLY | O_CLOEXEC);
	struct elf_file *file scoped(elf_file_freep) = NULL;
	struct dwarf_types *types scoped(dwarf_types_freep) = NULL;
	struct build_info *info scoped(build_info_freep) = NULL;
	struct error *err = elf_file_open(fd, &file);

	if (!err)
		err = build_info_read(file, &info);
	if (!err)
		err = dwarf_types_open(file, &types);
	return err ? err : print_facts(dwarf_types_source(types), info->version, missing);
}

int main(int argc, char **argv)
{
	struct error *err = run(argc > 1 ? argv[1] : "", argc > 2 && !strcmp(argv[2], "missing"));

	if (!err)
		return 0;
	fprintf(stderr, "layout_facts: %s\n", error_message(err));
	error_free(err);
	return 1;
}
