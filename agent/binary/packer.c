#include "agent/binary/packer.h"

#include <elf.h>
#include <string.h>

#include "agent/binary/elf_file.h"

enum { CHECKSUM_SIZE = 4 };

static const char upx_magic[] = { 'U', 'P', 'X', '!' };

struct error *packer_find(const struct elf_file *file, const char **ret)
{
	char magic[sizeof(upx_magic)];
	Elf64_Ehdr header;
	uint64_t end;
	struct error *err = elf_file_read_at(file, 0, &header, sizeof(header));

	*ret = NULL;
	if (err || header.e_phoff > UINT32_MAX)
		return err;
	end = header.e_phoff + (uint64_t)header.e_phnum * header.e_phentsize;
	err = elf_file_read_at(file, end + CHECKSUM_SIZE, magic, sizeof(magic));
	if (err && error_code(err) == ERROR_FORMAT) { /* there is nothing behind them */
		error_free(err);
		return NULL;
	}
	if (!err && memcmp(magic, upx_magic, sizeof(magic)) == 0)
		*ret = "UPX";
	return err;
}
