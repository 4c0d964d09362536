/*
 * Chains become a tree of frames in two passes over the places of the walk, which come after what
 * they were met from: backwards, for what each keeps alive; forwards, putting each into the node of
 * its chain. A heap can have as many chains as objects (a tree of left and right), so a node is
 * gone on from only once it holds enough; what is below one that does not is put into that. How
 * much is enough is found by trying: nothing first, then more each time there are too many nodes.
 *
 * Of retained sizes an object's chain leads through what dominates it alone, so that whatever is
 * below a frame would be freed with it. What dominates an object lies on every chain to it, also on
 * the one by which it was met; where that goes by several ways from there on, they are left out and
 * a frame says so:
 *
 *	main.cache   items. ([]main.Item)   $shared   (main.Key)
 */
#include "agent/report/reference_profile.h"

#include <stdlib.h>
#include <string.h>

#include "agent/analysis/dominators.h"
#include "agent/analysis/graph.h"
#include "agent/analysis/pages.h"
#include "agent/analysis/reference_walk.h"
#include "agent/goruntime/label.h"
#include "agent/goruntime/root.h"
#include "agent/goruntime/span.h"
#include "agent/report/analysed.h"
#include "agent/report/frame_tree.h"
#include "agent/report/goroutine_origin.h"
#include "agent/report/label_pairs.h"
#include "agent/report/message.h"
#include "agent/report/retained.h"

enum {
	NODES_PER_SAMPLE = 4,
	NODES_MIN = 64 << 10,
	ENOUGH_FACTOR = 4,
	MEMO_SIZE = 32 << 10, /* a power of two */
	BATCH_PLACES = 256,
	SAVED_PLACES = 1 << 20,
	NODES_AHEAD = 8, /* places whose parents' nodes are looked at soon */
};

/* What lies below a place is told in words up to here, which is enough for any node. */
#define BELOW_MAX  UINT32_MAX
#define WORD_BYTES UINT64_C(8)

/* The node that a step from another one led to, the last time. */
struct memo {
	uint32_t node, step, result; /* result + 1; 0: free */
};

struct profiling {
	const struct analysed *analysed;
	const Goheapd__ProfileQuery *query;
	const struct reference_walk *walk;
	const struct span_table *spans;
	const struct dominators *tree_of; /* of retained sizes; NULL: these are not asked for */
	uint32_t count;                   /* places */
	struct budget budget;
	struct pages node_pages, root_pages;
	/*
	 * By place: words of the object and of all that was met from it, at most BELOW_MAX; then,
	 * once it has been entered, its node. Of retained sizes nodes, by object.
	 */
	uint32_t *nodes;
	uint32_t *roots; /* of retained sizes: by place, the number of its chain's root */
	uint32_t *saved; /* the first SAVED_PLACES of nodes as they were before they were entered */
	uint32_t entered;
	uint64_t total;
	uint32_t max_nodes;
	uint64_t enough; /* bytes of a node that is gone on from */
	struct frame_tree tree;
	struct memo memos[MEMO_SIZE];
	struct reference batch[BATCH_PLACES];
};

static void profiling_free(struct profiling *p)
{
	if (!p)
		return;
	frame_tree_fini(&p->tree);
	free(p->saved);
	pages_fini(&p->node_pages);
	pages_fini(&p->root_pages);
	free(p);
}
DEFINE_FREEP(profiling, profiling_free)

static struct error *make_room(struct profiling *p)
{
	struct error *err = pages_init(&p->node_pages, &p->budget, p->count * sizeof(*p->nodes));

	p->nodes = p->node_pages.data;
	p->saved = malloc(SAVED_PLACES * sizeof(*p->saved));
	if (!err && !p->saved)
		err = &error_nomem;
	return err;
}

/* Up to BATCH_PLACES; what is known of their parents, anywhere before them, is looked at soon. */
static void read_places(struct profiling *p, uint32_t first, uint32_t count)
{
	reference_walk_read(p->walk, first, count, p->batch);
	for (uint32_t i = 0; i < count && !p->tree_of; i++)
		if (p->batch[i].parent < p->count)
			__builtin_prefetch(&p->nodes[p->batch[i].parent], 1);
}

static uint32_t batch_of(uint32_t places)
{
	return places < BATCH_PLACES ? places : BATCH_PLACES;
}

/* What an object dominates is known already. */
static struct error *sum_up_retained(struct profiling *p)
{
	uint32_t objects = span_table_object_end(p->spans);
	struct error *err = pages_init(&p->node_pages, &p->budget, objects * sizeof(*p->nodes));

	if (!err)
		err = pages_init(&p->root_pages, &p->budget, p->count * sizeof(*p->roots));
	if (err)
		return err;
	p->nodes = p->node_pages.data;
	p->roots = p->root_pages.data;
	for (uint32_t place = 0; place < p->count; place++) {
		struct reference reference = reference_walk_at(p->walk, place);

		p->roots[place] =
		    reference.parent < place ? p->roots[reference.parent] : reference.root;
	}
	p->total = dominators_retained(p->tree_of, DOMINATOR_TOP);
	return NULL;
}

/* Of a place that has not been entered. */
static uint64_t below(const struct profiling *p, uint32_t place)
{
	if (p->tree_of)
		return dominators_retained(p->tree_of, reference_walk_object(p->walk, place));
	return p->nodes[place] * WORD_BYTES;
}

/* ---- from places to nodes ---- */

static uint32_t labels_of(const struct profiling *p, uint32_t goroutine)
{
	const struct label_set *set;

	if (!p->query->labels || !p->analysed->labels || goroutine == ROOT_NO_GOROUTINE)
		return FRAME_TREE_NO_LABELS;
	set = label_table_of(p->analysed->labels, goroutine);
	return set->status == LABEL_DECODED ? set->set : FRAME_TREE_NO_LABELS;
}

static struct error *enter(struct profiling *p, const struct frame_tree_frame *frame,
			   uint32_t labels, uint64_t below, uint32_t *node)
{
	uint32_t number;
	struct error *err;

	if (*node != FRAME_TREE_TOP && p->tree.nodes[*node].depth >= p->query->max_depth)
		return NULL;
	err = frame_tree_frame(&p->tree, frame, &number);
	if (!err)
		err = frame_tree_child(&p->tree, *node, number, labels, node);
	if (!err)
		p->tree.nodes[*node].expected += below;
	return err;
}

/* What belongs to no module the runtime does, or nobody knows. */
static const char *module_of(const struct profiling *p, const struct reference_root *root)
{
	const char *module = NULL;

	if (!root->package || !root->package[0])
		return "(runtime)";
	if (p->analysed->build)
		module = origin_module_of(p->analysed->build, root->name);
	return module ? module : "(unknown)";
}

static struct error *enter_root(struct profiling *p, const struct reference_root *root,
				uint64_t below, uint32_t *ret_node)
{
	const struct frame_tree_frame module = { .name = module_of(p, root) };
	const struct frame_tree_frame frame = { root->name, root->file, root->line };
	uint32_t labels = labels_of(p, root->goroutine);
	struct error *err = NULL;

	*ret_node = FRAME_TREE_TOP;
	if (p->query->by_module) {
		err = enter(p, &module, labels, below, ret_node);
		labels = FRAME_TREE_NO_LABELS;
	}
	return err ? err : enter(p, &frame, labels, below, ret_node);
}

static struct error *enter_step(struct profiling *p, uint32_t step, uint64_t below, uint32_t *node)
{
	const char *const *frames;
	uint32_t count = reference_walk_step_frames(p->walk, step, &frames);
	struct error *err = NULL;

	for (uint32_t i = 0; i < count && !err; i++) {
		const struct frame_tree_frame frame = { .name = frames[i] };

		err = enter(p, &frame, FRAME_TREE_NO_LABELS, below, node);
	}
	return err;
}

/* Chains mostly go on as the one before did. */
static struct error *enter_child(struct profiling *p, uint32_t parent, uint32_t step,
				 uint64_t below, uint32_t *ret_node)
{
	uint64_t hash = ((uint64_t)parent << 32 | step) * UINT64_C(0x9e3779b97f4a7c15);
	struct memo *memo = &p->memos[(hash >> 40) % MEMO_SIZE];
	struct error *err;

	*ret_node = parent;
	if (p->tree.nodes[parent].expected < p->enough)
		return NULL;
	if (memo->result && memo->node == parent && memo->step == step) {
		*ret_node = memo->result - 1;
		/* Nodes in between hold no less than the last one, and that is all that counts. */
		if (*ret_node != parent)
			p->tree.nodes[*ret_node].expected += below;
		return NULL;
	}
	err = enter_step(p, step, below, ret_node);
	if (!err)
		*memo = (struct memo){ parent, step, *ret_node + 1 };
	return err;
}

/* The node of the chain that the object was met by. */
static struct error *enter_chain(struct profiling *p, uint32_t place,
				 const struct reference *reference, uint32_t *ret_node)
{
	struct reference_root root;
	uint32_t node;
	struct error *err = NULL;

	if (reference->parent < place) {
		node = p->nodes[reference->parent];
	} else {
		root = reference_walk_root(p->walk, reference->root);
		err = enter_root(p, &root, below(p, place), &node);
	}
	if (!err)
		err = enter_child(p, node, reference->step, below(p, place), &node);
	if (err)
		return err;
	*ret_node = p->nodes[place] = node;
	return NULL;
}

/* "(main.Key)" of "key. (main.Key)": what leads there is not one thing. */
static const char *type_part(const char *frame)
{
	const char *found = strstr(frame, ". (");

	return found ? found + 2 : frame;
}

static struct error *enter_shared(struct profiling *p, uint32_t place, uint32_t step,
				  uint32_t *node)
{
	const char *const *frames;
	uint32_t count = reference_walk_step_frames(p->walk, step, &frames);
	const struct frame_tree_frame shared = { .name = "$shared" };
	struct frame_tree_frame type;
	struct error *err;

	if (*node != FRAME_TREE_TOP && p->tree.nodes[*node].expected < p->enough)
		return NULL;
	err = enter(p, &shared, FRAME_TREE_NO_LABELS, below(p, place), node);
	if (err || !count)
		return err;
	type = (struct frame_tree_frame){ .name = type_part(frames[count - 1]) };
	return enter(p, &type, FRAME_TREE_NO_LABELS, below(p, place), node);
}

/*
 * A group of roots as a frame. Of a goroutine's the chain may say which variable it is, but not
 * where the goroutine holds something as its own that was met by another way.
 */
static struct reference_root root_of_group(const struct profiling *p, uint32_t place,
					   uint32_t number)
{
	struct reference_root root = reference_walk_root(p->walk, p->roots[place]);
	struct retained_group group = retained_group_at(p->analysed->retained, number);

	if (group.goroutine != ROOT_NO_GOROUTINE && group.goroutine == root.goroutine)
		return root;
	return (struct reference_root){
		.name = group.goroutine == ROOT_NO_GOROUTINE ? group.name : "(goroutine)",
		.package = group.package,
		.goroutine = group.goroutine,
		.variable_kind = group.kind,
	};
}

/* The node of what dominates it; *ret_direct: that leads to the object as it was met. */
static struct error *enter_dominator(struct profiling *p, uint32_t place,
				     const struct reference *reference, uint32_t *ret_node,
				     bool *ret_direct)
{
	uint32_t object = reference_walk_object(p->walk, place);
	uint32_t dominator = dominators_parent(p->tree_of, object), group;
	struct reference_root root;

	*ret_node = FRAME_TREE_TOP;
	*ret_direct = false;
	if (dominator == DOMINATOR_TOP)
		return NULL;
	group = dominators_node_group(p->tree_of, dominator);
	if (group == UINT32_MAX) {
		*ret_node = p->nodes[dominator];
		*ret_direct = reference->parent < place &&
			      reference_walk_object(p->walk, reference->parent) == dominator;
		return NULL;
	}
	*ret_direct = reference->parent >= place;
	root = root_of_group(p, place, group);
	return enter_root(p, &root, below(p, place), ret_node);
}

static struct error *enter_dominated(struct profiling *p, uint32_t place,
				     const struct reference *reference, uint32_t *ret_node)
{
	uint32_t node;
	bool direct;
	struct error *err = enter_dominator(p, place, reference, &node, &direct);

	if (err)
		return err;
	if (direct)
		err = enter_child(p, node, reference->step, below(p, place), &node);
	else
		err = enter_shared(p, place, reference->step, &node);
	if (err)
		return err;
	*ret_node = p->nodes[reference_walk_object(p->walk, place)] = node;
	return NULL;
}

static struct error *enter_place(struct profiling *p, uint32_t place,
				 const struct reference *reference)
{
	struct frame_tree_sizes *own;
	uint32_t node;
	struct error *err = p->tree_of ? enter_dominated(p, place, reference, &node)
				       : enter_chain(p, place, reference, &node);

	if (err)
		return err;
	own = &p->tree.nodes[node].own;
	own->objects++;
	own->bytes += reference->bytes;
	own->used_bytes += reference->used_bytes;
	return NULL;
}

static void prefetch_node(const struct profiling *p, uint32_t parent)
{
	if (parent < p->count && p->nodes[parent] < p->tree.node_count)
		__builtin_prefetch(&p->tree.nodes[p->nodes[parent]], 1);
}

static struct error *enter_batch(struct profiling *p, uint32_t first, uint32_t count)
{
	struct error *err = NULL;

	for (uint32_t i = 0; i < count && !err && p->tree.node_count <= p->max_nodes; i++) {
		if (i + NODES_AHEAD < count && !p->tree_of)
			prefetch_node(p, p->batch[i + NODES_AHEAD].parent);
		err = enter_place(p, first + i, &p->batch[i]);
	}
	return err;
}

/* What lies below each place: mostly a tree that grew too large had not entered many. */
static void find_below(struct profiling *p)
{
	if (!p->total || p->entered > SAVED_PLACES)
		p->total = reference_walk_add_up(p->walk, p->nodes);
	else
		memcpy(p->nodes, p->saved, p->entered * sizeof(*p->nodes));
	p->entered = 0;
}

/* They are about to be entered. */
static void save_below(struct profiling *p, uint32_t first, uint32_t count)
{
	if (first + count <= SAVED_PLACES)
		memcpy(&p->saved[first], &p->nodes[first], count * sizeof(*p->nodes));
	p->entered = first + count;
}

/* Stops where there are too many nodes. */
static struct error *make_tree(struct profiling *p)
{
	struct error *err = NULL;

	frame_tree_fini(&p->tree);
	if (!p->tree_of)
		find_below(p);
	for (size_t i = 0; i < MEMO_SIZE; i++)
		p->memos[i].result = 0;
	for (uint32_t first = 0; first < p->count && !err && p->tree.node_count <= p->max_nodes;) {
		uint32_t count = batch_of(p->count - first);

		read_places(p, first, count);
		if (!p->tree_of)
			save_below(p, first, count);
		err = enter_batch(p, first, count);
		first += count;
	}
	return err;
}

/* Beyond this a node is worth a sample of its own, if all were of one size. */
static uint64_t next_enough(const struct profiling *p)
{
	uint64_t least = p->total / ((uint64_t)NODES_PER_SAMPLE * p->query->max_samples) + 1;
	uint64_t more = p->enough * ENOUGH_FACTOR;

	return more > least ? more : least;
}

static struct error *make_small_tree(struct profiling *p)
{
	uint64_t max = (uint64_t)NODES_PER_SAMPLE * p->query->max_samples;
	struct error *err;

	p->max_nodes = max > NODES_MIN ? (uint32_t)max : NODES_MIN;
	p->enough = p->query->min_bytes ? p->query->min_bytes : 1;
	if (p->enough > BELOW_MAX * WORD_BYTES)
		p->enough = BELOW_MAX * WORD_BYTES;
	err = make_tree(p);
	while (!err && p->tree.node_count > p->max_nodes && p->enough <= p->total) {
		p->enough = next_enough(p);
		err = make_tree(p);
	}
	return err ? err : frame_tree_fold(&p->tree, p->query->max_samples, p->query->min_bytes);
}

/* ---- the message ---- */

static struct error *add_frame(const struct frame_tree_frame *frame,
			       Goheapd__ReferenceProfile *profile)
{
	struct error *err = message_reserve((void ***)&profile->frames, profile->n_frames);
	Goheapd__ReferenceFrame *message;

	if (err)
		return err;
	message = malloc(sizeof(*message));
	if (!message)
		return &error_nomem;
	goheapd__reference_frame__init(message);
	profile->frames[profile->n_frames++] = message;
	err = message_text(frame->name, &message->name);
	if (err || !frame->file)
		return err;
	message->has_file = true;
	message->has_line = frame->line;
	message->line = frame->line;
	return message_text(frame->file, &message->file);
}

static struct error *add_node(const struct frame_tree_node *node,
			      Goheapd__ReferenceProfile *profile)
{
	struct error *err = message_reserve((void ***)&profile->nodes, profile->n_nodes);
	Goheapd__ReferenceNode *message;

	if (err)
		return err;
	message = malloc(sizeof(*message));
	if (!message)
		return &error_nomem;
	goheapd__reference_node__init(message);
	profile->nodes[profile->n_nodes++] = message;
	message->has_parent = node->parent != FRAME_TREE_TOP;
	message->parent = node->parent;
	message->frame = node->frame;
	message->objects = node->own.objects;
	message->bytes = node->own.bytes;
	message->has_used_bytes = node->own.used_bytes != node->own.bytes;
	message->used_bytes = node->own.used_bytes;
	message->has_label_set = node->labels != FRAME_TREE_NO_LABELS;
	message->label_set = node->labels;
	profile->objects += node->own.objects;
	profile->bytes += node->own.bytes;
	return NULL;
}

static struct error *add_labels(const struct label_set *set, Goheapd__ReferenceProfile *profile)
{
	struct error *err = message_reserve((void ***)&profile->label_sets, profile->n_label_sets);
	Goheapd__ReferenceLabels *message;

	if (err)
		return err;
	message = malloc(sizeof(*message));
	if (!message)
		return &error_nomem;
	goheapd__reference_labels__init(message);
	profile->label_sets[profile->n_label_sets++] = message;
	return label_pairs_fill(set, &message->labels, &message->n_labels);
}

static struct error *fill(const struct profiling *p, Goheapd__ReferenceProfile *profile)
{
	const struct label_table *labels = p->query->labels ? p->analysed->labels : NULL;
	uint32_t sets = labels ? label_table_count(labels) : 0;
	struct error *err = NULL;

	for (uint32_t i = 0; i < p->tree.frame_count && !err; i++)
		err = add_frame(&p->tree.frames[i], profile);
	for (uint32_t i = 0; i < p->tree.node_count && !err; i++)
		err = add_node(&p->tree.nodes[i], profile);
	for (uint32_t i = 0; i < sets && !err; i++)
		err = add_labels(label_table_at(labels, i), profile);
	return err;
}

static struct error *check_query(const Goheapd__ProfileQuery *query)
{
	if (!query->max_depth || !query->max_samples)
		return error_new(ERROR_BAD_REQUEST, "a profile of no frames or samples");
	return NULL;
}

struct error *reference_profile_fill(const struct analysed *analysed,
				     const Goheapd__ProfileQuery *query,
				     Goheapd__ScanResult *result)
{
	struct profiling *p scoped(profiling_freep) = calloc(1, sizeof(*p));
	struct error *err = check_query(query);

	if (err)
		return err;
	if (!p)
		return &error_nomem;
	p->analysed = analysed;
	p->query = query;
	p->walk = analysed->walk;
	p->spans = graph_spans(analysed->graph);
	p->count = reference_walk_count(p->walk);
	p->budget.limit = analysed->memory_limit;
	if (query->retained)
		p->tree_of = retained_dominators(analysed->retained);
	err = query->retained ? sum_up_retained(p) : make_room(p);
	if (!err)
		err = make_small_tree(p);
	if (err)
		return error_context(err, "profile");
	result->profile = malloc(sizeof(*result->profile));
	if (!result->profile)
		return &error_nomem;
	goheapd__reference_profile__init(result->profile);
	return fill(p, result->profile);
}
