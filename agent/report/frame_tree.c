/*
 * What a node has at and below it is never less than what its children have, so that folding all
 * nodes below one size folds whole subtrees. The size is the least that leaves few enough.
 *
 * Roots that are folded are still told apart by their labels, unless there are more of these than
 * places are wanted.
 */
#include "agent/report/frame_tree.h"

#include <stdlib.h>
#include <string.h>

enum { BUCKETS_MIN = 1024 };

void frame_tree_fini(struct frame_tree *tree)
{
	free(tree->frames);
	free(tree->frame_buckets);
	free(tree->nodes);
	free(tree->node_buckets);
	*tree = (struct frame_tree){ 0 };
}

/* Room for one more of count items. */
static struct error *make_room(void *items_of, size_t item_size, uint32_t count, uint32_t *capacity)
{
	uint32_t more = *capacity ? *capacity * 2 : 256;
	void **items = items_of, *grown;

	if (count < *capacity)
		return NULL;
	grown = realloc(*items, more * item_size);
	if (!grown)
		return &error_nomem;
	*items = grown;
	*capacity = more;
	return NULL;
}

/* ---- frames ---- */

static uint64_t hash_name(const char *name)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
	return h ^ h >> 31;
}

static uint32_t *find_frame(const struct frame_tree *tree, const char *name)
{
	uint32_t mask = tree->frame_bucket_count - 1, i = (uint32_t)hash_name(name) & mask;

	while (tree->frame_buckets[i] &&
	       strcmp(tree->frames[tree->frame_buckets[i] - 1].name, name) != 0)
		i = (i + 1) & mask;
	return &tree->frame_buckets[i];
}

static struct error *grow_frames(struct frame_tree *tree)
{
	uint32_t count = tree->frame_bucket_count ? tree->frame_bucket_count * 2 : BUCKETS_MIN;
	uint32_t *buckets = calloc(count, sizeof(*buckets));

	if (!buckets)
		return &error_nomem;
	free(tree->frame_buckets);
	tree->frame_buckets = buckets;
	tree->frame_bucket_count = count;
	for (uint32_t i = 0; i < tree->frame_count; i++)
		*find_frame(tree, tree->frames[i].name) = i + 1;
	return NULL;
}

struct error *frame_tree_frame(struct frame_tree *tree, const struct frame_tree_frame *frame,
			       uint32_t *ret)
{
	uint32_t *bucket;
	struct error *err = NULL;

	if (tree->frame_count >= tree->frame_bucket_count / 2)
		err = grow_frames(tree);
	if (!err)
		err = make_room(&tree->frames, sizeof(*tree->frames), tree->frame_count,
				&tree->frame_capacity);
	if (err)
		return err;
	bucket = find_frame(tree, frame->name);
	if (!*bucket) {
		tree->frames[tree->frame_count++] = *frame;
		*bucket = tree->frame_count;
	}
	*ret = *bucket - 1;
	return NULL;
}

/* ---- nodes ---- */

static uint32_t *find_node(const struct frame_tree *tree, uint32_t parent, uint32_t frame,
			   uint32_t labels)
{
	uint64_t h = ((uint64_t)parent << 32 | frame) * UINT64_C(0x9e3779b97f4a7c15) + labels;
	uint32_t mask = tree->node_bucket_count - 1, i = (uint32_t)(h >> 29) & mask;

	for (; tree->node_buckets[i]; i = (i + 1) & mask) {
		const struct frame_tree_node *node = &tree->nodes[tree->node_buckets[i] - 1];

		if (node->parent == parent && node->frame == frame && node->labels == labels)
			break;
	}
	return &tree->node_buckets[i];
}

static struct error *grow_nodes(struct frame_tree *tree)
{
	uint32_t count = tree->node_bucket_count ? tree->node_bucket_count * 2 : BUCKETS_MIN;
	uint32_t *buckets = calloc(count, sizeof(*buckets));

	if (!buckets)
		return &error_nomem;
	free(tree->node_buckets);
	tree->node_buckets = buckets;
	tree->node_bucket_count = count;
	for (uint32_t i = 0; i < tree->node_count; i++) {
		const struct frame_tree_node *node = &tree->nodes[i];

		*find_node(tree, node->parent, node->frame, node->labels) = i + 1;
	}
	return NULL;
}

struct error *frame_tree_child(struct frame_tree *tree, uint32_t parent, uint32_t frame,
			       uint32_t labels, uint32_t *ret)
{
	uint32_t *bucket;
	struct error *err = NULL;

	if (tree->node_count >= tree->node_bucket_count / 2)
		err = grow_nodes(tree);
	if (!err)
		err = make_room(&tree->nodes, sizeof(*tree->nodes), tree->node_count,
				&tree->node_capacity);
	if (err)
		return err;
	bucket = find_node(tree, parent, frame, labels);
	if (!*bucket) {
		tree->nodes[tree->node_count++] = (struct frame_tree_node){
			.parent = parent,
			.frame = frame,
			.labels = labels,
			.depth = parent == FRAME_TREE_TOP ? 1 : tree->nodes[parent].depth + 1,
		};
		*bucket = tree->node_count;
	}
	*ret = *bucket - 1;
	return NULL;
}

/* ---- folding ---- */

/* Roots with the same labels: from which size on one of them at least is folded. */
struct top {
	uint64_t least; /* bytes of the smallest that has any */
	uint32_t labels;
};

struct folding {
	struct frame_tree *tree;
	uint64_t *below;  /* by node: bytes at it and below */
	uint64_t *sizes;  /* the same, and of nodes alone, in order */
	bool *has_others; /* by node: something is folded there */
	struct top *tops;
	uint32_t top_count;
	bool keeps_labels;
};

static void sum_up(struct folding *f)
{
	const struct frame_tree *tree = f->tree;

	for (uint32_t i = 0; i < tree->node_count; i++)
		f->below[i] = tree->nodes[i].own.bytes;
	for (uint32_t i = tree->node_count; i-- > 0;)
		if (tree->nodes[i].parent != FRAME_TREE_TOP)
			f->below[tree->nodes[i].parent] += f->below[i];
}

/* The labels of a root for what is folded of it. */
static uint32_t folded_labels(const struct folding *f, const struct frame_tree_node *root)
{
	return f->keeps_labels ? root->labels : (uint32_t)FRAME_TREE_NO_LABELS;
}

static int by_labels(const void *left, const void *right)
{
	const struct top *a = left, *b = right;

	if (a->labels != b->labels)
		return a->labels < b->labels ? -1 : 1;
	return a->least < b->least ? -1 : a->least > b->least;
}

static void find_tops(struct folding *f)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < f->tree->node_count; i++) {
		const struct frame_tree_node *node = &f->tree->nodes[i];

		if (node->parent == FRAME_TREE_TOP && f->below[i])
			f->tops[count++] = (struct top){ f->below[i], folded_labels(f, node) };
	}
	qsort(f->tops, count, sizeof(*f->tops), by_labels);
	f->top_count = 0;
	for (uint32_t i = 0; i < count; i++)
		if (!f->top_count || f->tops[f->top_count - 1].labels != f->tops[i].labels)
			f->tops[f->top_count++] = f->tops[i];
}

/* How many places something lies at if what is smaller than size is folded. */
static uint32_t count_samples(struct folding *f, uint64_t size)
{
	const struct frame_tree *tree = f->tree;
	uint32_t samples = 0;

	memset(f->has_others, 0, tree->node_count * sizeof(*f->has_others));
	for (uint32_t i = 0; i < tree->node_count; i++) {
		const struct frame_tree_node *node = &tree->nodes[i];

		if (f->below[i] < size) {
			if (f->below[i] && node->parent != FRAME_TREE_TOP)
				f->has_others[node->parent] = true;
		} else if (node->own.bytes >= size) {
			samples++;
		} else if (node->own.bytes) {
			f->has_others[i] = true;
		}
	}
	for (uint32_t i = 0; i < tree->node_count; i++)
		samples += f->has_others[i] && f->below[i] >= size;
	for (uint32_t i = 0; i < f->top_count; i++)
		samples += f->tops[i].least < size;
	return samples;
}

static int by_value(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

/* Only these make a difference, each with one more than itself. */
static void sort_sizes(struct folding *f)
{
	uint32_t count = f->tree->node_count;

	memcpy(f->sizes, f->below, count * sizeof(*f->sizes));
	for (uint32_t i = 0; i < count; i++)
		f->sizes[count + i] = f->tree->nodes[i].own.bytes;
	qsort(f->sizes, count * (size_t)2, sizeof(*f->sizes), by_value);
}

/* The least size to fold below. */
static uint64_t find_size(struct folding *f, uint32_t max_samples, uint64_t min_bytes)
{
	uint64_t count = f->tree->node_count * UINT64_C(2), low = 0, high = count;

	if (!min_bytes)
		min_bytes = 1;
	f->keeps_labels = true;
	find_tops(f);
	if (f->top_count > max_samples) {
		f->keeps_labels = false;
		find_tops(f);
	}
	if (!count || count_samples(f, min_bytes) <= max_samples)
		return min_bytes;
	sort_sizes(f);
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (f->sizes[middle] >= min_bytes &&
		    count_samples(f, f->sizes[middle] + 1) <= max_samples)
			high = middle;
		else
			low = middle + 1;
	}
	return low < count ? f->sizes[low] + 1 : UINT64_MAX;
}

static void add_sizes(struct frame_tree_sizes *to, const struct frame_tree_sizes *from)
{
	to->objects += from->objects;
	to->bytes += from->bytes;
	to->used_bytes += from->used_bytes;
}

/* Of the new tree: what is folded at a node of it, or at the top. */
static struct error *add_other(struct frame_tree *into, uint32_t parent, uint32_t labels,
			       const struct frame_tree_sizes *sizes)
{
	static const struct frame_tree_frame other = { .name = "other" };
	uint32_t frame, node;
	struct error *err = frame_tree_frame(into, &other, &frame);

	if (!err)
		err = frame_tree_child(into, parent, frame,
				       parent == FRAME_TREE_TOP ? labels : FRAME_TREE_NO_LABELS,
				       &node);
	if (!err)
		add_sizes(&into->nodes[node].own, sizes);
	return err;
}

static struct error *copy_node(const struct frame_tree *from, const struct frame_tree_node *node,
			       uint32_t parent, struct frame_tree *into, uint32_t *ret)
{
	uint32_t frame;
	struct error *err = frame_tree_frame(into, &from->frames[node->frame], &frame);

	return err ? err : frame_tree_child(into, parent, frame, node->labels, ret);
}

/* By old node. */
struct folded {
	uint32_t place;  /* the new node, or that of what it was folded at */
	uint32_t labels; /* of its root */
};

static struct error *fold_node(const struct folding *f, uint32_t i, uint64_t size,
			       struct frame_tree *into, struct folded *nodes)
{
	const struct frame_tree_node *node = &f->tree->nodes[i];
	bool is_root = node->parent == FRAME_TREE_TOP;
	uint32_t parent = is_root ? node->parent : nodes[node->parent].place;
	struct error *err;

	nodes[i].labels = is_root ? folded_labels(f, node) : nodes[node->parent].labels;
	if (f->below[i] < size) {
		nodes[i].place = parent;
		return node->own.objects ? add_other(into, parent, nodes[i].labels, &node->own)
					 : NULL;
	}
	err = copy_node(f->tree, node, parent, into, &nodes[i].place);
	if (err || !node->own.objects)
		return err;
	if (node->own.bytes < size)
		return add_other(into, nodes[i].place, FRAME_TREE_NO_LABELS, &node->own);
	add_sizes(&into->nodes[nodes[i].place].own, &node->own);
	return NULL;
}

static struct error *fold(const struct folding *f, uint64_t size, struct frame_tree *into)
{
	struct folded *nodes scoped(freep) =
	    malloc((f->tree->node_count + (size_t)1) * sizeof(*nodes));
	struct error *err = nodes ? NULL : &error_nomem;

	for (uint32_t i = 0; i < f->tree->node_count && !err; i++)
		err = fold_node(f, i, size, into, nodes);
	return err;
}

/* ---- order ---- */

/* What decides where a node comes, for a comparison that has no argument of its own. */
struct ordered {
	uint32_t node, depth;
	uint32_t parent_rank; /* of its parent, within its depth */
	uint64_t below;
	const char *name;
	uint32_t labels;
};

static int by_order(const void *left, const void *right)
{
	const struct ordered *a = left, *b = right;
	int names;

	if (a->parent_rank != b->parent_rank)
		return a->parent_rank < b->parent_rank ? -1 : 1;
	if (a->below != b->below)
		return a->below > b->below ? -1 : 1;
	names = strcmp(a->name, b->name);
	if (names)
		return names;
	return a->labels < b->labels ? -1 : a->labels > b->labels;
}

static int by_depth(const void *left, const void *right)
{
	const struct ordered *a = left, *b = right;

	if (a->depth != b->depth)
		return a->depth < b->depth ? -1 : 1;
	return a->node < b->node ? -1 : a->node > b->node;
}

static void describe(const struct folding *f, struct ordered *order)
{
	const struct frame_tree *tree = f->tree;

	for (uint32_t i = 0; i < tree->node_count; i++)
		order[i] = (struct ordered){ .node = i,
					     .depth = tree->nodes[i].depth,
					     .below = f->below[i],
					     .name = tree->frames[tree->nodes[i].frame].name,
					     .labels = tree->nodes[i].labels };
	qsort(order, tree->node_count, sizeof(*order), by_depth);
}

/* Depth by depth, so that the ranks of parents are known. */
static struct error *sort_nodes(const struct folding *f, struct ordered *order, uint32_t *ranks,
				struct frame_tree *into)
{
	const struct frame_tree *tree = f->tree;
	struct error *err = NULL;
	uint32_t end;

	for (uint32_t i = 0; i < tree->node_count && !err; i = end) {
		for (end = i; end < tree->node_count && order[end].depth == order[i].depth; end++) {
			uint32_t parent = tree->nodes[order[end].node].parent;

			order[end].parent_rank = parent == FRAME_TREE_TOP ? 0 : ranks[parent];
		}
		qsort(&order[i], end - i, sizeof(*order), by_order);
		for (uint32_t k = i; k < end && !err; k++) {
			const struct frame_tree_node *node = &tree->nodes[order[k].node];
			uint32_t parent =
			    node->parent == FRAME_TREE_TOP ? node->parent : ranks[node->parent];

			err = copy_node(tree, node, parent, into, &ranks[order[k].node]);
			if (!err)
				into->nodes[ranks[order[k].node]].own = node->own;
		}
	}
	return err;
}

static struct error *folding_init(struct folding *f, struct frame_tree *tree)
{
	size_t count = tree->node_count + (size_t)1;

	f->tree = tree;
	f->below = malloc(count * sizeof(*f->below));
	f->sizes = malloc(count * 2 * sizeof(*f->sizes));
	f->has_others = malloc(count * sizeof(*f->has_others));
	f->tops = malloc(count * sizeof(*f->tops));
	if (!f->below || !f->sizes || !f->has_others || !f->tops)
		return &error_nomem;
	sum_up(f);
	return NULL;
}

static void folding_fini(struct folding *f)
{
	free(f->below);
	free(f->sizes);
	free(f->has_others);
	free(f->tops);
}

static struct error *sort_tree(struct frame_tree *tree, struct frame_tree *into)
{
	size_t count = tree->node_count + (size_t)1;
	struct ordered *order scoped(freep) = malloc(count * sizeof(*order));
	uint32_t *ranks scoped(freep) = malloc(count * sizeof(*ranks));
	struct folding f = { 0 };
	struct error *err = order && ranks ? folding_init(&f, tree) : &error_nomem;

	if (!err) {
		describe(&f, order);
		err = sort_nodes(&f, order, ranks, into);
	}
	folding_fini(&f);
	return err;
}

struct error *frame_tree_fold(struct frame_tree *tree, uint32_t max_samples, uint64_t min_bytes)
{
	struct frame_tree folded scoped(frame_tree_fini) = { 0 };
	struct frame_tree sorted = { 0 };
	struct folding f = { 0 };
	struct error *err = folding_init(&f, tree);

	if (!err)
		err = fold(&f, find_size(&f, max_samples, min_bytes), &folded);
	folding_fini(&f);
	if (!err)
		err = sort_tree(&folded, &sorted);
	if (err) {
		frame_tree_fini(&sorted);
		return err;
	}
	frame_tree_fini(tree);
	*tree = sorted;
	return NULL;
}
