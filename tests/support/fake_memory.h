/*
 * The memory of a target that a test makes up: pages at any address, filled as the test likes.
 * What is not there cannot be read. Reads through memory_read are cached, so a test that changes
 * bytes after reading them takes fake_memory_forget.
 */
#ifndef TESTS_SUPPORT_FAKE_MEMORY_H
#define TESTS_SUPPORT_FAKE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "agent/target/memory.h"

struct fake_memory;

struct fake_memory *fake_memory_new(void);
void fake_memory_free(struct fake_memory *fake);

struct memory *fake_memory_memory(struct fake_memory *fake);

/* Adds zeroed pages that cover [addr, addr + size), which must not overlap others. */
void fake_memory_map(struct fake_memory *fake, taddr addr, size_t size);

/* Makes the pages that were mapped at addr unreadable. */
void fake_memory_unmap(struct fake_memory *fake, taddr addr);

/* Our copy of size bytes at addr, to read and write; they lie in one mapping. */
uint8_t *fake_memory_bytes(struct fake_memory *fake, taddr addr, size_t size);

/* Stores a little-endian number of width 1, 2, 4 or 8. */
void fake_memory_store(struct fake_memory *fake, taddr addr, size_t width, uint64_t value);

void fake_memory_forget(struct fake_memory *fake);

#endif
