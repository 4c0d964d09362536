/*
 * The change between two scans, as people and programs read it.
 */
#ifndef DAEMON_RENDER_DIFF_H
#define DAEMON_RENDER_DIFF_H

#include "daemon/render.h"

/* One of the scans: what answers begin with, and the result that has profile and histogram. */
struct diff_scan {
	struct scan_view view;
	const Goheapd__ScanResult *objects;
};

/* Both have been asked for more than query wants; what is shown is folded as it says. */
struct diff_question {
	struct diff_scan from, to;
	const Goheapd__ProfileQuery *query;
};

void render_json_diff(struct text *text, const struct diff_question *question);
void render_text_diff(struct text *text, const struct diff_question *question);
/* A gzipped profile with signed values. */
void render_pprof_diff(struct text *text, const struct diff_question *question);

#endif
