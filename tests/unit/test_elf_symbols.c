/* Symbols of data, in files written for the purpose. */
#include "agent/binary/elf_symbols.h"

#include <string.h>
#include <unistd.h>

#include "agent/binary/elf_file.h"
#include "tests/support/assertions.h"
#include "tests/support/elf_writer.h"

enum { DATA = 1, TEXT, READ_ONLY }; /* numbers of the sections */

static const char names[] = "\0main.cache\0main.table\0main.main\0runtime.text\0";
enum { CACHE = 1, TABLE = 12, MAIN = 23, CONSTANT = 33, NAMES_SIZE = sizeof(names) };

#define SYMBOL(name, type, section, addr, size)                                                    \
	{                                                                                          \
		name, ELF64_ST_INFO(STB_LOCAL, type), 0, section, addr, size                       \
	}

static void write_file(struct elf_writer *writer, const Elf64_Sym *symbols, size_t size,
		       size_t names_size)
{
	static const uint8_t content[64];

	elf_writer_init(writer, ET_EXEC);
	elf_writer_section(writer, ".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 0x5000, content,
			   sizeof(content));
	elf_writer_section(writer, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x4000,
			   content, sizeof(content));
	elf_writer_section(writer, ".rodata", SHT_PROGBITS, SHF_ALLOC, 0x6000, content,
			   sizeof(content));
	elf_writer_segment(writer, PT_LOAD, PF_R | PF_X, 0x4000, 0, 64, 64);
	if (symbols)
		elf_writer_section(writer, ".symtab", SHT_SYMTAB, 0, 0, symbols, size);
	if (names_size)
		elf_writer_section(writer, ".strtab", SHT_STRTAB, 0, 0, names, names_size);
	elf_writer_finish(writer);
}

static struct error *read_symbols(const struct elf_writer *writer, struct elf_symbols **ret)
{
	int fd = elf_writer_open(writer, writer->size);
	struct elf_file *file = NULL;
	struct error *err;

	assert_success(elf_file_open(fd, &file));
	err = elf_symbols_read(file, ret);
	elf_file_free(file);
	close(fd);
	return err;
}

static struct error *add_symbols(const struct elf_writer *writer, uint64_t shift,
				 struct elf_symbols *symbols)
{
	int fd = elf_writer_open(writer, writer->size);
	struct elf_file *file = NULL;
	struct error *err;

	assert_success(elf_file_open(fd, &file));
	err = elf_symbols_add(symbols, file, shift);
	elf_file_free(file);
	close(fd);
	return err;
}

static void symbols_of_data_are_found_by_address(void **state)
{
	static struct elf_writer writer;
	const Elf64_Sym symbols[] = {
		SYMBOL(0, STT_NOTYPE, SHN_UNDEF, 0, 0),
		SYMBOL(TABLE, STT_OBJECT, DATA, 0x5010, 16),
		SYMBOL(CACHE, STT_OBJECT, DATA, 0x5000, 8),
		SYMBOL(MAIN, STT_FUNC, TEXT, 0x4000, 16),
		SYMBOL(CONSTANT, STT_OBJECT, READ_ONLY, 0x6000, 16),
		SYMBOL(CACHE, STT_OBJECT, SHN_ABS, 0x5020, 8),
		SYMBOL(NAMES_SIZE, STT_OBJECT, DATA, 0x5028, 8),
		SYMBOL(CACHE, STT_OBJECT, DATA, 0x5030, 0),
		SYMBOL(CACHE, STT_OBJECT, DATA, UINT64_MAX - 7, 64),
		SYMBOL(CACHE, STT_OBJECT, 200, 0x5038, 8),
	};
	struct elf_symbols *found = NULL;

	(void)state;
	write_file(&writer, symbols, sizeof(symbols), NAMES_SIZE);
	assert_success(read_symbols(&writer, &found));
	assert_int_equal(elf_symbols_count(found), 2);
	assert_string_equal(elf_symbols_at(found, 0)->name, "main.cache");
	assert_int_equal(elf_symbols_at(found, 1)->addr, 0x5010);
	assert_string_equal(elf_symbols_find(found, 0x5007)->name, "main.cache");
	assert_null(elf_symbols_find(found, 0x5008));
	assert_string_equal(elf_symbols_find(found, 0x501f)->name, "main.table");
	assert_null(elf_symbols_find(found, 0x5020));
	assert_null(elf_symbols_find(found, 0));
	assert_null(elf_symbols_find(found, UINT64_MAX));
	elf_symbols_free(found);
}

static void those_of_a_plugin_lie_where_it_was_loaded(void **state)
{
	static struct elf_writer writer, stripped;
	const Elf64_Sym symbols[] = {
		SYMBOL(TABLE, STT_OBJECT, DATA, 0x5010, 16),
		SYMBOL(CACHE, STT_OBJECT, DATA, 0x5000, 8),
	};
	struct elf_symbols *found = NULL;

	(void)state;
	write_file(&writer, symbols, sizeof(symbols), NAMES_SIZE);
	write_file(&stripped, NULL, 0, 0);
	assert_success(read_symbols(&writer, &found));
	assert_success(add_symbols(&writer, -UINT64_C(0x1000), found));
	assert_success(add_symbols(&stripped, 0x1000, found));
	assert_int_equal(elf_symbols_count(found), 4);
	assert_string_equal(elf_symbols_find(found, 0x5000)->name, "main.cache");
	assert_string_equal(elf_symbols_find(found, 0x4007)->name, "main.cache");
	assert_string_equal(elf_symbols_find(found, 0x401f)->name, "main.table");
	assert_null(elf_symbols_find(found, 0x4020));
	assert_null(elf_symbols_find(found, 0x6000));
	elf_symbols_free(found);
}

static void a_stripped_file_has_none(void **state)
{
	static struct elf_writer writer;
	struct elf_symbols *found = NULL;

	(void)state;
	write_file(&writer, NULL, 0, 0);
	assert_success(read_symbols(&writer, &found));
	assert_int_equal(elf_symbols_count(found), 0);
	assert_null(elf_symbols_find(found, 0x5000));
	elf_symbols_free(found);
}

static void tables_that_are_cut_off_end_there(void **state)
{
	static struct elf_writer writer;
	const Elf64_Sym symbols[] = {
		SYMBOL(CACHE, STT_OBJECT, DATA, 0x5000, 8),
		SYMBOL(TABLE, STT_OBJECT, DATA, 0x5010, 16),
	};
	struct elf_symbols *found = NULL;

	(void)state;
	write_file(&writer, symbols, sizeof(symbols) - 1, NAMES_SIZE);
	assert_success(read_symbols(&writer, &found));
	assert_int_equal(elf_symbols_count(found), 1);
	elf_symbols_free(found);
	/* The last name has no end of its own. */
	write_file(&writer, symbols, sizeof(symbols), TABLE + 4);
	assert_success(read_symbols(&writer, &found));
	assert_string_equal(elf_symbols_find(found, 0x5010)->name, "main");
	elf_symbols_free(found);
	write_file(&writer, symbols, sizeof(symbols), 0);
	assert_error(read_symbols(&writer, &found), ERROR_FORMAT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(symbols_of_data_are_found_by_address),
		cmocka_unit_test(those_of_a_plugin_lie_where_it_was_loaded),
		cmocka_unit_test(a_stripped_file_has_none),
		cmocka_unit_test(tables_that_are_cut_off_end_there),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
