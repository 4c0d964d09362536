/* Retained sizes: what belongs to which group, and what groups are called. */
#include "tests/support/assertions.h"

#include <stdlib.h>
#include <string.h>

#include "agent/analysis/dominators.h"
#include "agent/analysis/graph.h"
#include "agent/analysis/label_owner.h"
#include "agent/analysis/mark.h"
#include "agent/analysis/root_set.h"
#include "agent/goruntime/goroutine.h"
#include "agent/report/retained.h"
#include "tests/support/fake_heap.h"

/* ---- goroutines and variables, made up ---- */

enum { GOROUTINES = 3, CACHE = 0x500000, INDEX = 0x500100, OBJECTS = 16, SIZE = 48 };

static const struct goroutine goroutines[GOROUTINES] = { { .id = 1 }, { .id = 17 }, { .id = 4 } };

uint32_t goroutine_table_count(const struct goroutine_table *table)
{
	(void)table;
	return GOROUTINES;
}

const struct goroutine *goroutine_table_at(const struct goroutine_table *table, uint32_t index)
{
	(void)table;
	return &goroutines[index];
}

/* Two globals of two words each. */
void variable_table_find(const struct variable_table *table, enum root_kind kind,
			 uint32_t goroutine, taddr slot, struct variable *ret)
{
	(void)table;
	assert_int_equal(goroutine, ROOT_NO_GOROUTINE);
	if (kind == ROOT_FINALIZER)
		*ret = (struct variable){ .name = "finalizer", .kind = VARIABLE_RUNTIME };
	else if (kind == ROOT_SYSTEM_STACK)
		*ret = (struct variable){ .name = "(system stack)", .kind = VARIABLE_RUNTIME };
	else
		*ret = (struct variable){ .name = slot < INDEX ? "main.cache" : "main.index",
					  .package = "main",
					  .kind = VARIABLE_GLOBAL };
}

/* ---- a heap of objects that lead to each other ---- */

struct fixture {
	struct fake_heap *heap;
	struct root_set *roots;
	struct graph *graph;
	struct mark *mark;
	struct label_owners owners;
	struct retained *retained;
	uint32_t o[OBJECTS];
};

static void fixture_init(struct fixture *f)
{
	uint32_t span;

	*f = (struct fixture){ .heap = fake_heap_new() };
	span = fake_heap_add(f->heap, SIZE, 170, false);
	fake_heap_finish(f->heap);
	for (uint32_t i = 0; i < OBJECTS; i++)
		f->o[i] = fake_heap_object(f->heap, span, i);
	assert_success(root_set_new(fake_heap_spans(f->heap), &f->roots));
}

static void fixture_fini(struct fixture *f)
{
	retained_free(f->retained);
	mark_free(f->mark);
	graph_free(f->graph);
	root_set_free(f->roots);
	fake_heap_free(f->heap);
}

static void point(struct fixture *f, uint32_t from, uint64_t word, uint32_t to)
{
	fake_heap_point(f->heap, f->o[from], word, fake_heap_addr(f->heap, f->o[to]));
}

static void add_root(struct fixture *f, enum root_kind kind, uint32_t goroutine, taddr slot,
		     uint32_t to)
{
	const struct root root = { .kind = kind,
				   .goroutine = goroutine,
				   .slot = slot,
				   .value = fake_heap_addr(f->heap, f->o[to]) };

	assert_success(root_set_sink(f->roots)->add(root_set_sink(f->roots), &root));
}

static void find(struct fixture *f, bool names)
{
	struct retained_input input = {
		.roots = f->roots,
		.specials = fake_heap_specials(f->heap),
		.owners = &f->owners,
		.variables = names ? (const struct variable_table *)f : NULL,
		.thread_count = 1,
	};

	assert_success(
	    graph_read(fake_heap_memory(f->heap), NULL, fake_heap_spans(f->heap), 1, 0, &f->graph));
	assert_success(mark_run(f->graph, f->roots, input.specials, 1, &f->mark));
	input.graph = f->graph;
	input.mark = f->mark;
	assert_success(retained_find(&input, &f->retained));
}

/* Of the group with this name, of which there is one. */
static uint64_t of_group(const struct fixture *f, const char *name, uint8_t kind)
{
	const struct dominators *tree = retained_dominators(f->retained);
	uint32_t found = UINT32_MAX;

	for (uint32_t i = 0; i < dominators_group_count(tree); i++) {
		struct retained_group group = retained_group_at(f->retained, i);

		if (strcmp(group.name, name) != 0)
			continue;
		assert_int_equal(found, UINT32_MAX);
		assert_int_equal(group.kind, kind);
		found = i;
	}
	assert_int_not_equal(found, UINT32_MAX);
	return dominators_retained(tree, dominators_group_node(tree, found));
}

/*
 * main.cache: 0 -> 1, 2 -> 3; main.index: 4; both lead to 5. Goroutine 17 holds 6 -> 7 by two
 * words, and 0 as the global does.
 */
static void globals_and_goroutines_retain_what_they_alone_hold(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f);
	point(&f, 0, 0, 1);
	point(&f, 2, 0, 3);
	point(&f, 1, 0, 5);
	point(&f, 4, 0, 5);
	point(&f, 6, 0, 7);
	add_root(&f, ROOT_DATA, ROOT_NO_GOROUTINE, CACHE, 0);
	add_root(&f, ROOT_BSS, ROOT_NO_GOROUTINE, CACHE + 8, 2);
	add_root(&f, ROOT_DATA, ROOT_NO_GOROUTINE, INDEX, 4);
	add_root(&f, ROOT_STACK, 1, 0x700000, 6);
	add_root(&f, ROOT_REGISTER, 1, 0, 7);
	add_root(&f, ROOT_STACK, 2, 0x700000, 4);
	find(&f, true);
	assert_int_equal(of_group(&f, "main.cache", VARIABLE_GLOBAL), 4 * SIZE);
	assert_int_equal(of_group(&f, "main.index", VARIABLE_GLOBAL), 0);
	assert_int_equal(of_group(&f, "goroutine 17", VARIABLE_LOCAL), 2 * SIZE);
	assert_int_equal(retained_of_goroutine(f.retained, 1), 2 * SIZE);
	assert_int_equal(retained_of_goroutine(f.retained, 2), 0);
	assert_int_equal(retained_of_goroutine(f.retained, 0), 0);
	assert_int_equal(retained_goroutine_node(f.retained, 0), DOMINATOR_NONE);
	assert_int_equal(dominators_parent(retained_dominators(f.retained), f.o[5]), DOMINATOR_TOP);
	fixture_fini(&f);
}

/* A global table leads to all gs (0 to 2), each to a record (3 to 5); 6 is an M. */
static void a_g_is_its_goroutines_whoever_leads_to_it(void **state)
{
	static struct label_owner items[4];
	struct fixture f;

	(void)state;
	fixture_init(&f);
	for (uint32_t i = 0; i < 3; i++) {
		point(&f, 7, i, i);
		point(&f, i, 0, i + 3);
		point(&f, i, 1, 6);
		items[i] = (struct label_owner){ .object = f.o[i], .goroutine = i };
	}
	items[3] = (struct label_owner){ .object = f.o[6], .goroutine = ROOT_NO_GOROUTINE };
	f.owners = (struct label_owners){ .items = items, .count = 4 };
	add_root(&f, ROOT_DATA, ROOT_NO_GOROUTINE, CACHE, 7);
	find(&f, true);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(retained_of_goroutine(f.retained, i), 2 * SIZE);
	assert_int_equal(of_group(&f, "main.cache", VARIABLE_GLOBAL), SIZE);
	assert_int_equal(of_group(&f, "(runtime)", VARIABLE_RUNTIME), SIZE);
	fixture_fini(&f);
}

static void what_waits_for_its_finalizer_is_held_by_it(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f);
	point(&f, 0, 0, 1);
	fake_heap_add_special(f.heap, f.o[0], SPECIAL_FINALIZER);
	add_root(&f, ROOT_SYSTEM_STACK, ROOT_NO_GOROUTINE, 0x800000, 2);
	find(&f, true);
	assert_int_equal(of_group(&f, "finalizer", VARIABLE_RUNTIME), SIZE);
	assert_int_equal(of_group(&f, "(system stack)", VARIABLE_RUNTIME), SIZE);
	fixture_fini(&f);
}

static void without_names_globals_are_one_group(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f);
	add_root(&f, ROOT_DATA, ROOT_NO_GOROUTINE, CACHE, 0);
	add_root(&f, ROOT_BSS, ROOT_NO_GOROUTINE, INDEX, 0);
	add_root(&f, ROOT_TINY_BLOCK, ROOT_NO_GOROUTINE, 0x900000, 1);
	add_root(&f, ROOT_STACK, 0, 0x700000, 2);
	find(&f, false);
	assert_int_equal(of_group(&f, "(globals)", VARIABLE_NAMELESS), SIZE);
	assert_int_equal(of_group(&f, "(runtime)", VARIABLE_RUNTIME), SIZE);
	assert_int_equal(of_group(&f, "goroutine 1", VARIABLE_LOCAL), SIZE);
	fixture_fini(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(globals_and_goroutines_retain_what_they_alone_hold),
		cmocka_unit_test(a_g_is_its_goroutines_whoever_leads_to_it),
		cmocka_unit_test(what_waits_for_its_finalizer_is_held_by_it),
		cmocka_unit_test(without_names_globals_are_one_group),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
