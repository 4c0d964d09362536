#include <math.h>

#include "daemon/page_cursor.h"
#include "daemon/render_json_common.h"

/* ---- histogram ---- */

static void add_row(struct text *text, const Goheapd__TypeRow *row)
{
	struct json_fields fields;

	json_fields_init(&fields);
	json_add_bytes(&fields, "type", row->type);
	json_add_u64(&fields, "objects", row->objects);
	json_add_u64(&fields, "bytes", row->bytes);
	json_add_optional_u64(&fields, "retained_bytes", row->has_retained_bytes,
			      row->retained_bytes);
	json_write_element(text, &fields);
}

static size_t top_of(const struct scan_view *view, size_t count)
{
	return view->top && view->top < count ? (size_t)view->top : count;
}

static void add_rows(struct text *text, const struct scan_view *view, Goheapd__TypeRow *const *rows,
		     size_t count)
{
	json_begin(text, "types", '[');
	for (size_t i = 0; i < top_of(view, count); i++)
		add_row(text, rows[i]);
	json_end(text, ']');
}

static void add_unknown(struct text *text, uint64_t objects, uint64_t bytes)
{
	struct json_fields fields, unknown;

	json_fields_init(&unknown);
	json_add_u64(&unknown, "objects", objects);
	json_add_u64(&unknown, "bytes", bytes);
	json_fields_init(&fields);
	json_add_fields(&fields, "unknown", &unknown);
	json_write_fields(text, &fields);
}

static void add_typed(struct text *text, const Goheapd__Histogram *histogram)
{
	struct json_fields fields;

	json_fields_init(&fields);
	json_add_u64(&fields, "typed_bytes", histogram->typed_bytes);
	json_add_u64(&fields, "type_count", histogram->n_types);
	json_write_fields(text, &fields);
}

static void add_globals(struct text *text, const struct scan_view *view)
{
	const Goheapd__Histogram *histogram = view->result->histogram;

	json_begin(text, "globals", '[');
	for (size_t i = 0; i < top_of(view, histogram->n_globals); i++) {
		struct json_fields fields;

		json_fields_init(&fields);
		json_add_bytes(&fields, "name", histogram->globals[i]->name);
		json_add_u64(&fields, "retained_bytes", histogram->globals[i]->retained_bytes);
		json_write_element(text, &fields);
	}
	json_end(text, ']');
}

static void add_others(struct text *text, const struct scan_view *view)
{
	const Goheapd__Histogram *histogram = view->result->histogram;

	json_begin(text, "garbage", '{');
	add_rows(text, view, histogram->garbage, histogram->n_garbage);
	add_unknown(text, histogram->garbage_unknown_objects, histogram->garbage_unknown_bytes);
	json_end(text, '}');
	json_begin(text, "finalizable", '{');
	add_rows(text, view, histogram->finalizable, histogram->n_finalizable);
	add_unknown(text, histogram->finalizable_unknown_objects,
		    histogram->finalizable_unknown_bytes);
	json_end(text, '}');
}

void render_json_histogram(struct text *text, const struct scan_view *view)
{
	const Goheapd__Histogram *histogram = view->result->histogram;

	json_begin(text, NULL, '{');
	render_json_scan_head(text, view);
	add_rows(text, view, histogram->types, histogram->n_types);
	add_unknown(text, histogram->unknown_objects, histogram->unknown_bytes);
	add_typed(text, histogram);
	if (view->analysis->histogram->retained)
		add_globals(text, view);
	if (view->analysis->histogram->garbage)
		add_others(text, view);
	json_end(text, '}');
	text_string(text, "\n");
}

/* ---- pages ---- */

static void add_cursor(struct text *text, const struct scan_view *view, bool more,
		       const struct page_cursor *cursor)
{
	char written[PAGE_CURSOR_SIZE];
	struct json_fields fields;

	json_fields_init(&fields);
	json_add_bool(&fields, "more", more);
	if (more && view->goes_on)
		json_add_string(&fields, "next_cursor", page_cursor_format(cursor, written));
	else
		json_add_null(&fields, "next_cursor");
	json_write_fields(text, &fields);
}

static void add_optional_address(struct json_fields *fields, const char *key, bool has,
				 uint64_t address)
{
	if (has)
		json_add_address(fields, key, address);
	else
		json_add_null(fields, key);
}

static void add_object_row(struct text *text, const Goheapd__ObjectRow *row)
{
	struct json_fields fields;

	json_fields_init(&fields);
	json_add_address(&fields, "address", row->address);
	json_add_optional_bytes(&fields, "type", row->has_type, row->type);
	json_add_u64(&fields, "bytes", row->bytes);
	json_add_optional_u64(&fields, "retained_bytes", row->has_retained_bytes,
			      row->retained_bytes);
	json_write_element(text, &fields);
}

void render_json_objects(struct text *text, const struct scan_view *view)
{
	const Goheapd__ObjectPage *page = view->result->objects;
	struct page_cursor cursor;
	bool more = page_cursor_of_objects(view->id, page, &cursor);

	json_begin(text, NULL, '{');
	render_json_scan_head(text, view);
	json_begin(text, "objects", '[');
	for (size_t i = 0; i < page->n_objects; i++)
		add_object_row(text, page->objects[i]);
	json_end(text, ']');
	add_cursor(text, view, more, &cursor);
	json_end(text, '}');
	text_string(text, "\n");
}

static void add_node(struct text *text, const Goheapd__DominatorNode *node)
{
	struct json_fields fields;

	json_fields_init(&fields);
	add_optional_address(&fields, "address", node->has_address, node->address);
	json_add_optional_bytes(&fields, "name", node->has_name, node->name);
	json_add_optional_bytes(&fields, "type", node->has_type, node->type);
	json_add_u64(&fields, "bytes", node->bytes);
	json_add_u64(&fields, "retained_bytes", node->retained_bytes);
	json_add_u64(&fields, "children", node->children);
	json_write_element(text, &fields);
}

void render_json_dominators(struct text *text, const struct scan_view *view)
{
	const Goheapd__DominatorPage *page = view->result->dominators;
	struct page_cursor cursor;
	bool more = page_cursor_of_dominators(view->id, page, &cursor);

	json_begin(text, NULL, '{');
	render_json_scan_head(text, view);
	json_begin(text, "nodes", '[');
	for (size_t i = 0; i < page->n_nodes; i++)
		add_node(text, page->nodes[i]);
	json_end(text, ']');
	add_cursor(text, view, more, &cursor);
	json_end(text, '}');
	text_string(text, "\n");
}

/* ---- one object ---- */

/* Not-a-number and infinity have no form in JSON. */
static void add_real(struct json_fields *fields, const char *key, double value)
{
	if (isnan(value))
		json_add_string(fields, key, "NaN");
	else if (isinf(value))
		json_add_string(fields, key, value > 0 ? "+Inf" : "-Inf");
	else
		json_add(fields, key, json_real(value));
}

/* Strings, slices, interfaces and the like have more than one number. */
static bool is_compound(const Goheapd__ObjectField *field)
{
	return field->has_length || field->has_text || field->has_imaginary ||
	       field->has_dynamic_type;
}

static void add_compound(struct json_fields *fields, const Goheapd__ObjectField *field)
{
	struct json_fields value;

	json_fields_init(&value);
	if (field->value_case == GOHEAPD__OBJECT_FIELD__VALUE_POINTER)
		json_add_address(&value, "pointer", field->pointer);
	if (field->has_imaginary) {
		add_real(&value, "real", field->real);
		add_real(&value, "imaginary", field->imaginary);
	}
	if (field->has_length)
		json_add_u64(&value, "length", field->length);
	if (field->has_capacity)
		json_add_u64(&value, "capacity", field->capacity);
	if (field->has_text)
		json_add_bytes(&value, "text", field->text);
	if (field->has_dynamic_type)
		json_add_bytes(&value, "dynamic_type", field->dynamic_type);
	json_add_fields(fields, "value", &value);
}

static void add_value(struct json_fields *fields, const Goheapd__ObjectField *field)
{
	switch (field->value_case) {
	case GOHEAPD__OBJECT_FIELD__VALUE_INTEGER:
		json_add(fields, "value", json_integer(field->integer));
		break;
	case GOHEAPD__OBJECT_FIELD__VALUE_NUMBER:
		json_add_u64(fields, "value", field->number);
		break;
	case GOHEAPD__OBJECT_FIELD__VALUE_REAL:
		add_real(fields, "value", field->real);
		break;
	case GOHEAPD__OBJECT_FIELD__VALUE_TRUTH:
		json_add_bool(fields, "value", field->truth);
		break;
	case GOHEAPD__OBJECT_FIELD__VALUE_POINTER:
		json_add_address(fields, "value", field->pointer);
		break;
	default:
		json_add_null(fields, "value");
		break;
	}
}

static void add_field(struct text *text, const Goheapd__ObjectField *field)
{
	struct json_fields fields;

	json_fields_init(&fields);
	json_add_bytes(&fields, "name", field->name);
	json_add_u64(&fields, "offset", field->offset);
	json_add_bytes(&fields, "type", field->type);
	if (is_compound(field))
		add_compound(&fields, field);
	else
		add_value(&fields, field);
	if (field->missing)
		json_add_string(&fields, "missing", field->missing);
	else
		json_add_null(&fields, "missing");
	json_write_element(text, &fields);
}

static void add_referrer(struct text *text, const Goheapd__Referrer *referrer)
{
	struct json_fields fields;

	json_fields_init(&fields);
	add_optional_address(&fields, "address", referrer->has_address, referrer->address);
	json_add_optional_bytes(&fields, "type", referrer->has_type, referrer->type);
	json_add_optional_bytes(&fields, "field", referrer->has_field, referrer->field);
	json_write_element(text, &fields);
}

static void add_step(struct text *text, const Goheapd__PathStep *step)
{
	struct json_fields fields;

	json_fields_init(&fields);
	json_add_bytes(&fields, "frame", step->frame);
	add_optional_address(&fields, "address", step->has_address, step->address);
	json_write_element(text, &fields);
}

static void add_object_head(struct text *text, const Goheapd__Object *object)
{
	struct json_fields fields;

	json_fields_init(&fields);
	json_add_address(&fields, "address", object->address);
	json_add_optional_bytes(&fields, "type", object->has_type, object->type);
	json_add_u64(&fields, "bytes", object->bytes);
	json_add_string(&fields, "state", object->state);
	json_add_optional_u64(&fields, "retained_bytes", object->has_retained_bytes,
			      object->retained_bytes);
	json_add_bool(&fields, "fields_cut", object->fields_cut);
	json_add_bool(&fields, "referrers_cut", object->referrers_cut);
	json_add_bool(&fields, "path_cut", object->path_cut);
	json_write_fields(text, &fields);
}

void render_json_object(struct text *text, const struct scan_view *view)
{
	const Goheapd__Object *object = view->result->object;

	json_begin(text, NULL, '{');
	render_json_scan_head(text, view);
	json_begin(text, "object", '{');
	add_object_head(text, object);
	json_begin(text, "fields", '[');
	for (size_t i = 0; i < object->n_fields; i++)
		add_field(text, object->fields[i]);
	json_end(text, ']');
	json_begin(text, "referrers", '[');
	for (size_t i = 0; i < object->n_referrers; i++)
		add_referrer(text, object->referrers[i]);
	json_end(text, ']');
	json_begin(text, "path", '[');
	for (size_t i = 0; i < object->n_path; i++)
		add_step(text, object->path[i]);
	json_end(text, ']');
	json_end(text, '}');
	json_end(text, '}');
	text_string(text, "\n");
}
