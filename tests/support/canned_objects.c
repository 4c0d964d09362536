#include "tests/support/canned_objects.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static ProtobufCBinaryData bytes(const char *text)
{
	return (ProtobufCBinaryData){ .len = strlen(text), .data = (uint8_t *)(uintptr_t)text };
}

/* Sets a list of pointers to the elements of an array. */
#define LIST(pointers, array)                                                                      \
	for (size_t i_ = 0; i_ < COUNT(array); i_++)                                               \
	(pointers)[i_] = &(array)[i_]

/* ---- histogram ---- */

static const struct {
	const char *type;
	uint64_t objects, bytes, retained;
} rows[] = {
	{ "main.Order", 1234567, UINT64_C(2) << 30, UINT64_C(5) << 30 },
	{ "[]main.Order", 12, UINT64_C(1) << 30, UINT64_C(3) << 30 },
	{ "map[string]*shop/cart.Item", 4711, 1 << 20, (1 << 20) + 1 },
	{ "main.\x1b[31m\xff\"", 1, 16, 16 },
};

static Goheapd__TypeRow type_rows[COUNT(rows)], *type_pointers[COUNT(rows)];
static Goheapd__TypeRow garbage_rows[1], *garbage_pointers[1];
static Goheapd__GlobalRow globals[2], *global_pointers[2];

static void set_rows(void)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		type_rows[i] = (Goheapd__TypeRow)GOHEAPD__TYPE_ROW__INIT;
		type_rows[i].type = bytes(rows[i].type);
		type_rows[i].objects = rows[i].objects;
		type_rows[i].bytes = rows[i].bytes;
		type_rows[i].has_retained_bytes = true;
		type_rows[i].retained_bytes = rows[i].retained;
	}
	LIST(type_pointers, type_rows);
	garbage_rows[0] = (Goheapd__TypeRow)GOHEAPD__TYPE_ROW__INIT;
	garbage_rows[0].type = bytes("main.Big");
	garbage_rows[0].objects = 3;
	garbage_rows[0].bytes = 3 << 20;
	LIST(garbage_pointers, garbage_rows);
}

static void set_globals(void)
{
	static const char *const names[] = { "main.sessions", "shop/cart.cache" };

	for (size_t i = 0; i < COUNT(globals); i++) {
		globals[i] = (Goheapd__GlobalRow)GOHEAPD__GLOBAL_ROW__INIT;
		globals[i].name = bytes(names[i]);
		globals[i].retained_bytes = (UINT64_C(4) << 30) >> (8 * i);
	}
	LIST(global_pointers, globals);
}

void canned_globals(Goheapd__ScanResult *result)
{
	set_globals();
	result->globals = global_pointers;
	result->n_globals = COUNT(globals);
}

static void sum_up(Goheapd__Histogram *histogram, const Goheapd__HeapTotals *heap)
{
	uint64_t objects = 0, typed = 0;

	for (size_t i = 0; i < COUNT(rows); i++) {
		objects += rows[i].objects;
		typed += rows[i].bytes;
	}
	histogram->typed_bytes = typed;
	histogram->unknown_objects = heap->live_objects - objects;
	histogram->unknown_bytes = heap->live_bytes - typed;
	histogram->garbage_unknown_objects = heap->garbage_objects - 3;
	histogram->garbage_unknown_bytes = heap->garbage_bytes - (3 << 20);
	histogram->finalizable_unknown_objects = heap->finalizable_objects;
	histogram->finalizable_unknown_bytes = heap->finalizable_bytes;
}

const Goheapd__Analysis *canned_histogram(Goheapd__ScanResult *result)
{
	static Goheapd__Histogram histogram;
	static Goheapd__HistogramQuery query;
	static Goheapd__Analysis analysis;

	set_rows();
	set_globals();
	histogram = (Goheapd__Histogram)GOHEAPD__HISTOGRAM__INIT;
	histogram.types = type_pointers;
	histogram.n_types = COUNT(rows);
	histogram.garbage = garbage_pointers;
	histogram.n_garbage = 1;
	histogram.globals = global_pointers;
	histogram.n_globals = COUNT(globals);
	histogram.has_garbage_unknown_objects = histogram.has_garbage_unknown_bytes = true;
	histogram.has_finalizable_unknown_objects = true;
	histogram.has_finalizable_unknown_bytes = true;
	sum_up(&histogram, result->heap);
	result->histogram = &histogram;
	query = (Goheapd__HistogramQuery)GOHEAPD__HISTOGRAM_QUERY__INIT;
	query.has_retained = query.retained = query.has_garbage = query.garbage = true;
	analysis = (Goheapd__Analysis)GOHEAPD__ANALYSIS__INIT;
	analysis.histogram = &query;
	return &analysis;
}

/* ---- pages ---- */

const Goheapd__Analysis *canned_objects(Goheapd__ScanResult *result)
{
	static Goheapd__ObjectRow list[3], *pointers[3];
	static Goheapd__ObjectPage page;
	static Goheapd__ObjectsQuery query;
	static Goheapd__Analysis analysis;

	for (size_t i = 0; i < COUNT(list); i++) {
		list[i] = (Goheapd__ObjectRow)GOHEAPD__OBJECT_ROW__INIT;
		list[i].address = 0xc000123000 + 0x1000 * i;
		list[i].bytes = 96 << (10 * i);
		list[i].has_type = i != 1;
		list[i].type = bytes(i ? "main.\n\xff" : "main.Order");
		list[i].has_retained_bytes = i != 2;
		list[i].retained_bytes = list[i].bytes + 7;
	}
	LIST(pointers, list);
	page = (Goheapd__ObjectPage)GOHEAPD__OBJECT_PAGE__INIT;
	page.objects = pointers;
	page.n_objects = COUNT(list);
	page.has_next_after = true;
	page.next_after = list[2].address;
	result->objects = &page;
	query = (Goheapd__ObjectsQuery)GOHEAPD__OBJECTS_QUERY__INIT;
	query.limit = 3;
	query.min_bytes = 96;
	analysis = (Goheapd__Analysis)GOHEAPD__ANALYSIS__INIT;
	analysis.objects = &query;
	return &analysis;
}

const Goheapd__Analysis *canned_dominators(Goheapd__ScanResult *result)
{
	static Goheapd__DominatorNode list[3], *pointers[3];
	static Goheapd__DominatorPage page;
	static Goheapd__DominatorsQuery query;
	static Goheapd__Analysis analysis;

	for (size_t i = 0; i < COUNT(list); i++) {
		list[i] = (Goheapd__DominatorNode)GOHEAPD__DOMINATOR_NODE__INIT;
		list[i].has_address = i > 0;
		list[i].address = 0xc000123000 + i;
		list[i].has_name = i == 0;
		list[i].name = bytes("main.sessions");
		list[i].has_type = i == 1;
		list[i].type = bytes("main.Session");
		list[i].bytes = 48 * i;
		list[i].retained_bytes = UINT64_C(123456789012) >> (8 * i);
		list[i].children = 4711 >> i;
	}
	LIST(pointers, list);
	page = (Goheapd__DominatorPage)GOHEAPD__DOMINATOR_PAGE__INIT;
	page.nodes = pointers;
	page.n_nodes = COUNT(list);
	page.has_next_node = true;
	page.next_node = 77;
	result->dominators = &page;
	query = (Goheapd__DominatorsQuery)GOHEAPD__DOMINATORS_QUERY__INIT;
	query.limit = 3;
	analysis = (Goheapd__Analysis)GOHEAPD__ANALYSIS__INIT;
	analysis.dominators = &query;
	return &analysis;
}

/* ---- one object ---- */

static Goheapd__ObjectField fields[16], *field_pointers[COUNT(fields)];
static size_t field_count;

static Goheapd__ObjectField *add_field(const char *name, uint64_t offset, const char *type)
{
	Goheapd__ObjectField *field = &fields[field_count];

	*field = (Goheapd__ObjectField)GOHEAPD__OBJECT_FIELD__INIT;
	field->name = bytes(name);
	field->offset = offset;
	field->type = bytes(type);
	field_pointers[field_count++] = field;
	return field;
}

static void set_pointer(Goheapd__ObjectField *field, uint64_t pointer)
{
	field->value_case = GOHEAPD__OBJECT_FIELD__VALUE_POINTER;
	field->pointer = pointer;
}

static void set_lengths(Goheapd__ObjectField *field, uint64_t length, uint64_t capacity)
{
	field->has_length = true;
	field->length = length;
	field->has_capacity = capacity > 0;
	field->capacity = capacity;
}

static void set_real(Goheapd__ObjectField *field, double real)
{
	field->value_case = GOHEAPD__OBJECT_FIELD__VALUE_REAL;
	field->real = real;
}

static void add_numbers(void)
{
	Goheapd__ObjectField *field = add_field("ID", 0, "int");

	field->value_case = GOHEAPD__OBJECT_FIELD__VALUE_INTEGER;
	field->integer = -42;
	field = add_field("mask", 8, "uint64");
	field->value_case = GOHEAPD__OBJECT_FIELD__VALUE_NUMBER;
	field->number = 0x7fffffffffffffff;
	field = add_field("paid", 16, "bool");
	field->value_case = GOHEAPD__OBJECT_FIELD__VALUE_TRUTH;
	field->truth = true;
	set_real(add_field("price", 24, "float64"), 12.5);
	set_real(add_field("ratio", 32, "float64"), 1.0 / 0.0);
	field = add_field("wave", 40, "complex128");
	set_real(field, 1.5);
	field->has_imaginary = true;
	field->imaginary = -2;
}

static void add_pointers(void)
{
	static char not_kept[] = "not kept";
	Goheapd__ObjectField *field = add_field("next", 56, "*main.Order");

	set_pointer(field, 0xc000124000);
	set_pointer(add_field("prev", 64, "*main.Order"), 0);
	field = add_field("inner.name", 72, "string");
	set_pointer(field, 0xc000200000);
	set_lengths(field, 5, 0);
	field->has_text = true;
	field->text = bytes("h\x1b\xff\"o");
	field = add_field("items", 88, "[]main.Item");
	set_pointer(field, 0xc000300000);
	set_lengths(field, 3, 4);
	field = add_field("byName", 112, "map[string]int");
	set_pointer(field, 0xc000400000);
	set_lengths(field, 17, 0);
	field = add_field("any", 120, "interface {}");
	set_pointer(field, 0xc000500000);
	field->has_dynamic_type = true;
	field->dynamic_type = bytes("*shop/cart.Item");
	add_field("list[3].lost", 136, "int32")->missing = not_kept;
}

static Goheapd__Referrer referrers[3], *referrer_pointers[3];
static Goheapd__PathStep steps[3], *step_pointers[3];

static void set_referrers(void)
{
	for (size_t i = 0; i < COUNT(referrers); i++) {
		referrers[i] = (Goheapd__Referrer)GOHEAPD__REFERRER__INIT;
		referrers[i].has_address = i > 0;
		referrers[i].address = 0xc000600000 + i;
		referrers[i].has_type = i < 2;
		referrers[i].type = bytes("main.Order");
		referrers[i].has_field = i != 2;
		referrers[i].field = bytes(i ? "next" : "main.orders");
	}
	LIST(referrer_pointers, referrers);
}

static void set_path(void)
{
	static const char *const frames[] = { "main.orders", "[3]. (*main.Order)", "next" };

	for (size_t i = 0; i < COUNT(steps); i++) {
		steps[i] = (Goheapd__PathStep)GOHEAPD__PATH_STEP__INIT;
		steps[i].frame = bytes(frames[i]);
		steps[i].has_address = i > 0;
		steps[i].address = 0xc000123000 + 0x1000 * i;
	}
	LIST(step_pointers, steps);
}

const Goheapd__Analysis *canned_object(Goheapd__ScanResult *result)
{
	static char live[] = "live";
	static Goheapd__Object object;
	static Goheapd__ObjectQuery query;
	static Goheapd__Analysis analysis;

	field_count = 0;
	add_numbers();
	add_pointers();
	set_referrers();
	set_path();
	object = (Goheapd__Object)GOHEAPD__OBJECT__INIT;
	object.address = 0xc000125000;
	object.has_type = true;
	object.type = bytes("main.Order");
	object.bytes = 144;
	object.state = live;
	object.has_retained_bytes = true;
	object.retained_bytes = 12345;
	object.fields = field_pointers;
	object.n_fields = field_count;
	object.referrers = referrer_pointers;
	object.n_referrers = COUNT(referrers);
	object.path = step_pointers;
	object.n_path = COUNT(steps);
	object.has_referrers_cut = object.referrers_cut = true;
	result->object = &object;
	query = (Goheapd__ObjectQuery)GOHEAPD__OBJECT_QUERY__INIT;
	query.address = object.address + 12;
	query.has_contents = query.contents = true;
	analysis = (Goheapd__Analysis)GOHEAPD__ANALYSIS__INIT;
	analysis.object = &query;
	return &analysis;
}
