/* DWARF: the size of debug_abbrev in two bytes, its content, and debug_info. */
#include <stdlib.h>
#include <unistd.h>

#include "agent/binary/dwarf_types.h"
#include "agent/binary/elf_file.h"
#include "agent/binary/type_index.h"
#include "proto/base/bytes.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/elf_writer.h"

enum { HEADER_SIZE = 2, INDEX_MAX = 1 << 20 };

static void index_types(const struct elf_file *file)
{
	struct bytes bytes;

	bytes_init(&bytes, INDEX_MAX);
	error_free(type_index_build(&(struct type_index_files){ file, NULL, 0, 0 }, &bytes));
	bytes_fini(&bytes);
}

static void ask(struct layout_source *source)
{
	struct error *err = NULL;
	uint32_t offset, size;
	uint64_t size64;
	int64_t value;
	taddr addr;

	if (!source->find_struct(source, "runtime.alias", &size, &err))
		error_free(err);
	err = NULL;
	if (!source->find_field(source, "runtime.outer", "arr.value", &offset, &size, &err))
		error_free(err);
	err = NULL;
	if (!source->find_constant(source, "runtime.answer", &value, &err))
		error_free(err);
	err = NULL;
	if (!source->find_global(source, "runtime.v", &addr, &size64, &err))
		error_free(err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct elf_writer elf;
	struct elf_file *file = NULL;
	struct dwarf_types *types = NULL;
	size_t abbrev_size;
	int fd;

	if (size < HEADER_SIZE || size > ELF_WRITER_SIZE / 2)
		return 0;
	abbrev_size = load_u16le(data);
	if (abbrev_size > size - HEADER_SIZE)
		return 0;
	elf_writer_init(&elf, ET_EXEC);
	elf_writer_section(&elf, ".debug_abbrev", SHT_PROGBITS, 0, 0, data + HEADER_SIZE,
			   abbrev_size);
	elf_writer_section(&elf, ".debug_info", SHT_PROGBITS, 0, 0,
			   data + HEADER_SIZE + abbrev_size, size - HEADER_SIZE - abbrev_size);
	elf_writer_finish(&elf);
	fd = elf_writer_open(&elf, elf.size);
	error_free(elf_file_open(fd, &file));
	if (file)
		error_free(dwarf_types_open(file, &types));
	if (types)
		ask(dwarf_types_source(types));
	dwarf_types_free(types);
	if (file)
		index_types(file);
	elf_file_free(file);
	close(fd);
	return 0;
}
