/*
 * The memory of a target, wherever it is read from: the snapshot, the stopped process, or (later)
 * a core file; tests have their own. This is all that the rooms above agent/target see of it.
 */
#ifndef AGENT_TARGET_MEMORY_H
#define AGENT_TARGET_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "proto/base/error.h"

/* An address in the target. Never a pointer of ours. */
typedef uint64_t taddr;

struct memory;

struct memory_ops {
	/*
	 * Fills all of buf or fails with ERROR_FAULT (not readable) or ERROR_GONE. May be called by
	 * several threads at once.
	 */
	struct error *(*read)(struct memory *memory, taddr addr, void *buf, size_t size);
	/* NULL, or where size bytes at addr lie in our own memory; NULL if they do not. */
	const void *(*held)(const struct memory *memory, taddr addr, size_t size);
	void (*free)(struct memory *memory);
};

/* The base of every implementation, which puts it first in its own struct. */
struct memory {
	const struct memory_ops *ops;
	struct memory_cache *cache;  /* of memory_read; made on first use */
	_Atomic uint64_t bytes_read; /* from the target, for the cost of a scan */
};

/* For implementations: before use, and at the end of their own free. */
void memory_init(struct memory *memory, const struct memory_ops *ops);
void memory_fini(struct memory *memory);

/* NULL is allowed. */
void memory_free(struct memory *memory);
DEFINE_FREEP(memory, memory_free)

/*
 * Reads size bytes at addr through a small cache of pages: for structures met one by one. One
 * thread at a time. ERROR_FAULT if any byte is not readable.
 */
must_check struct error *memory_read(struct memory *memory, taddr addr, void *buf, size_t size);

/* The same past the cache, for large runs; any number of threads at once. */
must_check struct error *memory_read_bulk(struct memory *memory, taddr addr, void *buf,
					  size_t size);

/* The bytes themselves where a memory is a copy that has them in one place, else NULL. */
const void *memory_held(const struct memory *memory, taddr addr, size_t size);

must_check struct error *memory_u8(struct memory *memory, taddr addr, uint8_t *ret);
must_check struct error *memory_u32(struct memory *memory, taddr addr, uint32_t *ret);
must_check struct error *memory_u64(struct memory *memory, taddr addr, uint64_t *ret);

/* A little-endian number of width 1, 2, 4 or 8, zero-extended; other widths are ERROR_FORMAT. */
must_check struct error *memory_uint(struct memory *memory, taddr addr, size_t width,
				     uint64_t *ret);

/*
 * An array of count 64-bit words whose length is the target's own word: it is read piece by piece,
 * and memory is taken as far as it turns out to be there. ERROR_LIMIT if there are more than max.
 * The caller frees *ret.
 */
must_check struct error *memory_read_words(struct memory *memory, taddr addr, uint64_t count,
					   uint64_t max, uint64_t **ret);

/*
 * A Go string header {pointer, length} at addr: its bytes, NUL-terminated, which the caller frees.
 * ERROR_LIMIT if it is longer than max_size.
 */
must_check struct error *memory_go_string(struct memory *memory, taddr addr, size_t max_size,
					  char **ret, size_t *ret_size);

#endif
