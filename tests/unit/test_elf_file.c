#include "agent/binary/elf_file.h"

#include <unistd.h>

#include <zlib.h>

#include "proto/base/bytes.h"
#include "tests/support/assertions.h"
#include "tests/support/elf_writer.h"

static const char text_content[] = "text of the program";
static const char data_content[] = "data of the program";

enum { DATA_ADDR = 0x401000, DATA_MEMORY = 64 };

static const uint8_t notes[] = {
	4, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0,   0,   'G', 'N', 'U', 0,   0xde, 0xad, 0xbe, 0xef, 4,   0,
	0, 0, 7, 0, 0, 0, 4, 0, 0, 0, 'G', 'o', 0,   0,   'g', 'o', '-',  'i',  'd',  '/',  '1', 0,
};

/* A file with text, data with some bss behind it, and both build ids. */
static void write_sample(struct elf_writer *writer, uint16_t type)
{
	uint64_t data, note;

	elf_writer_init(writer, type);
	elf_writer_section(writer, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x400000,
			   text_content, sizeof(text_content));
	data = elf_writer_section(writer, ".data.rel.ro.gopclntab", SHT_PROGBITS,
				  SHF_ALLOC | SHF_WRITE, DATA_ADDR, data_content,
				  sizeof(data_content));
	note = elf_writer_section(writer, ".note", SHT_NOTE, SHF_ALLOC, 0, notes, sizeof(notes));
	elf_writer_segment(writer, PT_LOAD, PF_R | PF_X, 0x400123, 0, sizeof(Elf64_Ehdr),
			   sizeof(Elf64_Ehdr));
	elf_writer_segment(writer, PT_NOTE, PF_R, 0, note, sizeof(notes), sizeof(notes));
	elf_writer_segment(writer, PT_LOAD, PF_R | PF_W, DATA_ADDR, data, sizeof(data_content),
			   DATA_MEMORY);
	elf_writer_finish(writer);
}

static struct elf_file *open_written(const struct elf_writer *writer)
{
	struct elf_file *file = NULL;

	assert_success(elf_file_open(elf_writer_open(writer, writer->size), &file));
	return file;
}

static void sections_and_segments_are_listed(void **state)
{
	static struct elf_writer writer;
	const struct elf_section *section;
	struct elf_file *file;
	uint8_t *bytes;
	size_t size;

	(void)state;
	write_sample(&writer, ET_EXEC);
	file = open_written(&writer);
	assert_int_equal(elf_file_section_count(file), 4);
	section = elf_file_find_section(file, ".text");
	assert_non_null(section);
	assert_int_equal(section->addr, 0x400000);
	assert_false(section->writable);
	assert_success(elf_file_read_section(file, section, sizeof(text_content), &bytes, &size));
	assert_int_equal(size, sizeof(text_content));
	assert_string_equal((char *)bytes, text_content);
	free(bytes);
	assert_error(elf_file_read_section(file, section, sizeof(text_content) - 1, &bytes, &size),
		     ERROR_LIMIT);
	assert_int_equal(elf_file_segment_count(file), 2);
	assert_true(elf_file_segment(file, 1)->writable);
	assert_null(elf_file_find_section(file, ".bss"));
	assert_false(elf_file_has_dwarf(file));
	elf_file_free(file);
}

static void sections_are_found_behind_the_prefix_of_pie(void **state)
{
	static struct elf_writer writer;
	struct elf_file *file;

	(void)state;
	write_sample(&writer, ET_DYN);
	file = open_written(&writer);
	assert_non_null(elf_file_find_section(file, ".gopclntab"));
	assert_null(elf_file_find_section(file, "gopclntab"));
	elf_file_free(file);
}

static void both_build_ids_are_read(void **state)
{
	static struct elf_writer writer;
	struct elf_file *file;
	size_t size;

	(void)state;
	write_sample(&writer, ET_EXEC);
	file = open_written(&writer);
	assert_memory_equal(elf_file_build_id(file, &size), "\xde\xad\xbe\xef", 4);
	assert_int_equal(size, 4);
	assert_string_equal(elf_file_go_build_id(file), "go-id/1");
	elf_file_free(file);
}

static void addresses_are_read_as_the_loader_would_map_them(void **state)
{
	static struct elf_writer writer;
	struct elf_file *file;
	char bytes[DATA_MEMORY];

	(void)state;
	write_sample(&writer, ET_EXEC);
	file = open_written(&writer);
	memset(bytes, 'x', sizeof(bytes));
	assert_success(elf_file_read_addr(file, DATA_ADDR + 5, bytes, DATA_MEMORY - 5));
	assert_string_equal(bytes, data_content + 5);
	assert_int_equal(bytes[DATA_MEMORY - 6], 0);
	assert_error(elf_file_read_addr(file, DATA_ADDR, bytes, DATA_MEMORY + 1), ERROR_FAULT);
	assert_error(elf_file_read_addr(file, DATA_ADDR - 1, bytes, 1), ERROR_FAULT);
	assert_error(elf_file_read_addr(file, UINT64_MAX, bytes, 2), ERROR_FAULT);
	elf_file_free(file);
}

static void relocations_give_pointers_their_values(void **state)
{
	static struct elf_writer writer;
	static const Elf64_Rela relocations[] = {
		{ DATA_ADDR + 8, ELF64_R_INFO(0, R_X86_64_RELATIVE), 0x1234 },
		{ DATA_ADDR + 16, ELF64_R_INFO(3, R_X86_64_64), 0x9999 },
		{ DATA_ADDR + DATA_MEMORY - 4, ELF64_R_INFO(0, R_X86_64_RELATIVE), 0x7777 },
	};
	static const uint8_t zeros[DATA_MEMORY];
	struct elf_file *file;
	uint8_t bytes[DATA_MEMORY] = { 0 };
	uint64_t data;
	taddr pointer;

	(void)state;
	elf_writer_init(&writer, ET_DYN);
	data = elf_writer_section(&writer, ".data", SHT_PROGBITS, SHF_ALLOC, DATA_ADDR, zeros,
				  sizeof(zeros));
	elf_writer_section(&writer, ".rela.dyn", SHT_RELA, SHF_ALLOC, 0, relocations,
			   sizeof(relocations));
	elf_writer_segment(&writer, PT_LOAD, PF_R, DATA_ADDR, data, sizeof(zeros), sizeof(zeros));
	elf_writer_finish(&writer);
	file = open_written(&writer);
	assert_success(elf_file_relocate(file, DATA_ADDR, bytes, sizeof(bytes)));
	assert_int_equal(load_u64le(bytes + 8), 0x1234);
	assert_int_equal(load_u64le(bytes + 16), 0);
	assert_int_equal(load_u64le(bytes + DATA_MEMORY - 8), 0);
	assert_success(elf_file_read_pointer(file, DATA_ADDR + 8, &pointer));
	assert_int_equal(pointer, 0x1234);
	elf_file_free(file);
}

/* A file with one section of compressed bytes, in the way its name and flags say. */
static struct elf_file *open_compressed(const char *name, uint64_t flags, uint64_t claimed,
					size_t cut)
{
	static struct elf_writer writer;
	static uint8_t content[1024];
	uLongf size = sizeof(content) - sizeof(Elf64_Chdr);
	uint8_t plain[512];
	size_t header = flags & SHF_COMPRESSED ? sizeof(Elf64_Chdr) : 12;

	memset(plain, 'a', sizeof(plain));
	assert_int_equal(compress(content + header, &size, plain, sizeof(plain)), Z_OK);
	if (flags & SHF_COMPRESSED) {
		Elf64_Chdr chdr = { .ch_type = ELFCOMPRESS_ZLIB, .ch_size = claimed };

		memcpy(content, &chdr, sizeof(chdr));
	} else {
		memcpy(content, "ZLIB", 4);
		for (int i = 0; i < 8; i++)
			content[4 + i] = (uint8_t)(claimed >> (56 - 8 * i));
	}
	elf_writer_init(&writer, ET_EXEC);
	elf_writer_section(&writer, name, SHT_PROGBITS, flags, 0, content, header + size - cut);
	elf_writer_finish(&writer);
	return open_written(&writer);
}

static void compressed_sections_are_inflated_in_both_forms(void **state)
{
	static const struct {
		const char *name;
		uint64_t flags;
	} forms[] = { { ".zdebug_info", 0 }, { ".debug_info", SHF_COMPRESSED } };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct elf_file *file = open_compressed(forms[i].name, forms[i].flags, 512, 0);
		const struct elf_section *section = elf_file_find_debug(file, ".debug_info");
		uint8_t *bytes;
		size_t size;

		assert_non_null(section);
		assert_true(elf_file_has_dwarf(file));
		assert_success(elf_file_read_section(file, section, 512, &bytes, &size));
		assert_int_equal(size, 512);
		assert_int_equal(bytes[0], 'a');
		assert_int_equal(bytes[511], 'a');
		free(bytes);
		elf_file_free(file);
	}
}

static void compressed_sections_that_lie_are_refused(void **state)
{
	static const struct {
		const char *name;
		uint64_t flags, claimed;
		size_t cut;
		enum error_code code;
	} bad[] = {
		{ ".zdebug_info", 0, 511, 0, ERROR_FORMAT },
		{ ".zdebug_info", 0, 513, 0, ERROR_FORMAT },
		{ ".zdebug_info", 0, 1025, 0, ERROR_LIMIT },
		{ ".zdebug_info", 0, UINT64_MAX, 0, ERROR_LIMIT },
		{ ".zdebug_info", 0, 512, 3, ERROR_FORMAT },
		{ ".debug_info", SHF_COMPRESSED, 511, 0, ERROR_FORMAT },
		{ ".debug_info", SHF_COMPRESSED, 513, 0, ERROR_FORMAT },
		{ ".debug_info", SHF_COMPRESSED, UINT64_MAX, 0, ERROR_LIMIT },
		{ ".debug_info", SHF_COMPRESSED, 512, 1, ERROR_FORMAT },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct elf_file *file =
		    open_compressed(bad[i].name, bad[i].flags, bad[i].claimed, bad[i].cut);
		uint8_t *bytes = NULL;
		size_t size;

		assert_error(
		    elf_file_read_section(file, elf_file_section(file, 0), 1024, &bytes, &size),
		    bad[i].code);
		assert_null(bytes);
		elf_file_free(file);
	}
}

/* libelf may take a file that ends in its section headers for one that has none. */
static void every_truncation_is_refused_or_has_no_sections(void **state)
{
	static struct elf_writer writer;

	(void)state;
	write_sample(&writer, ET_EXEC);
	for (size_t size = 0; size < writer.size; size++) {
		int fd = elf_writer_open(&writer, size);
		struct elf_file *file = NULL;
		struct error *err = elf_file_open(fd, &file);

		if (err) {
			assert_true(error_code(err) == ERROR_FORMAT ||
				    error_code(err) == ERROR_NOT_GO);
			assert_null(file);
			error_free(err);
		} else {
			assert_int_equal(elf_file_section_count(file), 0);
		}
		elf_file_free(file);
		close(fd);
	}
}

static void other_machines_are_named(void **state)
{
	static const struct {
		unsigned char class;
		uint16_t machine;
		const char *name;
	} machines[] = {
		{ ELFCLASS64, EM_AARCH64, "arm64" },
		{ ELFCLASS32, EM_X86_64, "x32" },
		{ ELFCLASS64, EM_S390, "s390x" },
		{ ELFCLASS64, 0x7fff, "machine 32767" },
	};
	static struct elf_writer writer;

	(void)state;
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
		struct elf_file *file = NULL;
		struct error *err;
		Elf64_Ehdr header;

		elf_writer_init(&writer, ET_EXEC);
		elf_writer_finish(&writer);
		memcpy(&header, writer.bytes, sizeof(header));
		header.e_ident[EI_CLASS] = machines[i].class;
		header.e_machine = machines[i].machine;
		memcpy(writer.bytes, &header, sizeof(header));
		err = elf_file_open(elf_writer_open(&writer, writer.size), &file);
		assert_non_null(err);
		assert_int_equal(error_code(err), ERROR_UNSUPPORTED_ARCH);
		assert_non_null(strstr(error_message(err), machines[i].name));
		error_free(err);
	}
}

static void a_386_executable_is_named(void **state)
{
	Elf32_Ehdr header = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS32, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_EXEC,
		.e_machine = EM_386,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(Elf32_Ehdr),
		.e_phentsize = sizeof(Elf32_Phdr),
		.e_shentsize = sizeof(Elf32_Shdr),
	};
	struct elf_file *file = NULL;
	struct error *err = elf_file_open(memory_file(&header, sizeof(header)), &file);

	(void)state;
	assert_non_null(err);
	assert_int_equal(error_code(err), ERROR_UNSUPPORTED_ARCH);
	assert_non_null(strstr(error_message(err), "386"));
	error_free(err);
}

static void what_is_no_executable_is_not_go(void **state)
{
	static struct elf_writer writer;
	struct elf_file *file = NULL;

	(void)state;
	assert_error(elf_file_open(memory_file("#!/bin/sh\n", 10), &file), ERROR_NOT_GO);
	assert_error(elf_file_open(memory_file("", 0), &file), ERROR_NOT_GO);
	elf_writer_init(&writer, ET_REL);
	elf_writer_finish(&writer);
	assert_error(elf_file_open(elf_writer_open(&writer, writer.size), &file), ERROR_NOT_GO);
	assert_error(elf_file_open(-1, &file), ERROR_SYSTEM);
	assert_null(file);
}

/* Numbers that are far too large, in every place of the headers that holds one. */
static void header_fields_may_hold_anything(void **state)
{
	static const uint8_t values[] = { 0x00, 0x7f, 0xff };
	static struct elf_writer writer, spoilt;
	size_t headers = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Phdr);

	(void)state;
	write_sample(&writer, ET_EXEC);
	for (size_t at = EI_NIDENT; at < writer.size; at++) {
		if (at == headers) /* on to the section headers, which are last */
			at = writer.size - writer.section_count * sizeof(Elf64_Shdr);
		for (size_t i = 0; i < sizeof(values); i++) {
			struct elf_file *file = NULL;
			struct error *err;
			int fd;

			spoilt = writer;
			spoilt.bytes[at] = values[i];
			fd = elf_writer_open(&spoilt, spoilt.size);
			err = elf_file_open(fd, &file);
			for (uint32_t j = 0; !err && j < elf_file_section_count(file); j++) {
				uint8_t *bytes = NULL;
				size_t size;

				err = elf_file_read_section(file, elf_file_section(file, j),
							    1 << 20, &bytes, &size);
				free(bytes);
			}
			error_free(err);
			elf_file_free(file);
			close(fd);
		}
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(sections_and_segments_are_listed),
		cmocka_unit_test(sections_are_found_behind_the_prefix_of_pie),
		cmocka_unit_test(both_build_ids_are_read),
		cmocka_unit_test(addresses_are_read_as_the_loader_would_map_them),
		cmocka_unit_test(relocations_give_pointers_their_values),
		cmocka_unit_test(compressed_sections_are_inflated_in_both_forms),
		cmocka_unit_test(compressed_sections_that_lie_are_refused),
		cmocka_unit_test(every_truncation_is_refused_or_has_no_sections),
		cmocka_unit_test(other_machines_are_named),
		cmocka_unit_test(a_386_executable_is_named),
		cmocka_unit_test(what_is_no_executable_is_not_go),
		cmocka_unit_test(header_fields_may_hold_anything),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("elf_file", tests, NULL, NULL);
}
