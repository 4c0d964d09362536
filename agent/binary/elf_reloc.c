/* Relative relocations of position-independent executables: all that Go's data needs. */
#include <inttypes.h>

#include <elf.h>

#include "agent/binary/elf_file.h"
#include "proto/base/bytes.h"

enum {
	RELOCATIONS_SIZE_MAX = 256 << 20,
	RELA_SIZE = 24, /* sizeof(Elf64_Rela) */
	POINTER_SIZE = 8,
};

/* One table of relocations over the bytes at addr. */
static void apply(const uint8_t *relocations, size_t relocations_size, taddr addr, uint8_t *bytes,
		  size_t size)
{
	for (size_t at = 0; at + RELA_SIZE <= relocations_size; at += RELA_SIZE) {
		uint64_t offset = load_u64le(relocations + at) - addr;
		uint64_t info = load_u64le(relocations + at + 8);

		if (ELF64_R_TYPE(info) != R_X86_64_RELATIVE || size < POINTER_SIZE ||
		    offset > size - POINTER_SIZE)
			continue;
		store_u64le(bytes + offset, load_u64le(relocations + at + 16));
	}
}

struct error *elf_file_relocate(const struct elf_file *file, taddr addr, void *bytes, size_t size)
{
	if (!elf_file_is_pie(file))
		return NULL;
	for (uint32_t i = 0; i < elf_file_section_count(file); i++) {
		const struct elf_section *section = elf_file_section(file, i);
		uint8_t *relocations scoped(freep) = NULL;
		size_t relocations_size;
		struct error *err;

		if (section->type != SHT_RELA || !section->alloc)
			continue;
		err = elf_file_read_section(file, section, RELOCATIONS_SIZE_MAX, &relocations,
					    &relocations_size);
		if (err)
			return err;
		apply(relocations, relocations_size, addr, bytes, size);
	}
	return NULL;
}

struct error *elf_file_read_pointer(const struct elf_file *file, taddr addr, taddr *ret)
{
	uint8_t raw[POINTER_SIZE];
	struct error *err = elf_file_read_addr(file, addr, raw, sizeof(raw));

	if (!err)
		err = elf_file_relocate(file, addr, raw, sizeof(raw));
	if (err)
		return err;
	*ret = load_u64le(raw);
	return NULL;
}
