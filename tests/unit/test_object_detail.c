/* One object in full: fields by type, who points to it, and the way to it. */
#include "agent/report/object_detail.h"

#include <inttypes.h>

#include "agent/analysis/graph.h"
#include "agent/analysis/mark.h"
#include "agent/goruntime/span.h"
#include "agent/report/field_list.h"
#include "agent/report/field_value.h"
#include "agent/report/object_path.h"
#include "agent/report/referrer_list.h"
#include "tests/support/analysed_heap.h"
#include "tests/support/assertions.h"

enum { SMALL = 128, LARGE = 1024, COUNT = 64, NOSCAN = 32 };

static const taddr item_descriptor = 0x500100, item_itab = 0x500900, items = 0x600000;

enum {
	T_INT = 1,
	T_INT8,
	T_UINT8,
	T_UINTPTR,
	T_FLOAT32,
	T_COMPLEX64,
	T_BOOL,
	T_STRING,
	T_BYTES,
	T_POINTER,
	T_ANY,
	T_READER,
	T_MAP,
	T_CHAN,
	T_KEY,
	T_PAIR,
	T_PAIRS,
	T_EMPTY,
	T_ITEM,
	T_NESTED,
	T_ENDLESS,
	T_INTS,
};

static const struct go_field pair_fields[] = { { "left", 0, T_INT8 }, { "right", 1, T_INT8 } };
static const struct go_field item_fields[] = {
	{ "count", 0, T_INT },   { "name", 8, T_STRING },      { "next", 24, T_POINTER },
	{ "any", 32, T_ANY },    { "reader", 48, T_READER },   { "pairs", 64, T_PAIRS },
	{ "none", 68, T_EMPTY }, { "flag", 68, T_BOOL },       { "ratio", 72, T_FLOAT32 },
	{ "key", 76, T_KEY },    { "raw", 80, T_UINTPTR },     { "index", 88, T_MAP },
	{ "done", 96, T_CHAN },  { "wave", 104, T_COMPLEX64 },
};
static const struct go_field nested_fields[] = { { "items", 0, T_NESTED } };

struct fixture {
	struct analysed_heap a;
	uint32_t first; /* small objects */
	uint32_t large, bytes;
	Goheapd__ScanInfo scan;
	Goheapd__ScanResult result;
};

static void add_types(struct go_types *types)
{
	const struct go_type all[] = {
		{ .name = "int", .size = 8, .kind = GO_KIND_INT },
		{ .name = "int8", .size = 1, .kind = GO_KIND_INT8 },
		{ .name = "uint8", .size = 1, .kind = GO_KIND_UINT8 },
		{ .name = "uintptr", .size = 8, .kind = GO_KIND_UINTPTR },
		{ .name = "float32", .size = 4, .kind = GO_KIND_FLOAT32 },
		{ .name = "complex64", .size = 8, .kind = GO_KIND_COMPLEX64 },
		{ .name = "bool", .size = 1, .kind = GO_KIND_BOOL },
		{ .name = "string", .size = 16, .kind = GO_KIND_STRING },
		{ .name = "[]uint8", .size = 24, .kind = GO_KIND_SLICE, .elem = T_UINT8 },
		{ .name = "*main.Item", .size = 8, .kind = GO_KIND_POINTER, .elem = T_ITEM },
		{ .name = "interface {}", .size = 16, .kind = GO_KIND_INTERFACE },
		{ .name = "io.Reader", .size = 16, .kind = GO_KIND_INTERFACE, .has_methods = true },
		{ .name = "map[int]int", .size = 8, .kind = GO_KIND_MAP },
		{ .name = "chan int", .size = 8, .kind = GO_KIND_CHAN },
		{ .name = "[4]uint8",
		  .size = 4,
		  .kind = GO_KIND_ARRAY,
		  .elem = T_UINT8,
		  .length = 4 },
		{ .name = "main.Pair",
		  .size = 2,
		  .kind = GO_KIND_STRUCT,
		  .fields = pair_fields,
		  .field_count = 2 },
		{ .name = "[2]main.Pair",
		  .size = 4,
		  .kind = GO_KIND_ARRAY,
		  .elem = T_PAIR,
		  .length = 2 },
		{ .name = "struct {}", .size = 0, .kind = GO_KIND_STRUCT },
		{ .name = "main.Item",
		  .size = 112,
		  .kind = GO_KIND_STRUCT,
		  .fields = item_fields,
		  .field_count = sizeof(item_fields) / sizeof(*item_fields),
		  .descriptor = item_descriptor },
		/* holds itself, as no type can, but a hostile one may say */
		{ .name = "main.Nested",
		  .size = 8,
		  .kind = GO_KIND_STRUCT,
		  .fields = nested_fields,
		  .field_count = 1 },
		{ .name = "[...][0]main.Pair",
		  .size = 0,
		  .kind = GO_KIND_ARRAY,
		  .elem = T_INTS,
		  .length = UINT64_MAX },
		{ .name = "[0]int", .size = 0, .kind = GO_KIND_ARRAY, .elem = T_INT },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		fake_types_add(types, &all[i]);
}

/* Objects are linked by each test; object 0 hangs from main.items. */
static struct fixture *fixture_new(void)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct analysed_heap *a = &f->a;
	const struct variable variable = {
		.name = "main.items", .package = "main", .addr = items, .size = 224, .type = T_ITEM
	};

	assert_non_null(f);
	analysed_heap_init(a);
	add_types(a->types);
	fake_types_add_itab(a->types, item_itab, T_ITEM);
	fake_variables_add(a->variables, &variable);
	fake_heap_add(a->heap, SMALL, COUNT, false);
	fake_heap_add(a->heap, LARGE, 8, false);
	fake_heap_add(a->heap, NOSCAN, 32, true);
	analysed_heap_finish(a);
	f->first = fake_heap_object(a->heap, 0, 0);
	f->large = fake_heap_object(a->heap, 1, 0);
	f->bytes = fake_heap_object(a->heap, 2, 0);
	analysed_heap_root(a, ROOT_DATA, items + 24, analysed_heap_address(a, f->first));
	for (uint32_t i = 0; i < COUNT; i++)
		fake_walk_set_type(a->walk, f->first + i, T_ITEM, false);
	goheapd__scan_result__init(&f->result);
	goheapd__scan_info__init(&f->scan);
	f->result.scan = &f->scan;
	return f;
}

static void free_warnings(struct fixture *f)
{
	for (size_t i = 0; i < f->scan.n_warnings; i++)
		goheapd__warning__free_unpacked(f->scan.warnings[i], NULL);
	free(f->scan.warnings);
}

static void fixture_free(struct fixture *f)
{
	goheapd__object__free_unpacked(f->result.object, NULL);
	free_warnings(f);
	analysed_heap_fini(&f->a);
	free(f);
}

static const Goheapd__Object *show_at(struct fixture *f, taddr address, bool contents)
{
	Goheapd__ObjectQuery query = GOHEAPD__OBJECT_QUERY__INIT;

	goheapd__object__free_unpacked(f->result.object, NULL);
	f->result.object = NULL;
	query.address = address;
	query.contents = contents;
	assert_success(object_detail_fill(&f->a.analysed, &query, &f->result));
	return f->result.object;
}

static const Goheapd__Object *show(struct fixture *f, uint32_t object)
{
	return show_at(f, analysed_heap_address(&f->a, object), false);
}

static void assert_bytes(ProtobufCBinaryData bytes, const char *text)
{
	if (bytes.len != strlen(text) || (bytes.len && memcmp(bytes.data, text, bytes.len) != 0))
		fail_msg("%.*s is not %s", (int)bytes.len, (const char *)bytes.data, text);
}

static const Goheapd__ObjectField *field_of(const Goheapd__Object *object, const char *name)
{
	for (size_t i = 0; i < object->n_fields; i++) {
		const Goheapd__ObjectField *field = object->fields[i];

		if (field->name.len == strlen(name) &&
		    memcmp(field->name.data, name, field->name.len) == 0)
			return field;
	}
	fail_msg("no field %s", name);
	return NULL;
}

/* ---- fields ---- */

static void fill_item(struct fixture *f, uint32_t object)
{
	struct analysed_heap *a = &f->a;
	taddr text = analysed_heap_address(a, f->bytes);

	analysed_heap_store(a, f->bytes, 0, 0x6f6c6c6568); /* "hello" */
	analysed_heap_store(a, object, 0, (uint64_t)-42);
	fake_heap_point(a->heap, object, 1, text);
	analysed_heap_store(a, object, 2, 5);
	analysed_heap_point(a, object, 3, f->first + 1);
	analysed_heap_store(a, object, 4, item_descriptor);
	analysed_heap_point(a, object, 5, f->first + 1);
	analysed_heap_store(a, object, 6, item_itab);
	analysed_heap_point(a, object, 7, f->first + 1);
	analysed_heap_store(a, object, 8, 0x01 << 8 | 0xff | 0x7f << 16 | UINT64_C(0x01) << 32);
	analysed_heap_store(a, object, 9, UINT64_C(0xddccbbaa) << 32 | 0x3fc00000); /* 1.5 */
	analysed_heap_store(a, object, 10, UINT64_MAX);
	analysed_heap_point(a, object, 11, f->first + 2);
	analysed_heap_store(a, f->first + 2, 0, 17); /* the map's length */
	analysed_heap_point(a, object, 12, f->first + 3);
	analysed_heap_store(a, f->first + 3, 0, 3); /* the channel's, and its buffer's */
	analysed_heap_store(a, f->first + 3, 1, 8);
	analysed_heap_store(a, object, 13, UINT64_C(0xc0000000) << 32 | 0x3f800000); /* 1-2i */
}

static void numbers_and_pointers_are_decoded_by_type(void **state)
{
	struct fixture *f = fixture_new();
	const Goheapd__Object *o;

	(void)state;
	fill_item(f, f->first);
	analysed_heap_mark(&f->a);
	o = show(f, f->first);
	assert_bytes(o->type, "main.Item");
	assert_string_equal(o->state, "live");
	assert_int_equal(o->bytes, SMALL);
	assert_false(o->fields_cut);
	assert_int_equal(o->n_fields, 17);
	assert_int_equal(field_of(o, "count")->integer, -42);
	assert_true(field_of(o, "next")->pointer == analysed_heap_address(&f->a, f->first + 1));
	assert_int_equal(field_of(o, "pairs[0].left")->integer, -1);
	assert_int_equal(field_of(o, "pairs[0].right")->integer, 1);
	assert_int_equal(field_of(o, "pairs[1].left")->integer, 0x7f);
	assert_int_equal(field_of(o, "pairs[1].left")->offset, 66);
	assert_int_equal(field_of(o, "none")->value_case, GOHEAPD__OBJECT_FIELD__VALUE__NOT_SET);
	assert_true(field_of(o, "flag")->truth);
	assert_true(field_of(o, "ratio")->real == 1.5);
	assert_true(field_of(o, "raw")->number == UINT64_MAX);
	assert_true(field_of(o, "wave")->real == 1.0);
	assert_true(field_of(o, "wave")->imaginary == -2.0);
	assert_int_equal(field_of(o, "index")->length, 17);
	assert_int_equal(field_of(o, "done")->length, 3);
	assert_int_equal(field_of(o, "done")->capacity, 8);
	assert_int_equal(f->scan.n_warnings, 0);
	fixture_free(f);
}

static void interfaces_tell_their_dynamic_type(void **state)
{
	struct fixture *f = fixture_new();
	const Goheapd__Object *o;

	(void)state;
	fill_item(f, f->first);
	analysed_heap_mark(&f->a);
	o = show(f, f->first);
	assert_bytes(field_of(o, "any")->dynamic_type, "main.Item");
	assert_bytes(field_of(o, "reader")->dynamic_type, "main.Item");
	assert_true(field_of(o, "reader")->pointer == analysed_heap_address(&f->a, f->first + 1));
	analysed_heap_store(&f->a, f->first, 4, 0);
	analysed_heap_store(&f->a, f->first, 6, 0x777);
	memory_fini(f->a.analysed.memory); /* forgets what it has read */
	f->a.analysed.memory->cache = NULL;
	o = show(f, f->first);
	assert_false(field_of(o, "any")->has_dynamic_type);
	assert_null(field_of(o, "any")->missing);
	assert_string_equal(field_of(o, "reader")->missing, field_type_unknown);
	fixture_free(f);
}

static void contents_are_told_to_who_may_see_them(void **state)
{
	struct fixture *f = fixture_new();
	const Goheapd__Object *o;

	(void)state;
	fill_item(f, f->first);
	analysed_heap_mark(&f->a);
	o = show(f, f->first);
	assert_false(field_of(o, "name")->has_text || field_of(o, "key")->has_text);
	assert_int_equal(field_of(o, "name")->length, 5);
	assert_true(field_of(o, "name")->pointer == analysed_heap_address(&f->a, f->bytes));
	assert_string_equal(field_of(o, "name")->missing, field_is_contents);
	assert_int_equal(field_of(o, "key")->value_case, GOHEAPD__OBJECT_FIELD__VALUE__NOT_SET);
	o = show_at(f, analysed_heap_address(&f->a, f->first), true);
	assert_bytes(field_of(o, "name")->text, "hello");
	assert_bytes(field_of(o, "key")->text, "\xaa\xbb\xcc\xdd");
	assert_null(field_of(o, "name")->missing);
	fixture_free(f);
}

/* The block of a byte slice is contents itself. */
static void an_array_of_bytes_is_one_field(void **state)
{
	struct fixture *f = fixture_new();
	const Goheapd__Object *o;

	(void)state;
	fill_item(f, f->first);
	fake_walk_set_type(f->a.walk, f->bytes, T_UINT8, true);
	analysed_heap_mark(&f->a);
	o = show(f, f->bytes);
	assert_bytes(o->type, "[]uint8");
	assert_int_equal(o->n_fields, 1);
	assert_bytes(o->fields[0]->type, "[32]uint8");
	assert_int_equal(o->fields[0]->length, NOSCAN);
	assert_false(o->fields[0]->has_text);
	o = show_at(f, analysed_heap_address(&f->a, f->bytes) + 9, true);
	assert_int_equal(o->fields[0]->text.len, NOSCAN);
	assert_memory_equal(o->fields[0]->text.data, "hello", 6);
	fixture_free(f);
}

static void an_array_of_unknown_length_fills_its_object(void **state)
{
	struct fixture *f = fixture_new();
	const Goheapd__Object *o;

	(void)state;
	analysed_heap_point(&f->a, f->first, 3, f->large);
	analysed_heap_store(&f->a, f->large, 0, item_descriptor);
	analysed_heap_store(&f->a, f->large, 1, 7);
	analysed_heap_store(&f->a, f->large, 1 + 14, 8);
	fake_walk_set_type(f->a.walk, f->large, T_ITEM, true);
	analysed_heap_mark(&f->a);
	o = show(f, f->large);
	assert_true(o->address == fake_heap_addr(f->a.heap, f->large) + 8);
	assert_int_equal(o->n_fields, (LARGE - 8) / 112 * 17);
	assert_int_equal(field_of(o, "[0].count")->integer, 7);
	assert_int_equal(field_of(o, "[1].count")->integer, 8);
	assert_int_equal(field_of(o, "[8].wave")->offset, 8 * 112 + 104);
	fixture_free(f);
}

static void what_was_not_kept_has_no_value(void **state)
{
	struct fixture *f = fixture_new();
	const Goheapd__Object *o;

	(void)state;
	fill_item(f, f->first);
	analysed_heap_mark(&f->a);
	fake_heap_break(f->a.heap, 2);
	o = show_at(f, analysed_heap_address(&f->a, f->first), true);
	assert_false(field_of(o, "name")->has_text);
	assert_string_equal(field_of(o, "name")->missing, field_not_kept);
	assert_int_equal(field_of(o, "count")->integer, -42);
	assert_int_equal(f->scan.n_warnings, 1);
	assert_string_equal(f->scan.warnings[0]->code, "fields_not_kept");
	f->a.analysed.memory = NULL;
	o = show(f, f->first);
	assert_string_equal(field_of(o, "count")->missing, field_not_kept);
	assert_int_equal(o->n_fields, 17);
	fixture_free(f);
}

static void types_without_end_are_cut(void **state)
{
	struct fixture *f = fixture_new();

	(void)state;
	fake_walk_set_type(f->a.walk, f->first, T_NESTED, false);
	analysed_heap_mark(&f->a);
	assert_true(show(f, f->first)->fields_cut);
	fake_walk_set_type(f->a.walk, f->first, T_ENDLESS, false);
	assert_true(show(f, f->first)->fields_cut);
	fake_walk_set_type(f->a.walk, f->first, TYPE_UNKNOWN, false);
	assert_int_equal(show(f, f->first)->n_fields, 0);
	assert_false(f->result.object->has_type);
	fixture_free(f);
}

/* A type that is larger than its object has fields of which nothing is read. */
static void fields_beyond_the_object_are_not_read(void **state)
{
	struct fixture *f = fixture_new();
	const Goheapd__Object *o;

	(void)state;
	fill_item(f, f->first);
	fake_walk_set_type(f->a.walk, f->bytes, T_ITEM, false);
	analysed_heap_mark(&f->a);
	o = show_at(f, analysed_heap_address(&f->a, f->bytes), true);
	assert_string_equal(field_of(o, "any")->missing, field_is_outside);
	assert_int_equal(field_of(o, "count")->integer, 0x6f6c6c6568);
	fixture_free(f);
}

/* ---- referrers ---- */

static void assert_referrer(const Goheapd__Referrer *referrer, taddr address, const char *type,
			    const char *field)
{
	assert_int_equal(referrer->has_address, address != 0);
	assert_true(referrer->address == address);
	assert_bytes(referrer->type, type);
	assert_int_equal(referrer->has_field, field != NULL);
	if (field)
		assert_bytes(referrer->field, field);
}

static void all_who_point_to_it_are_named(void **state)
{
	struct fixture *f = fixture_new();
	struct analysed_heap *a = &f->a;
	const Goheapd__Object *o;

	(void)state;
	analysed_heap_point(a, f->first, 3, f->first + 1);
	analysed_heap_point(a, f->first + 1, 3, f->first + 2);
	fake_heap_point(a->heap, f->first + 1, 7, analysed_heap_address(a, f->first + 2) + 100);
	analysed_heap_point(a, f->first + 1, 5, f->large);
	analysed_heap_point(a, f->large, 1 + 14 + 3, f->first + 2);
	analysed_heap_store(a, f->first + 1, 10, analysed_heap_address(a, f->first + 2));
	analysed_heap_point(a, f->first + 9, 3, f->first + 2); /* garbage */
	analysed_heap_root(a, ROOT_BSS, items + 40, analysed_heap_address(a, f->first + 2));
	analysed_heap_root(a, ROOT_BSS, 0x700000, analysed_heap_address(a, f->first + 2));
	analysed_heap_root(a, ROOT_BSS, 0x700008, analysed_heap_address(a, f->first + 2));
	fake_walk_set_type(a->walk, f->large, T_ITEM, true);
	analysed_heap_mark(a);
	o = show(f, f->first + 2);
	assert_int_equal(o->n_referrers, 5);
	assert_false(o->referrers_cut);
	assert_referrer(o->referrers[0], 0, "main.Item", "main.items.any");
	assert_referrer(o->referrers[1], 0, "", "(nameless data)");
	assert_referrer(o->referrers[2], analysed_heap_address(a, f->first + 1), "main.Item",
			"next");
	assert_referrer(o->referrers[3], analysed_heap_address(a, f->first + 1), "main.Item",
			"reader");
	assert_referrer(o->referrers[4], analysed_heap_address(a, f->large), "[]main.Item",
			"[1].next");
	fixture_free(f);
}

static void of_garbage_all_who_point_to_it_are_named(void **state)
{
	struct fixture *f = fixture_new();
	struct analysed_heap *a = &f->a;
	const Goheapd__Object *o;

	(void)state;
	analysed_heap_point(a, f->first + 9, 3, f->first + 10);
	analysed_heap_mark(a);
	o = show(f, f->first + 10);
	assert_string_equal(o->state, "garbage");
	assert_int_equal(o->n_referrers, 1);
	assert_int_equal(o->n_path, 0);
	fixture_free(f);
}

static void what_a_finalizer_revives_has_it_for_a_referrer(void **state)
{
	struct fixture *f = fixture_new();
	struct analysed_heap *a = &f->a;
	const Goheapd__Object *o;

	(void)state;
	analysed_heap_point(a, f->first + 9, 3, f->first + 10);
	fake_heap_add_special(a->heap, f->first + 9, SPECIAL_FINALIZER);
	analysed_heap_mark(a);
	o = show(f, f->first + 10);
	assert_string_equal(o->state, "live");
	assert_int_equal(o->n_referrers, 1);
	assert_true(o->referrers[0]->address == analysed_heap_address(a, f->first + 9));
	assert_string_equal(show(f, f->first + 9)->state, "finalizable");
	fixture_free(f);
}

/* What is only known to point there is told without a field. */
static void a_referrer_that_cannot_be_read_is_told(void **state)
{
	struct fixture *f = fixture_new();
	const Goheapd__Object *o;

	(void)state;
	analysed_heap_point(&f->a, f->first, 3, f->large);
	analysed_heap_mark(&f->a);
	fake_heap_break(f->a.heap, 0);
	o = show(f, f->large);
	assert_int_equal(o->n_referrers, 1);
	assert_referrer(o->referrers[0], analysed_heap_address(&f->a, f->first), "main.Item", NULL);
	fixture_free(f);
}

static void too_many_referrers_are_cut(void **state)
{
	struct fixture *f = fixture_new();

	(void)state;
	for (uint32_t i = 1; i < COUNT / 2; i++) {
		analysed_heap_root(&f->a, ROOT_DATA, 0x700000,
				   analysed_heap_address(&f->a, f->first + i));
		fake_walk_set_type(f->a.walk, f->first + i, TYPE_UNKNOWN, false);
		for (uint32_t word = 0; word < SMALL / 8; word++)
			analysed_heap_point(&f->a, f->first + i, word, f->first);
	}
	analysed_heap_mark(&f->a);
	assert_int_equal(show(f, f->first)->n_referrers, 1 + (COUNT / 2 - 1) * (SMALL / 8));
	for (uint32_t i = 0; i < 8; i++) {
		analysed_heap_root(&f->a, ROOT_DATA, 0x700000,
				   analysed_heap_address(&f->a, f->large + i));
		for (uint32_t word = 1; word < LARGE / 8; word++)
			analysed_heap_point(&f->a, f->large + i, word, f->first);
	}
	mark_free(take(f->a.mark));
	graph_free(take(f->a.graph));
	analysed_heap_mark(&f->a);
	assert_int_equal(show(f, f->first)->n_referrers, REFERRER_LIST_MAX);
	assert_true(f->result.object->referrers_cut);
	fixture_free(f);
}

/* ---- the way to it ---- */

static void the_way_leads_from_a_root_by_frames(void **state)
{
	static const char *const first[] = { "next. (*main.Item)" };
	static const char *const second[] = { "any. (interface {})", "$iface. (main.Item)" };
	struct fixture *f = fixture_new();
	const Goheapd__Object *o;
	uint32_t root = fake_walk_add_root(f->a.walk, "main.items"), place;

	(void)state;
	analysed_heap_point(&f->a, f->first, 5, f->first + 1);
	analysed_heap_point(&f->a, f->first + 1, 5, f->first + 2);
	place = fake_walk_add(f->a.walk, f->first, REFERENCE_ROOT, root, first, 1);
	place = fake_walk_add(f->a.walk, f->first + 1, place, 0, second, 2);
	fake_walk_add(f->a.walk, f->first + 2, place, 0, NULL, 0);
	fake_walk_set_type(f->a.walk, f->first + 2, TYPE_UNKNOWN, false);
	analysed_heap_mark(&f->a);
	o = show(f, f->first + 2);
	assert_int_equal(o->n_path, 5);
	assert_bytes(o->path[0]->frame, "main.items");
	assert_false(o->path[0]->has_address);
	assert_bytes(o->path[1]->frame, "next. (*main.Item)");
	assert_true(o->path[1]->address == analysed_heap_address(&f->a, f->first));
	assert_bytes(o->path[2]->frame, "any. (interface {})");
	assert_false(o->path[2]->has_address);
	assert_bytes(o->path[3]->frame, "$iface. (main.Item)");
	assert_true(o->path[3]->address == analysed_heap_address(&f->a, f->first + 1));
	assert_bytes(o->path[4]->frame, "$sub_objects$");
	assert_true(o->path[4]->address == analysed_heap_address(&f->a, f->first + 2));
	assert_false(o->path_cut);
	fixture_free(f);
}

static void a_block_of_a_container_is_no_step(void **state)
{
	static const char *const step[] = { "index. (map[int]main.Item)" };
	struct fixture *f = fixture_new();
	const Goheapd__Object *o;
	uint32_t root = fake_walk_add_root(f->a.walk, "main.items"), place;

	(void)state;
	place = fake_walk_add(f->a.walk, f->first, REFERENCE_ROOT, root, step, 1);
	fake_walk_add(f->a.walk, f->first + 1, place, 0, NULL, 0);
	analysed_heap_point(&f->a, f->first, 5, f->first + 1);
	analysed_heap_mark(&f->a);
	o = show(f, f->first + 1);
	assert_int_equal(o->n_path, 2);
	assert_bytes(o->path[1]->frame, "index. (map[int]main.Item)");
	assert_true(o->path[1]->address == analysed_heap_address(&f->a, f->first + 1));
	fixture_free(f);
}

static void the_middle_of_a_long_way_is_left_out(void **state)
{
	static const char *const step[] = { "next. (*main.Item)" };
	struct fixture *f = fixture_new();
	const Goheapd__Object *o;
	uint32_t root = fake_walk_add_root(f->a.walk, "main.items");
	uint32_t place = fake_walk_add(f->a.walk, f->first + 1, REFERENCE_ROOT, root, step, 1);

	(void)state;
	for (uint32_t i = 0; i < 2 * OBJECT_PATH_STEPS + 9; i++)
		place = fake_walk_add(f->a.walk, f->first + 1, place, 0, step, 1);
	fake_walk_add(f->a.walk, f->first, place, 0, step, 1);
	analysed_heap_mark(&f->a);
	o = show(f, f->first);
	assert_true(o->path_cut);
	assert_int_equal(o->n_path, 2 * OBJECT_PATH_STEPS + 1);
	assert_bytes(o->path[0]->frame, "main.items");
	assert_true(o->path[o->n_path - 1]->address == o->address);
	fixture_free(f);
}

static void an_address_of_no_object_is_not_found(void **state)
{
	struct fixture *f = fixture_new();
	Goheapd__ObjectQuery query = GOHEAPD__OBJECT_QUERY__INIT;
	const taddr nowhere[] = { 0, 0x1000, UINT64_MAX,
				  analysed_heap_address(&f->a, f->first + 20) };

	(void)state;
	fake_heap_set_slot(f->a.heap, f->first + 20, FAKE_FREE);
	analysed_heap_mark(&f->a);
	for (size_t i = 0; i < sizeof(nowhere) / sizeof(*nowhere); i++) {
		query.address = nowhere[i];
		assert_error(object_detail_fill(&f->a.analysed, &query, &f->result),
			     ERROR_NOT_FOUND);
		assert_null(f->result.object);
	}
	fixture_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_and_pointers_are_decoded_by_type),
		cmocka_unit_test(interfaces_tell_their_dynamic_type),
		cmocka_unit_test(contents_are_told_to_who_may_see_them),
		cmocka_unit_test(an_array_of_bytes_is_one_field),
		cmocka_unit_test(an_array_of_unknown_length_fills_its_object),
		cmocka_unit_test(what_was_not_kept_has_no_value),
		cmocka_unit_test(types_without_end_are_cut),
		cmocka_unit_test(fields_beyond_the_object_are_not_read),
		cmocka_unit_test(all_who_point_to_it_are_named),
		cmocka_unit_test(of_garbage_all_who_point_to_it_are_named),
		cmocka_unit_test(what_a_finalizer_revives_has_it_for_a_referrer),
		cmocka_unit_test(a_referrer_that_cannot_be_read_is_told),
		cmocka_unit_test(too_many_referrers_are_cut),
		cmocka_unit_test(the_way_leads_from_a_root_by_frames),
		cmocka_unit_test(a_block_of_a_container_is_no_step),
		cmocka_unit_test(the_middle_of_a_long_way_is_left_out),
		cmocka_unit_test(an_address_of_no_object_is_not_found),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("object detail", tests, NULL, NULL);
}
