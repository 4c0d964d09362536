#include <inttypes.h>

#include "daemon/page_cursor.h"
#include "daemon/render_text_common.h"

enum { NAME_CHARS = 200, ROWS_USUAL = 40 };

/* Sizes of a table are in one unit, that of the largest. */
struct table {
	struct text *text;
	struct size_unit unit;
	uint64_t total; /* what shares are of; 0: none are told */
	bool retained;  /* has a column for it */
};

static void append_head(struct text *text, const struct scan_view *view)
{
	text_scan_head(text, view);
	text_warnings(text, view->result->scan->warnings, view->result->scan->n_warnings);
}

static void append_name(struct text *text, bool has, ProtobufCBinaryData name)
{
	text_string(text, "  ");
	if (has)
		text_escaped(text, name, NAME_CHARS);
	else
		text_string(text, "?");
	text_end_line(text);
}

/* "-" where it is not known. */
static void append_retained(const struct table *table, bool has, uint64_t bytes)
{
	if (!table->retained)
		return;
	if (has)
		text_in_unit(table->text, table->unit, 12, bytes);
	else
		text_printf(table->text, "%12s", "-");
}

/* ---- histogram ---- */

static void append_figures(const struct table *table, uint64_t objects, uint64_t bytes)
{
	text_in_unit(table->text, table->unit, 12, bytes);
	if (table->total)
		text_printf(table->text, "%5.0f%%", 100.0 * (double)bytes / (double)table->total);
	else
		text_string(table->text, "      ");
	text_count_right(table->text, 15, objects);
}

static void append_heading(const struct table *table)
{
	text_printf(table->text, "%12s%6s%15s", table->unit.name, table->total ? "%" : "",
		    "OBJECTS");
	if (table->retained)
		text_printf(table->text, "%12s", "RETAINED");
	text_string(table->text, "  TYPE\n");
}

static size_t row_count(const struct scan_view *view, size_t count)
{
	size_t wanted = view->top ? (size_t)view->top : ROWS_USUAL;

	return wanted < count ? wanted : count;
}

/* What has no row of its own. */
static void append_rest(const struct table *table, Goheapd__TypeRow *const *rows, size_t from,
			size_t count)
{
	uint64_t objects = 0, bytes = 0;

	if (from == count)
		return;
	for (size_t i = from; i < count; i++) {
		objects += rows[i]->objects;
		bytes += rows[i]->bytes;
	}
	append_figures(table, objects, bytes);
	append_retained(table, false, 0);
	text_printf(table->text, "  (%zu more types)\n", count - from);
}

static void append_rows(const struct table *table, const struct scan_view *view,
			Goheapd__TypeRow *const *rows, size_t count)
{
	size_t shown = row_count(view, count);

	for (size_t i = 0; i < shown; i++) {
		append_figures(table, rows[i]->objects, rows[i]->bytes);
		append_retained(table, rows[i]->has_retained_bytes, rows[i]->retained_bytes);
		append_name(table->text, true, rows[i]->type);
	}
	append_rest(table, rows, shown, count);
}

static void append_unknown(const struct table *table, uint64_t objects, uint64_t bytes)
{
	if (!objects)
		return;
	append_figures(table, objects, bytes);
	append_retained(table, false, 0);
	text_string(table->text, "  (type not known)\n");
}

/* "LIVE  5.21 GiB in 1,234 objects, 97.3% of it typed" */
static void append_sum(struct text *text, const char *head, uint64_t objects, uint64_t bytes,
		       uint64_t typed)
{
	text_printf(text, "%s  ", head);
	text_size(text, bytes);
	text_string(text, " in ");
	text_count(text, objects);
	text_string(text, " objects");
	if (bytes)
		text_printf(text, ", %.1f%% of it typed", 100.0 * (double)typed / (double)bytes);
	text_string(text, "\n");
}

static uint64_t sum_bytes(Goheapd__TypeRow *const *rows, size_t count, uint64_t *ret_objects)
{
	uint64_t bytes = 0;

	*ret_objects = 0;
	for (size_t i = 0; i < count; i++) {
		bytes += rows[i]->bytes;
		*ret_objects += rows[i]->objects;
	}
	return bytes;
}

static void append_live(struct text *text, const struct scan_view *view)
{
	const Goheapd__Histogram *histogram = view->result->histogram;
	uint64_t objects, bytes = sum_bytes(histogram->types, histogram->n_types, &objects);
	const struct table table = {
		.text = text,
		.unit = size_unit_for(histogram->n_types ? histogram->types[0]->bytes : 0),
		.total = bytes + histogram->unknown_bytes,
		.retained = view->analysis->histogram->retained,
	};

	append_sum(text, "LIVE", objects + histogram->unknown_objects, table.total, bytes);
	append_heading(&table);
	append_rows(&table, view, histogram->types, histogram->n_types);
	append_unknown(&table, histogram->unknown_objects, histogram->unknown_bytes);
}

static void append_others(struct text *text, const struct scan_view *view, const char *head,
			  Goheapd__TypeRow *const *rows, size_t count, uint64_t unknown_objects,
			  uint64_t unknown_bytes)
{
	uint64_t objects, bytes = sum_bytes(rows, count, &objects);
	uint64_t largest = count && rows[0]->bytes > unknown_bytes ? rows[0]->bytes : unknown_bytes;
	const struct table table = { .text = text,
				     .unit = size_unit_for(largest),
				     .total = bytes + unknown_bytes };

	append_sum(text, head, objects + unknown_objects, table.total, bytes);
	if (!table.total)
		return;
	append_heading(&table);
	append_rows(&table, view, rows, count);
	append_unknown(&table, unknown_objects, unknown_bytes);
}

static void append_globals(struct text *text, const struct scan_view *view)
{
	const Goheapd__Histogram *histogram = view->result->histogram;
	size_t shown = row_count(view, histogram->n_globals);
	struct size_unit unit =
	    size_unit_for(histogram->n_globals ? histogram->globals[0]->retained_bytes : 0);

	if (!histogram->n_globals)
		return;
	text_printf(text, "GLOBALS and what would be freed with each\n%12s  NAME\n", unit.name);
	for (size_t i = 0; i < shown; i++) {
		text_in_unit(text, unit, 12, histogram->globals[i]->retained_bytes);
		append_name(text, true, histogram->globals[i]->name);
	}
	if (shown < histogram->n_globals)
		text_printf(text, "%14s(%zu more)\n", "", histogram->n_globals - shown);
}

void render_text_histogram(struct text *text, const struct scan_view *view)
{
	const Goheapd__Histogram *histogram = view->result->histogram;

	append_head(text, view);
	append_live(text, view);
	if (view->analysis->histogram->garbage) {
		append_others(text, view, "GARBAGE", histogram->garbage, histogram->n_garbage,
			      histogram->garbage_unknown_objects, histogram->garbage_unknown_bytes);
		append_others(text, view, "FINALIZABLE", histogram->finalizable,
			      histogram->n_finalizable, histogram->finalizable_unknown_objects,
			      histogram->finalizable_unknown_bytes);
	}
	append_globals(text, view);
	text_printf(text,
		    "NEXT   goheap objects %" PRIu32 " --type TYPE | goheap profile %" PRIu32 "\n",
		    view->result->identity->pid, view->result->identity->pid);
}

/* ---- pages ---- */

static void append_more(struct text *text, const struct scan_view *view, bool more,
			const struct page_cursor *cursor)
{
	char written[PAGE_CURSOR_SIZE];

	if (more && view->goes_on)
		text_printf(text, "NEXT   there is more: --cursor %s\n",
			    page_cursor_format(cursor, written));
	else if (more)
		text_string(text, "NEXT   there is more: --limit\n");
}

static void append_address(struct text *text, bool has, uint64_t address)
{
	if (has)
		text_printf(text, "0x%012" PRIx64, address);
	else
		text_printf(text, "%-14s", "-");
}

static void append_exact(struct text *text, bool has, uint64_t bytes)
{
	if (has)
		text_count_right(text, 16, bytes);
	else
		text_printf(text, "%16s", "-");
}

void render_text_objects(struct text *text, const struct scan_view *view)
{
	const Goheapd__ObjectPage *page = view->result->objects;
	struct page_cursor cursor;
	bool more = page_cursor_of_objects(view->id, page, &cursor);

	append_head(text, view);
	text_string(text, "ADDRESS                  BYTES        RETAINED  TYPE\n");
	for (size_t i = 0; i < page->n_objects; i++) {
		const Goheapd__ObjectRow *row = page->objects[i];

		append_address(text, true, row->address);
		append_exact(text, true, row->bytes);
		append_exact(text, row->has_retained_bytes, row->retained_bytes);
		append_name(text, row->has_type, row->type);
	}
	append_more(text, view, more, &cursor);
}

void render_text_dominators(struct text *text, const struct scan_view *view)
{
	const Goheapd__DominatorPage *page = view->result->dominators;
	struct page_cursor cursor;
	bool more = page_cursor_of_dominators(view->id, page, &cursor);

	append_head(text, view);
	text_string(text,
		    "ADDRESS                  BYTES        RETAINED     CHILDREN  NAME OR TYPE\n");
	for (size_t i = 0; i < page->n_nodes; i++) {
		const Goheapd__DominatorNode *node = page->nodes[i];

		append_address(text, node->has_address, node->address);
		append_exact(text, true, node->bytes);
		append_exact(text, true, node->retained_bytes);
		text_count_right(text, 13, node->children);
		append_name(text, node->has_name || node->has_type,
			    node->has_name ? node->name : node->type);
	}
	append_more(text, view, more, &cursor);
}

/* ---- one object ---- */

enum { TEXT_CHARS = 60, FIELD_COLUMN = 8, TYPE_COLUMN = 40, VALUE_COLUMN = 64 };

static void append_lengths(struct text *text, const Goheapd__ObjectField *field)
{
	if (field->has_length)
		text_printf(text, " len %" PRIu64, field->length);
	if (field->has_capacity)
		text_printf(text, " cap %" PRIu64, field->capacity);
}

static void append_value(struct text *text, const Goheapd__ObjectField *field)
{
	switch (field->value_case) {
	case GOHEAPD__OBJECT_FIELD__VALUE_INTEGER:
		text_printf(text, "%" PRId64, field->integer);
		break;
	case GOHEAPD__OBJECT_FIELD__VALUE_NUMBER:
		text_printf(text, "%" PRIu64, field->number);
		break;
	case GOHEAPD__OBJECT_FIELD__VALUE_REAL:
		text_printf(text, "%g", field->real);
		break;
	case GOHEAPD__OBJECT_FIELD__VALUE_TRUTH:
		text_string(text, field->truth ? "true" : "false");
		break;
	case GOHEAPD__OBJECT_FIELD__VALUE_POINTER:
		if (field->pointer)
			text_printf(text, "0x%" PRIx64, field->pointer);
		else
			text_string(text, "nil");
		break;
	default:
		break;
	}
	if (field->has_imaginary)
		text_printf(text, "%+gi", field->imaginary);
	append_lengths(text, field);
}

static void append_field(struct text *text, const Goheapd__ObjectField *field)
{
	text_printf(text, "%6" PRIu64, field->offset);
	text_pad(text, FIELD_COLUMN, 2);
	text_escaped(text, field->name, NAME_CHARS);
	text_pad(text, TYPE_COLUMN, 2);
	text_escaped(text, field->type, NAME_CHARS);
	text_pad(text, VALUE_COLUMN, 2);
	append_value(text, field);
	if (field->has_dynamic_type) {
		text_string(text, " (");
		text_escaped(text, field->dynamic_type, NAME_CHARS);
		text_string(text, ")");
	}
	if (field->has_text) {
		text_string(text, " \"");
		text_escaped(text, field->text, TEXT_CHARS);
		text_string(text, "\"");
	}
	if (field->missing)
		text_printf(text, " (%s)", field->missing);
	text_end_line(text);
}

static void append_fields(struct text *text, const Goheapd__Object *object)
{
	if (!object->n_fields)
		return;
	text_string(text, "OFFSET  FIELD");
	text_pad(text, TYPE_COLUMN, 2);
	text_string(text, "TYPE");
	text_pad(text, VALUE_COLUMN, 2);
	text_string(text, "VALUE\n");
	for (size_t i = 0; i < object->n_fields; i++)
		append_field(text, object->fields[i]);
	if (object->fields_cut)
		text_string(text, "        and more\n");
}

/* An address, or that it is a root. */
static void append_place(struct text *text, bool has, uint64_t address)
{
	if (has)
		append_address(text, true, address);
	else
		text_printf(text, "%-14s", "root");
}

static void append_referrer(struct text *text, const Goheapd__Referrer *referrer)
{
	append_place(text, referrer->has_address, referrer->address);
	text_string(text, "  ");
	if (referrer->has_field)
		text_escaped(text, referrer->field, NAME_CHARS);
	if (referrer->has_type) {
		text_string(text, !referrer->has_field ? "" : referrer->has_address ? " of " : " ");
		text_escaped(text, referrer->type, NAME_CHARS);
	}
	text_end_line(text);
}

static void append_referrers(struct text *text, const Goheapd__Object *object)
{
	text_printf(text, "REFERRERS  %zu%s\n", object->n_referrers,
		    object->referrers_cut ? " and more" : "");
	for (size_t i = 0; i < object->n_referrers; i++)
		append_referrer(text, object->referrers[i]);
}

static void append_path(struct text *text, const Goheapd__Object *object)
{
	if (!object->n_path)
		return;
	text_string(text, object->path_cut ? "PATH from a root, its middle left out\n"
					   : "PATH from a root\n");
	for (size_t i = 0; i < object->n_path; i++) {
		if (i)
			append_address(text, object->path[i]->has_address,
				       object->path[i]->address);
		else
			append_place(text, object->path[i]->has_address, object->path[i]->address);
		append_name(text, true, object->path[i]->frame);
	}
}

void render_text_object(struct text *text, const struct scan_view *view)
{
	const Goheapd__Object *object = view->result->object;

	append_head(text, view);
	text_printf(text, "OBJECT 0x%" PRIx64 "  ", object->address);
	if (object->has_type)
		text_escaped(text, object->type, NAME_CHARS);
	else
		text_string(text, "?");
	text_string(text, "  ");
	text_size(text, object->bytes);
	text_printf(text, "  %s", object->state);
	if (object->has_retained_bytes) {
		text_string(text, "  retains ");
		text_size(text, object->retained_bytes);
	}
	text_string(text, "\n");
	append_fields(text, object);
	append_referrers(text, object);
	append_path(text, object);
}
