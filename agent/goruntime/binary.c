#include "agent/goruntime/binary.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/binary/build_info.h"
#include "agent/binary/dwarf_types.h"
#include "agent/binary/elf_file.h"
#include "agent/binary/index.h"
#include "agent/binary/pclntab.h"
#include "agent/goruntime/layout.h"
#include "proto/base/bytes.h"
#include "proto/base/checked.h"
#include "proto/base/cursor.h"
#include "proto/base/log.h"

enum {
	PCLNTAB_SIZE_MAX = 512 << 20,   /* some 150 MB in the largest programs */
	MODULEDATA_SIZE_MAX = 64 << 10, /* 592 bytes at most so far */
};

struct binary {
	int fd;
	struct elf_file *elf;
	struct build_info *build_info;
	struct index_key key;
	struct layout *layout;
	uint8_t *pclntab_bytes;
	struct pclntab *pclntab;
	bool index_used;
	struct bytes new_index;
};

struct error *binary_open(int exe_fd, struct binary **ret)
{
	struct binary *binary scoped(binary_freep) = calloc(1, sizeof(*binary));
	struct error *err;

	if (!binary)
		return &error_nomem;
	binary->fd = exe_fd;
	bytes_init(&binary->new_index, INDEX_SIZE_MAX);
	err = index_key_read(exe_fd, &binary->key);
	if (!err)
		err = elf_file_open(exe_fd, &binary->elf);
	if (err)
		return err;
	index_key_set_build_id(&binary->key, binary->elf);
	err = build_info_read(binary->elf, &binary->build_info);
	if (err && error_code(err) == ERROR_NOMEM)
		return err;
	/* build info that does not parse says nothing; the pclntab still tells a Go program */
	error_free(err);
	if (!binary->build_info && !elf_file_find_section(binary->elf, ".gopclntab"))
		return error_new(ERROR_NOT_GO,
				 "the executable has neither Go's build info nor its pclntab");
	err = binary->build_info ? NULL : build_info_new(&binary->build_info);
	if (err)
		return err;
	*ret = take(binary);
	return NULL;
}

void binary_free(struct binary *binary)
{
	if (!binary)
		return;
	pclntab_free(binary->pclntab);
	free(binary->pclntab_bytes);
	layout_free(binary->layout);
	bytes_fini(&binary->new_index);
	build_info_free(binary->build_info);
	elf_file_free(binary->elf);
	free(binary);
}

const struct elf_file *binary_elf(const struct binary *binary)
{
	return binary->elf;
}

const struct build_info *binary_build_info(const struct binary *binary)
{
	return binary->build_info;
}

void binary_build_id(const struct binary *binary, char ret[BINARY_BUILD_ID_SIZE])
{
	size_t size;
	const uint8_t *id = elf_file_build_id(binary->elf, &size);

	snprintf(ret, BINARY_BUILD_ID_SIZE, "%s", size ? "" : elf_file_go_build_id(binary->elf));
	for (size_t i = 0; i < size; i++)
		snprintf(ret + 2 * i, 3, "%02x", id[i]);
}

/* Whatever is wrong with an index, it is as good as none: unless memory ran out. */
static struct error *use_index(struct binary *binary, const void *bytes, size_t size)
{
	const uint8_t *stored;
	size_t stored_size;
	struct cursor c;
	struct error *err = index_decode(bytes, size, &binary->key, &stored, &stored_size);

	if (!err) {
		cursor_init(&c, "stored layout", stored, stored_size);
		err = layout_load(&c, &binary->layout);
	}
	if (err && error_code(err) == ERROR_NOMEM)
		return err;
	if (err) {
		log_debug("binary", "the index is made anew err=\"%s\"", error_message(err));
		error_free(err);
		return NULL;
	}
	binary->index_used = true;
	return NULL;
}

static struct error *make_index(struct binary *binary)
{
	struct bytes layout scoped(bytes_fini);
	struct index_key now;
	struct error *err;

	bytes_init(&layout, INDEX_SIZE_MAX);
	err = index_key_read(binary->fd, &now);
	if (err)
		return err;
	/* written to meanwhile: what was read may be of either state */
	if (now.size != binary->key.size || now.mtime_ns != binary->key.mtime_ns ||
	    now.ctime_ns != binary->key.ctime_ns)
		return NULL;
	err = layout_store(binary->layout, &layout);
	if (err)
		return err;
	return index_encode(&binary->key, &layout, &binary->new_index);
}

static struct error *read_dwarf(struct binary *binary)
{
	struct dwarf_types *types scoped(dwarf_types_freep) = NULL;
	struct error *err = dwarf_types_open(binary->elf, &types);

	if (!err)
		err = layout_read(dwarf_types_source(types), &binary->layout);
	return err ? err : make_index(binary);
}

/* Where the main module's pclntab and text lie, at link time. */
struct pclntab_place {
	taddr text, start;
	uint64_t size;
};

static uint64_t load_field(const uint8_t *bytes, struct layout_field field, uint32_t skip)
{
	return load_u64le(bytes + field.offset + skip);
}

/*
 * moduledata tells, as the linker filled it in: its section is no guide, since external linkers
 * merge a PIE's pclntab into .data.rel.ro. The functions, pclntable, are the last of its parts; up
 * to go1.15 they are all of it.
 */
static struct error *find_pclntab(const struct binary *binary, struct pclntab_place *ret)
{
	const struct layout *layout = binary->layout;
	uint8_t *bytes scoped(freep) = NULL;
	taddr addr = layout->global_firstmoduledata.addr;
	uint64_t functions, end;
	struct error *err;

	if (layout->moduledata.size > MODULEDATA_SIZE_MAX || layout->moduledata_text.size != 8 ||
	    layout->moduledata_pcln_slice.size != 24 ||
	    (layout_has(layout, moduledata_pclntab_header) &&
	     layout->moduledata_pclntab_header.size != 8))
		return error_new(ERROR_FORMAT, "moduledata is not what it was in any Go");
	bytes = malloc(layout->moduledata.size);
	if (!bytes)
		return &error_nomem;
	err = elf_file_read_addr(binary->elf, addr, bytes, layout->moduledata.size);
	if (!err)
		err = elf_file_relocate(binary->elf, addr, bytes, layout->moduledata.size);
	if (err)
		return err;
	functions = load_field(bytes, layout->moduledata_pcln_slice, 0);
	ret->text = load_field(bytes, layout->moduledata_text, 0);
	ret->start = layout_has(layout, moduledata_pclntab_header)
			 ? load_field(bytes, layout->moduledata_pclntab_header, 0)
			 : functions;
	if (!checked_add(functions, load_field(bytes, layout->moduledata_pcln_slice, 8), &end) ||
	    end < ret->start)
		return error_new(ERROR_FORMAT, "pclntab ends before its beginning");
	ret->size = end - ret->start;
	return NULL;
}

static struct error *read_pclntab(struct binary *binary, uint64_t load_bias)
{
	struct pclntab_place place;
	struct error *err = find_pclntab(binary, &place);

	if (err)
		return error_context(err, "moduledata");
	if (place.size > PCLNTAB_SIZE_MAX)
		return error_new(ERROR_LIMIT, "a pclntab of %" PRIu64 " bytes", place.size);
	binary->pclntab_bytes = malloc(place.size + 1);
	if (!binary->pclntab_bytes)
		return &error_nomem;
	err = elf_file_read_addr(binary->elf, place.start, binary->pclntab_bytes, place.size);
	if (!err)
		err =
		    elf_file_relocate(binary->elf, place.start, binary->pclntab_bytes, place.size);
	if (err)
		return error_context(err, "pclntab");
	return pclntab_open(binary->pclntab_bytes, place.size, place.text + load_bias, load_bias,
			    &binary->pclntab);
}

struct error *binary_load(struct binary *binary, taddr first_mapped, const void *index,
			  size_t index_size)
{
	uint64_t load_bias = elf_file_load_bias(binary->elf, first_mapped);
	struct error *err = index_size ? use_index(binary, index, index_size) : NULL;

	if (!err && !binary->layout)
		err = read_dwarf(binary);
	if (!err)
		err = read_pclntab(binary, load_bias);
	if (err)
		return err;
	layout_relocate(binary->layout, load_bias);
	return NULL;
}

const struct layout *binary_layout(const struct binary *binary)
{
	return binary->layout;
}

const struct pclntab *binary_pclntab(const struct binary *binary)
{
	return binary->pclntab;
}

bool binary_index_used(const struct binary *binary)
{
	return binary->index_used;
}

const struct bytes *binary_new_index(const struct binary *binary)
{
	return &binary->new_index;
}
