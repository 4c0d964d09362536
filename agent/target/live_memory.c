#include "agent/target/live_memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "agent/target/maps.h"
#include "agent/target/snapshot_memory.h"

enum {
	PAGE_SIZE = 4096,
	RUN_PAGES = 512, /* pagemap entries looked at in one go */
};

/* Bits of a pagemap entry, admin-guide/mm/pagemap in the kernel's documentation. */
static const uint64_t pagemap_present = UINT64_C(1) << 63, pagemap_swapped = UINT64_C(1) << 62;

/* A file that stands in for pages that are not present. */
struct backing {
	struct live_memory_file file;
	bool by_name;
	uint64_t inode;
	uint32_t major, minor;
};

struct live_memory {
	struct memory memory;
	struct live_memory_files files; /* borrowed */
	struct maps *maps;
	struct memory *pages; /* reads what is present, through the target's mem */
	struct backing backings[1 + LIVE_MEMORY_PLUGINS_MAX];
	unsigned backing_count;
};

/* The entries of count pages; 0 where the address space ends before. */
static struct error *read_pagemap(const struct live_memory *live, taddr page, size_t count,
				  uint64_t entries[RUN_PAGES])
{
	off_t offset = (off_t)(page / PAGE_SIZE * sizeof(uint64_t));
	size_t want = count * sizeof(uint64_t), have = 0;

	memset(entries, 0, want);
	while (have < want) {
		ssize_t got = pread(live->files.pagemap, (char *)entries + have, want - have,
				    offset + (off_t)have);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_system(errno, "pagemap of 0x%" PRIx64, page);
		if (!got)
			break;
		have += (size_t)got;
	}
	return NULL;
}

/* As the link to the executable names it, or the maps themselves. */
static bool has_name(const struct backing *backing, const struct mapping *mapping)
{
	static const char mark[] = " (deleted)";
	const char *name = backing->file.name;
	size_t size = strlen(mapping->name);

	return mapping->kind == MAPPING_FILE && !strncmp(name, mapping->name, size) &&
	       !strcmp(name + size, mapping->deleted ? mark : "");
}

static bool is_file(const struct backing *backing, const struct mapping *mapping)
{
	return mapping->inode == backing->inode && mapping->device_major == backing->major &&
	       mapping->device_minor == backing->minor;
}

static const struct backing *find_backing(const struct live_memory *live,
					  const struct mapping *mapping)
{
	for (unsigned i = 0; i < live->backing_count; i++) {
		const struct backing *backing = &live->backings[i];

		if (backing->by_name ? has_name(backing, mapping) : is_file(backing, mapping))
			return backing;
	}
	return NULL;
}

/* What the file has there; a page's rest past the end of the file is zeros. */
static struct error *read_file(int fd, uint64_t offset, uint8_t *out, size_t size)
{
	while (size) {
		ssize_t got = offset > INT64_MAX ? 0 : pread(fd, out, size, (off_t)offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_system(errno, "file of the target");
		if (!got) {
			memset(out, 0, size);
			return NULL;
		}
		out += got;
		offset += (uint64_t)got;
		size -= (size_t)got;
	}
	return NULL;
}

/* A part of one page that is not present. */
static struct error *read_absent(const struct live_memory *live, taddr addr, uint8_t *out,
				 size_t size)
{
	const struct mapping *mapping = maps_find(live->maps, addr);
	const struct backing *backing = mapping ? find_backing(live, mapping) : NULL;

	if (mapping && mapping->kind == MAPPING_ANONYMOUS && !mapping->shared) {
		memset(out, 0, size);
		return NULL;
	}
	if (backing)
		return read_file(backing->file.fd, mapping->offset + (addr - mapping->start), out,
				 size);
	return error_new(ERROR_FAULT, "0x%" PRIx64 ": not readable without touching the target",
			 addr);
}

static bool is_there(uint64_t entry)
{
	return entry & (pagemap_present | pagemap_swapped);
}

/* A run of up to RUN_PAGES pages, parts of which at both ends. */
static struct error *read_run(struct live_memory *live, taddr addr, uint8_t *out, size_t size)
{
	taddr first = addr - addr % PAGE_SIZE;
	size_t count = (addr + size - 1 - first) / PAGE_SIZE + 1;
	uint64_t entries[RUN_PAGES];
	struct error *err = read_pagemap(live, first, count, entries);

	for (size_t i = 0; i < count && !err;) {
		bool there = is_there(entries[i]);
		size_t pages = 1, part;

		while (there && i + pages < count && is_there(entries[i + pages]))
			pages++;
		part = pages * PAGE_SIZE - addr % PAGE_SIZE;
		if (part > size)
			part = size;
		err = there ? memory_read_bulk(live->pages, addr, out, part)
			    : read_absent(live, addr, out, part);
		addr += part;
		out += part;
		size -= part;
		i += pages;
	}
	return err;
}

static struct error *live_read(struct memory *memory, taddr addr, void *buf, size_t size)
{
	struct live_memory *live = (struct live_memory *)memory;
	uint8_t *out = buf;

	while (size) {
		size_t room = RUN_PAGES * PAGE_SIZE - addr % PAGE_SIZE;
		size_t part = size < room ? size : room;
		struct error *err;

		if (addr > INT64_MAX)
			return error_new(ERROR_FAULT, "0x%" PRIx64 ": not readable", addr);
		err = read_run(live, addr, out, part);
		if (err)
			return err;
		addr += part;
		out += part;
		size -= part;
	}
	return NULL;
}

static void live_free(struct memory *memory)
{
	struct live_memory *live = (struct live_memory *)memory;

	memory_fini(memory);
	memory_free(live->pages);
	maps_free(live->maps);
	free(live);
}

static const struct memory_ops live_ops = { .read = live_read, .free = live_free };

/*
 * maps shows the file below, and its device, where a file system lies on another (overlayfs) or has
 * a device for each of its parts (btrfs). The file that stat shows is not there then, and it is
 * known by its name.
 */
static void add_backing(struct live_memory *live, struct live_memory_file file)
{
	struct backing *backing = &live->backings[live->backing_count];
	struct stat st;
	bool found = false;

	if (file.fd < 0 || fstat(file.fd, &st) || !S_ISREG(st.st_mode))
		return;
	*backing = (struct backing){ .file = file,
				     .inode = st.st_ino,
				     .major = major(st.st_dev),
				     .minor = minor(st.st_dev) };
	for (uint32_t i = 0; !found && i < live->maps->count; i++)
		found = is_file(backing, &live->maps->items[i]);
	backing->by_name = !found && file.name;
	if (found || file.name)
		live->backing_count++;
}

static void add_backings(struct live_memory *live)
{
	const struct live_memory_files *files = &live->files;

	add_backing(live, (struct live_memory_file){ files->exe, files->exe_name });
	for (unsigned i = 0; i < files->plugin_count && i < LIVE_MEMORY_PLUGINS_MAX; i++)
		add_backing(live, files->plugins[i]);
}

struct error *live_memory_open(const struct live_memory_files *files, struct memory **ret)
{
	struct live_memory *live = calloc(1, sizeof(*live));
	struct error *err;

	if (!live)
		return &error_nomem;
	memory_init(&live->memory, &live_ops);
	live->files = *files;
	err = maps_read(files->maps, &live->maps);
	if (!err)
		add_backings(live);
	if (!err)
		err = snapshot_memory_open(files->mem, &live->pages);
	if (err) {
		live_free(&live->memory);
		return err;
	}
	*ret = &live->memory;
	return NULL;
}
