/*
 * Writes small ELF files for tests: what is put in comes out as a file in memory, which tests then
 * open, cut or spoil.
 */
#ifndef TESTS_SUPPORT_ELF_WRITER_H
#define TESTS_SUPPORT_ELF_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include <elf.h>

enum { ELF_WRITER_SIZE = 64 << 10, ELF_WRITER_SECTIONS = 24, ELF_WRITER_SEGMENTS = 8 };

struct elf_writer {
	uint8_t bytes[ELF_WRITER_SIZE]; /* the file; its header may be spoilt after _finish */
	size_t size;
	Elf64_Shdr sections[ELF_WRITER_SECTIONS];
	unsigned section_count;
	Elf64_Phdr segments[ELF_WRITER_SEGMENTS];
	unsigned segment_count;
	char names[1024];
	size_t names_size;
};

/* An amd64 executable of type ET_EXEC or ET_DYN. */
void elf_writer_init(struct elf_writer *writer, uint16_t type);

/*
 * Appends content, aligned to 16 bytes, and gives it a section header. The offset of the content
 * in the file is returned.
 */
uint64_t elf_writer_section(struct elf_writer *writer, const char *name, uint32_t type,
			    uint64_t flags, uint64_t addr, const void *content, size_t size);

/* Nothing is appended: the segment covers part of the file. */
void elf_writer_segment(struct elf_writer *writer, uint32_t type, uint32_t flags, uint64_t addr,
			uint64_t offset, uint64_t file_size, uint64_t memory_size);

/* Appends names and section headers and fills in the header. */
void elf_writer_finish(struct elf_writer *writer);

/* A descriptor of a file in memory with the first size bytes; the caller closes it. */
int elf_writer_open(const struct elf_writer *writer, size_t size);

/* The same for any bytes. */
int memory_file(const void *bytes, size_t size);

#endif
