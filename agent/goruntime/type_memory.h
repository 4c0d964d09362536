/*
 * The target's memory as the type table reads it: small pieces all over the modules' type sections,
 * again and again. Pages are kept, up to a limit, and past memory's own cache, which belongs to
 * one thread. Once memory is gone, what was kept by type_memory_keep still answers.
 */
#ifndef AGENT_GORUNTIME_TYPE_MEMORY_H
#define AGENT_GORUNTIME_TYPE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/goruntime/addr_map.h"
#include "agent/target/memory.h"
#include "proto/base/error.h"

enum {
	TYPE_MEMORY_PAGE = 16 << 10,
	TYPE_MEMORY_PAGES_MAX = 4096,    /* 64 MiB, then they are read anew */
	TYPE_MEMORY_KEPT_MAX = 64 << 10, /* pages: 1 GiB; beyond it types turn out unknown */
};

/* One thread at a time. */
struct type_memory {
	struct memory *memory; /* borrowed; NULL: gone */
	struct addr_map pages; /* by page number + 1 */
	struct addr_map kept;  /* likewise */
};

void type_memory_init(struct type_memory *tm, struct memory *memory);
void type_memory_fini(struct type_memory *tm);

/* Fills all of buf. ERROR_FAULT also if memory is gone. */
must_check struct error *type_memory_read(struct type_memory *tm, taddr addr, void *buf,
					  size_t size);
must_check struct error *type_memory_u64(struct type_memory *tm, taddr addr, uint64_t *ret);

/* Keeps what can be read of [start, end) for the time when memory is gone. */
must_check struct error *type_memory_keep(struct type_memory *tm, taddr start, taddr end);

/* From now on instead answers for what was not kept; it may be NULL. */
void type_memory_let_go(struct type_memory *tm, struct memory *instead);

#endif
