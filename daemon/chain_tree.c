#include "daemon/chain_tree.h"

#include <string.h>

void chain_tree_init(struct chain_tree *tree)
{
	*tree = (struct chain_tree){ 0 };
	id_index_init(&tree->frame_index);
	id_index_init(&tree->node_index);
	id_index_init(&tree->label_index);
}

void chain_tree_fini(struct chain_tree *tree)
{
	free(tree->frames);
	free(tree->nodes);
	free(tree->labels);
	id_index_fini(&tree->frame_index);
	id_index_fini(&tree->node_index);
	id_index_fini(&tree->label_index);
	*tree = (struct chain_tree){ 0 };
}

/* Room for one more in a list of items of a size. */
static struct error *reserve(void **items, size_t item_size, size_t count, size_t *capacity)
{
	size_t wanted = *capacity ? *capacity * 2 : 64;
	void *larger;

	if (count < *capacity)
		return NULL;
	if (count >= ID_NONE || wanted > SIZE_MAX / item_size)
		return error_new(ERROR_LIMIT, "too many reference chains");
	larger = realloc(*items, wanted * item_size);
	if (!larger)
		return &error_nomem;
	*items = larger;
	*capacity = wanted;
	return NULL;
}

static bool same_bytes(ProtobufCBinaryData a, ProtobufCBinaryData b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

/* ---- frames ---- */

struct wanted_frame {
	const struct chain_tree *tree;
	ProtobufCBinaryData name;
};

static bool is_same_frame(const void *wanted, uint32_t id)
{
	const struct wanted_frame *frame = wanted;

	return same_bytes(frame->tree->frames[id].name, frame->name);
}

static struct error *frame_id(struct chain_tree *tree, const struct chain_frame *frame,
			      uint32_t *ret)
{
	const struct wanted_frame wanted = { tree, frame->name };
	uint64_t hash = id_hash_bytes(tree->frame_index.seed, frame->name.data, frame->name.len);
	struct error *err;

	*ret = id_index_find(&tree->frame_index, hash, is_same_frame, &wanted);
	if (*ret != ID_NONE)
		return NULL;
	err = reserve((void **)&tree->frames, sizeof(*tree->frames), tree->frame_count,
		      &tree->frame_capacity);
	if (!err)
		err = id_index_add(&tree->frame_index, hash, (uint32_t)tree->frame_count);
	if (err)
		return err;
	*ret = (uint32_t)tree->frame_count;
	tree->frames[tree->frame_count++] = *frame;
	return NULL;
}

/* ---- labels ---- */

struct wanted_labels {
	const struct chain_tree *tree;
	const struct chain_labels *labels;
};

static bool is_same_labels(const void *wanted, uint32_t id)
{
	const struct wanted_labels *w = wanted;
	const struct chain_labels *a = w->labels, *b = &w->tree->labels[id];

	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++) {
		if (!same_bytes(a->pairs[i]->key, b->pairs[i]->key) ||
		    !same_bytes(a->pairs[i]->value, b->pairs[i]->value))
			return false;
	}
	return true;
}

struct error *chain_tree_labels(struct chain_tree *tree, const struct chain_labels *labels,
				uint32_t *ret)
{
	const struct wanted_labels wanted = { tree, labels };
	uint64_t hash = tree->label_index.seed;
	struct error *err;

	for (size_t i = 0; i < labels->count; i++) {
		const Goheapd__LabelPair *pair = labels->pairs[i];

		hash = id_hash_bytes(hash, pair->key.data, pair->key.len);
		hash = id_hash_bytes(hash, pair->value.data, pair->value.len);
	}
	*ret = id_index_find(&tree->label_index, hash, is_same_labels, &wanted);
	if (*ret != ID_NONE)
		return NULL;
	err = reserve((void **)&tree->labels, sizeof(*tree->labels), tree->label_count,
		      &tree->label_capacity);
	if (!err)
		err = id_index_add(&tree->label_index, hash, (uint32_t)tree->label_count);
	if (err)
		return err;
	*ret = (uint32_t)tree->label_count;
	tree->labels[tree->label_count++] = *labels;
	return NULL;
}

/* ---- nodes ---- */

struct wanted_node {
	const struct chain_tree *tree;
	uint32_t parent, frame, labels;
};

static bool is_same_node(const void *wanted, uint32_t id)
{
	const struct wanted_node *w = wanted;
	const struct chain_node *node = &w->tree->nodes[id];

	return node->parent == w->parent && node->frame == w->frame && node->labels == w->labels;
}

static struct error *node_of_frame(struct chain_tree *tree, uint32_t parent, uint32_t frame,
				   uint32_t labels, uint32_t *ret)
{
	const struct wanted_node wanted = { tree, parent, frame, labels };
	uint64_t hash = id_hash_number(
	    id_hash_number(id_hash_number(tree->node_index.seed, parent), frame), labels);
	struct error *err;

	*ret = id_index_find(&tree->node_index, hash, is_same_node, &wanted);
	if (*ret != ID_NONE)
		return NULL;
	err = reserve((void **)&tree->nodes, sizeof(*tree->nodes), tree->node_count,
		      &tree->node_capacity);
	if (!err)
		err = id_index_add(&tree->node_index, hash, (uint32_t)tree->node_count);
	if (err)
		return err;
	*ret = (uint32_t)tree->node_count;
	tree->nodes[tree->node_count++] =
	    (struct chain_node){ .parent = parent, .frame = frame, .labels = labels };
	return NULL;
}

struct error *chain_tree_node(struct chain_tree *tree, uint32_t parent,
			      const struct chain_frame *frame, uint32_t labels, uint32_t *ret)
{
	uint32_t id;
	struct error *err = frame_id(tree, frame, &id);

	return err ? err : node_of_frame(tree, parent, id, labels, ret);
}

/* ---- profiles ---- */

/* The numbers that a message's own have in the tree. */
struct translation {
	uint32_t *frames, *labels, *nodes, *depths;
};

static void translation_fini(struct translation *t)
{
	free(t->frames);
	free(t->labels);
	free(t->nodes);
	free(t->depths);
}

static struct error *translation_init(struct translation *t,
				      const Goheapd__ReferenceProfile *profile)
{
	*t = (struct translation){
		.frames = calloc(profile->n_frames + 1, sizeof(*t->frames)),
		.labels = calloc(profile->n_label_sets + 1, sizeof(*t->labels)),
		.nodes = calloc(profile->n_nodes + 1, sizeof(*t->nodes)),
		.depths = calloc(profile->n_nodes + 1, sizeof(*t->depths)),
	};
	return t->frames && t->labels && t->nodes && t->depths ? NULL : &error_nomem;
}

static struct error *translate_frames(struct chain_tree *tree,
				      const Goheapd__ReferenceProfile *profile,
				      struct translation *t)
{
	struct error *err = NULL;

	for (size_t i = 0; !err && i < profile->n_frames; i++) {
		const Goheapd__ReferenceFrame *from = profile->frames[i];
		const struct chain_frame frame = {
			.name = from->name,
			.file = from->has_file ? from->file : (ProtobufCBinaryData){ 0 },
			.line = from->has_line ? from->line : 0,
		};

		err = frame_id(tree, &frame, &t->frames[i]);
	}
	for (size_t i = 0; !err && i < profile->n_label_sets; i++) {
		const struct chain_labels labels = { profile->label_sets[i]->labels,
						     profile->label_sets[i]->n_labels };

		err = chain_tree_labels(tree, &labels, &t->labels[i]);
	}
	return err;
}

static void add_figures(struct chain_node *node, const Goheapd__ReferenceNode *from,
			enum chain_sign sign)
{
	node->objects += sign * (int64_t)from->objects;
	node->bytes += sign * (int64_t)from->bytes;
	if (from->has_used_bytes)
		node->unused_bytes += sign * (int64_t)(from->bytes - from->used_bytes);
}

/* One node of the message, whose parent has been translated. */
static struct error *translate_node(struct chain_tree *tree, const Goheapd__ReferenceNode *from,
				    struct translation *t, size_t place, uint32_t max_depth)
{
	uint32_t parent = from->has_parent ? t->nodes[from->parent] : ID_NONE, labels = ID_NONE;

	t->depths[place] = from->has_parent ? t->depths[from->parent] + 1 : 1;
	if (t->depths[place] > max_depth) {
		t->depths[place] = max_depth;
		t->nodes[place] = parent;
		return NULL;
	}
	if (parent != ID_NONE)
		labels = tree->nodes[parent].labels;
	else if (from->has_label_set)
		labels = t->labels[from->label_set];
	return node_of_frame(tree, parent, t->frames[from->frame], labels, &t->nodes[place]);
}

struct error *chain_tree_add(struct chain_tree *tree, const Goheapd__ReferenceProfile *profile,
			     enum chain_sign sign, uint32_t max_depth)
{
	struct translation t scoped(translation_fini);
	struct error *err = translation_init(&t, profile);

	if (!err)
		err = translate_frames(tree, profile, &t);
	for (size_t i = 0; !err && i < profile->n_nodes; i++) {
		err = translate_node(tree, profile->nodes[i], &t, i, max_depth);
		if (!err)
			add_figures(&tree->nodes[t.nodes[i]], profile->nodes[i], sign);
	}
	return err;
}

/* ---- folding ---- */

static uint64_t magnitude(int64_t value)
{
	return value < 0 ? -(uint64_t)value : (uint64_t)value;
}

/* Never more than all there could be: what does not fit weighs that much. */
static uint64_t add_weight(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

struct error *chain_tree_weights(const struct chain_tree *tree, uint64_t **ret)
{
	uint64_t *weights = calloc(tree->node_count + 1, sizeof(*weights));

	if (!weights)
		return &error_nomem;
	for (size_t i = tree->node_count; i-- > 0;) {
		const struct chain_node *node = &tree->nodes[i];

		weights[i] = add_weight(
		    weights[i], add_weight(magnitude(node->bytes), magnitude(node->objects)));
		if (node->parent != ID_NONE)
			weights[node->parent] = add_weight(weights[node->parent], weights[i]);
	}
	*ret = weights;
	return NULL;
}

/* The node that a light one counts for: "other" beneath the last heavy one. */
static struct error *other_of(struct chain_tree *tree, uint32_t parent, uint32_t *ret)
{
	static const char name[] = "other";
	const struct chain_frame frame = { .name = { .len = sizeof(name) - 1,
						     .data = (uint8_t *)(uintptr_t)name } };

	return chain_tree_node(tree, parent, &frame,
			       parent == ID_NONE ? ID_NONE : tree->nodes[parent].labels, ret);
}

static struct error *fold_nodes(const struct chain_tree *tree, const uint64_t *weights,
				uint64_t min_weight, uint32_t *places, struct chain_tree *ret)
{
	struct error *err = NULL;

	for (size_t i = 0; !err && i < tree->node_count; i++) {
		const struct chain_node *node = &tree->nodes[i];
		uint32_t parent = node->parent == ID_NONE ? ID_NONE : places[node->parent];
		uint32_t labels = node->labels == ID_NONE ? ID_NONE : node->labels;

		if (node->parent != ID_NONE && weights[node->parent] < min_weight)
			places[i] = parent; /* which is an "other" already */
		else if (weights[i] < min_weight)
			err = other_of(ret, parent, &places[i]);
		else
			err = node_of_frame(ret, parent, node->frame, labels, &places[i]);
		if (err)
			break;
		ret->nodes[places[i]].objects += node->objects;
		ret->nodes[places[i]].bytes += node->bytes;
		ret->nodes[places[i]].unused_bytes += node->unused_bytes;
	}
	return err;
}

/* Frames and labels keep their numbers. */
static struct error *copy_names(const struct chain_tree *tree, struct chain_tree *ret)
{
	struct error *err = NULL;

	for (size_t i = 0; !err && i < tree->frame_count; i++) {
		uint32_t id;

		err = frame_id(ret, &tree->frames[i], &id);
	}
	for (size_t i = 0; !err && i < tree->label_count; i++) {
		uint32_t id;

		err = chain_tree_labels(ret, &tree->labels[i], &id);
	}
	return err;
}

struct error *chain_tree_fold(const struct chain_tree *tree, const uint64_t *weights,
			      uint64_t min_weight, struct chain_tree *ret)
{
	uint32_t *places scoped(freep) = calloc(tree->node_count + 1, sizeof(*places));
	struct chain_tree folded;
	struct error *err = places ? NULL : &error_nomem;

	chain_tree_init(&folded);
	if (!err)
		err = copy_names(tree, &folded);
	if (!err)
		err = fold_nodes(tree, weights, min_weight, places, &folded);
	if (err)
		chain_tree_fini(&folded);
	else
		*ret = folded;
	return err;
}

/* ---- the largest ---- */

struct leaf {
	int64_t bytes, objects;
	uint32_t node;
};

static int compare_leaves(const void *a, const void *b)
{
	const struct leaf *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	if (x->objects != y->objects)
		return x->objects > y->objects ? -1 : 1;
	return (x->node > y->node) - (x->node < y->node);
}

struct error *chain_tree_leaves(const struct chain_tree *tree, uint32_t **ret, size_t *ret_count)
{
	struct leaf *leaves scoped(freep) = calloc(tree->node_count + 1, sizeof(*leaves));
	uint32_t *nodes = calloc(tree->node_count + 1, sizeof(*nodes));
	size_t count = 0;

	if (!leaves || !nodes) {
		free(nodes);
		return &error_nomem;
	}
	for (uint32_t i = 0; i < tree->node_count; i++) {
		const struct chain_node *node = &tree->nodes[i];

		if (chain_node_counts(node))
			leaves[count++] = (struct leaf){ node->bytes, node->objects, i };
	}
	qsort(leaves, count, sizeof(*leaves), compare_leaves);
	for (size_t i = 0; i < count; i++)
		nodes[i] = leaves[i].node;
	*ret = nodes;
	*ret_count = count;
	return NULL;
}

/* ---- through a name ---- */

ProtobufCBinaryData frame_type(ProtobufCBinaryData frame)
{
	size_t depth = 0;

	for (size_t i = frame.len; i-- > 0;) {
		depth += frame.data[i] == ')';
		if (depth == 0)
			break; /* it does not end in a type */
		if (frame.data[i] == '(' && --depth == 0 && (i == 0 || frame.data[i - 1] == ' '))
			return (ProtobufCBinaryData){ .data = frame.data + i + 1,
						      .len = frame.len - i - 2 };
	}
	return frame;
}

static bool is_exactly(ProtobufCBinaryData frame, ProtobufCBinaryData name)
{
	ProtobufCBinaryData type = frame_type(frame);

	if (same_bytes(frame, name) || same_bytes(type, name))
		return true;
	while (type.len && memchr("*[]0123456789", type.data[0], 13)) {
		type.data++;
		type.len--;
	}
	return same_bytes(type, name);
}

static bool holds(ProtobufCBinaryData frame, ProtobufCBinaryData name)
{
	return name.len && frame.len && memmem(frame.data, frame.len, name.data, name.len);
}

typedef bool frame_match(ProtobufCBinaryData frame, ProtobufCBinaryData name);

/* Whether any node is marked. */
static bool mark_through(const struct chain_tree *tree, ProtobufCBinaryData name,
			 frame_match *matches, uint8_t *marks)
{
	bool any = false;

	for (size_t i = 0; i < tree->node_count; i++) {
		const struct chain_node *node = &tree->nodes[i];

		marks[i] = (node->parent != ID_NONE && marks[node->parent]) ||
			   matches(tree->frames[node->frame].name, name);
		any |= marks[i];
	}
	return any;
}

struct error *chain_tree_through(const struct chain_tree *tree, ProtobufCBinaryData name,
				 uint8_t **ret)
{
	uint8_t *marks = calloc(tree->node_count + 1, 1);

	if (!marks)
		return &error_nomem;
	if (!mark_through(tree, name, is_exactly, marks))
		mark_through(tree, name, holds, marks);
	*ret = marks;
	return NULL;
}
