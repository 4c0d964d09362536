#include "daemon/render_json_labels.h"

#include "daemon/label_query.h"
#include "daemon/utf8.h"

static void add_pair(struct json_fields *object, const Goheapd__LabelPair *pair)
{
	size_t key_size, value_size;
	char *key scoped(freep) = utf8_clean(pair->key.data, pair->key.len, &key_size);
	char *value scoped(freep) = utf8_clean(pair->value.data, pair->value.len, &value_size);

	if (!key || !value ||
	    json_object_setn_new_nocheck(object->object, key, key_size,
					 json_stringn_nocheck(value, value_size)) < 0)
		object->failed = true;
}

void render_json_pairs(struct json_fields *fields, const char *key,
		       Goheapd__LabelPair *const *pairs, size_t count)
{
	struct json_fields object;

	json_fields_init(&object);
	for (size_t i = 0; i < count; i++)
		add_pair(&object, pairs[i]);
	json_add_fields(fields, key, &object);
}

/* ---- figures ---- */

static void add_sizes(struct json_fields *fields, const Goheapd__LabelUsage *usage)
{
	json_add_optional_u64(fields, "reachable_bytes", usage->has_reachable_bytes,
			      usage->reachable_bytes);
	json_add_optional_u64(fields, "reachable_objects", usage->has_reachable_objects,
			      usage->reachable_objects);
	json_add_optional_u64(fields, "exclusive_bytes", usage->has_exclusive_bytes,
			      usage->exclusive_bytes);
	json_add_optional_u64(fields, "exclusive_objects", usage->has_exclusive_objects,
			      usage->exclusive_objects);
	json_add_optional_u64(fields, "share_bytes", usage->has_share_bytes, usage->share_bytes);
	json_add_optional_u64(fields, "global_overlap_bytes", usage->has_global_overlap_bytes,
			      usage->global_overlap_bytes);
	json_add_optional_u64(fields, "global_overlap_objects", usage->has_global_overlap_objects,
			      usage->global_overlap_objects);
	json_add_optional_u64(fields, "system_overlap_bytes", usage->has_system_overlap_bytes,
			      usage->system_overlap_bytes);
	json_add_optional_u64(fields, "system_overlap_objects", usage->has_system_overlap_objects,
			      usage->system_overlap_objects);
	json_add_u64(fields, "stack_bytes", usage->stack_bytes);
}

static json_t *type_object(const Goheapd__TypeRow *row)
{
	struct json_fields fields;
	json_t *object = NULL;

	json_fields_init(&fields);
	json_add_bytes(&fields, "type", row->type);
	json_add_u64(&fields, "objects", row->objects);
	json_add_u64(&fields, "bytes", row->bytes);
	error_free(json_fields_finish(&fields, &object));
	return object;
}

/* Null where types were not looked for, as in a census. */
static void add_types(struct json_fields *fields, const Goheapd__LabelUsage *usage)
{
	json_t *list = json_array();
	bool failed = !list;

	if (!usage->types_known) {
		json_decref(list);
		json_add_null(fields, "top_types");
		return;
	}
	for (size_t i = 0; !failed && i < usage->n_top_types; i++)
		failed = json_array_append_new(list, type_object(usage->top_types[i])) < 0;
	if (failed) {
		json_decref(list);
		list = NULL;
	}
	json_add(fields, "top_types", list);
}

static void add_detail(struct json_fields *fields, const Goheapd__LabelUsage *usage)
{
	add_types(fields, usage);
	json_add_optional_u64(fields, "parked_goroutines", usage->has_parked_goroutines,
			      usage->parked_goroutines);
}

static bool wants_detail(const struct scan_view *view)
{
	return view->labels && view->labels->detail;
}

static void add_usage(struct json_fields *fields, const struct scan_view *view,
		      const Goheapd__LabelUsage *usage)
{
	json_add_u64(fields, "goroutines", usage->goroutines);
	add_sizes(fields, usage);
	if (wants_detail(view))
		add_detail(fields, usage);
}

/* ---- the parts ---- */

static void add_status(struct json_fields *fields, const Goheapd__LabelStatus *status)
{
	struct json_fields object;

	json_fields_init(&object);
	json_add_u64(&object, "decoded", status->decoded);
	json_add_u64(&object, "no_labels", status->no_labels);
	json_add_u64(&object, "unsupported_runtime", status->unsupported_runtime);
	json_add_u64(&object, "g_object_missing", status->g_object_missing);
	json_add_u64(&object, "labels_object_missing", status->labels_object_missing);
	json_add_u64(&object, "label_array_missing", status->label_array_missing);
	json_add_u64(&object, "string_missing", status->string_missing);
	json_add_u64(&object, "malformed", status->malformed);
	json_add_fields(fields, "status", &object);
}

static void write_sets(struct text *text, const struct scan_view *view,
		       const Goheapd__LabelReport *report)
{
	json_begin(text, "sets", '[');
	for (size_t i = 0; i < report->n_sets; i++) {
		struct json_fields object;

		json_fields_init(&object);
		render_json_pairs(&object, "labels", report->sets[i]->labels,
				  report->sets[i]->n_labels);
		add_usage(&object, view, report->sets[i]->usage);
		json_write_element(text, &object);
	}
	json_end(text, ']');
}

/* Those that have no label set, with the same fields. */
static void add_others(struct json_fields *fields, const char *key, const struct scan_view *view,
		       const Goheapd__LabelUsage *usage)
{
	struct json_fields object;

	json_fields_init(&object);
	render_json_pairs(&object, "labels", NULL, 0);
	add_usage(&object, view, usage);
	json_add_fields(fields, key, &object);
}

static void add_global(struct json_fields *fields, const Goheapd__GlobalUsage *usage)
{
	struct json_fields object;

	json_fields_init(&object);
	json_add_optional_u64(&object, "exclusive_bytes", usage->has_exclusive_bytes,
			      usage->exclusive_bytes);
	json_add_optional_u64(&object, "exclusive_objects", usage->has_exclusive_objects,
			      usage->exclusive_objects);
	json_add_optional_u64(&object, "share_bytes", usage->has_share_bytes, usage->share_bytes);
	json_add_optional_u64(&object, "reachable_bytes", usage->has_reachable_bytes,
			      usage->reachable_bytes);
	json_add_optional_u64(&object, "reachable_objects", usage->has_reachable_objects,
			      usage->reachable_objects);
	json_add_fields(fields, "global", &object);
}

/* ---- what was asked for beyond that ---- */

static void add_selection(struct json_fields *fields, const struct scan_view *view,
			  const Goheapd__LabelUsage *usage)
{
	struct json_fields object, labels;

	if (!usage) {
		json_add_null(fields, "selection");
		return;
	}
	json_fields_init(&labels);
	for (size_t i = 0; i < view->labels->select_count; i++)
		add_pair(&labels, &view->labels->select[i]);
	json_fields_init(&object);
	json_add_fields(&object, "labels", &labels);
	json_add_u64(&object, "matched_goroutines", usage->goroutines);
	add_sizes(&object, usage);
	if (wants_detail(view))
		add_detail(&object, usage);
	json_add_fields(fields, "selection", &object);
}

static void write_groups(struct text *text, const struct scan_view *view,
			 const Goheapd__LabelReport *report)
{
	json_begin(text, "groups", '[');
	for (size_t i = 0; i < report->n_groups; i++) {
		const Goheapd__LabelGroup *group = report->groups[i];
		struct json_fields object;

		json_fields_init(&object);
		json_add_optional_bytes(&object, "value", group->has_value, group->value);
		add_usage(&object, view, group->usage);
		json_write_element(text, &object);
	}
	json_end(text, ']');
}

static void write_report(struct text *text, const struct scan_view *view,
			 const Goheapd__LabelReport *report)
{
	struct json_fields fields;

	json_begin(text, "labels", '{');
	json_fields_init(&fields);
	add_status(&fields, report->status);
	json_write_fields(text, &fields);
	write_sets(text, view, report);
	json_fields_init(&fields);
	add_others(&fields, "unlabelled", view, report->unlabelled);
	add_others(&fields, "system", view, report->system);
	add_global(&fields, report->global);
	json_write_fields(text, &fields);
	json_end(text, '}');
}

void render_json_labels(struct text *text, const struct scan_view *view)
{
	const Goheapd__LabelReport *report = view->result->labels;
	struct json_fields fields;

	json_fields_init(&fields);
	if (report)
		write_report(text, view, report);
	else
		json_add_null(&fields, "labels");
	if (view->labels && view->labels->select_count)
		add_selection(&fields, view, report ? report->selection : NULL);
	json_write_fields(text, &fields);
	if (report && view->labels && view->labels->has_by)
		write_groups(text, view, report);
}
