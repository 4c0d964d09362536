#include "agent/binary/elf_symbols.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "agent/binary/elf_file.h"
#include "proto/base/bytes.h"

enum {
	SYMTAB_MAX = 512 << 20, /* bytes of a section; the largest programs have 50 MiB */
	NAME_SIZE_MAX = 64 << 10,
};

/* A string table, NUL-terminated at its end. */
struct names {
	char *text;
	size_t size;
	struct names *next;
};

struct elf_symbols {
	struct elf_symbol *symbols;
	uint32_t count;
	struct names *names; /* of the file that was read last first */
};

void elf_symbols_free(struct elf_symbols *symbols)
{
	if (!symbols)
		return;
	while (symbols->names) {
		struct names *next = symbols->names->next;

		free(symbols->names->text);
		free(symbols->names);
		symbols->names = next;
	}
	free(symbols->symbols);
	free(symbols);
}

static struct error *read_names(const struct elf_file *file, struct elf_symbols *symbols)
{
	const struct elf_section *section = elf_file_find_section(file, ".strtab");
	struct names *names = calloc(1, sizeof(*names));
	uint8_t *bytes = NULL;
	struct error *err;

	if (!names)
		return &error_nomem;
	names->next = symbols->names;
	symbols->names = names;
	if (!section)
		return error_new(ERROR_FORMAT, "symbols without names");
	err = elf_file_read_section(file, section, SYMTAB_MAX, &bytes, &names->size);
	if (err)
		return err;
	names->text = realloc(bytes, names->size + 1);
	if (!names->text) {
		free(bytes);
		return &error_nomem;
	}
	names->text[names->size] = '\0';
	return NULL;
}

/* Data that may change: what is read-only holds no pointers into the heap. */
static bool is_wanted(const struct elf_file *file, const Elf64_Sym *symbol,
		      const struct names *names)
{
	const struct elf_section *section;

	if (ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT || !symbol->st_size ||
	    symbol->st_shndx == SHN_UNDEF || symbol->st_shndx > elf_file_section_count(file) ||
	    symbol->st_name >= names->size || symbol->st_size > UINT64_MAX - symbol->st_value)
		return false;
	section = elf_file_section(file, symbol->st_shndx - 1u); /* the first of all is left out */
	return section->alloc && section->writable &&
	       strnlen(names->text + symbol->st_name, NAME_SIZE_MAX) < NAME_SIZE_MAX;
}

static int by_addr(const void *left, const void *right)
{
	const struct elf_symbol *a = left, *b = right;

	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	/* Of two at one place the larger comes last, and is found. */
	if (a->size != b->size)
		return a->size < b->size ? -1 : 1;
	return strcmp(a->name, b->name);
}

static struct error *collect(const struct elf_file *file, const uint8_t *bytes, size_t size,
			     uint64_t shift, struct elf_symbols *symbols)
{
	size_t count = size / sizeof(Elf64_Sym);
	const struct names *names = symbols->names;
	struct elf_symbol *grown =
	    reallocarray(symbols->symbols, symbols->count + count + 1, sizeof(*symbols->symbols));

	if (!grown)
		return &error_nomem;
	symbols->symbols = grown;
	for (size_t i = 0; i < count; i++) {
		Elf64_Sym symbol;

		memcpy(&symbol, bytes + i * sizeof(symbol), sizeof(symbol));
		if (is_wanted(file, &symbol, names))
			symbols->symbols[symbols->count++] =
			    (struct elf_symbol){ names->text + symbol.st_name,
						 symbol.st_value + shift, symbol.st_size };
	}
	if (symbols->count)
		qsort(symbols->symbols, symbols->count, sizeof(*symbols->symbols), by_addr);
	return NULL;
}

struct error *elf_symbols_add(struct elf_symbols *symbols, const struct elf_file *file,
			      uint64_t shift)
{
	const struct elf_section *section = elf_file_find_section(file, ".symtab");
	uint8_t *bytes scoped(freep) = NULL;
	size_t size;
	struct error *err;

	if (!section)
		return NULL;
	err = elf_file_read_section(file, section, SYMTAB_MAX, &bytes, &size);
	if (!err)
		err = read_names(file, symbols);
	if (!err)
		err = collect(file, bytes, size, shift, symbols);
	return err ? error_context(err, "symbols") : NULL;
}

struct error *elf_symbols_read(const struct elf_file *file, struct elf_symbols **ret)
{
	struct elf_symbols *symbols scoped(elf_symbols_freep) = calloc(1, sizeof(*symbols));
	struct error *err = symbols ? elf_symbols_add(symbols, file, 0) : &error_nomem;

	if (err)
		return err;
	*ret = take(symbols);
	return NULL;
}

uint32_t elf_symbols_count(const struct elf_symbols *symbols)
{
	return symbols->count;
}

const struct elf_symbol *elf_symbols_at(const struct elf_symbols *symbols, uint32_t index)
{
	return &symbols->symbols[index];
}

const struct elf_symbol *elf_symbols_find(const struct elf_symbols *symbols, taddr addr)
{
	uint32_t low = 0, high = symbols->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (symbols->symbols[middle].addr <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || addr - symbols->symbols[low - 1].addr >= symbols->symbols[low - 1].size)
		return NULL;
	return &symbols->symbols[low - 1];
}
