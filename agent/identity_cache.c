#include "agent/identity_cache.h"

#include <string.h>

#include "agent/file_key.h"

void identity_cache_init(struct identity_cache *cache)
{
	*cache = (struct identity_cache){ 0 };
}

void identity_cache_fini(struct identity_cache *cache)
{
	free(take(cache->entries));
	cache->count = cache->next = 0;
}

const struct identity *identity_cache_find(const struct identity_cache *cache,
					   const Goheapd__FileKey *key)
{
	for (unsigned i = 0; i < cache->count; i++)
		if (file_key_equal(&cache->entries[i].key, key))
			return &cache->entries[i];
	return NULL;
}

/* Text from outside, cut where the room or the text ends. */
static void copy_text(char *to, size_t size, protobuf_c_boolean has, ProtobufCBinaryData from)
{
	size_t length = has ? from.len : 0;

	if (length > size - 1)
		length = size - 1;
	if (length)
		memcpy(to, from.data, length);
	to[length] = '\0';
}

struct error *identity_cache_add(struct identity_cache *cache, const Goheapd__FileKey *key,
				 const Goheapd__Identified *identified)
{
	struct identity *entry;

	if (!cache->entries) {
		cache->entries = calloc(IDENTITY_CACHE_SIZE, sizeof(*cache->entries));
		if (!cache->entries)
			return &error_nomem;
	}
	entry = &cache->entries[cache->next];
	cache->next = (cache->next + 1) % IDENTITY_CACHE_SIZE;
	if (cache->count < IDENTITY_CACHE_SIZE)
		cache->count++;
	entry->key = *key;
	entry->is_go = identified->is_go;
	entry->inspectable = identified->inspectable;
	copy_text(entry->go_version, sizeof(entry->go_version), identified->has_go_version,
		  identified->go_version);
	copy_text(entry->reason, sizeof(entry->reason), identified->has_reason, identified->reason);
	return NULL;
}
