/*
 * A tree of frames with what lies at each: chains of references put together. Its nodes may be very
 * many until the small ones are folded into one called "other" at what leads to them.
 */
#ifndef AGENT_REPORT_FRAME_TREE_H
#define AGENT_REPORT_FRAME_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/error.h"

enum { FRAME_TREE_TOP = UINT32_MAX, FRAME_TREE_NO_LABELS = UINT32_MAX };

struct frame_tree_frame {
	const char *name; /* borrowed */
	const char *file; /* or NULL */
	uint32_t line;
};

struct frame_tree_sizes {
	uint64_t objects, bytes, used_bytes;
};

struct frame_tree_node {
	uint32_t parent; /* or FRAME_TREE_TOP; less than its own number */
	uint32_t frame;
	uint32_t depth;    /* of roots 1 */
	uint32_t labels;   /* of roots: a number of the caller's, or FRAME_TREE_NO_LABELS */
	uint64_t expected; /* bytes at it and below, as far as they were announced */
	struct frame_tree_sizes own;
};

/* All zero is an empty tree. */
struct frame_tree {
	struct frame_tree_frame *frames;
	uint32_t frame_count, frame_capacity;
	uint32_t *frame_buckets;
	uint32_t frame_bucket_count;
	struct frame_tree_node *nodes;
	uint32_t node_count, node_capacity;
	uint32_t *node_buckets;
	uint32_t node_bucket_count;
};

void frame_tree_fini(struct frame_tree *tree);

/* A frame's number. Frames are alike by name; file and line are the first one's. */
must_check struct error *frame_tree_frame(struct frame_tree *tree,
					  const struct frame_tree_frame *frame, uint32_t *ret);

/* The child of a node, or a root, with a frame. */
must_check struct error *frame_tree_child(struct frame_tree *tree, uint32_t parent, uint32_t frame,
					  uint32_t labels, uint32_t *ret);

/*
 * Folds nodes until what is left are max_samples places at most where something lies, each of
 * min_bytes or more but for those called "other". Nodes are numbered anew: parents before children,
 * each one's children by size, then by name.
 */
must_check struct error *frame_tree_fold(struct frame_tree *tree, uint32_t max_samples,
					 uint64_t min_bytes);

#endif
