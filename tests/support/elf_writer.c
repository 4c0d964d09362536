#include "tests/support/elf_writer.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALIGN = 16 };

static uint64_t append(struct elf_writer *writer, const void *content, size_t size)
{
	uint64_t offset = (writer->size + ALIGN - 1) / ALIGN * ALIGN;

	assert(offset + size <= ELF_WRITER_SIZE);
	if (size)
		memcpy(writer->bytes + offset, content, size);
	writer->size = offset + size;
	return offset;
}

static uint32_t add_name(struct elf_writer *writer, const char *name)
{
	size_t at = writer->names_size;

	assert(at + strlen(name) + 1 <= sizeof(writer->names));
	strcpy(writer->names + at, name);
	writer->names_size += strlen(name) + 1;
	return (uint32_t)at;
}

void elf_writer_init(struct elf_writer *writer, uint16_t type)
{
	Elf64_Ehdr header = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = type,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_shentsize = sizeof(Elf64_Shdr),
	};

	memset(writer, 0, sizeof(*writer));
	writer->section_count = 1; /* the null section */
	writer->names_size = 1;
	memcpy(writer->bytes, &header, sizeof(header));
	writer->size = sizeof(header) + ELF_WRITER_SEGMENTS * sizeof(Elf64_Phdr);
}

uint64_t elf_writer_section(struct elf_writer *writer, const char *name, uint32_t type,
			    uint64_t flags, uint64_t addr, const void *content, size_t size)
{
	uint64_t offset = append(writer, content, size);

	assert(writer->section_count < ELF_WRITER_SECTIONS);
	writer->sections[writer->section_count++] = (Elf64_Shdr){
		.sh_name = add_name(writer, name),
		.sh_type = type,
		.sh_flags = flags,
		.sh_addr = addr,
		.sh_offset = offset,
		.sh_size = size,
		.sh_addralign = ALIGN,
	};
	return offset;
}

void elf_writer_segment(struct elf_writer *writer, uint32_t type, uint32_t flags, uint64_t addr,
			uint64_t offset, uint64_t file_size, uint64_t memory_size)
{
	assert(writer->segment_count < ELF_WRITER_SEGMENTS);
	writer->segments[writer->segment_count++] = (Elf64_Phdr){
		.p_type = type,
		.p_flags = flags,
		.p_offset = offset,
		.p_vaddr = addr,
		.p_filesz = file_size,
		.p_memsz = memory_size,
		.p_align = 4096,
	};
}

void elf_writer_finish(struct elf_writer *writer)
{
	Elf64_Ehdr header;
	uint32_t name = add_name(writer, ".shstrtab");
	uint64_t offset = append(writer, writer->names, writer->names_size);

	assert(writer->section_count < ELF_WRITER_SECTIONS);
	writer->sections[writer->section_count++] = (Elf64_Shdr){
		.sh_name = name,
		.sh_type = SHT_STRTAB,
		.sh_offset = offset,
		.sh_size = writer->names_size,
	};
	memcpy(&header, writer->bytes, sizeof(header));
	header.e_shoff =
	    append(writer, writer->sections, writer->section_count * sizeof(Elf64_Shdr));
	header.e_shnum = (uint16_t)writer->section_count;
	header.e_shstrndx = (uint16_t)(writer->section_count - 1);
	header.e_phoff = sizeof(header);
	header.e_phnum = (uint16_t)writer->segment_count;
	memcpy(writer->bytes, &header, sizeof(header));
	memcpy(writer->bytes + sizeof(header), writer->segments, sizeof(writer->segments));
}

int elf_writer_open(const struct elf_writer *writer, size_t size)
{
	assert(size <= writer->size);
	return memory_file(writer->bytes, size);
}

int memory_file(const void *bytes, size_t size)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert(fd >= 0);
	assert(write(fd, bytes, size) == (ssize_t)size);
	return fd;
}
