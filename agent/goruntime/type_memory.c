#include "agent/goruntime/type_memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/bytes.h"

void type_memory_init(struct type_memory *tm, struct memory *memory)
{
	*tm = (struct type_memory){ .memory = memory };
}

static void drop_pages(struct addr_map *pages)
{
	for (size_t i = 0; i < pages->capacity; i++)
		free(pages->entries[i].value);
	addr_map_fini(pages);
}

void type_memory_fini(struct type_memory *tm)
{
	drop_pages(&tm->pages);
	drop_pages(&tm->kept);
}

static struct error *load_page(struct type_memory *tm, struct addr_map *pages, taddr number,
			       const uint8_t **ret)
{
	uint8_t *page scoped(freep) = malloc(TYPE_MEMORY_PAGE);
	struct error *err;

	if (!page)
		return &error_nomem;
	err = memory_read_bulk(tm->memory, number * TYPE_MEMORY_PAGE, page, TYPE_MEMORY_PAGE);
	if (!err)
		err = addr_map_put(pages, number + 1, page);
	if (!err)
		*ret = take(page);
	return err;
}

static const uint8_t *find_page(const struct type_memory *tm, taddr number)
{
	const uint8_t *page = addr_map_get(&tm->kept, number + 1);

	return page ? page : addr_map_get(&tm->pages, number + 1);
}

/* A piece within one page: where the page cannot be read whole, the piece alone perhaps can. */
static struct error *read_piece(struct type_memory *tm, taddr addr, void *buf, size_t size)
{
	taddr number = addr / TYPE_MEMORY_PAGE;
	const uint8_t *page = find_page(tm, number);
	struct error *err = NULL;

	if (!page) {
		if (!tm->memory)
			return error_new(ERROR_FAULT, "0x%" PRIx64 ": memory is gone", addr);
		if (tm->pages.count >= TYPE_MEMORY_PAGES_MAX)
			drop_pages(&tm->pages);
		err = load_page(tm, &tm->pages, number, &page);
		if (err && error_code(err) == ERROR_FAULT) {
			error_free(err);
			return memory_read_bulk(tm->memory, addr, buf, size);
		}
	}
	if (!err)
		memcpy(buf, page + addr % TYPE_MEMORY_PAGE, size);
	return err;
}

struct error *type_memory_read(struct type_memory *tm, taddr addr, void *buf, size_t size)
{
	uint8_t *out = buf;

	if (size > UINT64_MAX - TYPE_MEMORY_PAGE || addr > UINT64_MAX - TYPE_MEMORY_PAGE - size)
		return error_new(ERROR_FAULT, "0x%" PRIx64 ": not readable", addr);
	while (size) {
		size_t left = TYPE_MEMORY_PAGE - addr % TYPE_MEMORY_PAGE;
		size_t part = size < left ? size : left;
		struct error *err = read_piece(tm, addr, out, part);

		if (err)
			return err;
		addr += part;
		out += part;
		size -= part;
	}
	return NULL;
}

struct error *type_memory_u64(struct type_memory *tm, taddr addr, uint64_t *ret)
{
	uint8_t bytes[8];
	struct error *err = type_memory_read(tm, addr, bytes, sizeof(bytes));

	if (!err)
		*ret = load_u64le(bytes);
	return err;
}

struct error *type_memory_keep(struct type_memory *tm, taddr start, taddr end)
{
	struct error *err = NULL;

	if (!tm->memory || start >= end || end > UINT64_MAX - TYPE_MEMORY_PAGE)
		return NULL;
	for (taddr number = start / TYPE_MEMORY_PAGE;
	     !err && number <= (end - 1) / TYPE_MEMORY_PAGE &&
	     tm->kept.count < TYPE_MEMORY_KEPT_MAX;
	     number++) {
		const uint8_t *page = addr_map_get(&tm->kept, number + 1);

		if (!page)
			err = load_page(tm, &tm->kept, number, &page);
		if (err && error_code(err) == ERROR_FAULT) {
			error_free(err);
			err = NULL;
		}
	}
	return err;
}

void type_memory_let_go(struct type_memory *tm, struct memory *instead)
{
	drop_pages(&tm->pages);
	tm->memory = instead;
}
