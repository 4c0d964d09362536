/*
 * libelf reads and checks the header tables once, in elf_file_open; contents are read by our own
 * bounded pread. Nothing of libelf's lives longer than the opening.
 */
#include "agent/binary/elf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gelf.h>

#include "proto/base/cursor.h"

enum {
	NAMES_SIZE_MAX = 1 << 20,
	NOTES_SIZE_MAX = 64 << 10,
	GO_NOTE_TYPE_BUILD_ID = 4, /* cmd/link/internal/ld/elf.go, ELF_NOTE_GOBUILDID_TAG */
};

struct elf_file {
	int fd;
	uint64_t size;
	bool any_arch; /* that we know, and not amd64 alone */
	const char *arch;
	bool pie;
	taddr entry;
	struct elf_section *sections;
	uint32_t section_count;
	char *names; /* the section name table, NUL-terminated */
	uint64_t names_size;
	struct elf_segment segments[ELF_FILE_SEGMENTS_MAX];
	uint32_t segment_count;
	uint8_t build_id[ELF_FILE_BUILD_ID_MAX];
	size_t build_id_size;
	char go_build_id[ELF_FILE_GO_BUILD_ID_MAX];
};

static void elf_endp(Elf **elf)
{
	elf_end(*elf);
}

static struct error *elf_error(const char *what)
{
	return error_new(ERROR_FORMAT, "%s: %s", what, elf_errmsg(-1));
}

struct error *elf_file_read_at(const struct elf_file *file, uint64_t offset, void *buf, size_t size)
{
	uint8_t *out = buf;

	if (offset > file->size || size > file->size - offset)
		return error_new(ERROR_FORMAT, "file of %" PRIu64 " bytes: need %zu at 0x%" PRIx64,
				 file->size, size, offset);
	while (size) {
		ssize_t n = pread(file->fd, out, size, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_system(errno, "read at 0x%" PRIx64, offset);
		if (!n)
			return error_new(ERROR_FORMAT, "file ends at 0x%" PRIx64, offset);
		out += n;
		offset += (uint64_t)n;
		size -= (size_t)n;
	}
	return NULL;
}

static const char *machine_name(unsigned machine, int class)
{
	switch (machine) {
	case EM_386:
		return "386";
	case EM_X86_64:
		return class == ELFCLASS32 ? "x32" : "amd64";
	case EM_ARM:
		return "arm";
	case EM_AARCH64:
		return "arm64";
	case EM_PPC64:
		return "ppc64";
	case EM_S390:
		return "s390x";
	case EM_MIPS:
		return "mips";
	case EM_RISCV:
		return "riscv64";
	case EM_LOONGARCH:
		return "loong64";
	default:
		return NULL;
	}
}

static bool is_accepted(const struct elf_file *file, const GElf_Ehdr *header)
{
	if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB)
		return false;
	return header->e_machine == EM_X86_64 ||
	       (header->e_machine == EM_AARCH64 && file->any_arch);
}

static struct error *check_header(struct elf_file *file, const GElf_Ehdr *header)
{
	file->arch = machine_name(header->e_machine, header->e_ident[EI_CLASS]);
	if (!is_accepted(file, header)) {
		if (file->arch)
			return error_new(ERROR_UNSUPPORTED_ARCH,
					 "a %s executable; only amd64 is supported", file->arch);
		return error_new(ERROR_UNSUPPORTED_ARCH,
				 "an executable of ELF machine %u; only amd64 is supported",
				 header->e_machine);
	}
	if (header->e_type != ET_EXEC && header->e_type != ET_DYN)
		return error_new(ERROR_NOT_GO, "an ELF file that is no executable");
	return NULL;
}

/* The section name table, read within our limit rather than libelf's. */
static struct error *read_names(struct elf_file *file, Elf *elf, size_t section_count)
{
	size_t index;
	GElf_Shdr header;

	file->names = calloc(1, 1);
	if (!file->names)
		return &error_nomem;
	if (elf_getshdrstrndx(elf, &index) || !index || index >= section_count)
		return NULL;
	if (!gelf_getshdr(elf_getscn(elf, index), &header))
		return elf_error("section name table");
	if (header.sh_size > NAMES_SIZE_MAX)
		return error_new(ERROR_LIMIT, "section names of %" PRIu64 " bytes", header.sh_size);
	free(file->names);
	file->names = calloc(1, header.sh_size + 1);
	if (!file->names)
		return &error_nomem;
	file->names_size = header.sh_size;
	return elf_file_read_at(file, header.sh_offset, file->names, header.sh_size);
}

static struct elf_section make_section(const struct elf_file *file, const GElf_Shdr *header)
{
	uint64_t name = header->sh_name < file->names_size ? header->sh_name : file->names_size;

	return (struct elf_section){
		.name = file->names + name,
		.addr = header->sh_addr,
		.offset = header->sh_offset,
		.size = header->sh_size,
		.type = header->sh_type,
		.alloc = header->sh_flags & SHF_ALLOC,
		.writable = header->sh_flags & SHF_WRITE,
		.compressed = header->sh_flags & SHF_COMPRESSED,
	};
}

/* A file without section headers has none: all that matters lies in its segments. */
static struct error *read_sections(struct elf_file *file, Elf *elf)
{
	size_t count;
	struct error *err;

	if (elf_getshdrnum(elf, &count))
		return elf_error("section headers");
	if (count > ELF_FILE_SECTIONS_MAX)
		return error_new(ERROR_LIMIT, "%zu sections", count);
	err = read_names(file, elf, count);
	if (err)
		return err;
	file->sections = calloc(count + 1, sizeof(*file->sections));
	if (!file->sections)
		return &error_nomem;
	for (size_t i = 1; i < count; i++) {
		GElf_Shdr header;

		if (!gelf_getshdr(elf_getscn(elf, i), &header))
			return elf_error("section header");
		file->sections[file->section_count++] = make_section(file, &header);
	}
	return NULL;
}

static struct error *read_segments(struct elf_file *file, Elf *elf)
{
	size_t count;

	if (elf_getphdrnum(elf, &count))
		return elf_error("program headers");
	if (count > ELF_FILE_SEGMENTS_MAX)
		return error_new(ERROR_LIMIT, "%zu program headers", count);
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr header;

		if (!gelf_getphdr(elf, (int)i, &header))
			return elf_error("program header");
		if (header.p_type != PT_LOAD)
			continue;
		file->segments[file->segment_count++] = (struct elf_segment){
			.addr = header.p_vaddr,
			.offset = header.p_offset,
			.file_size = header.p_filesz,
			.memory_size = header.p_memsz,
			.align = header.p_align,
			.readable = header.p_flags & PF_R,
			.writable = header.p_flags & PF_W,
			.executable = header.p_flags & PF_X,
		};
	}
	return NULL;
}

static void keep_note(struct elf_file *file, const char *owner, uint32_t owner_size, uint32_t type,
		      const uint8_t *content, uint32_t size)
{
	if (owner_size != 4)
		return;
	if (!memcmp(owner, "GNU", 4) && type == NT_GNU_BUILD_ID && size <= ELF_FILE_BUILD_ID_MAX) {
		memcpy(file->build_id, content, size);
		file->build_id_size = size;
	}
	if (!memcmp(owner, "Go\0", 4) && type == GO_NOTE_TYPE_BUILD_ID &&
	    size < ELF_FILE_GO_BUILD_ID_MAX) {
		memcpy(file->go_build_id, content, size);
		file->go_build_id[size] = '\0';
	}
}

static struct error *take_padded(struct cursor *c, uint32_t size, const uint8_t **ret)
{
	struct error *err = cursor_take(c, size, ret);
	size_t padding = -size & 3u;

	if (err)
		return err;
	return cursor_skip(c, padding < cursor_left(c) ? padding : cursor_left(c));
}

static struct error *read_note(struct elf_file *file, struct cursor *c)
{
	uint32_t owner_size, size, type;
	const uint8_t *owner, *content;
	struct error *err = cursor_u32le(c, &owner_size);

	if (!err)
		err = cursor_u32le(c, &size);
	if (!err)
		err = cursor_u32le(c, &type);
	if (!err)
		err = take_padded(c, owner_size, &owner);
	if (!err)
		err = take_padded(c, size, &content);
	if (err)
		return err;
	keep_note(file, (const char *)owner, owner_size, type, content, size);
	return NULL;
}

/* Notes identify a binary, no more: those that do not parse are as good as absent. */
static struct error *read_notes_at(struct elf_file *file, uint64_t offset, uint64_t size)
{
	uint8_t *bytes scoped(freep) = NULL;
	struct cursor c;
	struct error *err;

	if (size > NOTES_SIZE_MAX)
		return NULL;
	bytes = malloc(size + 1);
	if (!bytes)
		return &error_nomem;
	err = elf_file_read_at(file, offset, bytes, size);
	cursor_init(&c, "notes", bytes, size);
	while (!err && cursor_left(&c))
		err = read_note(file, &c);
	error_free(err);
	return NULL;
}

/*
 * From the segments, or from the sections of a file without: one that holds debug information alone
 * has the segments of its executable, but not what is in them.
 */
static struct error *read_notes(struct elf_file *file, Elf *elf)
{
	size_t count;
	struct error *err = NULL;

	if (elf_getphdrnum(elf, &count))
		return elf_error("program headers");
	for (uint32_t i = 0; !err && i < file->section_count; i++)
		if (file->sections[i].type == SHT_NOTE)
			err = read_notes_at(file, file->sections[i].offset, file->sections[i].size);
	for (size_t i = 0; !err && i < count; i++) {
		GElf_Phdr header;

		if (!file->build_id_size && !*file->go_build_id &&
		    gelf_getphdr(elf, (int)i, &header) && header.p_type == PT_NOTE)
			err = read_notes_at(file, header.p_offset, header.p_filesz);
	}
	return err;
}

static struct error *read_headers(struct elf_file *file, Elf *elf)
{
	GElf_Ehdr header;
	struct error *err;

	if (elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &header))
		return error_new(ERROR_NOT_GO, "not an ELF executable");
	err = check_header(file, &header);
	if (err)
		return err;
	file->pie = header.e_type == ET_DYN;
	file->entry = header.e_entry;
	err = read_sections(file, elf);
	if (!err)
		err = read_segments(file, elf);
	if (!err)
		err = read_notes(file, elf);
	return err;
}

static struct error *open_file(int fd, bool any_arch, struct elf_file **ret)
{
	struct elf_file *file scoped(elf_file_freep) = calloc(1, sizeof(*file));
	Elf *elf scoped(elf_endp) = NULL;
	struct stat st;
	struct error *err;

	if (!file)
		return &error_nomem;
	if (fstat(fd, &st))
		return error_system(errno, "executable");
	if (!S_ISREG(st.st_mode))
		return error_new(ERROR_NOT_GO, "not a regular file");
	file->fd = fd;
	file->any_arch = any_arch;
	file->size = (uint64_t)st.st_size;
	if (elf_version(EV_CURRENT) == EV_NONE)
		return error_new(ERROR_UNSUPPORTED, "libelf is too old");
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf)
		return error_new(ERROR_NOT_GO, "not an ELF executable: %s", elf_errmsg(-1));
	err = read_headers(file, elf);
	if (err)
		return err;
	*ret = take(file);
	return NULL;
}

struct error *elf_file_open(int fd, struct elf_file **ret)
{
	return open_file(fd, false, ret);
}

struct error *elf_file_open_any(int fd, struct elf_file **ret)
{
	return open_file(fd, true, ret);
}

const char *elf_file_arch(const struct elf_file *file)
{
	return file->arch;
}

void elf_file_free(struct elf_file *file)
{
	if (!file)
		return;
	free(file->sections);
	free(file->names);
	free(file);
}

uint32_t elf_file_section_count(const struct elf_file *file)
{
	return file->section_count;
}

const struct elf_section *elf_file_section(const struct elf_file *file, uint32_t index)
{
	return &file->sections[index];
}

static const struct elf_section *find_prefixed(const struct elf_file *file, const char *prefix,
					       const char *name)
{
	size_t length = strlen(prefix);

	for (uint32_t i = 0; i < file->section_count; i++) {
		const char *own = file->sections[i].name;

		if (!strncmp(own, prefix, length) && !strcmp(own + length, name))
			return &file->sections[i];
	}
	return NULL;
}

const struct elf_section *elf_file_find_section(const struct elf_file *file, const char *name)
{
	const struct elf_section *section = find_prefixed(file, "", name);

	return section ? section : find_prefixed(file, ".data.rel.ro", name);
}

const struct elf_section *elf_file_find_debug(const struct elf_file *file, const char *name)
{
	const struct elf_section *section = find_prefixed(file, "", name);

	/* ".debug_info" and ".zdebug_info" differ by the z behind the dot */
	return section ? section : find_prefixed(file, ".z", name + 1);
}

uint32_t elf_file_segment_count(const struct elf_file *file)
{
	return file->segment_count;
}

const struct elf_segment *elf_file_segment(const struct elf_file *file, uint32_t index)
{
	return &file->segments[index];
}

/* Bytes of a segment behind those in the file are 0, as .bss is. */
static struct error *read_segment(const struct elf_file *file, const struct elf_segment *segment,
				  uint64_t skip, uint8_t *out, size_t size)
{
	uint64_t in_file = skip < segment->file_size ? segment->file_size - skip : 0;
	size_t copied = size < in_file ? size : in_file;

	memset(out + copied, 0, size - copied);
	if (!copied)
		return NULL;
	if (skip > UINT64_MAX - segment->offset)
		return error_new(ERROR_FORMAT, "a segment at 0x%" PRIx64 " of the file",
				 segment->offset);
	return elf_file_read_at(file, segment->offset + skip, out, copied);
}

struct error *elf_file_read_addr(const struct elf_file *file, taddr addr, void *buf, size_t size)
{
	for (uint32_t i = 0; i < file->segment_count; i++) {
		const struct elf_segment *segment = &file->segments[i];
		uint64_t skip = addr - segment->addr;

		if (addr >= segment->addr && skip <= segment->memory_size &&
		    size <= segment->memory_size - skip)
			return read_segment(file, segment, skip, buf, size);
	}
	return error_new(ERROR_FAULT, "0x%" PRIx64 ": not in the file", addr);
}

bool elf_file_is_pie(const struct elf_file *file)
{
	return file->pie;
}

taddr elf_file_entry(const struct elf_file *file)
{
	return file->entry;
}

const uint8_t *elf_file_build_id(const struct elf_file *file, size_t *ret_size)
{
	*ret_size = file->build_id_size;
	return file->build_id;
}

const char *elf_file_go_build_id(const struct elf_file *file)
{
	return file->go_build_id;
}

bool elf_file_has_dwarf(const struct elf_file *file)
{
	const struct elf_section *section = elf_file_find_debug(file, ".debug_info");

	return section && section->type != SHT_NOBITS && section->size;
}
