/*
 * The folder of binaries' indexes, which the agent alone reads and writes (mode 0700). The agent
 * takes their content for bytes; whether an index is that of the binary is for its reader to
 * check, by the key that it holds.
 */
#ifndef AGENT_INDEX_STORE_H
#define AGENT_INDEX_STORE_H

#include <stdint.h>

#include "agent/binary/index.h"
#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"

/* The oldest go beyond either. */
enum { INDEX_STORE_FILES_MAX = 512 };
static const uint64_t index_store_bytes_max = UINT64_C(1) << 30;

struct index_store {
	int folder_fd; /* -1: nothing is kept */
};

/* Makes the folder "index" in cache_dir, which may be missing. NULL: nothing is kept. */
must_check struct error *index_store_init(struct index_store *store, const char *cache_dir);
void index_store_fini(struct index_store *store);

/* A descriptor to read an index of a binary by, the caller's; -1 if there is none. */
int index_store_open(const struct index_store *store, enum index_kind kind,
		     const Goheapd__FileKey *key);

/* Replaces an index of a binary in one step: a reader sees the old one or the new one. */
must_check struct error *index_store_write(const struct index_store *store, enum index_kind kind,
					   const Goheapd__FileKey *key, const void *content,
					   size_t size);

/* The same of a memory file; ERROR_FORMAT unless it is sealed and not larger than a type index. */
must_check struct error *index_store_write_types(const struct index_store *store,
						 const Goheapd__FileKey *key, int fd);

#endif
