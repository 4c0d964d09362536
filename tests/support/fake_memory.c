#include "tests/support/fake_memory.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_SIZE = 4096, MAPPINGS_MAX = 256 };

struct mapping {
	taddr start;
	size_t size;
	uint8_t *bytes;
	bool readable;
};

struct fake_memory {
	struct memory memory;
	struct mapping mappings[MAPPINGS_MAX];
	unsigned count;
};

static struct mapping *find(struct fake_memory *fake, taddr addr)
{
	for (unsigned i = 0; i < fake->count; i++) {
		struct mapping *mapping = &fake->mappings[i];

		if (addr - mapping->start < mapping->size)
			return mapping;
	}
	return NULL;
}

static struct error *read_fake(struct memory *memory, taddr addr, void *buf, size_t size)
{
	struct fake_memory *fake = (struct fake_memory *)memory;
	uint8_t *to = buf;

	while (size) {
		const struct mapping *mapping = find(fake, addr);
		size_t part;

		if (!mapping || !mapping->readable)
			return error_new(ERROR_FAULT, "0x%" PRIx64 ": not readable", addr);
		part = mapping->size - (addr - mapping->start);
		if (part > size)
			part = size;
		memcpy(to, mapping->bytes + (addr - mapping->start), part);
		to += part;
		addr += part;
		size -= part;
	}
	return NULL;
}

static void free_fake(struct memory *memory)
{
	struct fake_memory *fake = (struct fake_memory *)memory;

	for (unsigned i = 0; i < fake->count; i++)
		free(fake->mappings[i].bytes);
	memory_fini(memory);
	free(fake);
}

struct fake_memory *fake_memory_new(void)
{
	static const struct memory_ops ops = { .read = read_fake, .free = free_fake };
	struct fake_memory *fake = calloc(1, sizeof(*fake));

	assert(fake);
	memory_init(&fake->memory, &ops);
	return fake;
}

void fake_memory_free(struct fake_memory *fake)
{
	if (fake)
		memory_free(&fake->memory);
}

struct memory *fake_memory_memory(struct fake_memory *fake)
{
	return &fake->memory;
}

void fake_memory_map(struct fake_memory *fake, taddr addr, size_t size)
{
	struct mapping *mapping = &fake->mappings[fake->count++];
	size_t skip = addr % PAGE_SIZE;

	assert(fake->count <= MAPPINGS_MAX);
	mapping->start = addr - skip;
	mapping->size = (size + skip + PAGE_SIZE - 1) / PAGE_SIZE * PAGE_SIZE;
	mapping->bytes = calloc(1, mapping->size);
	mapping->readable = true;
	assert(mapping->bytes);
}

void fake_memory_unmap(struct fake_memory *fake, taddr addr)
{
	struct mapping *mapping = find(fake, addr);

	assert(mapping);
	mapping->readable = false;
	fake_memory_forget(fake);
}

uint8_t *fake_memory_bytes(struct fake_memory *fake, taddr addr, size_t size)
{
	const struct mapping *mapping = find(fake, addr);

	assert(mapping && size <= mapping->size - (addr - mapping->start));
	return mapping->bytes + (addr - mapping->start);
}

void fake_memory_store(struct fake_memory *fake, taddr addr, size_t width, uint64_t value)
{
	uint8_t *bytes = fake_memory_bytes(fake, addr, width);

	for (size_t i = 0; i < width; i++)
		bytes[i] = (uint8_t)(value >> 8 * i);
}

void fake_memory_forget(struct fake_memory *fake)
{
	memory_fini(&fake->memory);
}
