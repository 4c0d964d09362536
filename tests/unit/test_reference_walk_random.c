/*
 * Random heaps of 100,000 objects: one whose types are all plain, against a simple walk of our own;
 * and one with everything in it, right and wrong, which must give the same answer however it is
 * walked, whatever that is.
 */
#include "agent/analysis/reference_walk.h"

#include <inttypes.h>
#include <stdlib.h>

#include "agent/analysis/mark.h"
#include "agent/analysis/root_set.h"
#include "agent/goruntime/bitmap.h"
#include "tests/support/assertions.h"
#include "tests/support/random_numbers.h"
#include "tests/support/walked_heap.h"

enum { PER_SPAN = 128 };

static uint64_t random_state;

static uint64_t next(uint64_t below)
{
	return random_number(&random_state, below);
}

static uint32_t add_spans(struct walked_heap *w, uint64_t size, uint32_t count, bool noscan)
{
	uint32_t first = fake_heap_add(w->heap, size, PER_SPAN, noscan);

	for (uint32_t made = PER_SPAN; made < count; made += PER_SPAN)
		fake_heap_add(w->heap, size, PER_SPAN, noscan);
	return first;
}

/* ---- plain types, and a walk of our own ---- */

/* Node { left, right *Node; text string; items []*Node; id int }: each fills its slot. */
enum {
	NODES = 64 * 1024,
	BLOCKS = 16 * 1024, /* of up to 16 items */
	TEXTS = 20 * 1024,
	NODE_SIZE = 64,
	BLOCK_SIZE = 128,
	TEXT_SIZE = 32,
	OBJECTS = NODES + BLOCKS + TEXTS,
	ROOTS = 20,
};

struct plain_node {
	uint32_t left, right, text, block; /* objects, or OBJECT_NONE */
	uint32_t text_length, length, capacity;
};

/* What we expect of an object. */
struct expectation {
	uint32_t parent;
	uint32_t level; /* from 1; 0: not met */
	const char *root;
	const char *frame; /* NULL: the root's own */
	uint32_t used, length, capacity;
};

struct plain {
	struct walked_heap w;
	type_id pointer;
	struct go_field fields[5];
	struct plain_node nodes[NODES + 1];
	uint32_t items[BLOCKS][16];
	uint32_t first_block, first_text;
	uint32_t roots[ROOTS];
	struct expectation expected[OBJECTS + 1];
};

static const char *const root_names[ROOTS] = {
	"main.a", "main.b", "main.c", "main.d", "main.e", "main.f", "main.g",
	"main.h", "main.i", "main.j", "main.k", "main.l", "main.m", "main.n",
	"main.o", "main.p", "main.q", "main.r", "main.s", "main.t",
};

static struct plain *plain_new(void)
{
	struct plain *p = calloc(1, sizeof(*p));
	struct walked_heap *w = &p->w;
	type_id string, slice, integer;

	assert_non_null(p);
	walked_heap_init(w);
	string = fake_type_string(w->types);
	integer = fake_type_plain(w->types, "int", GO_KIND_INT, 8);
	p->pointer = fake_type_pointer(w->types, "*main.Node", TYPE_UNKNOWN);
	slice = fake_type_slice(w->types, "[]*main.Node", p->pointer);
	p->fields[0] = (struct go_field){ "left", 0, p->pointer };
	p->fields[1] = (struct go_field){ "right", 8, p->pointer };
	p->fields[2] = (struct go_field){ "text", 16, string };
	p->fields[3] = (struct go_field){ "items", 32, slice };
	p->fields[4] = (struct go_field){ "id", 56, integer };
	fake_types_at(w->types, p->pointer)->elem =
	    fake_type_struct(w->types, "main.Node", NODE_SIZE, p->fields, 5);
	add_spans(w, NODE_SIZE, NODES, false);
	p->first_block = add_spans(w, BLOCK_SIZE, BLOCKS, false);
	p->first_text = add_spans(w, TEXT_SIZE, TEXTS, true);
	walked_heap_finish(w);
	p->first_block = fake_heap_object(w->heap, p->first_block, 0);
	p->first_text = fake_heap_object(w->heap, p->first_text, 0);
	return p;
}

static void plain_free(struct plain *p)
{
	walked_heap_fini(&p->w);
	free(p);
}

static uint32_t random_node(void)
{
	return 1 + (uint32_t)next(NODES);
}

static void fill_node(struct plain *p, uint32_t node)
{
	struct plain_node *n = &p->nodes[node];

	if (next(8))
		n->left = random_node();
	if (next(4) == 0)
		n->right = random_node();
	if (next(4) == 0) {
		n->text = p->first_text + (uint32_t)next(TEXTS);
		n->text_length = (uint32_t)next(TEXT_SIZE + 1);
	}
	if (next(8) == 0) {
		n->block = p->first_block + (uint32_t)next(BLOCKS);
		n->capacity = 16;
		n->length = (uint32_t)next(17);
	}
}

static void write_node(struct plain *p, uint32_t node)
{
	const struct plain_node *n = &p->nodes[node];
	struct walked_heap *w = &p->w;

	if (n->left)
		walked_heap_point(w, node, 0, n->left);
	if (n->right)
		walked_heap_point(w, node, 1, n->right);
	if (n->text)
		walked_heap_point(w, node, 2, n->text);
	walked_heap_store(w, node, 3, n->text_length);
	if (n->block)
		walked_heap_point(w, node, 4, n->block);
	walked_heap_store(w, node, 5, n->length);
	walked_heap_store(w, node, 6, n->capacity);
}

static void plain_fill(struct plain *p)
{
	for (uint32_t node = 1; node <= NODES; node++) {
		fill_node(p, node);
		write_node(p, node);
	}
	for (uint32_t block = 0; block < BLOCKS; block++) {
		for (uint32_t i = 0; i < 16; i++) {
			if (next(4))
				continue;
			p->items[block][i] = random_node();
			walked_heap_point(&p->w, p->first_block + block, i, p->items[block][i]);
		}
	}
	for (uint32_t i = 0; i < ROOTS; i++) {
		p->roots[i] = random_node();
		walked_heap_global(&p->w, root_names[i], p->pointer, p->roots[i]);
	}
}

static void expect(struct plain *p, uint32_t parent, uint32_t object, const char *frame,
		   uint32_t used, const struct plain_node *from)
{
	struct expectation *e = &p->expected[object];

	if (!object || e->level)
		return;
	*e = (struct expectation){ .parent = parent,
				   .level = p->expected[parent].level + 1,
				   .frame = frame,
				   .used = used };
	if (from) {
		e->length = from->length;
		e->capacity = from->capacity;
	}
}

static void expect_children_of_node(struct plain *p, uint32_t node)
{
	const struct plain_node *n = &p->nodes[node];

	expect(p, node, n->left, "left. (*main.Node)", NODE_SIZE, NULL);
	expect(p, node, n->right, "right. (*main.Node)", NODE_SIZE, NULL);
	expect(p, node, n->text, "text. (string)", n->text_length, NULL);
	expect(p, node, n->block, "items. ([]*main.Node)", n->length * 8, n);
}

static void expect_children_of_block(struct plain *p, uint32_t block)
{
	static const char *const frames[] = {
		"[0]. (*main.Node)", "[1]. (*main.Node)", "[2]. (*main.Node)", "[3]. (*main.Node)",
		"[4]. (*main.Node)", "[5]. (*main.Node)", "[6]. (*main.Node)", "[7]. (*main.Node)",
		"[8]. (*main.Node)", "[9]. (*main.Node)",
	};
	const struct expectation *e = &p->expected[block];

	for (uint32_t i = 0; i < e->capacity; i++)
		expect(p, block, p->items[block - p->first_block][i],
		       i >= e->length ? "[len+]. (*main.Node)"
		       : i < 10       ? frames[i]
				      : "[10+]. (*main.Node)",
		       NODE_SIZE, NULL);
}

/* Level by level, each in the order of its addresses. */
static uint32_t expect_all(struct plain *p)
{
	uint32_t count = 0;
	bool more = true;

	for (uint32_t i = 0; i < ROOTS; i++) {
		if (p->expected[p->roots[i]].level)
			continue;
		expect(p, OBJECT_NONE, p->roots[i], NULL, NODE_SIZE, NULL);
		p->expected[p->roots[i]].root = root_names[i];
	}
	for (uint32_t level = 1; more; level++) {
		more = false;
		for (uint32_t object = 1; object <= OBJECTS; object++) {
			if (p->expected[object].level != level)
				continue;
			more = true;
			count++;
			if (object <= NODES)
				expect_children_of_node(p, object);
			else if (object < p->first_text)
				expect_children_of_block(p, object);
		}
	}
	return count;
}

static void check_frame(const struct walked_heap *w, uint32_t step, const char *expected)
{
	const char *const *frames;

	assert_int_equal(reference_walk_step_frames(w->walk, step, &frames), expected != NULL);
	if (expected)
		assert_string_equal(frames[0], expected);
}

static void check_expectations(const struct plain *p)
{
	const struct reference_walk *walk = p->w.walk;

	for (uint32_t place = 0; place < reference_walk_count(walk); place++) {
		uint32_t object = reference_walk_object(walk, place);
		const struct expectation *e = &p->expected[object];
		struct reference reference = reference_walk_at(walk, place);

		assert_true(e->level);
		assert_int_equal(walked_heap_parent(&p->w, object), e->parent);
		assert_int_equal(reference.used_bytes, e->used);
		if (e->root)
			assert_string_equal(reference_walk_root(walk, reference.root).name,
					    e->root);
		check_frame(&p->w, reference.step, e->frame);
		assert_type(&p->w, object,
			    object <= NODES          ? "main.Node"
			    : object < p->first_text ? "[]*main.Node"
						     : "string");
	}
}

static void every_object_has_the_chain_that_a_simple_walk_finds(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 2; seed++) {
		struct plain *p = plain_new();
		uint32_t count;

		random_state = seed;
		plain_fill(p);
		count = expect_all(p);
		assert_true(count > OBJECTS / 2);
		p->w.way.threads = seed == 2 ? 4 : 1;
		walked_heap_run_both(&p->w);
		assert_int_equal(reference_walk_count(p->w.walk), count);
		check_expectations(p);
		plain_free(p);
	}
}

/* ---- everything that there is ---- */

enum {
	SMALL_OBJECTS = 72 * 1024,
	PLAIN_OBJECTS = 16 * 1024,
	WIDE_OBJECTS = 8 * 1024,
	BIG_OBJECTS = 4 * 1024,
	SMALL = 64,
	PLAIN = 32,
	WIDE = 256,
	BIG = 1024,
	HUGE = 4 << 20, /* one object of very many edges */
	HUGE_EDGES_OF_TEST = 150000,
	DESCRIPTORS = 0x601000,
	ITABS = 0x602000,
	CODE = 0x401000,
	MIXED_ROOTS = 100,
	TYPES = 16,
};

struct mixed {
	struct walked_heap w;
	type_id types[TYPES]; /* those of variables */
	uint32_t type_count;
	struct go_field node_fields[5], item_fields[2], closure_fields[3], group_fields[2],
	    slot_fields[2];
	uint32_t object_end, huge;
};

static type_id remember(struct mixed *m, type_id type)
{
	assert_true(m->type_count < TYPES);
	fake_types_at(m->w.types, type)->descriptor = DESCRIPTORS + m->type_count * 0x100;
	m->types[m->type_count++] = type;
	return type;
}

/* Node { next *Node; any; shape Shape; call func() }, Item { node *Node; items []Item }. */
static void make_node_types(struct mixed *m)
{
	struct go_types *types = m->w.types;
	type_id string = remember(m, fake_type_string(types));
	type_id any = remember(m, fake_type_interface(types, "interface {}", false));
	type_id shape = remember(m, fake_type_interface(types, "main.Shape", true));
	type_id pointer = remember(m, fake_type_pointer(types, "*main.Node", TYPE_UNKNOWN));
	type_id items = remember(m, fake_type_slice(types, "[]main.Item", TYPE_UNKNOWN));
	type_id call =
	    remember(m, fake_types_add(types, &(struct go_type){ .name = "func()",
								 .kind = GO_KIND_FUNC,
								 .size = 8,
								 .ptr_bytes = 8,
								 .direct_interface = true }));
	type_id node, item;

	m->node_fields[0] = (struct go_field){ "next", 0, pointer };
	m->node_fields[1] = (struct go_field){ "any", 8, any };
	m->node_fields[2] = (struct go_field){ "shape", 24, shape };
	m->node_fields[3] = (struct go_field){ "call", 40, call };
	m->node_fields[4] = (struct go_field){ "text", 48, string };
	node = remember(m, fake_type_struct(types, "main.Node", SMALL, m->node_fields, 5));
	fake_types_at(types, pointer)->elem = node;
	m->item_fields[0] = (struct go_field){ "node", 0, pointer };
	m->item_fields[1] = (struct go_field){ "items", 8, items };
	item = remember(m, fake_type_struct(types, "main.Item", 40, m->item_fields, 2));
	fake_types_at(types, items)->elem = item;
	remember(m, fake_type_pointer(types, "*main.Item", item));
	remember(m, fake_type_array(types, "[20]main.Item", item, 20));
	m->closure_fields[0] = (struct go_field){ "F", 0, TYPE_UNKNOWN };
	m->closure_fields[1] = (struct go_field){ "node", 8, pointer };
	m->closure_fields[2] = (struct go_field){ "items", 16, items };
	fake_types_add_closure(types, CODE,
			       fake_type_struct(types, "main.f.func1", 40, m->closure_fields, 3));
	fake_types_add_itab(types, ITABS, item);
	fake_types_add_itab(types, ITABS + 0x100, pointer);
}

/* map[string]*Node of groups, chan *Node. */
static void make_container_types(struct mixed *m)
{
	struct go_types *types = m->w.types;
	struct layout *layout = &m->w.layout;
	type_id string = m->types[0], pointer = m->types[3], slot;

	m->slot_fields[0] = (struct go_field){ "key", 0, string };
	m->slot_fields[1] = (struct go_field){ "elem", 16, pointer };
	slot = fake_type_struct(types, "slot", 24, m->slot_fields, 2);
	m->group_fields[0] = (struct go_field){ "ctrl", 0, TYPE_UNKNOWN };
	m->group_fields[1] =
	    (struct go_field){ "slots", 8, fake_type_array(types, "[8]slot", slot, 8) };
	remember(m, fake_types_add(
			types, &(struct go_type){ .name = "map[string]*main.Node",
						  .kind = GO_KIND_MAP,
						  .size = 8,
						  .ptr_bytes = 8,
						  .key = string,
						  .elem = pointer,
						  .bucket = fake_type_struct(
						      types, "group", 200, m->group_fields, 2) }));
	remember(m, fake_type_channel(types, "chan *main.Node", pointer));
	layout->swiss_map.size = 48;
	layout->swiss_map_directory = (struct layout_field){ .offset = 16, .size = 8 };
	layout->swiss_map_directory_length = (struct layout_field){ .offset = 24, .size = 8 };
	layout->swiss_table.size = 32;
	layout->swiss_table_groups = (struct layout_field){ .offset = 16, .size = 8 };
	layout->hchan.size = 48;
	layout->hchan_buffer = (struct layout_field){ .offset = 16, .size = 8 };
}

static taddr random_address(const struct mixed *m)
{
	uint32_t object = 1 + (uint32_t)next(m->object_end - 1);
	taddr start = walked_heap_address(&m->w, object);

	return next(6) ? start : start + next(24) * 8 % PLAIN;
}

/* A word that is no pointer: lengths, right and wrong, types, code. */
static uint64_t random_word(const struct mixed *m)
{
	switch (next(8)) {
	case 0:
		return DESCRIPTORS + next(m->type_count) * 0x100;
	case 1:
		return ITABS + next(3) * 0x100;
	case 2:
		return CODE + next(2) * 0x100;
	case 3:
		return UINT64_C(1) << next(64);
	default:
		return next(12);
	}
}

static void fill_object(struct mixed *m, uint32_t object, uint64_t words)
{
	for (uint64_t word = 0; word < words; word++) {
		uint64_t kind = next(10);

		if (kind < 2)
			fake_heap_point(m->w.heap, object, word, random_address(m));
		else if (kind < 3) /* what the collector has not followed */
			fake_heap_store(m->w.heap, object, word, random_address(m));
		else if (kind < 7)
			fake_heap_store(m->w.heap, object, word, random_word(m));
	}
}

/* A node as it should be; what is in its interfaces need not be. */
static void fill_node_rightly(struct mixed *m, uint32_t object)
{
	struct walked_heap *w = &m->w;

	fake_heap_point(w->heap, object, 0, random_address(m));
	fake_heap_store(w->heap, object, 1, DESCRIPTORS + next(m->type_count) * 0x100);
	fake_heap_point(w->heap, object, 2, random_address(m));
	fake_heap_store(w->heap, object, 3, ITABS + next(2) * 0x100);
	fake_heap_point(w->heap, object, 4, random_address(m));
	if (next(4) == 0)
		fake_heap_point(w->heap, object, 5, random_address(m));
	fake_heap_point(w->heap, object, 6, random_address(m));
	fake_heap_store(w->heap, object, 7, next(80));
}

static void fill_objects(struct mixed *m)
{
	for (uint32_t object = 1; object < m->object_end; object++) {
		const struct span *span = span_table_span_of(fake_heap_spans(m->w.heap), object);
		uint64_t words = span->elem_size / 8;

		if (span->noscan || object == m->huge)
			continue;
		if (span->elem_size == SMALL && next(4))
			fill_node_rightly(m, object);
		else
			fill_object(m, object, words > 40 ? 40 : words);
		if (span->elem_size == BIG)
			fake_heap_store(m->w.heap, object, 0, random_word(m));
	}
	for (uint64_t word = 0; word < HUGE_EDGES_OF_TEST; word++)
		fake_heap_point(m->w.heap, m->huge, word * 3, random_address(m));
	for (uint32_t i = 0; i < 1000; i++)
		fake_heap_set_slot(m->w.heap, 1 + (uint32_t)next(SMALL_OBJECTS), FAKE_FREE);
}

static void add_random_root(struct mixed *m, uint32_t i)
{
	static const enum root_kind kinds[] = { ROOT_DATA, ROOT_STACK, ROOT_STACK_CONSERVATIVE,
						ROOT_SYSTEM_STACK };
	enum root_kind kind = kinds[next(4)];
	type_id type = next(4) ? m->types[next(m->type_count)] : (type_id)TYPE_UNKNOWN;
	const uint64_t words[] = { random_word(m), random_address(m), random_word(m),
				   random_address(m) };
	uint32_t first = type && go_type_at(m->w.types, type)->kind != GO_KIND_INTERFACE;

	walked_heap_variable(&m->w, kind, kind == ROOT_DATA ? (uint32_t)ROOT_NO_GOROUTINE : i,
			     root_names[i % ROOTS], type, words + first, 3);
}

static struct mixed *mixed_new(uint64_t seed)
{
	struct mixed *m = calloc(1, sizeof(*m));
	struct walked_heap *w = &m->w;
	uint32_t last;

	assert_non_null(m);
	random_state = seed;
	walked_heap_init(w);
	make_node_types(m);
	make_container_types(m);
	add_spans(w, SMALL, SMALL_OBJECTS, false);
	add_spans(w, PLAIN, PLAIN_OBJECTS, true);
	fake_heap_gap(w->heap, 5);
	add_spans(w, WIDE, WIDE_OBJECTS, false);
	add_spans(w, BIG, BIG_OBJECTS, false);
	last = fake_heap_add(w->heap, HUGE, 1, false);
	walked_heap_finish(w);
	m->huge = fake_heap_object(w->heap, last, 0);
	m->object_end = m->huge + 1;
	fill_objects(m);
	for (uint32_t i = 0; i < MIXED_ROOTS; i++)
		add_random_root(m, i);
	walked_heap_root(w, ROOT_DATA, ROOT_NO_GOROUTINE, "main.huge", TYPE_UNKNOWN, m->huge);
	fake_heap_add_record(w->heap, 3, SPECIAL_FINALIZER,
			     walked_heap_finalizer(w, DESCRIPTORS, DESCRIPTORS + 0x300));
	return m;
}

static void mixed_free(struct mixed *m)
{
	walked_heap_fini(&m->w);
	free(m);
}

/* Notes tell more than memory that is not what it was: with them it may be another answer. */
static void check_ways(struct mixed *m, bool noted)
{
	static const struct walked_way ways[] = {
		{ .threads = 2 },
		{ .threads = 4, .from_copy = true },
		{ .threads = 4 },
	};
	struct walked_answer first;

	m->w.way.noted = noted;
	m->w.way.threads = 1;
	m->w.way.from_copy = false;
	walked_heap_run(&m->w);
	first = walked_heap_answer(&m->w);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		m->w.way.threads = ways[i].threads;
		m->w.way.from_copy = ways[i].from_copy;
		walked_heap_run(&m->w);
		walked_heap_check_answer(&m->w, &first);
	}
	free(first.text);
}

static void check_all_ways(struct mixed *m)
{
	check_ways(m, false);
	check_ways(m, true);
}

static void the_answer_is_the_same_however_it_is_walked(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 2; seed++) {
		struct mixed *m = mixed_new(seed);

		check_all_ways(m);
		assert_true(reference_walk_count(m->w.walk) > 90000);
		assert_in_range(walked_heap_totals(&m->w).typed_objects, 30000,
				reference_walk_count(m->w.walk) - 1000);
		mixed_free(m);
	}
}

static void so_it_is_if_memory_is_not_what_the_graph_was_made_of(void **state)
{
	struct mixed *m = mixed_new(7);

	(void)state;
	m->w.way.lies = 1;
	check_all_ways(m);
	mixed_free(m);
}

/* A whole span and a bit of the next: what is a copy has neither of both. */
static void so_it_is_if_memory_cannot_be_read(void **state)
{
	struct mixed *m = mixed_new(8);
	const struct span *span;

	(void)state;
	for (uint32_t i = 3; i < 400; i += 300) {
		span = span_table_at(fake_heap_spans(m->w.heap), i);
		m->w.way.hole = span->base;
		m->w.way.hole_size = span->page_count * GO_PAGE_SIZE;
		check_all_ways(m);
	}
	mixed_free(m);
}

static void types_alone_are_the_same(void **state)
{
	struct mixed *m = mixed_new(9);
	char(*types)[64] = calloc(m->object_end, sizeof(*types));

	(void)state;
	assert_non_null(types);
	walked_heap_run(&m->w);
	for (uint32_t object = 1; object < m->object_end; object++)
		snprintf(types[object], sizeof(types[object]), "%s",
			 walked_heap_type(&m->w, object));
	m->w.way.types_only = true;
	for (m->w.way.threads = 1; m->w.way.threads <= 4; m->w.way.threads += 3) {
		walked_heap_run(&m->w);
		for (uint32_t object = 1; object < m->object_end; object++)
			assert_type(&m->w, object, types[object]);
	}
	free(types);
	mixed_free(m);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_object_has_the_chain_that_a_simple_walk_finds),
		cmocka_unit_test(the_answer_is_the_same_however_it_is_walked),
		cmocka_unit_test(so_it_is_if_memory_is_not_what_the_graph_was_made_of),
		cmocka_unit_test(so_it_is_if_memory_cannot_be_read),
		cmocka_unit_test(types_alone_are_the_same),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("reference_walk_random", tests, NULL, NULL);
}
