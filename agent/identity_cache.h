/*
 * Which executables are Go programs, so that a listing opens no file twice. Keyed by what tells
 * one file's content from another's; the oldest entries make room for new ones.
 */
#ifndef AGENT_IDENTITY_CACHE_H
#define AGENT_IDENTITY_CACHE_H

#include <stdbool.h>

#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"

enum { IDENTITY_CACHE_SIZE = 1024, IDENTITY_VERSION_SIZE = 128, IDENTITY_REASON_SIZE = 256 };

struct identity {
	Goheapd__FileKey key;
	bool is_go;
	bool inspectable;
	char go_version[IDENTITY_VERSION_SIZE]; /* "" if not known */
	char reason[IDENTITY_REASON_SIZE];      /* with !inspectable */
};

struct identity_cache {
	struct identity *entries; /* NULL until the first is added */
	unsigned count, next;
};

void identity_cache_init(struct identity_cache *cache);
void identity_cache_fini(struct identity_cache *cache);

/* NULL if it is not known; good until the next addition. */
const struct identity *identity_cache_find(const struct identity_cache *cache,
					   const Goheapd__FileKey *key);

/* Copies what of the decoder's answer fits. */
must_check struct error *identity_cache_add(struct identity_cache *cache,
					    const Goheapd__FileKey *key,
					    const Goheapd__Identified *identified);

#endif
