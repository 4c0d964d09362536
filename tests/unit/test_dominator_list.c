/* Pages of the dominator tree, of which a test has made up the parents. */
#include "agent/report/dominator_list.h"

#include "agent/goruntime/span.h"
#include "agent/report/object_list.h"
#include "tests/support/analysed_heap.h"
#include "tests/support/assertions.h"

enum { SMALL = 48, COUNT = 60 };

struct fixture {
	struct analysed_heap a;
	uint32_t first, end; /* objects */
	Goheapd__ScanResult result;
};

static uint32_t group(const struct fixture *f, uint32_t i)
{
	return dominators_group_node(retained_dominators(f->a.retained), i);
}

/*
 * The top has two groups that hold something, one that does not, and object 0. Group 0 has objects
 * 1 to 40, in threes of equal size; 41 to 50 hang from object 1; 51 is dead, the rest free.
 */
static struct fixture *fixture_new(void)
{
	static const struct go_type item = { .name = "main.Item",
					     .size = 48,
					     .kind = GO_KIND_STRUCT };
	static const struct retained_group groups[] = { { .name = "main.cache" },
							{ .name = "main.empty" },
							{ .name = "main.main.x" } };
	struct fixture *f = calloc(1, sizeof(*f));
	struct analysed_heap *a = &f->a;

	assert_non_null(f);
	analysed_heap_init(a);
	fake_types_add(a->types, &item);
	fake_heap_add(a->heap, SMALL, COUNT, false);
	analysed_heap_finish(a);
	f->first = fake_heap_object(a->heap, 0, 0);
	f->end = f->first + COUNT;
	a->retained = fake_retained_new(f->end);
	for (uint32_t i = 0; i < 3; i++)
		fake_retained_add_group(a->retained, &groups[i]);
	for (uint32_t i = 0; i < COUNT; i++) {
		uint32_t parent = i == 0 ? DOMINATOR_TOP : i <= 40 ? group(f, 0) : f->first + 1;

		parent = i <= 50 ? parent : DOMINATOR_NONE;

		if (i <= 50)
			analysed_heap_root(a, ROOT_DATA, 0x600000 + 8 * i,
					   analysed_heap_address(a, f->first + i));
		if (i > 51)
			fake_heap_set_slot(a->heap, f->first + i, FAKE_FREE);
		fake_retained_set(a->retained, f->first + i, parent, SMALL * (1 + i / 3));
		fake_walk_set_type(a->walk, f->first + i, i == 2 ? TYPE_UNKNOWN : 1, false);
	}
	fake_retained_set(a->retained, group(f, 0), DOMINATOR_TOP, 100000);
	fake_retained_set(a->retained, group(f, 1), DOMINATOR_TOP, 0);
	fake_retained_set(a->retained, group(f, 2), DOMINATOR_TOP, 200000);
	analysed_heap_mark(a);
	goheapd__scan_result__init(&f->result);
	return f;
}

static void fixture_free(struct fixture *f)
{
	goheapd__dominator_page__free_unpacked(f->result.dominators, NULL);
	analysed_heap_fini(&f->a);
	free(f);
}

static const Goheapd__DominatorPage *list(struct fixture *f, const Goheapd__DominatorsQuery *query)
{
	goheapd__dominator_page__free_unpacked(f->result.dominators, NULL);
	f->result.dominators = NULL;
	assert_success(dominator_list_fill(&f->a.analysed, query, &f->result));
	return f->result.dominators;
}

static void the_top_has_groups_and_objects(void **state)
{
	struct fixture *f = fixture_new();
	Goheapd__DominatorsQuery query = GOHEAPD__DOMINATORS_QUERY__INIT;
	const Goheapd__DominatorPage *page;

	(void)state;
	query.limit = 10;
	page = list(f, &query);
	assert_int_equal(page->n_nodes, 3);
	assert_false(page->has_next_node);
	assert_false(page->nodes[0]->has_address);
	assert_memory_equal(page->nodes[0]->name.data, "main.main.x", 11);
	assert_int_equal(page->nodes[0]->children, 0);
	assert_memory_equal(page->nodes[1]->name.data, "main.cache", 10);
	assert_int_equal(page->nodes[1]->bytes, 0);
	assert_int_equal(page->nodes[1]->retained_bytes, 100000);
	assert_int_equal(page->nodes[1]->children, 40);
	assert_false(page->nodes[2]->has_name);
	assert_true(page->nodes[2]->address == analysed_heap_address(&f->a, f->first));
	assert_int_equal(page->nodes[2]->bytes, SMALL);
	assert_int_equal(page->nodes[2]->retained_bytes, SMALL);
	assert_memory_equal(page->nodes[2]->type.data, "main.Item", 9);
	fixture_free(f);
}

static void an_object_has_its_own_children(void **state)
{
	struct fixture *f = fixture_new();
	Goheapd__DominatorsQuery query = GOHEAPD__DOMINATORS_QUERY__INIT;
	const Goheapd__DominatorPage *page;

	(void)state;
	query.limit = 20;
	query.has_object = true;
	query.object = analysed_heap_address(&f->a, f->first + 1) + 17;
	page = list(f, &query);
	assert_int_equal(page->n_nodes, 10);
	for (size_t i = 1; i < page->n_nodes; i++)
		assert_true(page->nodes[i]->retained_bytes <= page->nodes[i - 1]->retained_bytes);
	assert_int_equal(page->nodes[0]->retained_bytes, SMALL * (1 + 50 / 3));
	fixture_free(f);
}

/* Many are equally large: they come in a fixed order, each once, whatever a page holds. */
static void pages_are_complete_and_have_nothing_twice(void **state)
{
	(void)state;
	for (uint32_t limit = 1; limit <= 11; limit++) {
		struct fixture *f = fixture_new();
		Goheapd__DominatorsQuery query = GOHEAPD__DOMINATORS_QUERY__INIT;
		const Goheapd__DominatorPage *page;
		uint32_t seen = 0;
		taddr addresses[10];

		query.limit = limit;
		query.has_object = true;
		query.object = analysed_heap_address(&f->a, f->first + 1);
		do {
			page = list(f, &query);
			for (size_t i = 0; i < page->n_nodes; i++) {
				assert_true(seen < 10);
				addresses[seen] = page->nodes[i]->address;
				for (uint32_t k = 0; k < seen; k++)
					assert_true(addresses[k] != addresses[seen]);
				seen++;
			}
			query.has_after_node = query.has_after_retained = true;
			query.after_node = page->next_node;
			query.after_retained = page->nodes[page->n_nodes - 1]->retained_bytes;
		} while (page->has_next_node);
		assert_int_equal(seen, 10);
		fixture_free(f);
	}
}

static void what_cannot_be_asked_is_refused(void **state)
{
	struct fixture *f = fixture_new();
	Goheapd__DominatorsQuery query = GOHEAPD__DOMINATORS_QUERY__INIT;

	(void)state;
	query.limit = 0;
	assert_error(dominator_list_fill(&f->a.analysed, &query, &f->result), ERROR_BAD_REQUEST);
	query.limit = OBJECT_LIST_MAX + 1;
	assert_error(dominator_list_fill(&f->a.analysed, &query, &f->result), ERROR_BAD_REQUEST);
	query.limit = 1;
	query.has_after_node = true;
	assert_error(dominator_list_fill(&f->a.analysed, &query, &f->result), ERROR_BAD_REQUEST);
	query.has_after_node = false;
	query.has_object = true;
	query.object = analysed_heap_address(&f->a, f->first + 51);
	assert_error(dominator_list_fill(&f->a.analysed, &query, &f->result), ERROR_NOT_FOUND);
	query.object = analysed_heap_address(&f->a, f->first + 52);
	assert_error(dominator_list_fill(&f->a.analysed, &query, &f->result), ERROR_NOT_FOUND);
	query.object = 0x10;
	assert_error(dominator_list_fill(&f->a.analysed, &query, &f->result), ERROR_NOT_FOUND);
	fixture_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_top_has_groups_and_objects),
		cmocka_unit_test(an_object_has_its_own_children),
		cmocka_unit_test(pages_are_complete_and_have_nothing_twice),
		cmocka_unit_test(what_cannot_be_asked_is_refused),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("dominator list", tests, NULL, NULL);
}
