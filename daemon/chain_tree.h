/*
 * Reference chains as a tree of frames, whose figures have a sign, so that it holds a profile or
 * the change from one to another. Frames are known by their names alone: a chain is the same chain
 * in a process of another build. Bytes are borrowed from the messages that were added.
 */
#ifndef DAEMON_CHAIN_TREE_H
#define DAEMON_CHAIN_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/id_index.h"
#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"

struct chain_frame {
	ProtobufCBinaryData name, file; /* an empty file is not known, as is line 0 */
	uint32_t line;
};

/* Sorted by key. */
struct chain_labels {
	Goheapd__LabelPair *const *pairs;
	size_t count;
};

struct chain_node {
	uint32_t parent; /* before it in the tree; ID_NONE: a root */
	uint32_t frame;
	uint32_t labels;        /* of its root; ID_NONE: none */
	int64_t objects, bytes; /* at this very chain */
	/* Of bytes, those that strings and slices do not use of their blocks. */
	int64_t unused_bytes;
};

struct chain_tree {
	struct chain_frame *frames;
	struct chain_node *nodes;
	struct chain_labels *labels;
	size_t frame_count, node_count, label_count;
	/* the same by what they are */
	struct id_index frame_index, node_index, label_index;
	size_t frame_capacity, node_capacity, label_capacity;
};

enum chain_sign { CHAIN_PLUS = 1, CHAIN_MINUS = -1 };

void chain_tree_init(struct chain_tree *tree);
void chain_tree_fini(struct chain_tree *tree);

/*
 * Adds the figures of a profile, or takes them away. What lies deeper than max_depth frames counts
 * for the last of these. The profile must have passed scan_check.
 */
must_check struct error *chain_tree_add(struct chain_tree *tree,
					const Goheapd__ReferenceProfile *profile,
					enum chain_sign sign, uint32_t max_depth);

/* One node more, or what there is already; its figures are the caller's to change. */
must_check struct error *chain_tree_node(struct chain_tree *tree, uint32_t parent,
					 const struct chain_frame *frame, uint32_t labels,
					 uint32_t *ret);
must_check struct error *chain_tree_labels(struct chain_tree *tree,
					   const struct chain_labels *labels, uint32_t *ret);

/* How much a node and what is below it weigh: bytes and objects without their signs. *ret has
 * node_count numbers and is freed by the caller. */
must_check struct error *chain_tree_weights(const struct chain_tree *tree, uint64_t **ret);

/*
 * A tree in which everything that weighs less than min_weight, with what is below it, is part of a
 * frame "other" beneath what it hung on. Sums stay the same, of all and of every chain that is
 * left. Its bytes are those of tree.
 */
must_check struct error *chain_tree_fold(const struct chain_tree *tree, const uint64_t *weights,
					 uint64_t min_weight, struct chain_tree *ret);

/* The nodes that have figures, most bytes first; *ret is freed by the caller. */
must_check struct error *chain_tree_leaves(const struct chain_tree *tree, uint32_t **ret,
					   size_t *ret_count);

/*
 * The type that a frame names, as "items. ([]main.Item)" does; the whole name where there is none,
 * as in "main.run.(temporary)".
 */
ProtobufCBinaryData frame_type(ProtobufCBinaryData frame);

/*
 * Marks the nodes of chains that lead through a name, from where it stands on: a frame that is
 * called so or has that type, whatever stars and brackets stand before it; where there is none,
 * frames that hold the name. *ret has node_count marks and is freed by the caller.
 */
must_check struct error *chain_tree_through(const struct chain_tree *tree, ProtobufCBinaryData name,
					    uint8_t **ret);

/* Whether a node has figures. */
static inline bool chain_node_counts(const struct chain_node *node)
{
	return node->objects || node->bytes;
}

#endif
