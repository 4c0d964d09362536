#include "agent/binary/debug_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>

#include "proto/base/bytes.h"

enum {
	LINK_SIZE_MAX = DEBUG_LINK_NAME_SIZE + 8, /* the name, padding, the checksum */
	CHECKSUM_SIZE = 4,
	READ_STEP = 256 << 10,
};

/* Larger ones are not read to their end only to see whether they fit. */
static const uint64_t checked_size_max = UINT64_C(4) << 30;

/* The name, padded to a multiple of 4 bytes, and the checksum behind it. */
static bool parse_link(const uint8_t *bytes, size_t size, struct debug_link *ret)
{
	size_t length = strnlen((const char *)bytes, size);
	size_t checksum_at = (length + 1 + 3) & ~(size_t)3;

	if (!length || length >= DEBUG_LINK_NAME_SIZE || checksum_at + CHECKSUM_SIZE > size ||
	    memchr(bytes, '/', length) || !strcmp((const char *)bytes, ".") ||
	    !strcmp((const char *)bytes, ".."))
		return false;
	memcpy(ret->name, bytes, length + 1);
	ret->checksum = load_u32le(bytes + checksum_at);
	return true;
}

struct error *debug_link_read(const struct elf_file *executable, struct debug_link *ret,
			      bool *ret_found)
{
	const struct elf_section *section = elf_file_find_section(executable, ".gnu_debuglink");
	uint8_t *bytes scoped(freep) = NULL;
	size_t size;
	struct error *err;

	*ret_found = false;
	if (!section || section->size > LINK_SIZE_MAX)
		return NULL;
	err = elf_file_read_section(executable, section, LINK_SIZE_MAX, &bytes, &size);
	if (err)
		return err;
	*ret_found = parse_link(bytes, size, ret);
	return NULL;
}

/* CRC-32 over the whole file, as binutils' documentation of debug links has it. */
static struct error *checksum_file(int fd, uint32_t *ret)
{
	uint8_t *buffer scoped(freep) = malloc(READ_STEP);
	uLong checksum = crc32_z(0, NULL, 0);

	if (!buffer)
		return &error_nomem;
	for (uint64_t offset = 0;;) {
		ssize_t n = pread(fd, buffer, READ_STEP, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_system(errno, "read");
		if (!n)
			break;
		checksum = crc32_z(checksum, buffer, (size_t)n);
		offset += (uint64_t)n;
		if (offset > checked_size_max)
			return error_new(ERROR_FORMAT, "it is larger than %" PRIu64 " bytes",
					 checked_size_max);
	}
	*ret = (uint32_t)checksum;
	return NULL;
}

/* False: one of them has none. */
static bool compare_build_ids(const struct elf_file *a, const struct elf_file *b, bool *ret_equal)
{
	size_t a_size, b_size;
	const uint8_t *a_id = elf_file_build_id(a, &a_size), *b_id = elf_file_build_id(b, &b_size);

	*ret_equal = a_size == b_size && !memcmp(a_id, b_id, a_size);
	return a_size && b_size;
}

/* Go's build id stands in for what the other kind is missing, to spare a look at the whole file. */
static bool has_other_go_build_id(const struct elf_file *a, const struct elf_file *b)
{
	const char *a_id = elf_file_go_build_id(a), *b_id = elf_file_go_build_id(b);

	return *a_id && *b_id && strcmp(a_id, b_id) != 0;
}

struct error *debug_file_check(const struct elf_file *executable, const struct debug_link *link,
			       const struct elf_file *file, int fd)
{
	static const char other_build[] = "it is of another build: its build id differs";
	uint32_t checksum;
	bool equal;
	struct error *err;

	if (!elf_file_has_dwarf(file))
		return error_new(ERROR_FORMAT, "it has no DWARF");
	if (compare_build_ids(executable, file, &equal))
		return equal ? NULL : error_new(ERROR_FORMAT, other_build);
	if (has_other_go_build_id(executable, file))
		return error_new(ERROR_FORMAT, other_build);
	if (!link)
		return error_new(ERROR_FORMAT, "it has no build id to tell which build it is of");
	err = checksum_file(fd, &checksum);
	if (err)
		return err;
	if (checksum != link->checksum)
		return error_new(ERROR_FORMAT,
				 "it is of another build: its checksum is %08" PRIx32
				 " and not %08" PRIx32,
				 checksum, link->checksum);
	return NULL;
}
