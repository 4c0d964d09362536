/* Pages of live objects, over a made-up heap. */
#include "agent/report/object_list.h"

#include "agent/goruntime/span.h"
#include "tests/support/analysed_heap.h"
#include "tests/support/assertions.h"

enum { SMALL = 48, LARGE = 640, COUNT = 24 };

struct fixture {
	struct analysed_heap a;
	uint32_t objects[COUNT]; /* in address order; the last four are large */
	Goheapd__ScanResult result;
};

/* All but the fourth are live. Every third is a main.Item, one is of no known type. */
static struct fixture *fixture_new(void)
{
	static const struct go_type item = { .name = "main.Item",
					     .size = 48,
					     .kind = GO_KIND_STRUCT };
	static const struct go_type other = { .name = "main.Other",
					      .size = 40,
					      .kind = GO_KIND_STRUCT };
	struct fixture *f = calloc(1, sizeof(*f));
	struct analysed_heap *a = &f->a;

	assert_non_null(f);
	analysed_heap_init(a);
	fake_types_add(a->types, &item);
	fake_types_add(a->types, &other);
	fake_heap_add(a->heap, SMALL, COUNT - 4, false);
	fake_heap_gap(a->heap, 3);
	fake_heap_add(a->heap, LARGE, 4, false);
	analysed_heap_finish(a);
	for (uint32_t i = 0; i < COUNT; i++) {
		f->objects[i] = i < COUNT - 4 ? fake_heap_object(a->heap, 0, i)
					      : fake_heap_object(a->heap, 1, i - (COUNT - 4));
		if (i != 3)
			analysed_heap_root(a, ROOT_DATA, 0x600000 + 8 * i,
					   analysed_heap_address(a, f->objects[i]));
		if (i != 5)
			fake_walk_set_type(a->walk, f->objects[i], i % 3 ? 2 : 1, i == 7);
	}
	analysed_heap_mark(a);
	goheapd__scan_result__init(&f->result);
	return f;
}

static void fixture_free(struct fixture *f)
{
	goheapd__object_page__free_unpacked(f->result.objects, NULL);
	analysed_heap_fini(&f->a);
	free(f);
}

static const Goheapd__ObjectPage *list(struct fixture *f, const Goheapd__ObjectsQuery *query)
{
	goheapd__object_page__free_unpacked(f->result.objects, NULL);
	f->result.objects = NULL;
	assert_success(object_list_fill(&f->a.analysed, query, &f->result));
	return f->result.objects;
}

static Goheapd__ObjectsQuery query_of(uint32_t limit)
{
	Goheapd__ObjectsQuery query = GOHEAPD__OBJECTS_QUERY__INIT;

	query.limit = limit;
	return query;
}

static void live_objects_come_by_address(void **state)
{
	struct fixture *f = fixture_new();
	const Goheapd__ObjectsQuery query = query_of(100);
	const Goheapd__ObjectPage *page = list(f, &query);

	(void)state;
	assert_int_equal(page->n_objects, COUNT - 1);
	assert_false(page->has_next_after);
	for (uint32_t i = 0; i < COUNT - 1; i++) {
		uint32_t place = i < 3 ? i : i + 1;

		assert_true(page->objects[i]->address ==
			    analysed_heap_address(&f->a, f->objects[place]));
		assert_int_equal(page->objects[i]->bytes, place < COUNT - 4 ? SMALL : LARGE);
		assert_int_equal(page->objects[i]->has_type, place != 5);
		assert_false(page->objects[i]->has_retained_bytes);
	}
	assert_memory_equal(page->objects[6]->type.data, "[]main.Other", 12);
	fixture_free(f);
}

/* An address is the program's: behind what the runtime puts in front. */
static void an_object_with_a_header_begins_behind_it(void **state)
{
	struct fixture *f = fixture_new();
	Goheapd__ObjectsQuery query = query_of(1);
	const Goheapd__ObjectPage *page;

	(void)state;
	query.has_min_bytes = true;
	query.min_bytes = LARGE;
	page = list(f, &query);
	assert_int_equal(page->n_objects, 1);
	assert_true(page->objects[0]->address ==
		    fake_heap_addr(f->a.heap, f->objects[COUNT - 4]) + 8);
	fixture_free(f);
}

static void pages_are_complete_and_have_nothing_twice(void **state)
{
	(void)state;
	for (uint32_t limit = 1; limit <= COUNT; limit++) {
		struct fixture *f = fixture_new();
		Goheapd__ObjectsQuery query = query_of(limit);
		const Goheapd__ObjectPage *page;
		uint32_t seen = 0;

		do {
			page = list(f, &query);
			for (size_t i = 0; i < page->n_objects; i++, seen++)
				assert_true(page->objects[i]->address ==
					    analysed_heap_address(
						&f->a, f->objects[seen < 3 ? seen : seen + 1]));
			query.has_after = true;
			query.after = page->next_after;
		} while (page->has_next_after);
		assert_int_equal(seen, COUNT - 1);
		fixture_free(f);
	}
}

static void a_type_is_asked_for_by_its_whole_name(void **state)
{
	struct fixture *f = fixture_new();
	Goheapd__ObjectsQuery query = query_of(100);

	(void)state;
	query.has_type = true;
	query.type = (ProtobufCBinaryData){ 9, (uint8_t *)(uintptr_t) "main.Item" };
	assert_int_equal(list(f, &query)->n_objects, 7); /* of 0, 3 ... 21 the fourth is dead */
	query.type = (ProtobufCBinaryData){ 8, (uint8_t *)(uintptr_t) "main.Ite" };
	assert_int_equal(list(f, &query)->n_objects, 0);
	query.type = (ProtobufCBinaryData){ 12, (uint8_t *)(uintptr_t) "[]main.Other" };
	assert_int_equal(list(f, &query)->n_objects, 1);
	query.type = (ProtobufCBinaryData){ 1, (uint8_t *)(uintptr_t) "?" };
	assert_int_equal(list(f, &query)->n_objects, 0);
	fixture_free(f);
}

static void retained_sizes_come_from_the_dominators(void **state)
{
	struct fixture *f = fixture_new();
	const Goheapd__ObjectsQuery query = query_of(2);

	(void)state;
	f->a.retained = fake_retained_new(1000);
	f->a.analysed.retained = f->a.retained;
	fake_retained_set(f->a.retained, f->objects[1], DOMINATOR_TOP, 4711);
	list(f, &query);
	assert_true(f->result.objects->objects[1]->has_retained_bytes);
	assert_int_equal(f->result.objects->objects[1]->retained_bytes, 4711);
	fixture_free(f);
}

static void addresses_of_nowhere_and_limits_are_refused_or_end(void **state)
{
	struct fixture *f = fixture_new();
	Goheapd__ObjectsQuery query = query_of(0);

	(void)state;
	assert_error(object_list_fill(&f->a.analysed, &query, &f->result), ERROR_BAD_REQUEST);
	query.limit = OBJECT_LIST_MAX + 1;
	assert_error(object_list_fill(&f->a.analysed, &query, &f->result), ERROR_BAD_REQUEST);
	query.limit = 5;
	query.has_after = true;
	query.after = UINT64_MAX;
	assert_int_equal(list(f, &query)->n_objects, 0);
	query.after = 0;
	assert_int_equal(list(f, &query)->n_objects, 5);
	fixture_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(live_objects_come_by_address),
		cmocka_unit_test(an_object_with_a_header_begins_behind_it),
		cmocka_unit_test(pages_are_complete_and_have_nothing_twice),
		cmocka_unit_test(a_type_is_asked_for_by_its_whole_name),
		cmocka_unit_test(retained_sizes_come_from_the_dominators),
		cmocka_unit_test(addresses_of_nowhere_and_limits_are_refused_or_end),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("object list", tests, NULL, NULL);
}
