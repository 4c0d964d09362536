/*
 * Answers as people and programs read them: from the agent's messages to JSON and to text. Used by
 * the daemon and, where none runs, by goheap. Nothing here knows of HTTP or of a terminal.
 */
#ifndef DAEMON_RENDER_H
#define DAEMON_RENDER_H

#include "daemon/text.h"
#include "proto/goheapd.pb-c.h"

struct label_query;

/* Of the globals that retain most a page of memusage shows so many. */
enum { RENDER_GLOBALS_MAX = 5 };

/* What of label sets becomes metrics. */
struct metric_settings {
	/* Keys that are allowed, and the label that each becomes. */
	const struct metric_label_key {
		char *key, *name;
	} * labels;
	size_t label_count;
	size_t series_max; /* how many series before the rest is summed up */
};

/* A scan's result together with what is not the agent's to say. */
struct scan_view {
	const Goheapd__ScanResult *result;
	const char *id;
	bool cached;
	bool dead;                             /* list dead goroutines too */
	const struct label_query *labels;      /* what was asked of them, or NULL */
	const struct metric_settings *metrics; /* for metrics only */
	const Goheapd__Analysis *analysis;     /* what was asked of objects, or NULL */
	uint64_t top;                          /* rows of a histogram; 0: all */
	bool goes_on;                          /* it is kept: a page has a cursor for the next */
};

/* A scan that is kept, in a list of them. */
struct kept_view {
	const Goheapd__ScanResult *result;
	const char *id;
	uint64_t until_ns; /* since the epoch */
	bool has_graph;
};

void render_json_scans(struct text *text, uint32_t pid, const struct kept_view *scans,
		       size_t count);
void render_text_scans(struct text *text, const struct kept_view *scans, size_t count,
		       uint64_t now_ns);

void render_json_pids(struct text *text, Goheapd__Process *const *processes, size_t count);
void render_json_overview(struct text *text, const Goheapd__OverviewResult *overview);
void render_json_memusage(struct text *text, const struct scan_view *view);
void render_json_goroutines(struct text *text, const struct scan_view *view);
void render_json_mappings(struct text *text, const struct scan_view *view);

/* now_ns, since the epoch, is what ages are counted to. */
void render_text_pids(struct text *text, Goheapd__Process *const *processes, size_t count,
		      uint64_t now_ns);
void render_text_overview(struct text *text, const Goheapd__OverviewResult *overview,
			  uint64_t now_ns);
void render_text_memusage(struct text *text, const struct scan_view *view);
void render_text_goroutines(struct text *text, const struct scan_view *view);
void render_text_mappings(struct text *text, const struct scan_view *view);

void render_json_histogram(struct text *text, const struct scan_view *view);
void render_json_objects(struct text *text, const struct scan_view *view);
void render_json_object(struct text *text, const struct scan_view *view);
void render_json_dominators(struct text *text, const struct scan_view *view);
void render_text_histogram(struct text *text, const struct scan_view *view);
void render_text_objects(struct text *text, const struct scan_view *view);
void render_text_object(struct text *text, const struct scan_view *view);
void render_text_dominators(struct text *text, const struct scan_view *view);

/* The largest of its chains. */
void render_text_profile(struct text *text, const struct scan_view *view);

/* A gzipped profile for go tool pprof. */
void render_pprof_profile(struct text *text, const struct scan_view *view);

void render_prometheus_memusage(struct text *text, const struct scan_view *view);
void render_openmetrics_memusage(struct text *text, const struct scan_view *view);

#endif
