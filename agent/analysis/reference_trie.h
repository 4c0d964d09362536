/*
 * Nodes of HashTrieMap, of which sync.Map is made since go1.24: "node[K,V]" is what
 * "indirect[K,V]", the inner ones, and "entry[K,V]" have in common; pointers have the common type,
 * and the first byte tells which it is. Where a node lies in the trie depends on a random seed, so
 * inner nodes are no step of a chain. internal/sync/hashtriemap.go, before that internal/concurrent
 * (go1.23).
 */
#ifndef AGENT_ANALYSIS_REFERENCE_TRIE_H
#define AGENT_ANALYSIS_REFERENCE_TRIE_H

#include <stdbool.h>

#include "agent/goruntime/go_type.h"
#include "proto/base/error.h"

bool trie_is_node(const struct go_type *type);

/* The common type of an inner node's type; TYPE_UNKNOWN: the type is none, or has none. */
must_check struct error *trie_node_of_inner(struct go_types *types, type_id inner, type_id *ret);

/* The type of the entries among nodes of the common type; TYPE_UNKNOWN: nothing tells it. */
must_check struct error *trie_entry_of_node(struct go_types *types, type_id node, type_id *ret);

#endif
