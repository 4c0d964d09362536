#include <inttypes.h>

#include "daemon/json_fields.h"
#include "daemon/render_json_common.h"
#include "daemon/render_text_common.h"

enum { NS_PER_SECOND = 1000000000 };

static const char *mode_of(const struct kept_view *scan)
{
	return scan->result->scan->mode == GOHEAPD__MODE__MODE_STOP ? "stop" : "fork";
}

static const char *depth_of(const struct kept_view *scan)
{
	return scan->result->scan->depth == GOHEAPD__DEPTH__DEPTH_CENSUS ? "census" : "full";
}

static bool is_live_known(const struct kept_view *scan)
{
	return scan->result->heap && scan->result->heap->has_live_bytes;
}

static uint64_t live_bytes(const struct kept_view *scan)
{
	return is_live_known(scan) ? scan->result->heap->live_bytes : 0;
}

/* "stored": in a history on disk, which there is none of yet. */
static void add_scan(struct text *text, const struct kept_view *scan)
{
	struct json_fields fields;

	json_fields_init(&fields);
	json_add_string(&fields, "id", scan->id);
	json_add_time(&fields, "started_at", scan->result->scan->started_at_ns);
	json_add_string(&fields, "mode", mode_of(scan));
	json_add_string(&fields, "depth", depth_of(scan));
	json_add_optional_u64(&fields, "live_bytes", is_live_known(scan), live_bytes(scan));
	json_add_time(&fields, "expires_at", scan->until_ns);
	json_add_bool(&fields, "stored", false);
	json_add_bool(&fields, "graph", scan->has_graph);
	json_write_element(text, &fields);
}

void render_json_scans(struct text *text, uint32_t pid, const struct kept_view *scans, size_t count)
{
	struct json_fields fields;

	json_begin(text, NULL, '{');
	json_fields_init(&fields);
	json_add_u64(&fields, "pid", pid);
	json_write_fields(text, &fields);
	json_begin(text, "scans", '[');
	for (size_t i = 0; i < count; i++)
		add_scan(text, &scans[i]);
	json_end(text, ']');
	json_end(text, '}');
	text_string(text, "\n");
}

static void append_seconds(struct text *text, uint64_t from_ns, uint64_t to_ns)
{
	text_duration(text, to_ns > from_ns ? (to_ns - from_ns) / NS_PER_SECOND : 0);
}

static void append_scan(struct text *text, const struct kept_view *scan, uint64_t now_ns)
{
	text_printf(text, "%-16s  ", scan->id);
	append_seconds(text, scan->result->scan->started_at_ns, now_ns);
	text_pad(text, 26, 1);
	append_seconds(text, now_ns, scan->until_ns);
	text_pad(text, 34, 1);
	text_printf(text, "%-5s %-7s ", mode_of(scan), depth_of(scan));
	if (is_live_known(scan))
		text_size(text, live_bytes(scan));
	text_pad(text, 60, 1);
	text_string(text, scan->has_graph ? "all that a scan answers" : "its first answer");
	text_end_line(text);
}

void render_text_scans(struct text *text, const struct kept_view *scans, size_t count,
		       uint64_t now_ns)
{
	if (count == 0) {
		text_string(text,
			    "no scan of this process is kept; ask for one with keep=SECONDS\n");
		return;
	}
	text_string(text, "SCAN              AGE     LEFT    MODE  DEPTH   LIVE         ANSWERS\n");
	for (size_t i = 0; i < count; i++)
		append_scan(text, &scans[i], now_ns);
}
