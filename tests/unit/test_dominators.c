/*
 * Dominators: random graphs against a plain computation, and shapes that are as bad as they get,
 * whose answer is known.
 */
#include "tests/support/assertions.h"

#include <stdlib.h>
#include <string.h>

#include "agent/analysis/dominators.h"
#include "agent/analysis/graph.h"
#include "agent/analysis/label_owner.h"
#include "agent/analysis/mark.h"
#include "agent/analysis/root_set.h"
#include "tests/support/fake_heap.h"

/* ---- a heap under way, and its tree ---- */

struct fixture {
	struct fake_heap *heap;
	struct graph *graph;
	struct root_set *roots;
	struct mark *mark;
	struct dominators *tree;
	uint32_t *root_groups; /* by root */
	struct label_owners owners;
	uint32_t *owner_groups; /* by owner */
	uint32_t group_count, special_group;
	uint64_t memory_limit;
};

static void fixture_init(struct fixture *f, struct fake_heap *heap, uint32_t group_count)
{
	*f = (struct fixture){ .heap = heap, .group_count = group_count };
	assert_success(root_set_new(fake_heap_spans(heap), &f->roots));
}

static void fixture_fini(struct fixture *f)
{
	dominators_free(f->tree);
	mark_free(f->mark);
	graph_free(f->graph);
	root_set_free(f->roots);
	fake_heap_free(f->heap);
	free(f->root_groups);
	free(f->owners.items);
	free(f->owner_groups);
}

static void append(uint32_t **list, uint64_t count, uint32_t value)
{
	*list = realloc(*list, (count + 1) * sizeof(**list));
	assert_non_null(*list);
	(*list)[count] = value;
}

static void add_root(struct fixture *f, uint32_t group, uint32_t object)
{
	const struct root root = { .kind = group % 3 == 2 ? ROOT_STACK_CONSERVATIVE : ROOT_DATA,
				   .goroutine = ROOT_NO_GOROUTINE,
				   .slot = 0x500000,
				   .value = fake_heap_addr(f->heap, object) };
	uint64_t count = root_set_count(f->roots);

	assert_success(root_set_sink(f->roots)->add(root_set_sink(f->roots), &root));
	assert_int_equal(root_set_count(f->roots), count + 1);
	append(&f->root_groups, count, group);
}

static void add_owner(struct fixture *f, uint32_t group, uint32_t object)
{
	size_t count = f->owners.count++;

	f->owners.items = realloc(f->owners.items, f->owners.count * sizeof(*f->owners.items));
	assert_non_null(f->owners.items);
	f->owners.items[count] = (struct label_owner){ .object = object };
	append(&f->owner_groups, count, group);
}

static void read_heap(struct fixture *f, unsigned threads)
{
	assert_success(graph_read(fake_heap_memory(f->heap), NULL, fake_heap_spans(f->heap),
				  threads, 0, &f->graph));
	assert_success(
	    mark_run(f->graph, f->roots, fake_heap_specials(f->heap), threads, &f->mark));
}

static struct error *find(struct fixture *f, unsigned threads)
{
	const struct dominator_input input = {
		.graph = f->graph,
		.mark = f->mark,
		.roots = f->roots,
		.specials = fake_heap_specials(f->heap),
		.root_groups = f->root_groups,
		.group_count = f->group_count,
		.special_group = f->special_group,
		.owners = &f->owners,
		.owner_groups = f->owner_groups,
		.thread_count = threads,
		.memory_limit = f->memory_limit,
	};

	return dominators_find(&input, &f->tree);
}

static void find_tree(struct fixture *f, unsigned threads)
{
	read_heap(f, threads);
	assert_success(find(f, threads));
}

static uint32_t parent(const struct fixture *f, uint32_t node)
{
	return dominators_parent(f->tree, node);
}

static uint64_t retained(const struct fixture *f, uint32_t node)
{
	return dominators_retained(f->tree, node);
}

static uint32_t group_node(const struct fixture *f, uint32_t group)
{
	return dominators_group_node(f->tree, group);
}

/* ---- random graphs ---- */

enum { OBJECTS_MAX = 44, GROUPS_MAX = 8, NODES_MAX = OBJECTS_MAX + GROUPS_MAX, CLASSES = 3 };

/* Nodes are objects, then groups, as bits of a word. */
struct plain {
	uint32_t object_count, group_count;
	uint32_t objects[OBJECTS_MAX]; /* their numbers in the graph */
	uint64_t sizes[OBJECTS_MAX];
	uint64_t edges[NODES_MAX];
	uint64_t owned;
	uint64_t live, dominated[NODES_MAX]; /* by a node: itself included */
};

static uint64_t seed;

static uint32_t below(uint32_t end)
{
	seed = seed * 6364136223846793005 + 1442695040888963407;
	return (uint32_t)((seed >> 33) % end);
}

static uint64_t bit(uint32_t node)
{
	return UINT64_C(1) << node;
}

static uint64_t groups_of(const struct plain *p)
{
	return (bit(p->group_count) - 1) << p->object_count;
}

/* All that the groups lead to without going through what is left out. */
static uint64_t reached(const struct plain *p, uint64_t left_out)
{
	uint64_t found = groups_of(p) & ~left_out, todo = found;

	while (todo) {
		uint32_t node = (uint32_t)__builtin_ctzll(todo);
		uint64_t more = p->edges[node] & ~found & ~left_out;

		found |= more;
		todo = (todo & (todo - 1)) | more;
	}
	return found;
}

/* Objects of several sizes, some without pointers; slots that nobody uses in between. */
static struct fake_heap *random_objects(struct plain *p)
{
	static const uint32_t sizes[] = { 48, 64, 112, 1024 };
	struct fake_heap *heap = fake_heap_new();
	uint32_t spans[8];

	for (uint32_t i = 0; i < 8; i++)
		spans[i] = fake_heap_add(heap, sizes[i % 4], 8, i >= 4);
	fake_heap_finish(heap);
	p->object_count = 1 + below(OBJECTS_MAX);
	for (uint32_t i = 0; i < p->object_count; i++) {
		uint32_t span = i % 6 + (i % 6 == 5 ? below(3) : 0);

		p->objects[i] = fake_heap_object(heap, spans[span], i / 6);
		p->sizes[i] = sizes[span % 4];
	}
	return heap;
}

static bool is_noscan(const struct plain *p, uint32_t i)
{
	(void)p;
	return i % 6 >= 4;
}

static void random_edges(struct plain *p, struct fake_heap *heap)
{
	uint32_t words[OBJECTS_MAX] = { 0 }, count = below(4 * p->object_count + 1);

	for (uint32_t i = 0; i < count; i++) {
		uint32_t from = below(p->object_count), to = below(p->object_count);

		if (is_noscan(p, from) || words[from] == 6)
			continue;
		if (below(3) == 0)
			to = (from + 1 + below(3)) % p->object_count; /* chains */
		fake_heap_point(heap, p->objects[from], words[from]++,
				fake_heap_addr(heap, p->objects[to]));
		p->edges[from] |= bit(to);
	}
}

static void random_roots(struct plain *p, struct fixture *f)
{
	uint32_t count = 1 + below(6);

	for (uint32_t i = 0; i < count; i++) {
		uint32_t group = below(p->group_count), object = below(p->object_count);

		add_root(f, group, p->objects[object]);
		p->edges[p->object_count + group] |= bit(object);
	}
}

static void random_finalizers(struct plain *p, struct fixture *f)
{
	uint32_t count = below(3) == 0 ? below(4) : 0;

	f->special_group = below(p->group_count);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t object = below(p->object_count);

		fake_heap_add_special(f->heap, p->objects[object], SPECIAL_FINALIZER);
		p->edges[p->object_count + f->special_group] |= p->edges[object];
	}
}

/* Owned objects are led to by their group alone, and are as live as they were. */
static void random_owners(struct plain *p, struct fixture *f)
{
	uint32_t count = below(3) == 0 ? below(5) : 0;

	p->live = reached(p, 0);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t object = below(p->object_count), group = below(p->group_count);

		if (p->owned & bit(object))
			continue;
		p->owned |= bit(object);
		add_owner(f, group, p->objects[object]);
		for (uint32_t node = 0; node < p->object_count + p->group_count; node++)
			p->edges[node] &= ~bit(object);
		if (p->live & bit(object))
			p->edges[p->object_count + group] |= bit(object);
	}
}

static void dominate_plainly(struct plain *p)
{
	for (uint32_t node = 0; node < p->object_count + p->group_count; node++)
		if (p->live & bit(node))
			p->dominated[node] = p->live & ~reached(p, bit(node));
}

static uint64_t bytes_of(const struct plain *p, uint64_t nodes)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < p->object_count; i++)
		if (nodes & bit(i))
			bytes += p->sizes[i];
	return bytes;
}

/* Of all that dominate it the one that the others dominate, too. */
static uint32_t plain_parent(const struct plain *p, uint32_t node)
{
	uint32_t best = UINT32_MAX;

	for (uint32_t i = 0; i < p->object_count + p->group_count; i++)
		if (i != node && p->dominated[i] & bit(node) &&
		    (best == UINT32_MAX || p->dominated[best] & bit(i)))
			best = i;
	return best;
}

static uint32_t tree_node(const struct plain *p, const struct fixture *f, uint32_t node)
{
	if (node == UINT32_MAX)
		return DOMINATOR_TOP;
	return node < p->object_count ? p->objects[node] : group_node(f, node - p->object_count);
}

static void check_nodes(const struct plain *p, const struct fixture *f)
{
	for (uint32_t node = 0; node < p->object_count + p->group_count; node++) {
		uint32_t at = tree_node(p, f, node);

		if (!(p->live & bit(node))) {
			assert_int_equal(parent(f, at), DOMINATOR_NONE);
			assert_int_equal(retained(f, at), 0);
			continue;
		}
		assert_int_equal(parent(f, at), tree_node(p, f, plain_parent(p, node)));
		assert_int_equal(retained(f, at), bytes_of(p, p->dominated[node]));
	}
	assert_int_equal(retained(f, DOMINATOR_TOP), bytes_of(p, p->live));
	assert_int_equal(parent(f, DOMINATOR_TOP), DOMINATOR_NONE);
}

/* In pages of three; every child is met once, in the right order. */
static void check_children(const struct fixture *f, uint32_t node, uint64_t expected)
{
	struct dominator_child page[3], last;
	uint64_t met = 0, counted;
	bool more = true;

	while (more) {
		uint32_t count =
		    dominators_children(f->tree, node, met ? &last : NULL, page, 3, &more);

		assert_true(count == 3 || !more);
		for (uint32_t i = 0; i < count; i++) {
			assert_int_equal(parent(f, page[i].node), node);
			assert_int_equal(retained(f, page[i].node), page[i].retained);
			if (met++)
				assert_true(last.retained > page[i].retained ||
					    (last.retained == page[i].retained &&
					     last.node < page[i].node));
			last = page[i];
		}
	}
	assert_int_equal(met, expected);
	page[0].node = node;
	assert_success(dominators_count_children(f->tree, page, 1, &counted));
	assert_int_equal(counted, expected);
}

static void check_all_children(const struct plain *p, const struct fixture *f)
{
	uint64_t counts[NODES_MAX + 1] = { 0 }, *top = &counts[NODES_MAX];

	for (uint32_t node = 0; node < p->object_count + p->group_count; node++) {
		uint32_t above = plain_parent(p, node);

		if (p->live & bit(node))
			(above == UINT32_MAX ? top : &counts[above])[0]++;
	}
	check_children(f, DOMINATOR_TOP, *top);
	for (uint32_t node = 0; node < p->object_count + p->group_count; node++)
		check_children(f, tree_node(p, f, node), counts[node]);
}

/* Objects are of one class or another by their numbers, or of none. */
static uint32_t class_of(const void *arg, uint32_t object)
{
	uint32_t class = object * *(const uint32_t *)arg / 7 % (CLASSES + 1);

	return class < CLASSES ? class : DOMINATOR_NO_CLASS;
}

static void check_classes(const struct plain *p, const struct fixture *f)
{
	uint32_t factor = 1 + below(1000);
	const struct dominator_classes classes = {
		.class_of = class_of, .arg = &factor, .class_count = CLASSES, .thread_count = 2
	};
	uint64_t found[CLASSES] = { 0 }, of_class[CLASSES] = { 0 }, below_it[CLASSES] = { 0 };

	for (uint32_t i = 0; i < p->object_count; i++) {
		uint32_t class = class_of(&factor, p->objects[i]);

		if (class == DOMINATOR_NO_CLASS || !(p->live & bit(i)))
			continue;
		of_class[class] |= bit(i);
		below_it[class] |= p->dominated[i];
	}
	assert_success(dominators_retained_by_class(f->tree, &classes, found));
	for (uint32_t c = 0; c < CLASSES; c++)
		assert_int_equal(found[c], bytes_of(p, below_it[c]));
}

static void random_graphs_are_dominated_as_a_plain_computation_says(void **state)
{
	(void)state;
	for (uint32_t round = 0; round < 4000; round++) {
		struct plain p = { 0 };
		struct fixture f;

		seed = round;
		p.group_count = 1 + below(GROUPS_MAX);
		fixture_init(&f, random_objects(&p), p.group_count);
		random_edges(&p, f.heap);
		random_roots(&p, &f);
		random_finalizers(&p, &f);
		random_owners(&p, &f);
		dominate_plainly(&p);
		find_tree(&f, 1 + round % 2);
		check_nodes(&p, &f);
		check_all_children(&p, &f);
		check_classes(&p, &f);
		fixture_fini(&f);
	}
}

/* ---- shapes ---- */

enum { NODE_SIZE = 48, SPAN_NODES = 170 };

/* Objects of 48 bytes, numbered in a row. */
static uint32_t make_nodes(struct fake_heap *heap, uint32_t count)
{
	uint32_t first = 0;

	for (uint32_t i = 0; i < count; i += SPAN_NODES) {
		uint32_t span = fake_heap_add(heap, NODE_SIZE, SPAN_NODES, false);

		first = i ? first : span;
	}
	return first;
}

static void point(struct fixture *f, uint32_t from, uint64_t word, uint32_t to)
{
	fake_heap_point(f->heap, from, word, fake_heap_addr(f->heap, to));
}

/* A heap of that many nodes and one group that leads to the first; *ret_first is its number. */
static void nodes_init(struct fixture *f, uint32_t count, uint32_t *ret_first)
{
	struct fake_heap *heap = fake_heap_new();
	uint32_t span = make_nodes(heap, count);

	fake_heap_finish(heap);
	fixture_init(f, heap, 1);
	*ret_first = fake_heap_object(heap, span, 0);
	add_root(f, 0, *ret_first);
}

static void a_list_of_a_million_is_dominated_node_by_node(void **state)
{
	enum { COUNT = 1000000 };
	struct fixture f;
	uint32_t first;

	(void)state;
	nodes_init(&f, COUNT, &first);
	for (uint32_t i = 0; i + 1 < COUNT; i++)
		point(&f, first + i, 0, first + i + 1);
	find_tree(&f, 2);
	for (uint32_t i = 0; i < COUNT; i++) {
		assert_int_equal(parent(&f, first + i), i ? first + i - 1 : group_node(&f, 0));
		assert_int_equal(retained(&f, first + i), (uint64_t)(COUNT - i) * NODE_SIZE);
	}
	fixture_fini(&f);
}

/* Back edges from everywhere to the node before: a path to compress, over and over. */
static void a_list_that_leads_both_ways_is_dominated_like_one(void **state)
{
	enum { COUNT = 1000000 };
	struct fixture f;
	uint32_t first;

	(void)state;
	nodes_init(&f, COUNT, &first);
	for (uint32_t i = 0; i + 1 < COUNT; i++) {
		point(&f, first + i, 0, first + i + 1);
		point(&f, first + i + 1, 1, first + i);
		point(&f, first + i + 1, 2, first); /* and to the head */
	}
	find_tree(&f, 2);
	for (uint32_t i = 1; i < COUNT; i++)
		assert_int_equal(parent(&f, first + i), first + i - 1);
	assert_int_equal(retained(&f, first), (uint64_t)COUNT * NODE_SIZE);
	fixture_fini(&f);
}

/*
 * Node i of a list leads to value i, and so does a table: no value is the list's, though the list
 * dominates its own nodes down to the last. Every other value has edges of its own.
 */
static void values_that_a_table_leads_to_are_not_the_lists(void **state)
{
	enum { COUNT = 300000 };
	struct fixture f;
	struct fake_heap *heap = fake_heap_new();
	uint32_t span = make_nodes(heap, 2 * COUNT);
	uint32_t table_span = fake_heap_add(heap, 8 * COUNT, 1, false), first, values, table;

	(void)state;
	fake_heap_finish(heap);
	fixture_init(&f, heap, 1);
	first = fake_heap_object(heap, span, 0);
	values = first + COUNT;
	table = fake_heap_object(heap, table_span, 0);
	for (uint32_t i = 0; i < COUNT; i++) {
		if (i + 1 < COUNT)
			point(&f, first + i, 0, first + i + 1);
		point(&f, first + i, 1, values + i);
		point(&f, table, i, values + i);
		if (i % 2)
			point(&f, values + i, 3, values + i - 1);
	}
	add_root(&f, 0, first);
	add_root(&f, 0, table);
	find_tree(&f, 2);
	for (uint32_t i = 0; i < COUNT; i++) {
		assert_int_equal(parent(&f, values + i), group_node(&f, 0));
		assert_int_equal(retained(&f, values + i), NODE_SIZE);
		assert_int_equal(retained(&f, first + i), (uint64_t)(COUNT - i) * NODE_SIZE);
	}
	fixture_fini(&f);
}

static void a_wide_object_dominates_all_it_leads_to(void **state)
{
	enum { COUNT = 1000000 };
	struct dominator_child page[2], all = { 0 };
	struct fixture f;
	struct fake_heap *heap = fake_heap_new();
	uint32_t span = make_nodes(heap, COUNT), table_span, first, table;
	uint64_t size, counted;
	bool more;

	(void)state;
	table_span = fake_heap_add(heap, 8 * COUNT, 1, false);
	size = fake_heap_span(heap, table_span)->elem_size;
	fake_heap_finish(heap);
	fixture_init(&f, heap, 1);
	first = fake_heap_object(heap, span, 0);
	table = fake_heap_object(heap, table_span, 0);
	for (uint32_t i = 0; i < COUNT; i++)
		point(&f, table, i, first + i);
	point(&f, first + 17, 0, first + 17); /* to itself */
	point(&f, first + 18, 0, table);
	add_root(&f, 0, table);
	find_tree(&f, 2);
	for (uint32_t i = 0; i < COUNT; i++)
		assert_int_equal(parent(&f, first + i), table);
	assert_int_equal(retained(&f, table), size + (uint64_t)COUNT * NODE_SIZE);
	all.node = table;
	assert_success(dominators_count_children(f.tree, &all, 1, &counted));
	assert_int_equal(counted, COUNT);
	assert_int_equal(dominators_children(f.tree, table, NULL, page, 2, &more), 2);
	assert_true(more);
	assert_int_equal(page[0].node, first);
	assert_int_equal(page[1].node, first + 1);
	fixture_fini(&f);
}

/* Each node leads to all that come after it, and then to all before, too. */
static void in_a_complete_graph_the_first_dominates_all(void **state)
{
	enum { COUNT = 600, WIDE = 8 * 1024 };
	struct fixture f;
	struct fake_heap *heap;
	uint32_t objects[COUNT];

	(void)state;
	for (uint32_t backwards = 0; backwards < 2; backwards++) {
		heap = fake_heap_new();
		for (uint32_t i = 0; i < COUNT; i++)
			fake_heap_add(heap, WIDE, 1, false);
		fake_heap_finish(heap);
		fixture_init(&f, heap, 1);
		for (uint32_t i = 0; i < COUNT; i++)
			objects[i] = fake_heap_object(heap, i, 0);
		for (uint32_t i = 0; i < COUNT; i++)
			for (uint32_t k = backwards ? 0 : i + 1; k < COUNT; k++)
				point(&f, objects[i], backwards ? COUNT - 1 - k : k, objects[k]);
		add_root(&f, 0, objects[0]);
		find_tree(&f, 2);
		for (uint32_t i = 1; i < COUNT; i++)
			assert_int_equal(parent(&f, objects[i]), objects[0]);
		assert_int_equal(retained(&f, group_node(&f, 0)), (uint64_t)COUNT * WIDE);
		fixture_fini(&f);
	}
}

/* A cycle that two groups enter at opposite places belongs to neither. */
static void a_cycle_with_two_ways_in_is_nobodys(void **state)
{
	enum { COUNT = 500000 };
	struct fixture f;
	struct fake_heap *heap = fake_heap_new();
	uint32_t span = make_nodes(heap, COUNT), first;

	(void)state;
	fake_heap_finish(heap);
	fixture_init(&f, heap, 3);
	first = fake_heap_object(heap, span, 0);
	for (uint32_t i = 0; i < COUNT; i++)
		point(&f, first + i, i % 6, first + (i + 1) % COUNT);
	add_root(&f, 0, first);
	add_root(&f, 2, first + COUNT / 2);
	find_tree(&f, 2);
	for (uint32_t i = 0; i < COUNT; i++) {
		bool way_in = i % (COUNT / 2) == 0;

		assert_int_equal(parent(&f, first + i), way_in ? DOMINATOR_TOP : first + i - 1);
		assert_int_equal(retained(&f, first + i),
				 (uint64_t)(COUNT / 2 - i % (COUNT / 2)) * NODE_SIZE);
	}
	for (uint32_t group = 0; group < 3; group++) {
		assert_int_equal(retained(&f, group_node(&f, group)), 0);
		assert_int_equal(dominators_node_group(f.tree, group_node(&f, group)), group);
	}
	assert_int_equal(dominators_node_group(f.tree, first), UINT32_MAX);
	fixture_fini(&f);
}

/*
 * Two rails with rungs: node i of each leads to both nodes i + 1. Nothing but the first node
 * dominates anything, and semidominators change at every step.
 */
static void rails_with_crossed_rungs_are_dominated_by_their_beginning(void **state)
{
	enum { COUNT = 200000 };
	struct fixture f;
	uint32_t first;

	(void)state;
	nodes_init(&f, 2 * COUNT + 1, &first);
	for (uint32_t i = 0; i + 2 < 2 * COUNT + 1; i++) {
		uint32_t next = i ? i + 2 - (i + 1) % 2 : 1; /* first of the next two */

		point(&f, first + i, 0, first + next);
		point(&f, first + i, 1, first + next + 1);
		if (i > 2)
			point(&f, first + i, 2, first + i - 2);
	}
	find_tree(&f, 2);
	for (uint32_t i = 1; i < 2 * COUNT + 1; i++)
		assert_int_equal(parent(&f, first + i), first);
	fixture_fini(&f);
}

/* ---- memory ---- */

static void what_does_not_fit_is_refused_with_what_it_would_need(void **state)
{
	enum { COUNT = 200000 };
	struct fixture f;
	struct error *err;
	uint32_t first;

	(void)state;
	nodes_init(&f, COUNT, &first);
	for (uint32_t i = 0; i + 1 < COUNT; i++)
		point(&f, first + i, 0, first + i + 1);
	read_heap(&f, 1);
	f.memory_limit = 1 << 20;
	err = find(&f, 1);
	assert_non_null(err);
	assert_int_equal(error_code(err), ERROR_OUT_OF_MEMORY);
	assert_non_null(strstr(error_message(err), "needs at least 6 MiB"));
	error_free(err);
	f.memory_limit = 7 << 20;
	assert_success(find(&f, 1));
	assert_true(dominators_memory(f.tree) < (uint64_t)5 << 20);
	fixture_fini(&f);
}

static void a_heap_without_roots_has_an_empty_tree(void **state)
{
	struct fixture f;
	struct fake_heap *heap = fake_heap_new();
	bool more;

	(void)state;
	fake_heap_add(heap, NODE_SIZE, 8, false);
	fake_heap_finish(heap);
	fixture_init(&f, heap, 0);
	find_tree(&f, 2);
	assert_int_equal(retained(&f, DOMINATOR_TOP), 0);
	assert_int_equal(dominators_children(f.tree, DOMINATOR_TOP, NULL, NULL, 0, &more), 0);
	assert_false(more);
	fixture_fini(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_graphs_are_dominated_as_a_plain_computation_says),
		cmocka_unit_test(a_list_of_a_million_is_dominated_node_by_node),
		cmocka_unit_test(a_list_that_leads_both_ways_is_dominated_like_one),
		cmocka_unit_test(values_that_a_table_leads_to_are_not_the_lists),
		cmocka_unit_test(a_wide_object_dominates_all_it_leads_to),
		cmocka_unit_test(in_a_complete_graph_the_first_dominates_all),
		cmocka_unit_test(a_cycle_with_two_ways_in_is_nobodys),
		cmocka_unit_test(rails_with_crossed_rungs_are_dominated_by_their_beginning),
		cmocka_unit_test(what_does_not_fit_is_refused_with_what_it_would_need),
		cmocka_unit_test(a_heap_without_roots_has_an_empty_tree),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
