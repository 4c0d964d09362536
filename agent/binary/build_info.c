/*
 * A header of 32 bytes: 14 of magic, the size of a pointer, flags. If the flags say so, two
 * strings follow it, each behind its length (since go1.18); else it ends in two pointers to
 * string headers, for the version and for the modules (to go1.17).
 */
#include "agent/binary/build_info.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/binary/elf_file.h"
#include "proto/base/cursor.h"

enum {
	HEADER_SIZE = 32,
	HEADER_ALIGN = 16,
	MAGIC_SIZE = 14,
	POINTERS_OFFSET = 16,
	POINTER_SIZE = 8,
	FLAG_BIG_ENDIAN = 1,
	FLAG_INLINE = 2,
	SENTINEL_SIZE = 16,
	SECTION_SIZE_MAX = 8 << 20,
	SCAN_STEP = 1 << 20,
	SCAN_MAX = 64 << 20,
};

static const uint8_t magic[MAGIC_SIZE] = "\xff Go buildinf:";

static char *copy_text(const char *text, size_t size)
{
	char *copy = malloc(size + 1);

	if (!copy)
		return NULL;
	memcpy(copy, text, size);
	copy[size] = '\0';
	return copy;
}

/* A field is set once: the first of several lines counts. Text ends at a NUL. */
static struct error *set_text(char **field, const char *text, size_t size)
{
	char *copy;

	if (**field)
		return NULL;
	copy = copy_text(text, strnlen(text, size));
	if (!copy)
		return &error_nomem;
	free(*field);
	*field = copy;
	return NULL;
}

struct error *build_info_new(struct build_info **ret)
{
	struct build_info *info scoped(build_info_freep) = calloc(1, sizeof(*info));

	if (!info)
		return &error_nomem;
	info->version = copy_text("", 0);
	info->path = copy_text("", 0);
	info->module = copy_text("", 0);
	info->module_version = copy_text("", 0);
	info->vcs_revision = copy_text("", 0);
	info->vcs_time = copy_text("", 0);
	if (!info->version || !info->path || !info->module || !info->module_version ||
	    !info->vcs_revision || !info->vcs_time)
		return &error_nomem;
	*ret = take(info);
	return NULL;
}

void build_info_free(struct build_info *info)
{
	if (!info)
		return;
	free(info->version);
	free(info->path);
	free(info->module);
	free(info->module_version);
	free(info->vcs_revision);
	free(info->vcs_time);
	for (size_t i = 0; i < info->dependency_count; i++)
		free(info->dependencies[i]);
	free(info->dependencies);
	free(info);
}

/* Cuts the text up to the next tab, or the rest, off a line. */
static const char *next_column(const char **line, const char *end, size_t *ret_size)
{
	const char *column = *line;
	const char *tab = memchr(column, '\t', (size_t)(end - column));

	*ret_size = (size_t)((tab ? tab : end) - column);
	*line = tab ? tab + 1 : end;
	return column;
}

static bool starts_with(const char *text, size_t size, const char *prefix)
{
	size_t length = strlen(prefix);

	return size >= length && !memcmp(text, prefix, length);
}

static struct error *parse_setting(struct build_info *info, const char *text, size_t size)
{
	static const char revision[] = "vcs.revision=", time[] = "vcs.time=",
			  modified[] = "vcs.modified=true";

	if (starts_with(text, size, revision))
		return set_text(&info->vcs_revision, text + strlen(revision),
				size - strlen(revision));
	if (starts_with(text, size, time))
		return set_text(&info->vcs_time, text + strlen(time), size - strlen(time));
	if (size == strlen(modified) && starts_with(text, size, modified))
		info->vcs_modified = true;
	return NULL;
}

static struct error *add_dependency(struct build_info *info, const char *text, size_t size)
{
	size_t count = info->dependency_count;
	char **grown;

	if (count == BUILD_INFO_DEPENDENCIES_MAX)
		return error_new(ERROR_LIMIT, "build info: more than %d dependencies",
				 BUILD_INFO_DEPENDENCIES_MAX);
	/* Full only at powers of two: between them the last doubling left room. */
	if (!(count & (count - 1))) {
		grown = reallocarray(info->dependencies, count ? 2 * count : 1, sizeof(*grown));
		if (!grown)
			return &error_nomem;
		info->dependencies = grown;
	}
	info->dependencies[count] = copy_text(text, size);
	if (!info->dependencies[count])
		return &error_nomem;
	info->dependency_count++;
	return NULL;
}

/* "path\tP", "mod\tM\tVERSION\tSUM", "dep\tM\tVERSION\tSUM", "build\tKEY=VALUE". */
static struct error *parse_line(struct build_info *info, const char *line, const char *end)
{
	size_t kind_size, size;
	const char *kind = next_column(&line, end, &kind_size);
	const char *text = next_column(&line, end, &size);
	struct error *err;

	if (kind_size == 4 && !memcmp(kind, "path", 4))
		return set_text(&info->path, text, size);
	if (kind_size == 5 && !memcmp(kind, "build", 5))
		return parse_setting(info, text, size);
	if (kind_size == 3 && !memcmp(kind, "dep", 3))
		return add_dependency(info, text, size);
	if (kind_size != 3 || memcmp(kind, "mod", 3) != 0)
		return NULL;
	err = set_text(&info->module, text, size);
	if (err)
		return err;
	text = next_column(&line, end, &size);
	return set_text(&info->module_version, text, size);
}

/* The lines stand between two marks of 16 bytes; text without them is none of Go's. */
static struct error *parse_modules(struct build_info *info, const char *text, size_t size)
{
	const char *end;

	if (size < 2 * SENTINEL_SIZE + 1 || text[size - SENTINEL_SIZE - 1] != '\n')
		return NULL;
	end = text + size - SENTINEL_SIZE;
	text += SENTINEL_SIZE;
	while (text < end) {
		const char *line_end = memchr(text, '\n', (size_t)(end - text));
		struct error *err;

		if (!line_end)
			line_end = end;
		err = parse_line(info, text, line_end);
		if (err)
			return err;
		text = line_end + (line_end < end);
	}
	return NULL;
}

static struct error *take_string(struct cursor *c, size_t limit, const char **ret, size_t *ret_size)
{
	const uint8_t *text;
	uint64_t size;
	struct error *err = cursor_uvarint(c, &size);

	if (err)
		return err;
	if (size > limit)
		return error_new(ERROR_LIMIT, "build info: a string of %" PRIu64 " bytes", size);
	err = cursor_take(c, size, &text);
	if (err)
		return err;
	*ret = (const char *)text;
	*ret_size = size;
	return NULL;
}

static struct error *parse_inline(struct build_info *info, struct cursor *c)
{
	const char *text;
	size_t size;
	struct error *err = take_string(c, BUILD_INFO_VERSION_MAX, &text, &size);

	if (!err)
		err = set_text(&info->version, text, size);
	if (!err)
		err = take_string(c, BUILD_INFO_MODULES_MAX, &text, &size);
	if (!err)
		err = parse_modules(info, text, size);
	return err;
}

/* The string whose header is at addr; addr 0 is the empty string. */
static struct error *read_string(const struct build_info_reader *reader, taddr addr, size_t limit,
				 char **ret, size_t *ret_size)
{
	char *text scoped(freep) = NULL;
	taddr data = 0;
	uint64_t size = 0;
	struct error *err = NULL;

	if (addr) {
		err = reader->read_pointer(reader->arg, addr, &data);
		if (!err)
			err = reader->read_pointer(reader->arg, addr + POINTER_SIZE, &size);
	}
	if (err)
		return err;
	if (size > limit)
		return error_new(ERROR_LIMIT, "build info: a string of %" PRIu64 " bytes", size);
	text = malloc(size + 1);
	if (!text)
		return &error_nomem;
	err = size ? reader->read(reader->arg, data, text, size) : NULL;
	if (err)
		return err;
	*ret_size = size;
	*ret = take(text);
	return NULL;
}

static struct error *parse_pointers(struct build_info *info, struct cursor *c,
				    const struct build_info_reader *reader)
{
	char *version scoped(freep) = NULL;
	char *modules scoped(freep) = NULL;
	size_t version_size, modules_size;
	uint64_t version_addr, modules_addr;
	struct error *err = cursor_seek(c, POINTERS_OFFSET);

	if (!err)
		err = cursor_u64le(c, &version_addr);
	if (!err)
		err = cursor_u64le(c, &modules_addr);
	if (!err)
		err = read_string(reader, version_addr, BUILD_INFO_VERSION_MAX, &version,
				  &version_size);
	if (!err)
		err = set_text(&info->version, version, version_size);
	if (!err)
		err = read_string(reader, modules_addr, BUILD_INFO_MODULES_MAX, &modules,
				  &modules_size);
	if (!err)
		err = parse_modules(info, modules, modules_size);
	return err;
}

struct error *build_info_parse(const uint8_t *bytes, size_t size,
			       const struct build_info_reader *reader, struct build_info **ret)
{
	struct build_info *info scoped(build_info_freep) = NULL;
	const uint8_t *header;
	struct cursor c;
	struct error *err;

	cursor_init(&c, "build info", bytes, size);
	err = cursor_take(&c, HEADER_SIZE, &header);
	if (err)
		return err;
	if (memcmp(header, magic, MAGIC_SIZE) != 0)
		return error_new(ERROR_FORMAT, "build info: no magic");
	err = build_info_new(&info);
	if (err)
		return err;
	if (header[15] & FLAG_INLINE)
		err = parse_inline(info, &c);
	else if (header[14] == POINTER_SIZE && !(header[15] & FLAG_BIG_ENDIAN))
		err = parse_pointers(info, &c, reader);
	else
		err = error_new(ERROR_FORMAT, "build info: pointers of %u bytes, flags %u",
				header[14], header[15]);
	if (err)
		return err;
	*ret = take(info);
	return NULL;
}

/*
 * Looks for the header in one segment as the file has it; *ret is 0 if it is not there. Steps begin
 * and end at addresses where a header may stand, so none lies across two of them.
 */
static struct error *scan_segment(const struct elf_file *file, const struct elf_segment *segment,
				  uint8_t *room, taddr *ret)
{
	uint64_t size = segment->file_size < SCAN_MAX ? segment->file_size : SCAN_MAX;

	for (uint64_t at = -segment->addr % HEADER_ALIGN; at < size; at += SCAN_STEP) {
		size_t step = size - at < SCAN_STEP ? size - at : SCAN_STEP;
		struct error *err = elf_file_read_addr(file, segment->addr + at, room, step);

		if (err)
			return err;
		for (size_t i = 0; i + MAGIC_SIZE <= step; i += HEADER_ALIGN) {
			if (!memcmp(room + i, magic, MAGIC_SIZE)) {
				*ret = segment->addr + at + i;
				return NULL;
			}
		}
	}
	return NULL;
}

/* The header's address; 0 if the file has none. */
static struct error *find_header(const struct elf_file *file, taddr *ret)
{
	const struct elf_section *section = elf_file_find_section(file, ".go.buildinfo");
	uint8_t *room scoped(freep) = NULL;
	struct error *err = NULL;

	*ret = section ? section->addr : 0;
	if (section)
		return NULL;
	room = malloc(SCAN_STEP);
	if (!room)
		return &error_nomem;
	for (uint32_t i = 0; !err && !*ret && i < elf_file_segment_count(file); i++) {
		const struct elf_segment *segment = elf_file_segment(file, i);

		if (segment->writable)
			err = scan_segment(file, segment, room, ret);
	}
	return err;
}

static struct error *read_from_file(void *arg, taddr addr, void *buf, size_t size)
{
	return elf_file_read_addr(arg, addr, buf, size);
}

static struct error *read_pointer_from_file(void *arg, taddr addr, taddr *ret)
{
	return elf_file_read_pointer(arg, addr, ret);
}

/* How much of the file lies from addr to the end of its segment, at most what we want. */
static size_t bytes_from(const struct elf_file *file, taddr addr)
{
	for (uint32_t i = 0; i < elf_file_segment_count(file); i++) {
		const struct elf_segment *segment = elf_file_segment(file, i);
		uint64_t skip = addr - segment->addr;

		if (addr >= segment->addr && skip < segment->file_size)
			return segment->file_size - skip < SECTION_SIZE_MAX
				   ? segment->file_size - skip
				   : SECTION_SIZE_MAX;
	}
	return 0;
}

struct error *build_info_read(const struct elf_file *file, struct build_info **ret)
{
	const struct build_info_reader reader = { read_from_file, read_pointer_from_file,
						  (void *)file };
	uint8_t *bytes scoped(freep) = NULL;
	size_t size;
	taddr addr = 0;
	struct error *err = find_header(file, &addr);

	if (err)
		return err;
	if (!addr) {
		*ret = NULL;
		return NULL;
	}
	size = bytes_from(file, addr);
	bytes = malloc(size + 1);
	if (!bytes)
		return &error_nomem;
	err = size ? elf_file_read_addr(file, addr, bytes, size) : NULL;
	if (!err)
		err = elf_file_relocate(file, addr, bytes, size < HEADER_SIZE ? size : HEADER_SIZE);
	if (err)
		return err;
	return build_info_parse(bytes, size, &reader, ret);
}
