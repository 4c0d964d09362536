#include "cli/labels.h"

#include <jansson.h>
#include <string.h>

#include "daemon/json_fields.h"
#include "daemon/label_text.h"
#include "daemon/render_text_common.h"

enum { NAME_MAX_COLUMNS = 1000, COUNT_COLUMNS = 10, SIZE_COLUMNS = 22, LABELS_COLUMN = 24 };

static void json_freep(json_t **json)
{
	json_decref(*json);
}

static struct error *parse(const struct text *json, json_t **ret)
{
	json_t *top =
	    json_loadb((const char *)json->bytes.data, json->bytes.size, JSON_ALLOW_NUL, NULL);

	if (!json_object_get(json_object_get(top, "labels"), "sets")) {
		json_decref(top);
		return error_new(ERROR_SYSTEM, "the answer has no labels");
	}
	*ret = top;
	return NULL;
}

static uint64_t number(const json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

static ProtobufCBinaryData string(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return (ProtobufCBinaryData){ .len = json_string_length(value),
				      .data = (uint8_t *)(uintptr_t)json_string_value(value) };
}

/* ---- rows ---- */

struct row {
	json_t *set; /* of the list's */
	uint64_t goroutines;
	size_t index;
};

/* Most goroutines first, else as they came. */
static int compare_rows(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->goroutines != y->goroutines)
		return x->goroutines > y->goroutines ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

static void append_right(struct text *text, const struct text *figure, size_t column, size_t start)
{
	size_t end = figure->bytes.size; /* figures are ASCII */

	text_pad(text, end < column - start ? column - end : start, 0);
	text_append(text, figure->bytes.data, figure->bytes.size);
}

/* "       201    30.0 MiB  ", up to where the labels begin. */
static void append_figures(struct text *text, const json_t *set)
{
	struct text figure;

	text_init(&figure);
	text_count(&figure, number(set, "goroutines"));
	append_right(text, &figure, COUNT_COLUMNS, 0);
	figure.bytes.size = 0;
	text_size(&figure, number(set, "stack_bytes"));
	append_right(text, &figure, SIZE_COLUMNS, COUNT_COLUMNS);
	text_pad(text, LABELS_COLUMN, 2);
	text_fail(text, text_finish(&figure));
	text_fini(&figure);
}

/* The labels of a set, whose strings stay with it. */
static struct error *append_labels(struct text *text, json_t *labels)
{
	size_t count = 0, size = json_object_size(labels) + 1;
	Goheapd__LabelPair *pairs scoped(freep) = calloc(size, sizeof(*pairs));
	Goheapd__LabelPair **pointers scoped(freep) = calloc(size, sizeof(*pointers));

	if (!pairs || !pointers)
		return &error_nomem;
	for (void *i = json_object_iter(labels); i; i = json_object_iter_next(labels, i)) {
		const json_t *value = json_object_iter_value(i);

		pairs[count].key.data = (uint8_t *)(uintptr_t)json_object_iter_key(i);
		pairs[count].key.len = json_object_iter_key_len(i);
		pairs[count].value.data = (uint8_t *)(uintptr_t)json_string_value(value);
		pairs[count].value.len = json_string_length(value);
		pointers[count] = &pairs[count];
		count++;
	}
	text_labels(text, pointers, count, NAME_MAX_COLUMNS);
	return NULL;
}

static struct error *append_sets(struct text *text, const json_t *sets)
{
	size_t count = json_array_size(sets);
	struct row *rows scoped(freep) = calloc(count + 1, sizeof(*rows));
	struct error *err = rows ? NULL : &error_nomem;

	for (size_t i = 0; !err && i < count; i++) {
		json_t *set = json_array_get(sets, i);

		rows[i] = (struct row){ set, number(set, "goroutines"), i };
	}
	if (!err)
		qsort(rows, count, sizeof(*rows), compare_rows);
	for (size_t i = 0; !err && i < count; i++) {
		append_figures(text, rows[i].set);
		err = append_labels(text, json_object_get(rows[i].set, "labels"));
		text_string(text, "\n");
	}
	return err;
}

/* ---- around them ---- */

static void append_head(struct text *text, const json_t *top)
{
	const json_t *scan = json_object_get(top, "scan");

	text_escaped(text, string(top, "comm"), NAME_MAX_COLUMNS);
	text_printf(text, " pid %llu ", (unsigned long long)number(top, "pid"));
	text_escaped(text, string(top, "go_version"), NAME_MAX_COLUMNS);
	text_string(text, " | ");
	text_count(text, json_array_size(json_object_get(json_object_get(top, "labels"), "sets")));
	text_printf(text, " label sets | stopped %.1f ms\n",
		    json_number_value(json_object_get(scan, "pause_seconds")) * 1000);
}

/* Those whose labels could not be read, by why: "string_missing 1, malformed 1". */
static void append_unread(struct text *text, json_t *status)
{
	bool any = false;

	for (void *i = json_object_iter(status); i; i = json_object_iter_next(status, i)) {
		const char *name = json_object_iter_key(i);
		uint64_t count = number(status, name);

		if (!count || strcmp(name, "decoded") == 0 || strcmp(name, "no_labels") == 0)
			continue;
		text_string(text, any ? ", " : "!! labels could not be read: ");
		text_escaped(text, text_bytes(name), NAME_MAX_COLUMNS);
		text_string(text, " ");
		text_count(text, count);
		any = true;
	}
	text_string(text, any ? "\n" : "");
}

static void append_other(struct text *text, const json_t *usage, const char *name)
{
	append_figures(text, usage);
	text_string(text, name);
	text_string(text, "\n");
}

struct error *labels_table(const struct text *json, struct text *table)
{
	json_t *top scoped(json_freep) = NULL;
	const json_t *labels;
	struct error *err = parse(json, &top);

	if (err)
		return err;
	labels = json_object_get(top, "labels");
	append_head(table, top);
	append_unread(table, json_object_get(labels, "status"));
	text_string(table, "GOROUTINES      STACKS  LABELS\n");
	err = append_sets(table, json_object_get(labels, "sets"));
	if (err)
		return err;
	append_other(table, json_object_get(labels, "unlabelled"), "no label");
	append_other(table, json_object_get(labels, "system"), "system");
	return text_finish(table);
}

struct error *labels_json(const struct text *json, struct text *ret)
{
	static const char *const others[] = { "memory", "heap",   "stacks",
					      "gc",     "cgroup", "rss_bytes" };
	json_t *top = NULL;
	struct error *err = parse(json, &top);

	if (err)
		return err;
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		json_object_del(top, others[i]);
	json_write(ret, top);
	return text_finish(ret);
}
