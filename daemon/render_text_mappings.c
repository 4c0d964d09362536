#include <inttypes.h>

#include "daemon/render_text_common.h"

enum { FILE_CHARS = 60 };

static void append_holds(struct text *text, const Goheapd__Mapping *mapping)
{
	for (size_t i = 0; i < mapping->n_holds; i++) {
		text_printf(text, "%s%s ", i ? ", " : "  ", mapping->holds[i]->kind);
		text_size(text, mapping->holds[i]->bytes);
	}
}

static void append_mapping(struct text *text, const Goheapd__Mapping *mapping)
{
	text_printf(text, "%012" PRIx64 "-%012" PRIx64 " %-4.4s  ", mapping->start, mapping->end,
		    mapping->perms);
	text_size(text, mapping->end - mapping->start);
	text_pad(text, 44, 1);
	text_size(text, mapping->resident_bytes);
	text_pad(text, 55, 1);
	text_escaped(text, text_bytes(mapping->kind), FILE_CHARS);
	if (mapping->has_file) {
		text_pad(text, 69, 2);
		text_escaped(text, mapping->file, FILE_CHARS);
	}
	append_holds(text, mapping);
	text_string(text, "\n");
}

void render_text_mappings(struct text *text, const struct scan_view *view)
{
	const Goheapd__ScanResult *result = view->result;

	text_scan_head(text, view);
	text_warnings(text, result->scan->warnings, result->scan->n_warnings);
	text_string(text,
		    "ADDRESSES                 PERM  SIZE        RESIDENT   KIND          FILE"
		    "  holds\n");
	for (size_t i = 0; i < result->n_mappings; i++)
		append_mapping(text, result->mappings[i]);
}
