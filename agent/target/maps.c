#include "agent/target/maps.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/target/procfs.h"
#include "proto/base/bytes.h"

enum {
	TEXT_LIMIT = 64 << 20, /* vm.max_map_count can be raised, and names are up to 4 KiB */
	ITEMS_LIMIT = 1 << 20,
	READ_SIZE = 64 << 10,
	READ_ATTEMPTS = 10,
};

static const char deleted_mark[] = " (deleted)";

static bool step(const char **pos, char expected)
{
	if (**pos != expected)
		return false;
	++*pos;
	return true;
}

/* "rw-p" */
static bool parse_permissions(const char **pos, struct mapping *mapping)
{
	const char *p = *pos;

	if ((p[0] != 'r' && p[0] != '-') || (p[1] != 'w' && p[1] != '-') ||
	    (p[2] != 'x' && p[2] != '-') || (p[3] != 'p' && p[3] != 's'))
		return false;
	mapping->read = p[0] == 'r';
	mapping->write = p[1] == 'w';
	mapping->execute = p[2] == 'x';
	mapping->shared = p[3] == 's';
	*pos += 4;
	return true;
}

static bool parse_number(const char **pos, int base, uint64_t limit, uint64_t *ret)
{
	/* procfs_number skips blanks; here they are where the format has them */
	return **pos != ' ' && **pos != '\t' && procfs_number(pos, base, ret) && *ret <= limit;
}

/* "start-end perms offset major:minor inode" */
static bool parse_numbers(const char **pos, struct mapping *mapping)
{
	uint64_t major, minor;

	if (!parse_number(pos, 16, UINT64_MAX, &mapping->start) || !step(pos, '-') ||
	    !parse_number(pos, 16, UINT64_MAX, &mapping->end) || !step(pos, ' ') ||
	    !parse_permissions(pos, mapping) || !step(pos, ' ') ||
	    !parse_number(pos, 16, UINT64_MAX, &mapping->offset) || !step(pos, ' ') ||
	    !parse_number(pos, 16, UINT32_MAX, &major) || !step(pos, ':') ||
	    !parse_number(pos, 16, UINT32_MAX, &minor) || !step(pos, ' ') ||
	    !parse_number(pos, 10, UINT64_MAX, &mapping->inode))
		return false;
	mapping->device_major = (uint32_t)major;
	mapping->device_minor = (uint32_t)minor;
	return mapping->start < mapping->end;
}

static enum mapping_kind kind_of(const struct mapping *mapping)
{
	const char *name = mapping->name;

	if (mapping->inode)
		return MAPPING_FILE;
	if (!*name || !strcmp(name, "[heap]") || !strncmp(name, "[stack", 6) ||
	    !strncmp(name, "[anon:", 6))
		return MAPPING_ANONYMOUS;
	return MAPPING_SPECIAL;
}

/* Cuts the mark off a file's name, in the text that the maps own. */
static void cut_deleted(struct mapping *mapping, char *name)
{
	size_t size = strlen(name), mark = sizeof(deleted_mark) - 1;

	if (!mapping->inode || size < mark || strcmp(name + size - mark, deleted_mark) != 0)
		return;
	name[size - mark] = '\0';
	mapping->deleted = true;
}

/* One line, NUL-terminated. */
static struct error *parse_line(char *line, taddr previous_end, struct mapping *ret)
{
	struct mapping mapping = { 0 };
	const char *pos = line;

	if (!parse_numbers(&pos, &mapping) || (*pos && *pos != ' '))
		return error_new(ERROR_FORMAT, "malformed mapping");
	if (mapping.start < previous_end)
		return error_new(ERROR_FORMAT, "mapping 0x%" PRIx64 " out of order", mapping.start);
	while (*pos == ' ')
		pos++;
	mapping.name = pos;
	cut_deleted(&mapping, line + (pos - line));
	mapping.kind = kind_of(&mapping);
	*ret = mapping;
	return NULL;
}

static struct error *add_mapping(struct maps *maps, uint32_t *capacity,
				 const struct mapping *mapping)
{
	if (maps->count == ITEMS_LIMIT)
		return error_new(ERROR_LIMIT, "more than %d mappings", ITEMS_LIMIT);
	if (maps->count == *capacity) {
		uint32_t more = *capacity ? *capacity * 2 : 64;
		struct mapping *bigger = reallocarray(maps->items, more, sizeof(*bigger));

		if (!bigger)
			return &error_nomem;
		maps->items = bigger;
		*capacity = more;
	}
	maps->items[maps->count++] = *mapping;
	return NULL;
}

static struct error *parse_lines(struct maps *maps, size_t size)
{
	char *line = maps->text, *end = maps->text + size;
	uint32_t capacity = 0;
	taddr previous_end = 0;

	while (line < end) {
		char *newline = memchr(line, '\n', (size_t)(end - line));
		struct mapping mapping;
		struct error *err;

		if (!newline)
			return error_new(ERROR_FORMAT, "maps: unfinished line");
		*newline = '\0';
		err = parse_line(line, previous_end, &mapping);
		if (!err)
			err = add_mapping(maps, &capacity, &mapping);
		if (err)
			return error_context(err, "maps: line %" PRIu32, maps->count + 1);
		previous_end = mapping.end;
		line = newline + 1;
	}
	return NULL;
}

/* Takes over text of size bytes and a NUL. */
static struct error *from_text(char *text, size_t size, struct maps **ret)
{
	struct maps *maps scoped(maps_freep) = calloc(1, sizeof(*maps));
	struct error *err;

	if (!maps) {
		free(text);
		return &error_nomem;
	}
	maps->text = text;
	err = parse_lines(maps, size);
	if (err)
		return err;
	*ret = take(maps);
	return NULL;
}

struct error *maps_parse(const char *text, size_t size, struct maps **ret)
{
	char *copy;

	if (size > TEXT_LIMIT)
		return error_new(ERROR_LIMIT, "maps: %zu bytes", size);
	copy = malloc(size + 1);
	if (!copy)
		return &error_nomem;
	memcpy(copy, text, size);
	copy[size] = '\0';
	return from_text(copy, size, ret);
}

/* Reads the whole of a descriptor; its position is left alone, since others may share it. */
static struct error *read_text(int fd, struct bytes *bytes)
{
	off_t offset = 0;

	for (;;) {
		uint8_t *room;
		ssize_t got;
		struct error *err = bytes_extend(bytes, READ_SIZE, &room);

		if (err)
			return err;
		bytes->size -= READ_SIZE;
		got = pread(fd, room, READ_SIZE, offset);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_system(errno, "reading");
		if (!got)
			return NULL;
		bytes->size += (size_t)got;
		offset += got;
	}
}

static struct error *read_once(int fd, struct maps **ret)
{
	struct bytes bytes;
	struct error *err;

	bytes_init(&bytes, TEXT_LIMIT);
	err = read_text(fd, &bytes);
	if (!err && !bytes.size)
		err = error_new(ERROR_GONE, "no mappings");
	if (!err)
		err = bytes_append(&bytes, "", 1);
	if (err) {
		bytes_fini(&bytes);
		return error_context(err, "maps");
	}
	return from_text((char *)bytes.data, bytes.size - 1, ret);
}

/*
 * The kernel gives some pages of lines at a time, and goes on from the last address. A mapping of a
 * running process that has grown towards lower addresses meanwhile comes twice.
 */
struct error *maps_read(int fd, struct maps **ret)
{
	const struct timespec rest = { .tv_nsec = 1000000 };
	struct error *err = read_once(fd, ret);

	for (unsigned i = 1; err && error_code(err) == ERROR_FORMAT && i < READ_ATTEMPTS; i++) {
		error_free(err);
		nanosleep(&rest, NULL);
		err = read_once(fd, ret);
	}
	return err;
}

void maps_free(struct maps *maps)
{
	if (!maps)
		return;
	free(maps->items);
	free(maps->text);
	free(maps);
}

const struct mapping *maps_find(const struct maps *maps, taddr addr)
{
	uint32_t low = 0, high = maps->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (maps->items[middle].end <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == maps->count || addr < maps->items[low].start)
		return NULL;
	return &maps->items[low];
}
