#include "agent/report/frame_tree.h"

#include <inttypes.h>
#include <stdlib.h>

#include "tests/support/assertions.h"
#include "tests/support/random_numbers.h"

enum { ALL = UINT32_MAX, NONE = FRAME_TREE_NO_LABELS };

/* ---- making and showing trees ---- */

static uint32_t frame_of(struct frame_tree *tree, const char *name)
{
	const struct frame_tree_frame frame = { .name = name };
	uint32_t number = 0;

	assert_success(frame_tree_frame(tree, &frame, &number));
	return number;
}

static uint32_t child(struct frame_tree *tree, uint32_t parent, const char *name, uint32_t labels)
{
	uint32_t node = 0;

	assert_success(frame_tree_child(tree, parent, frame_of(tree, name), labels, &node));
	return node;
}

/* A node of its own size: one object, all of it in use. Names must outlive the tree. */
static uint32_t add(struct frame_tree *tree, uint32_t parent, const char *name, uint64_t bytes)
{
	uint32_t node = child(tree, parent, name, NONE);

	tree->nodes[node].own.objects += bytes != 0;
	tree->nodes[node].own.bytes += bytes;
	tree->nodes[node].own.used_bytes += bytes;
	return node;
}

static uint32_t add_root(struct frame_tree *tree, const char *name, uint32_t labels, uint64_t bytes)
{
	uint32_t node = child(tree, FRAME_TREE_TOP, name, labels);

	tree->nodes[node].own = (struct frame_tree_sizes){ bytes != 0, bytes, bytes };
	return node;
}

static void put_chain(FILE *out, const struct frame_tree *tree, uint32_t i)
{
	const struct frame_tree_node *node = &tree->nodes[i];

	if (node->parent != FRAME_TREE_TOP) {
		assert_true(node->parent < i);
		assert_int_equal(node->labels, NONE);
		put_chain(out, tree, node->parent);
		fputc('/', out);
	}
	fputs(tree->frames[node->frame].name, out);
	if (node->labels != NONE)
		fprintf(out, "{%" PRIu32 "}", node->labels);
}

/* "a 10; a/b 5/2" for 5 bytes in two objects, in the order of the nodes; until the next call. */
static const char *show(const struct frame_tree *tree)
{
	static char text[4096];
	FILE *out = fmemopen(text, sizeof(text), "w");

	assert_non_null(out);
	for (uint32_t i = 0; i < tree->node_count; i++) {
		const struct frame_tree_sizes *own = &tree->nodes[i].own;

		fputs(i ? "; " : "", out);
		put_chain(out, tree, i);
		if (own->objects)
			fprintf(out, " %" PRIu64, own->bytes);
		if (own->objects > 1)
			fprintf(out, "/%" PRIu64, own->objects);
	}
	fputc('\0', out);
	fclose(out);
	return text;
}

static void fold(struct frame_tree *tree, uint32_t max_samples, uint64_t min_bytes)
{
	assert_success(frame_tree_fold(tree, max_samples, min_bytes));
}

#define assert_tree(tree, expected) assert_string_equal(show(tree), expected)

/* ---- frames and nodes ---- */

static void frames_are_alike_by_name(void **state)
{
	const struct frame_tree_frame first = { "main.a", "a.go", 3 },
				      second = { "main.b", NULL, 0 };
	char copy[] = "main.a";
	const struct frame_tree_frame same = { copy, "other.go", 9 };
	struct frame_tree tree = { 0 };
	uint32_t numbers[3];

	(void)state;
	assert_success(frame_tree_frame(&tree, &first, &numbers[0]));
	assert_success(frame_tree_frame(&tree, &second, &numbers[1]));
	assert_success(frame_tree_frame(&tree, &same, &numbers[2]));
	assert_int_equal(tree.frame_count, 2);
	assert_int_equal(numbers[0], numbers[2]);
	assert_int_not_equal(numbers[0], numbers[1]);
	assert_string_equal(tree.frames[numbers[0]].file, "a.go");
	assert_int_equal(tree.frames[numbers[0]].line, 3);
	frame_tree_fini(&tree);
	assert_null(tree.frames);
	assert_int_equal(tree.node_count, 0);
}

static void a_child_is_one_by_parent_frame_and_labels(void **state)
{
	struct frame_tree tree = { 0 };
	uint32_t a = child(&tree, FRAME_TREE_TOP, "a", 1);
	uint32_t b = child(&tree, a, "b", NONE), deep = child(&tree, b, "b", NONE);

	(void)state;
	assert_int_equal(child(&tree, FRAME_TREE_TOP, "a", 1), a);
	assert_int_equal(child(&tree, a, "b", NONE), b);
	assert_int_not_equal(child(&tree, FRAME_TREE_TOP, "a", 2), a);
	assert_int_not_equal(child(&tree, FRAME_TREE_TOP, "a", NONE), a);
	assert_int_not_equal(child(&tree, FRAME_TREE_TOP, "b", NONE), b);
	assert_int_equal(tree.node_count, 6);
	assert_int_equal(tree.nodes[a].depth, 1);
	assert_int_equal(tree.nodes[a].parent, FRAME_TREE_TOP);
	assert_int_equal(tree.nodes[deep].depth, 3);
	assert_int_equal(tree.nodes[deep].parent, b);
	assert_int_equal(tree.nodes[deep].frame, tree.nodes[b].frame);
	frame_tree_fini(&tree);
}

static void many_frames_and_nodes_are_found_again(void **state)
{
	enum { COUNT = 5000 };
	static char names[COUNT][16];
	struct frame_tree tree = { 0 };

	(void)state;
	for (uint32_t round = 0; round < 2; round++) {
		uint32_t parent = FRAME_TREE_TOP;

		for (uint32_t i = 0; i < COUNT; i++) {
			uint32_t node;

			snprintf(names[i], sizeof(names[i]), "f%" PRIu32, i);
			node = child(&tree, i % 100 ? parent : FRAME_TREE_TOP, names[i], NONE);
			assert_int_equal(node, i);
			assert_string_equal(tree.frames[tree.nodes[node].frame].name, names[i]);
			parent = node;
		}
	}
	assert_int_equal(tree.node_count, COUNT);
	assert_int_equal(tree.frame_count, COUNT);
	frame_tree_fini(&tree);
}

/* ---- order ---- */

static void children_are_ordered_by_size_then_name(void **state)
{
	struct frame_tree tree = { 0 };
	uint32_t a, z;

	(void)state;
	add(&tree, FRAME_TREE_TOP, "small", 1);
	z = add(&tree, FRAME_TREE_TOP, "z", 5);
	a = add(&tree, FRAME_TREE_TOP, "a", 2);
	add(&tree, a, "y", 4);
	add(&tree, a, "x", 4);
	add(&tree, z, "under", 5);
	add(&tree, a, "large", 9);
	fold(&tree, ALL, 0);
	/* a has 19 in all, z 10; of equal ones x comes before y */
	assert_tree(&tree, "a 2; z 5; small 1; a/large 9; a/x 4; a/y 4; z/under 5");
	frame_tree_fini(&tree);
}

static void of_equal_roots_those_with_the_lower_labels_come_first(void **state)
{
	struct frame_tree tree = { 0 };

	(void)state;
	add_root(&tree, "a", NONE, 5);
	add_root(&tree, "a", 7, 5);
	add_root(&tree, "a", 2, 5);
	fold(&tree, ALL, 0);
	assert_tree(&tree, "a{2} 5; a{7} 5; a 5");
	frame_tree_fini(&tree);
}

static void chains_that_come_back_stay_chains(void **state)
{
	struct frame_tree tree = { 0 };
	uint32_t node = FRAME_TREE_TOP;

	(void)state;
	for (uint64_t bytes = 1; bytes <= 4; bytes++)
		node = add(&tree, node, "next", bytes);
	assert_int_equal(tree.frame_count, 1);
	fold(&tree, ALL, 0);
	assert_tree(&tree, "next 1; next/next 2; next/next/next 3; next/next/next/next 4");
	assert_int_equal(tree.frame_count, 1);
	frame_tree_fini(&tree);
}

static void an_empty_tree_stays_one(void **state)
{
	struct frame_tree tree = { 0 };

	(void)state;
	fold(&tree, 0, 0);
	fold(&tree, 5, 1000);
	assert_int_equal(tree.node_count, 0);
	frame_tree_fini(&tree);
}

static void nodes_that_lead_nowhere_are_left_out(void **state)
{
	struct frame_tree tree = { 0 };

	(void)state;
	add(&tree, add(&tree, FRAME_TREE_TOP, "empty", 0), "below", 0);
	add(&tree, add(&tree, FRAME_TREE_TOP, "a", 0), "b", 3);
	fold(&tree, ALL, 0);
	assert_tree(&tree, "a; a/b 3");
	frame_tree_fini(&tree);
}

/* ---- folding ---- */

static void what_is_smaller_is_called_other_where_it_hangs(void **state)
{
	struct frame_tree tree = { 0 };
	uint32_t a = add(&tree, FRAME_TREE_TOP, "a", 50), b = add(&tree, a, "b", 20);

	(void)state;
	add(&tree, a, "c", 9);
	add(&tree, add(&tree, a, "d", 4), "e", 5);
	add(&tree, b, "f", 3);
	fold(&tree, ALL, 10);
	assert_tree(&tree, "a 50; a/b 20; a/other 18/3; a/b/other 3");
	frame_tree_fini(&tree);
}

static void exactly_as_much_is_not_folded(void **state)
{
	struct frame_tree tree = { 0 };
	uint32_t a = add(&tree, FRAME_TREE_TOP, "a", 10);

	(void)state;
	add(&tree, a, "b", 10);
	add(&tree, a, "c", 9);
	fold(&tree, ALL, 10);
	assert_tree(&tree, "a 10; a/b 10; a/other 9");
	frame_tree_fini(&tree);
}

static void what_is_on_the_way_to_much_stays_but_is_other_itself(void **state)
{
	struct frame_tree tree = { 0 };
	uint32_t a = add(&tree, FRAME_TREE_TOP, "a", 1);

	(void)state;
	add(&tree, add(&tree, a, "b", 2), "c", 30);
	fold(&tree, ALL, 10);
	assert_tree(&tree, "a; a/b; a/other 1; a/b/c 30; a/b/other 2");
	frame_tree_fini(&tree);
}

static void small_roots_are_other_at_the_top(void **state)
{
	struct frame_tree tree = { 0 };

	(void)state;
	add(&tree, FRAME_TREE_TOP, "a", 100);
	add(&tree, FRAME_TREE_TOP, "b", 3);
	add(&tree, add(&tree, FRAME_TREE_TOP, "c", 2), "d", 2);
	fold(&tree, ALL, 10);
	assert_tree(&tree, "a 100; other 7/3");
	frame_tree_fini(&tree);
}

static void small_roots_keep_their_labels_and_what_is_below_them_too(void **state)
{
	struct frame_tree tree = { 0 };

	(void)state;
	add_root(&tree, "a", 1, 100);
	add_root(&tree, "b", 1, 3);
	add(&tree, add_root(&tree, "c", 2, 1), "d", 4);
	add(&tree, add_root(&tree, "e", 2, 0), "f", 2);
	add_root(&tree, "g", NONE, 1);
	fold(&tree, ALL, 10);
	assert_tree(&tree, "a{1} 100; other{2} 7/3; other{1} 3; other 1");
	frame_tree_fini(&tree);
}

static void used_bytes_and_objects_are_kept_in_sum(void **state)
{
	struct frame_tree tree = { 0 };
	uint32_t a = add(&tree, FRAME_TREE_TOP, "a", 100);
	uint32_t b = child(&tree, a, "b", NONE), c = child(&tree, a, "c", NONE);

	(void)state;
	tree.nodes[b].own = (struct frame_tree_sizes){ 3, 6, 5 };
	tree.nodes[c].own = (struct frame_tree_sizes){ 2, 4, 0 };
	fold(&tree, ALL, 10);
	assert_tree(&tree, "a 100; a/other 10/5");
	assert_int_equal(tree.nodes[1].own.used_bytes, 5);
	frame_tree_fini(&tree);
}

static void no_more_places_are_left_than_asked_for(void **state)
{
	static const char *const expected[] = {
		"other 61/6",
		"other 61/6",
		"other 31/5; a 30",
		"a 30; b; other 15/3; b/other 16/2",
		"a 30; b 10; other 15/3; b/d 6",
		"a 30; b 10; other 15/3; b/d 6",
		"a 30; b 10; x 5; y 5; z 5; b/d 6",
	};

	(void)state;
	for (uint32_t max = 0; max < sizeof(expected) / sizeof(expected[0]); max++) {
		struct frame_tree tree = { 0 };

		add(&tree, FRAME_TREE_TOP, "a", 30);
		add(&tree, add(&tree, FRAME_TREE_TOP, "b", 10), "d", 6);
		add(&tree, FRAME_TREE_TOP, "x", 5);
		add(&tree, FRAME_TREE_TOP, "y", 5);
		add(&tree, FRAME_TREE_TOP, "z", 5);
		fold(&tree, max, 0);
		assert_tree(&tree, expected[max]);
		frame_tree_fini(&tree);
	}
}

static void of_more_labels_than_places_none_are_left(void **state)
{
	struct frame_tree tree = { 0 };

	(void)state;
	for (uint32_t labels = 0; labels < 8; labels++)
		add_root(&tree, "a", labels, 5);
	add_root(&tree, "b", 3, 100);
	fold(&tree, 3, 0);
	assert_tree(&tree, "b{3} 100; other 40/8");
	frame_tree_fini(&tree);
}

static void the_order_of_adding_does_not_matter(void **state)
{
	static const char *const paths[][3] = {
		{ "a", "x", "1" }, { "a", "x", "2" }, { "a", "y", "1" },
		{ "b", "x", "1" }, { "b", "y", "2" }, { "c", "z", "3" },
	};
	char expected[4096];

	(void)state;
	for (uint32_t shift = 0; shift < 6; shift++) {
		struct frame_tree tree = { 0 };

		for (uint32_t i = 0; i < 6; i++) {
			uint32_t which = (i * 5 + shift) % 6, node = FRAME_TREE_TOP;

			for (uint32_t k = 0; k < 3; k++)
				node =
				    add(&tree, node, paths[which][k], k == 2 ? which * 7 + 1 : 0);
		}
		fold(&tree, 4, 0);
		if (!shift)
			strcpy(expected, show(&tree));
		assert_tree(&tree, expected);
		frame_tree_fini(&tree);
	}
}

/* ---- any tree ---- */

static uint64_t random_state;

static uint64_t next(uint64_t below)
{
	return random_number(&random_state, below);
}

static void make_random(struct frame_tree *tree, uint64_t seed)
{
	static const char *const names[] = { "a", "b", "c", "d", "e", "f", "g", "h", "other" };

	random_state = seed + 1;
	for (uint32_t i = 0; i < 300; i++) {
		uint32_t parent =
		    next(6) && tree->node_count ? (uint32_t)next(tree->node_count) : FRAME_TREE_TOP;
		const char *name = names[next(8 + (next(20) == 0))];
		uint32_t labels = parent == FRAME_TREE_TOP && next(2) ? (uint32_t)next(4) : NONE;
		uint32_t node = child(tree, parent, name, labels);
		struct frame_tree_sizes *own = &tree->nodes[node].own;
		uint64_t bytes = next(3) ? UINT64_C(1) << next(12) : 0;

		own->objects += bytes ? 1 + next(3) : 0;
		own->bytes += bytes;
		own->used_bytes += bytes ? next(bytes + 1) : 0;
	}
}

static struct frame_tree_sizes sum_of(const struct frame_tree *tree, uint32_t labels)
{
	struct frame_tree_sizes sum = { 0 };

	for (uint32_t i = 0; i < tree->node_count; i++) {
		uint32_t root = i;

		while (tree->nodes[root].parent != FRAME_TREE_TOP)
			root = tree->nodes[root].parent;
		if (tree->nodes[root].labels != labels)
			continue;
		sum.objects += tree->nodes[i].own.objects;
		sum.bytes += tree->nodes[i].own.bytes;
		sum.used_bytes += tree->nodes[i].own.used_bytes;
	}
	return sum;
}

static uint32_t count_places(const struct frame_tree *tree)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < tree->node_count; i++)
		count += tree->nodes[i].own.objects != 0;
	return count;
}

/* Sums by labels are what they were. */
static void check_sums(const struct frame_tree *tree, const struct frame_tree *before)
{
	static const uint32_t labels[] = { 0, 1, 2, 3, NONE };

	for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++) {
		struct frame_tree_sizes now = sum_of(tree, labels[i]);
		struct frame_tree_sizes then = sum_of(before, labels[i]);

		assert_memory_equal(&now, &then, sizeof(now));
	}
}

static void check_nodes(const struct frame_tree *tree, uint64_t min_bytes)
{
	for (uint32_t i = 0; i < tree->node_count; i++) {
		const struct frame_tree_node *node = &tree->nodes[i];
		bool is_root = node->parent == FRAME_TREE_TOP;

		assert_true(is_root || node->parent < i);
		assert_int_equal(node->depth, is_root ? 1 : tree->nodes[node->parent].depth + 1);
		assert_true(node->frame < tree->frame_count);
		if (node->own.objects && strcmp(tree->frames[node->frame].name, "other") != 0)
			assert_true(node->own.bytes >= min_bytes);
	}
}

/* What one of the smallest size that leaves few enough would leave. */
static void check_is_finest(const struct frame_tree *tree, uint64_t seed, uint32_t max_samples)
{
	uint64_t min_bytes = 1;
	char expected[64 << 10];
	struct frame_tree other = { 0 };

	for (;; min_bytes++) {
		make_random(&other, seed);
		fold(&other, ALL, min_bytes);
		if (count_places(&other) <= max_samples)
			break;
		frame_tree_fini(&other);
	}
	assert_int_equal(other.node_count, tree->node_count);
	strcpy(expected, show(&other));
	assert_tree(tree, expected);
	frame_tree_fini(&other);
}

static void sums_by_labels_are_kept_and_limits_too(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 200; seed++) {
		uint32_t max = seed % 3 ? 5 + (uint32_t)next(100) : (uint32_t)ALL;
		uint64_t min_bytes = seed % 2 ? next(500) : 0;
		struct frame_tree tree = { 0 }, before = { 0 };

		make_random(&tree, seed);
		make_random(&before, seed);
		fold(&tree, max, min_bytes);
		check_sums(&tree, &before);
		check_nodes(&tree, min_bytes);
		assert_true(count_places(&tree) <= max);
		frame_tree_fini(&tree);
		frame_tree_fini(&before);
	}
}

static void no_more_is_folded_than_needed(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 10; seed++) {
		uint32_t max = 10 + (uint32_t)seed * 3;
		struct frame_tree tree = { 0 };

		make_random(&tree, seed);
		fold(&tree, max, 0);
		assert_true(count_places(&tree) <= max);
		check_is_finest(&tree, seed, max);
		frame_tree_fini(&tree);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_are_alike_by_name),
		cmocka_unit_test(a_child_is_one_by_parent_frame_and_labels),
		cmocka_unit_test(many_frames_and_nodes_are_found_again),
		cmocka_unit_test(children_are_ordered_by_size_then_name),
		cmocka_unit_test(of_equal_roots_those_with_the_lower_labels_come_first),
		cmocka_unit_test(chains_that_come_back_stay_chains),
		cmocka_unit_test(an_empty_tree_stays_one),
		cmocka_unit_test(nodes_that_lead_nowhere_are_left_out),
		cmocka_unit_test(what_is_smaller_is_called_other_where_it_hangs),
		cmocka_unit_test(exactly_as_much_is_not_folded),
		cmocka_unit_test(what_is_on_the_way_to_much_stays_but_is_other_itself),
		cmocka_unit_test(small_roots_are_other_at_the_top),
		cmocka_unit_test(small_roots_keep_their_labels_and_what_is_below_them_too),
		cmocka_unit_test(used_bytes_and_objects_are_kept_in_sum),
		cmocka_unit_test(no_more_places_are_left_than_asked_for),
		cmocka_unit_test(of_more_labels_than_places_none_are_left),
		cmocka_unit_test(the_order_of_adding_does_not_matter),
		cmocka_unit_test(sums_by_labels_are_kept_and_limits_too),
		cmocka_unit_test(no_more_is_folded_than_needed),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("frame_tree", tests, NULL, NULL);
}
