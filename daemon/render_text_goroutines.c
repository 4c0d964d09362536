/*
 * Goroutines in the form of Go's own traceback, which people and tools read: a heading with the
 * state, then two lines for each frame. The JSON form has every frame.
 */
#include <inttypes.h>

#include "daemon/label_text.h"
#include "daemon/render_text_common.h"

enum { NS_PER_SECOND = 1000000000, NAME_MAX_CHARS = 1000 };

/* Lines of our own begin with '#', as comments do in Go's text profiles. */
static void append_head(struct text *text, const struct scan_view *view)
{
	text_string(text, "# ");
	text_scan_head(text, view);
	for (size_t i = 0; i < view->result->scan->n_warnings; i++) {
		text_string(text, "# ");
		text_escaped(text, view->result->scan->warnings[i]->message, NAME_MAX_CHARS);
		text_string(text, "\n");
	}
}

/* " {tenant: acme, job: 42}", as Go has it (runtime/traceback.go, since go1.26). */
static void append_labels(struct text *text, const Goheapd__Goroutine *g)
{
	if (g->has_label_error) {
		text_string(text, " {labels unreadable: ");
		text_escaped(text, g->label_error, NAME_MAX_CHARS);
		text_string(text, "}");
		return;
	}
	for (size_t i = 0; i < g->n_labels; i++) {
		text_string(text, i ? ", " : " {");
		text_label_part(text, g->labels[i]->key, NAME_MAX_CHARS);
		text_string(text, ": ");
		text_label_part(text, g->labels[i]->value, NAME_MAX_CHARS);
	}
	if (g->n_labels)
		text_string(text, "}");
}

/* "[chan receive, 5 minutes, locked to thread]": minutes only, as Go has it; the last is ours. */
static void append_state(struct text *text, const Goheapd__Goroutine *g, uint64_t now_ns)
{
	text_printf(text, "goroutine %" PRIu64 " [", g->id);
	if (g->has_wait_reason && g->wait_reason.len)
		text_escaped(text, g->wait_reason, NAME_MAX_CHARS);
	else
		text_escaped(text, text_bytes(g->status), NAME_MAX_CHARS);
	if (g->has_waiting_since_ns && now_ns > g->waiting_since_ns) {
		uint64_t minutes = (now_ns - g->waiting_since_ns) / NS_PER_SECOND / 60;

		if (minutes)
			text_printf(text, ", %" PRIu64 " minutes", minutes);
	}
	if (g->has_locked_thread)
		text_string(text, ", locked to thread");
	if (g->has_retained_bytes) {
		text_string(text, ", retains ");
		text_size(text, g->retained_bytes);
	}
	text_string(text, "]");
	append_labels(text, g);
	text_string(text, ":\n");
}

static void append_place(struct text *text, bool has_file, ProtobufCBinaryData file, bool has_line,
			 uint32_t line)
{
	if (!has_file)
		return;
	text_string(text, "\t");
	text_escaped(text, file, NAME_MAX_CHARS);
	if (has_line)
		text_printf(text, ":%" PRIu32, line);
	text_string(text, "\n");
}

/*
 * Go's tracebacks leave out what the runtime does for itself, and show what of it a program calls:
 * names with a capital letter (runtime/traceback.go, showfuncinfo).
 */
static bool is_runtime_internal(const Goheapd__Frame *frame)
{
	static const char prefix[] = "runtime.";
	const size_t size = sizeof(prefix) - 1;
	ProtobufCBinaryData name = frame->function;

	return name.len > size && memcmp(name.data, prefix, size) == 0 &&
	       (name.data[size] < 'A' || name.data[size] > 'Z');
}

/* A goroutine of the runtime's own has nothing else: it is shown whole. */
static bool shows_runtime(const Goheapd__ScanResult *result, const Goheapd__Goroutine *g,
			  const Goheapd__StackTrace *trace)
{
	for (size_t i = 0; i < trace->n_frames; i++) {
		if (!is_runtime_internal(result->frames[trace->frames[i]]))
			return g->system;
	}
	return true;
}

static void append_creator(struct text *text, const Goheapd__ScanResult *result,
			   const Goheapd__Goroutine *g)
{
	const Goheapd__Frame *frame;

	if (!g->has_created_by || g->id == 1) /* the runtime's start made that one */
		return;
	frame = result->frames[g->created_by];
	text_string(text, "created by ");
	text_escaped(text, frame->function, NAME_MAX_CHARS);
	if (g->has_creator_id)
		text_printf(text, " in goroutine %" PRIu64, g->creator_id);
	text_string(text, "\n");
	append_place(text, frame->has_file, frame->file, frame->has_line, frame->line);
}

static void append_frame(struct text *text, const Goheapd__Frame *frame)
{
	text_escaped(text, frame->function, NAME_MAX_CHARS);
	text_string(text, "(...)\n");
	append_place(text, frame->has_file, frame->file, frame->has_line, frame->line);
}

static void append_goroutine(struct text *text, const Goheapd__ScanResult *result,
			     const Goheapd__Goroutine *g)
{
	static const Goheapd__StackTrace none = GOHEAPD__STACK_TRACE__INIT;
	const Goheapd__StackTrace *trace = g->has_trace ? result->traces[g->trace] : &none;
	bool whole = shows_runtime(result, g, trace);

	text_string(text, "\n");
	append_state(text, g, result->scan->started_at_ns);
	for (size_t i = 0; i < trace->n_frames; i++) {
		const Goheapd__Frame *frame = result->frames[trace->frames[i]];

		if (whole || !is_runtime_internal(frame))
			append_frame(text, frame);
	}
	if (g->has_error) {
		text_string(text, "...the stack could not be walked further: ");
		text_escaped(text, g->error, NAME_MAX_CHARS);
		text_string(text, "\n");
	}
	append_creator(text, result, g);
}

void render_text_goroutines(struct text *text, const struct scan_view *view)
{
	const Goheapd__ScanResult *result = view->result;

	append_head(text, view);
	for (size_t i = 0; i < result->n_goroutines; i++) {
		if (view->dead || strcmp(result->goroutines[i]->status, "dead") != 0)
			append_goroutine(text, result, result->goroutines[i]);
	}
}
