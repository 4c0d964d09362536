/*
 * Keys of labels as Pyroscope takes them: a letter or '_', then letters, digits and '_'. It refuses
 * a whole profile for one key that is not like that. Different keys stay different.
 */
#ifndef DAEMON_PPROF_KEYS_H
#define DAEMON_PPROF_KEYS_H

#include "daemon/chain_tree.h"
#include "daemon/text.h"

struct pprof_keys {
	struct pprof_key *keys; /* sorted by what they were */
	size_t count, capacity;
};

/* The keys of all label sets of a tree. */
must_check struct error *pprof_keys_init(struct pprof_keys *keys, const struct chain_tree *tree);
void pprof_keys_fini(struct pprof_keys *keys);

/* What a key of that tree is called. */
const char *pprof_key_name(const struct pprof_keys *keys, ProtobufCBinaryData key);

/* A line for each key that is called something else than it was: label a_b is "a.b". */
void pprof_keys_comment(const struct pprof_keys *keys, struct text *text);

#endif
