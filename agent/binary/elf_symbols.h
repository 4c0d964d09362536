/*
 * The symbols of data (.symtab) of an executable and its plugins: what names global variables where
 * there is no DWARF (built with -ldflags=-w), and those that the compiler made up, in all programs
 * that have symbols.
 */
#ifndef AGENT_BINARY_ELF_SYMBOLS_H
#define AGENT_BINARY_ELF_SYMBOLS_H

#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

struct elf_file;
struct elf_symbols;

struct elf_symbol {
	const char *name; /* belongs to the symbols */
	taddr addr;       /* link-time; of a plugin as if the program had been linked with it */
	uint64_t size;
};

/*
 * Symbols of data in writable sections, by address; none in a stripped executable. The file need
 * not live on.
 */
must_check struct error *elf_symbols_read(const struct elf_file *file, struct elf_symbols **ret);
void elf_symbols_free(struct elf_symbols *symbols);
DEFINE_FREEP(elf_symbols, elf_symbols_free)

/*
 * Adds those of another file, a plugin, with shift added to their addresses; what was given out
 * before is void.
 */
must_check struct error *elf_symbols_add(struct elf_symbols *symbols, const struct elf_file *file,
					 uint64_t shift);

uint32_t elf_symbols_count(const struct elf_symbols *symbols);
const struct elf_symbol *elf_symbols_at(const struct elf_symbols *symbols, uint32_t index);

/* The symbol whose bytes include addr, or NULL. */
const struct elf_symbol *elf_symbols_find(const struct elf_symbols *symbols, taddr addr);

#endif
