/*
 * Shapes: what an object is for the walk. Mostly that is a Go type, of one value or of an array of
 * them; but maps, channels and the like are made of blocks that have no type of the program's, or
 * whose meaning their type does not tell. A shape is a kind and a type in one number.
 */
#ifndef AGENT_ANALYSIS_REFERENCE_SHAPE_H
#define AGENT_ANALYSIS_REFERENCE_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/goruntime/go_type.h"

enum shape_kind {
	SHAPE_UNMET,
	SHAPE_UNTYPED,
	SHAPE_VALUE, /* of the type */
	SHAPE_ARRAY, /* of the type */
	/* A closure, of which the static type is known until its code pointer is read; after. */
	SHAPE_FUNC,
	SHAPE_CLOSURE,
	/* Of a map, to go1.23: hmap, buckets, mapextra and the list of overflow buckets in it. */
	SHAPE_HMAP,
	SHAPE_BUCKETS,
	SHAPE_MAP_EXTRA,
	SHAPE_OVERFLOW_LIST,
	SHAPE_OVERFLOW_ARRAY,
	/* Of a map, since go1.24: internal/runtime/maps. */
	SHAPE_SWISS_MAP,
	SHAPE_SWISS_DIRECTORY,
	SHAPE_SWISS_TABLE,
	SHAPE_SWISS_GROUPS,
	/* Of a channel: hchan, and its buffer where that is a block of its own. */
	SHAPE_CHANNEL,
	SHAPE_CHANNEL_BUFFER,
	/* internal/sync.HashTrieMap's node: an entry or an inner node, as its first byte says. */
	SHAPE_TRIE_NODE,
	/* One whose own type nothing tells, when its first byte is read. */
	SHAPE_TRIE_ENTRY,
	SHAPE_TRIE_INNER,
	/* runtime.sudog, until it is known at which channel it waits. */
	SHAPE_SUDOG,
	SHAPE_KIND_END
};

/* The highest bit is left to those who keep shapes. */
enum { SHAPE_KIND_BITS = 5, SHAPE_TYPE_MAX = (1 << (31 - SHAPE_KIND_BITS)) - 1 };

typedef uint32_t shape_id;

static inline shape_id shape_of(enum shape_kind kind, type_id type)
{
	return type > SHAPE_TYPE_MAX ? (shape_id)SHAPE_UNTYPED
				     : (shape_id)(type << SHAPE_KIND_BITS | (uint32_t)kind);
}

static inline enum shape_kind shape_kind(shape_id shape)
{
	return (enum shape_kind)(shape & ((1 << SHAPE_KIND_BITS) - 1));
}

static inline type_id shape_type(shape_id shape)
{
	return shape >> SHAPE_KIND_BITS;
}

static inline bool shape_is_typed(shape_id shape)
{
	return shape_kind(shape) > SHAPE_UNTYPED;
}

/* Blocks that are one thing after the other, as many as there is room for. */
static inline bool shape_repeats(enum shape_kind kind)
{
	return kind == SHAPE_ARRAY || kind == SHAPE_BUCKETS || kind == SHAPE_OVERFLOW_ARRAY ||
	       kind == SHAPE_SWISS_DIRECTORY || kind == SHAPE_SWISS_GROUPS ||
	       kind == SHAPE_CHANNEL_BUFFER;
}

#endif
