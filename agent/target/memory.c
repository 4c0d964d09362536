#include "agent/target/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/bytes.h"

enum {
	CACHE_PAGE_SIZE = 4096,
	CACHE_PAGES = 1024, /* direct mapped by page number */
	FIRST_WORDS = 64 << 10,
};

/* Tags are page address + 1, so that 0 is an empty place. */
struct memory_cache {
	taddr tags[CACHE_PAGES];
	uint8_t pages[CACHE_PAGES][CACHE_PAGE_SIZE];
};

void memory_init(struct memory *memory, const struct memory_ops *ops)
{
	memory->ops = ops;
	memory->cache = NULL;
	memory->bytes_read = 0;
}

void memory_fini(struct memory *memory)
{
	free(memory->cache);
	memory->cache = NULL;
}

void memory_free(struct memory *memory)
{
	if (memory)
		memory->ops->free(memory);
}

struct error *memory_read_bulk(struct memory *memory, taddr addr, void *buf, size_t size)
{
	struct error *err;

	if (!size)
		return NULL;
	if (size > UINT64_MAX - addr)
		return error_new(ERROR_FAULT, "0x%" PRIx64 ": not readable", addr);
	err = memory->ops->read(memory, addr, buf, size);
	if (err)
		return err;
	memory->bytes_read += size;
	return NULL;
}

/* Points *ret at the cached copy of the page that starts at page. */
static struct error *cached_page(struct memory *memory, taddr page, const uint8_t **ret)
{
	size_t place = (page / CACHE_PAGE_SIZE) % CACHE_PAGES;
	struct memory_cache *cache = memory->cache;
	struct error *err;

	if (!cache) {
		cache = memory->cache = calloc(1, sizeof(*cache));
		if (!cache)
			return &error_nomem;
	}
	if (cache->tags[place] != page + 1) {
		cache->tags[place] = 0;
		err = memory_read_bulk(memory, page, cache->pages[place], CACHE_PAGE_SIZE);
		if (err)
			return err;
		cache->tags[place] = page + 1;
	}
	*ret = cache->pages[place];
	return NULL;
}

struct error *memory_read(struct memory *memory, taddr addr, void *buf, size_t size)
{
	uint8_t *out = buf;

	if (size > CACHE_PAGE_SIZE)
		return memory_read_bulk(memory, addr, buf, size);
	while (size) {
		size_t skip = addr % CACHE_PAGE_SIZE;
		size_t part = CACHE_PAGE_SIZE - skip < size ? CACHE_PAGE_SIZE - skip : size;
		const uint8_t *page;
		struct error *err = cached_page(memory, addr - skip, &page);

		if (err)
			return err;
		memcpy(out, page + skip, part);
		out += part;
		addr += part;
		size -= part;
	}
	return NULL;
}

const void *memory_held(const struct memory *memory, taddr addr, size_t size)
{
	return memory->ops->held ? memory->ops->held(memory, addr, size) : NULL;
}

struct error *memory_u8(struct memory *memory, taddr addr, uint8_t *ret)
{
	return memory_read(memory, addr, ret, sizeof(*ret));
}

struct error *memory_u32(struct memory *memory, taddr addr, uint32_t *ret)
{
	uint64_t value;
	struct error *err = memory_uint(memory, addr, sizeof(*ret), &value);

	if (err)
		return err;
	*ret = (uint32_t)value;
	return NULL;
}

struct error *memory_u64(struct memory *memory, taddr addr, uint64_t *ret)
{
	return memory_uint(memory, addr, sizeof(*ret), ret);
}

struct error *memory_uint(struct memory *memory, taddr addr, size_t width, uint64_t *ret)
{
	uint8_t raw[8];
	struct error *err;

	if (width != 1 && width != 2 && width != 4 && width != 8)
		return error_new(ERROR_FORMAT, "0x%" PRIx64 ": a number of %zu bytes", addr, width);
	err = memory_read(memory, addr, raw, width);
	if (err)
		return err;
	*ret = load_uint_le(raw, width);
	return NULL;
}

struct error *memory_read_words(struct memory *memory, taddr addr, uint64_t count, uint64_t max,
				uint64_t **ret)
{
	uint64_t *words scoped(freep) = NULL;
	uint64_t done = 0, part = FIRST_WORDS;

	if (count > max)
		return error_new(ERROR_LIMIT, "%" PRIu64 " elements, at most %" PRIu64 " are meant",
				 count, max);
	do {
		uint64_t *grown;
		struct error *err;

		if (part > count - done)
			part = count - done;
		grown = reallocarray(words, done + part + 1, sizeof(*words));
		if (!grown)
			return &error_nomem;
		words = grown;
		err = memory_read_bulk(memory, addr + 8 * done, words + done, 8 * part);
		if (err)
			return err;
		done += part;
		part = done; /* as much again */
	} while (done < count);
	for (uint64_t i = 0; i < count; i++)
		words[i] = load_u64le(&words[i]);
	*ret = take(words);
	return NULL;
}

struct error *memory_go_string(struct memory *memory, taddr addr, size_t max_size, char **ret,
			       size_t *ret_size)
{
	char *text scoped(freep) = NULL;
	uint64_t data, size;
	struct error *err;

	err = memory_u64(memory, addr, &data);
	if (err)
		return err;
	err = memory_u64(memory, addr + 8, &size);
	if (err)
		return err;
	if (size > max_size)
		return error_new(ERROR_LIMIT, "0x%" PRIx64 ": a string of %" PRIu64 " bytes", addr,
				 size);
	text = malloc(size + 1);
	if (!text)
		return &error_nomem;
	err = memory_read(memory, data, text, size);
	if (err)
		return err;
	text[size] = '\0';
	*ret = take(text);
	*ret_size = size;
	return NULL;
}
