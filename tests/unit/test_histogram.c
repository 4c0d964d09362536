/* Objects by type, over a made-up heap. */
#include "agent/report/histogram.h"

#include "agent/analysis/mark.h"
#include "agent/goruntime/span.h"
#include "tests/support/analysed_heap.h"
#include "tests/support/assertions.h"

enum { SMALL = 48, LARGE = 640, SMALL_COUNT = 170, LARGE_COUNT = 12 };

static const taddr item_descriptor = 0x500100, batch_descriptor = 0x500200;

struct fixture {
	struct analysed_heap a;
	uint32_t small, large; /* first objects */
	Goheapd__ScanResult result;
};

static uint32_t small(const struct fixture *f, uint32_t i)
{
	return f->small + i;
}

static void add_types(struct analysed_heap *a)
{
	const struct go_type types[] = {
		{ .name = "main.Item", .size = 48, .kind = GO_KIND_STRUCT },
		{ .name = "uint8", .size = 1, .kind = GO_KIND_UINT8 },
		{ .name = "main.Item", .size = 40, .kind = GO_KIND_STRUCT }, /* of another scope */
		{ .name = "main.Part",
		  .size = 100,
		  .kind = GO_KIND_STRUCT,
		  .descriptor = item_descriptor },
		{ .name = "main.Batch",
		  .size = 600,
		  .kind = GO_KIND_STRUCT,
		  .descriptor = batch_descriptor },
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		fake_types_add(a->types, &types[i]);
}

/*
 * Ten small objects are live: three of one main.Item, two of the other, four arrays of uint8, one
 * of which nobody knows. Two small ones are garbage. Of five large ones two are garbage, one is to
 * be finalized, and what that holds is live.
 */
static struct fixture *fixture_new(void)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct analysed_heap *a = &f->a;
	uint32_t span, large_span;

	assert_non_null(f);
	analysed_heap_init(a);
	add_types(a);
	span = fake_heap_add(a->heap, SMALL, SMALL_COUNT, false);
	large_span = fake_heap_add(a->heap, LARGE, LARGE_COUNT, false);
	analysed_heap_finish(a);
	f->small = fake_heap_object(a->heap, span, 0);
	f->large = fake_heap_object(a->heap, large_span, 0);
	for (uint32_t i = 12; i < SMALL_COUNT; i++)
		fake_heap_set_slot(a->heap, small(f, i), FAKE_FREE);
	for (uint32_t i = 5; i < LARGE_COUNT; i++)
		fake_heap_set_slot(a->heap, f->large + i, FAKE_FREE);
	for (uint32_t i = 0; i < 9; i++)
		analysed_heap_point(a, small(f, i), 1, small(f, i + 1));
	analysed_heap_root(a, ROOT_DATA, 0x600000, analysed_heap_address(a, small(f, 0)));
	for (uint32_t i = 0; i < 9; i++)
		fake_walk_set_type(a->walk, small(f, i), i < 3 ? 1 : i < 5 ? 3 : 2, i >= 5);
	analysed_heap_store(a, f->large, 0, item_descriptor);      /* garbage: an array */
	analysed_heap_store(a, f->large + 1, 0, batch_descriptor); /* garbage: one thing */
	analysed_heap_store(a, f->large + 2, 0, batch_descriptor); /* revives the next */
	analysed_heap_point(a, f->large + 2, 3, f->large + 3);
	fake_heap_add_special(a->heap, f->large + 2, SPECIAL_FINALIZER);
	fake_walk_set_type(a->walk, f->large + 3, 5, false);
	analysed_heap_store(a, f->large + 4, 0, 0x12345); /* garbage of no type there is */
	analysed_heap_mark(a);
	goheapd__scan_result__init(&f->result);
	return f;
}

static void fixture_free(struct fixture *f)
{
	goheapd__histogram__free_unpacked(f->result.histogram, NULL);
	analysed_heap_fini(&f->a);
	free(f);
}

static void assert_row(const Goheapd__TypeRow *row, const char *type, uint64_t objects,
		       uint64_t bytes)
{
	assert_int_equal(row->type.len, strlen(type));
	assert_memory_equal(row->type.data, type, strlen(type));
	assert_int_equal(row->objects, objects);
	assert_int_equal(row->bytes, bytes);
	assert_false(row->has_retained_bytes);
}

static void rows_are_by_name_and_the_largest_come_first(void **state)
{
	struct fixture *f = fixture_new();
	const Goheapd__HistogramQuery query = GOHEAPD__HISTOGRAM_QUERY__INIT;
	const Goheapd__Histogram *h;

	(void)state;
	assert_success(histogram_fill(&f->a.analysed, &query, &f->result));
	h = f->result.histogram;
	assert_int_equal(h->n_types, 3);
	assert_row(h->types[0], "main.Batch", 1, LARGE);
	assert_row(h->types[1], "main.Item", 5, 5 * SMALL);
	assert_row(h->types[2], "[]uint8", 4, 4 * SMALL);
	assert_int_equal(h->unknown_objects, 1);
	assert_int_equal(h->unknown_bytes, SMALL);
	assert_int_equal(h->typed_bytes, LARGE + 9 * SMALL);
	assert_int_equal(h->typed_bytes + h->unknown_bytes, mark_totals(f->a.mark)->live_bytes);
	assert_int_equal(h->n_garbage, 0);
	assert_false(h->has_garbage_unknown_bytes);
	fixture_free(f);
}

static void what_is_not_live_tells_its_type_by_itself(void **state)
{
	struct fixture *f = fixture_new();
	Goheapd__HistogramQuery query = GOHEAPD__HISTOGRAM_QUERY__INIT;
	const Goheapd__Histogram *h;
	const struct mark_totals *totals = mark_totals(f->a.mark);

	(void)state;
	query.garbage = true;
	assert_success(histogram_fill(&f->a.analysed, &query, &f->result));
	h = f->result.histogram;
	assert_int_equal(h->n_garbage, 2);
	assert_row(h->garbage[0], "[]main.Part", 1, LARGE);
	assert_row(h->garbage[1], "main.Batch", 1, LARGE);
	assert_int_equal(h->garbage_unknown_objects, 3);
	assert_int_equal(h->garbage_unknown_bytes, LARGE + 2 * SMALL);
	assert_int_equal(totals->garbage_bytes, 3 * LARGE + 2 * SMALL);
	assert_int_equal(h->n_finalizable, 1);
	assert_row(h->finalizable[0], "main.Batch", 1, LARGE);
	assert_int_equal(h->finalizable_unknown_objects, 0);
	assert_int_equal(totals->finalizable_bytes, LARGE);
	assert_int_equal(h->n_types, 3);
	fixture_free(f);
}

/* Then what has a header tells nothing, and the sums are the same. */
static void without_memory_garbage_is_of_unknown_types(void **state)
{
	struct fixture *f = fixture_new();
	Goheapd__HistogramQuery query = GOHEAPD__HISTOGRAM_QUERY__INIT;

	(void)state;
	query.garbage = true;
	f->a.analysed.memory = NULL;
	assert_success(histogram_fill(&f->a.analysed, &query, &f->result));
	assert_int_equal(f->result.histogram->n_garbage, 0);
	assert_int_equal(f->result.histogram->garbage_unknown_bytes, 3 * LARGE + 2 * SMALL);
	assert_int_equal(f->result.histogram->finalizable_unknown_bytes, LARGE);
	fixture_free(f);
}

static void an_unreadable_header_is_no_type(void **state)
{
	struct fixture *f = fixture_new();
	Goheapd__HistogramQuery query = GOHEAPD__HISTOGRAM_QUERY__INIT;

	(void)state;
	query.garbage = true;
	fake_heap_break(f->a.heap, 1);
	assert_success(histogram_fill(&f->a.analysed, &query, &f->result));
	assert_int_equal(f->result.histogram->garbage_unknown_bytes, 3 * LARGE + 2 * SMALL);
	fixture_free(f);
}

/* Of types as of one name, and of variables that hold something. */
static void what_types_and_globals_retain_is_told(void **state)
{
	static const struct retained_group groups[] = {
		{ .name = "main.b", .goroutine = ROOT_NO_GOROUTINE, .kind = VARIABLE_GLOBAL },
		{ .name = "main.empty", .goroutine = ROOT_NO_GOROUTINE, .kind = VARIABLE_GLOBAL },
		{ .name = "goroutine 1", .goroutine = 0, .kind = VARIABLE_LOCAL },
		{ .name = "main.a", .goroutine = ROOT_NO_GOROUTINE, .kind = VARIABLE_GLOBAL },
		{ .name = "main.largest", .goroutine = ROOT_NO_GOROUTINE, .kind = VARIABLE_GLOBAL },
	};
	static const uint64_t bytes[] = { 5, 0, 1000, 5, 70 };
	struct fixture *f = fixture_new();
	const Goheapd__HistogramQuery query = GOHEAPD__HISTOGRAM_QUERY__INIT;
	uint32_t end = span_table_object_end(fake_heap_spans(f->a.heap));
	const Goheapd__Histogram *h;

	(void)state;
	f->a.retained = fake_retained_new(end);
	f->a.analysed.retained = f->a.retained;
	for (uint32_t i = 0; i < 5; i++) {
		fake_retained_add_group(f->a.retained, &groups[i]);
		fake_retained_set(f->a.retained, end + i, DOMINATOR_TOP, bytes[i]);
	}
	for (uint32_t i = 0; i < 10; i++)
		fake_retained_set(f->a.retained, small(f, i), DOMINATOR_TOP, 1 << i);
	assert_success(histogram_fill(&f->a.analysed, &query, &f->result));
	h = f->result.histogram;
	assert_int_equal(h->types[0]->retained_bytes, 0);
	assert_int_equal(h->types[1]->retained_bytes, 0x1f);
	assert_int_equal(h->types[2]->retained_bytes, 0x1e0);
	assert_int_equal(h->n_globals, 3);
	assert_memory_equal(h->globals[0]->name.data, "main.largest", 12);
	assert_int_equal(h->globals[0]->retained_bytes, 70);
	assert_memory_equal(h->globals[1]->name.data, "main.a", 6);
	assert_memory_equal(h->globals[2]->name.data, "main.b", 6);
	fixture_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_by_name_and_the_largest_come_first),
		cmocka_unit_test(what_is_not_live_tells_its_type_by_itself),
		cmocka_unit_test(without_memory_garbage_is_of_unknown_types),
		cmocka_unit_test(an_unreadable_header_is_no_type),
		cmocka_unit_test(what_types_and_globals_retain_is_told),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("histogram", tests, NULL, NULL);
}
