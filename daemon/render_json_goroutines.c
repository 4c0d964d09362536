#include <string.h>

#include "daemon/render_json_common.h"
#include "daemon/render_json_labels.h"

static json_t *frame_object(const Goheapd__Frame *frame)
{
	struct json_fields object;
	json_t *ret = NULL;

	json_fields_init(&object);
	json_add_bytes(&object, "function", frame->function);
	json_add_optional_bytes(&object, "file", frame->has_file, frame->file);
	json_add_optional_u64(&object, "line", frame->has_line, frame->line);
	json_add_bool(&object, "inlined", frame->has_inlined && frame->inlined);
	error_free(json_fields_finish(&object, &ret));
	return ret;
}

static void add_frames(struct json_fields *fields, const Goheapd__ScanResult *result,
		       const Goheapd__Goroutine *g)
{
	const Goheapd__StackTrace *trace = g->has_trace ? result->traces[g->trace] : NULL;
	json_t *list = json_array();

	for (size_t i = 0; trace && i < trace->n_frames; i++) {
		if (json_array_append_new(list, frame_object(result->frames[trace->frames[i]])) < 0)
			fields->failed = true;
	}
	json_add(fields, "frames", list);
}

static void add_creator(struct json_fields *fields, const Goheapd__ScanResult *result,
			const Goheapd__Goroutine *g)
{
	static const Goheapd__Frame unknown = GOHEAPD__FRAME__INIT;
	const Goheapd__Frame *frame = g->has_created_by ? result->frames[g->created_by] : &unknown;

	json_add_optional_bytes(fields, "created_by", g->has_created_by, frame->function);
	json_add_optional_bytes(fields, "created_by_file", frame->has_file, frame->file);
	json_add_optional_u64(fields, "created_by_line", frame->has_line, frame->line);
	json_add_optional_u64(fields, "creator_id", g->has_creator_id, g->creator_id);
}

/* Those that it has, {} where it has none, null where they could not be read. */
static void add_labels(struct json_fields *fields, const Goheapd__Goroutine *g)
{
	bool known = g->n_labels || (g->has_has_no_labels && g->has_no_labels);

	if (known && !g->has_label_error)
		render_json_pairs(fields, "labels", g->labels, g->n_labels);
	else
		json_add_null(fields, "labels");
	json_add_optional_bytes(fields, "label_error", g->has_label_error, g->label_error);
}

static void add_goroutine(struct text *text, const Goheapd__ScanResult *result,
			  const Goheapd__Goroutine *g)
{
	struct json_fields fields;

	json_fields_init(&fields);
	json_add_u64(&fields, "id", g->id);
	json_add_string(&fields, "status", g->status);
	json_add_optional_bytes(&fields, "wait_reason", g->has_wait_reason, g->wait_reason);
	if (g->has_waiting_since_ns)
		json_add_time(&fields, "waiting_since", g->waiting_since_ns);
	else
		json_add_null(&fields, "waiting_since");
	json_add_bool(&fields, "system", g->system);
	add_labels(&fields, g);
	add_creator(&fields, result, g);
	json_add_optional_u64(&fields, "thread", g->has_thread, g->thread);
	json_add_optional_u64(&fields, "locked_thread", g->has_locked_thread, g->locked_thread);
	json_add_u64(&fields, "stack_bytes", g->stack_bytes);
	json_add_optional_u64(&fields, "stack_in_use_bytes", g->has_stack_in_use_bytes,
			      g->stack_in_use_bytes);
	if (g->has_blocked_on)
		json_add_address(&fields, "blocked_on", g->blocked_on);
	else
		json_add_null(&fields, "blocked_on");
	json_add_optional_u64(&fields, "retained_bytes", g->has_retained_bytes, g->retained_bytes);
	json_add_optional_bytes(&fields, "error", g->has_error, g->error);
	add_frames(&fields, result, g);
	json_write_element(text, &fields);
}

void render_json_goroutines(struct text *text, const struct scan_view *view)
{
	const Goheapd__ScanResult *result = view->result;

	json_begin(text, NULL, '{');
	render_json_scan_head(text, view);
	json_begin(text, "goroutines", '[');
	for (size_t i = 0; i < result->n_goroutines; i++) {
		if (view->dead || strcmp(result->goroutines[i]->status, "dead") != 0)
			add_goroutine(text, result, result->goroutines[i]);
	}
	json_end(text, ']');
	json_end(text, '}');
	text_string(text, "\n");
}
