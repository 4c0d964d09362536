/*
 * Writes the seeds of the corpora: what tests build in code, as files. "make fuzz-seeds" runs it
 * in tests/fuzz/corpus of the source tree; what fuzzing found lies beside them and stays.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/binary/elf_file.h"
#include "agent/binary/index.h"
#include "agent/binary/type_index.h"
#include "proto/base/bytes.h"
#include "tests/support/dwarf_writer.h"
#include "tests/support/elf_writer.h"
#include "tests/support/pclntab_writer.h"

struct piece {
	const void *bytes;
	size_t size;
};

static void write_seed(const char *corpus, const char *name, const struct piece *pieces,
		       size_t count)
{
	char path[256];
	FILE *file;

	mkdir(corpus, 0777);
	snprintf(path, sizeof(path), "%s/%s", corpus, name);
	file = fopen(path, "we");
	for (size_t i = 0; file && i < count; i++)
		fwrite(pieces[i].bytes, 1, pieces[i].size, file);
	if (!file || fclose(file)) {
		perror(path);
		exit(1);
	}
}

static void write_build_info(void)
{
	static const char modules[] = "0123456789abcdefpath\tx\nmod\tm\tv1\t\n"
				      "build\tvcs.revision=9c\n0123456789abcdef";
	uint8_t header[32] = "\xff Go buildinf:\x08\x02";
	uint8_t old[128] = "\xff Go buildinf:\x08";

	write_seed("build_info", "inline",
		   (struct piece[]){ { header, 32 },
				     { "\x08go1.27.4", 9 },
				     { (uint8_t[]){ sizeof(modules) - 1 }, 1 },
				     { modules, sizeof(modules) - 1 } },
		   4);
	store_u64le(old + 16, 32);
	store_u64le(old + 24, 48);
	store_u64le(old + 32, 64);
	store_u64le(old + 40, 9);
	store_u64le(old + 48, 73);
	store_u64le(old + 56, 55);
	memcpy(old + 64, "go1.15.15", 9);
	memcpy(old + 73, "0123456789abcdefmod\tm\tv1\tx\nbuild\tvcs.t\n0123456789abcdef", 55);
	write_seed("build_info", "pointers", &(struct piece){ old, sizeof(old) }, 1);
}

static void write_pclntabs(void)
{
	for (int form = 0; form < PCLNTAB_WRITER_FORMS; form++) {
		struct pclntab_writer writer;
		char name[16];
		uint8_t tree_size;

		pclntab_writer_make(form, &writer);
		tree_size = (uint8_t)writer.tree_size;
		snprintf(name, sizeof(name), "form-%d", form);
		write_seed("pclntab", name,
			   (struct piece[]){ { &tree_size, 1 },
					     { writer.tree, writer.tree_size },
					     { writer.bytes, writer.size } },
			   3);
	}
}

/* The type index of an executable. */
static void write_types(const struct elf_writer *elf, const char *name)
{
	struct elf_file *file scoped(elf_file_freep) = NULL;
	struct bytes bytes;
	int fd = elf_writer_open(elf, elf->size);
	struct error *err = elf_file_open(fd, &file);

	bytes_init(&bytes, INDEX_SIZE_MAX);
	if (!err)
		err = type_index_build(&(struct type_index_files){ file, NULL, 0, 0 }, &bytes);
	if (err) {
		fprintf(stderr, "%s\n", error_message(err));
		exit(1);
	}
	write_seed("types", name, &(struct piece){ bytes.data, bytes.size }, 1);
	bytes_fini(&bytes);
}

static void write_dwarf(void)
{
	for (unsigned version = 4; version <= 5; version++) {
		static struct elf_writer elf;
		struct dwarf_writer writer;
		char name[16];
		uint8_t abbrev_size[2];

		dwarf_writer_make(&writer, version);
		dwarf_writer_elf(&writer, &elf);
		abbrev_size[0] = (uint8_t)writer.abbrev_size;
		abbrev_size[1] = (uint8_t)(writer.abbrev_size >> 8);
		snprintf(name, sizeof(name), "version-%u", version);
		write_seed("dwarf", name,
			   (struct piece[]){ { abbrev_size, 2 },
					     { writer.abbrev, writer.abbrev_size },
					     { writer.info, writer.info_size } },
			   3);
		write_seed("elf", name, &(struct piece){ elf.bytes, elf.size }, 1);
		write_types(&elf, name);
	}
}

static void write_index(void)
{
	static const struct index_key key = { { 1, 2, 3, 4, 5 }, { 6, 7, 8, 9, 10 }, "id", 2 };
	uint8_t layout[] = "\x02\0\0\0struct x";
	const struct bytes stored = { .data = layout, .size = sizeof(layout) };
	struct bytes out;
	struct error *err;

	bytes_init(&out, INDEX_SIZE_MAX);
	err = index_encode(INDEX_LAYOUT, &key, &stored, &out);
	if (err) {
		fprintf(stderr, "%s\n", error_message(err));
		exit(1);
	}
	write_seed("index", "small", &(struct piece){ out.data, out.size }, 1);
	bytes_fini(&out);
}

static void write_heap(void)
{
	/* the forms of fuzz_heap.c as they are, and one change that does not matter */
	for (uint8_t form = 0; form < 4; form++) {
		const uint8_t change[] = { form, 0xff, 0x20, 0, 0 };
		char name[16];

		snprintf(name, sizeof(name), "form-%u", form);
		write_seed("heap", name, &(struct piece){ change, sizeof(change) }, 1);
	}
	/* 3 bits, these five times, then the last two of them 300 times */
	write_seed("gc_program", "repeats",
		   &(struct piece){ (uint8_t[]){ 0, 4, 3, 5, 0x83, 5, 0x80, 2, 0xac, 2, 0 }, 11 },
		   1);
}

int main(void)
{
	write_build_info();
	write_pclntabs();
	write_dwarf();
	write_index();
	write_heap();
	return 0;
}
