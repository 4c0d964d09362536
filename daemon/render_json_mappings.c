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
	json_write_element(text, &fields);
}

void render_json_mappings(struct text *text, const struct scan_view *view)
{
	const Goheapd__ScanResult *result = view->result;

	json_begin(text, NULL, '{');
	render_json_scan_head(text, view);
	json_begin(text, "mappings", '[');
	for (size_t i = 0; i < result->n_mappings; i++)
		add_mapping(text, result->mappings[i]);
	json_end(text, ']');
	json_end(text, '}');
	text_string(text, "\n");
}
