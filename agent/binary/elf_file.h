/*
 * An ELF file, read through a descriptor by pread alone and trusted in nothing: its headers by
 * libelf, contents of sections within limits. 64-bit little-endian x86-64 only, where not said
 * otherwise; other machines are refused by name.
 */
#ifndef AGENT_BINARY_ELF_FILE_H
#define AGENT_BINARY_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

enum {
	ELF_FILE_SECTIONS_MAX = 4096, /* Go's own linker makes about 30 */
	ELF_FILE_SEGMENTS_MAX = 256,
	ELF_FILE_BUILD_ID_MAX = 64,     /* GNU build ids are 20 bytes */
	ELF_FILE_GO_BUILD_ID_MAX = 256, /* four hashes of 20 characters, and slashes */
};

struct elf_section {
	const char *name; /* belongs to the file */
	taddr addr;       /* link-time; 0 if it is not loaded */
	uint64_t offset, size;
	uint32_t type;
	bool alloc, writable, compressed;
};

struct elf_segment {
	taddr addr; /* link-time */
	uint64_t offset, file_size, memory_size, align;
	bool readable, writable, executable;
};

struct elf_file;

/*
 * fd, a regular file, is borrowed for the life of the result, which the caller frees. ERROR_NOT_GO
 * for what is no ELF executable at all, ERROR_UNSUPPORTED_ARCH for another machine.
 */
must_check struct error *elf_file_open(int fd, struct elf_file **ret);

/* The same for what may be looked at, but not yet be scanned: arm64, too. */
must_check struct error *elf_file_open_any(int fd, struct elf_file **ret);
void elf_file_free(struct elf_file *file);
DEFINE_FREEP(elf_file, elf_file_free)

uint32_t elf_file_section_count(const struct elf_file *file);
const struct elf_section *elf_file_section(const struct elf_file *file, uint32_t index);

/*
 * The first section with this name, also behind ".data.rel.ro": PIE moves what needs relocation
 * there. NULL if there is none.
 */
const struct elf_section *elf_file_find_section(const struct elf_file *file, const char *name);

/* The same for DWARF: ".debug_x" is also found as ".zdebug_x". */
const struct elf_section *elf_file_find_debug(const struct elf_file *file, const char *name);

/*
 * The content of a section, decompressed. The caller frees *ret. ERROR_LIMIT if it is larger
 * than limit bytes.
 */
must_check struct error *elf_file_read_section(const struct elf_file *file,
					       const struct elf_section *section, uint64_t limit,
					       uint8_t **ret, size_t *ret_size);

/* Fills all of buf from a place in the file; ERROR_FORMAT beyond its end. */
must_check struct error *elf_file_read_at(const struct elf_file *file, uint64_t offset, void *buf,
					  size_t size);

/* Loadable segments. */
uint32_t elf_file_segment_count(const struct elf_file *file);
const struct elf_segment *elf_file_segment(const struct elf_file *file, uint32_t index);

/* Fills all of buf from link-time address addr as it is at the start; ERROR_FAULT outside. */
must_check struct error *elf_file_read_addr(const struct elf_file *file, taddr addr, void *buf,
					    size_t size);

/*
 * Gives pointers in bytes that lie at addr the link-time values that the loader would add the load
 * bias to: external linkers leave them 0 in a PIE and keep the values in relocations.
 */
must_check struct error *elf_file_relocate(const struct elf_file *file, taddr addr, void *bytes,
					   size_t size);

/* A pointer at a link-time address, as the loader would see it. */
must_check struct error *elf_file_read_pointer(const struct elf_file *file, taddr addr, taddr *ret);

/* As Go names it: "amd64" or "arm64". */
const char *elf_file_arch(const struct elf_file *file);

bool elf_file_is_pie(const struct elf_file *file);
taddr elf_file_entry(const struct elf_file *file);

/* The GNU build id, 0 bytes if there is none (Go makes one since 1.24). */
const uint8_t *elf_file_build_id(const struct elf_file *file, size_t *ret_size);

/* Go's own build id, "" if there is none. */
const char *elf_file_go_build_id(const struct elf_file *file);

bool elf_file_has_dwarf(const struct elf_file *file);

#endif
