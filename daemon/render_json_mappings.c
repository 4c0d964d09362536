#include "daemon/render_json_common.h"

static void add_holds(struct json_fields *fields, const Goheapd__Mapping *mapping)
{
	struct json_fields object;

	json_fields_init(&object);
	for (size_t i = 0; i < mapping->n_holds; i++)
		json_add_u64(&object, mapping->holds[i]->kind, mapping->holds[i]->bytes);
	json_add_fields(fields, "holds", &object);
}

static void add_mapping(struct text *text, const Goheapd__Mapping *mapping)
{
	struct json_fields fields;

	json_fields_init(&fields);
	json_add_address(&fields, "start", mapping->start);
	json_add_address(&fields, "end", mapping->end);
	json_add_string(&fields, "perms", mapping->perms);
	json_add_optional_bytes(&fields, "file", mapping->has_file, mapping->file);
	json_add_string(&fields, "kind", mapping->kind);
	json_add_u64(&fields, "bytes", mapping->end - mapping->start);
	json_add_u64(&fields, "resident_bytes", mapping->resident_bytes);
	add_holds(&fields, mapping);
	json_list_add(text, &fields);
}

void render_json_mappings(struct text *text, const struct scan_view *view)
{
	const Goheapd__ScanResult *result = view->result;
	struct json_fields fields;
	json_t *head;
	struct error *err;

	json_fields_init(&fields);
	render_json_scan_head(&fields, view, NULL);
	err = json_fields_finish(&fields, &head);
	if (err) {
		text_fail(text, err);
		return;
	}
	json_list_begin(text, head, "mappings");
	for (size_t i = 0; i < result->n_mappings; i++)
		add_mapping(text, result->mappings[i]);
	json_list_end(text);
}
