/*
 * The change between two scans, as people and programs read it.
 */
#ifndef DAEMON_RENDER_DIFF_H
#define DAEMON_RENDER_DIFF_H

#include "daemon/diff.h"
#include "daemon/render.h"

struct diff_view {
	const struct diff *diff;
	/* What answers begin with, of the later scan; its profile is what was asked of both. */
	const struct scan_view *to;
	const struct scan_view *from;
	/* diff's chains, of which the small ones may have been folded. */
	const struct chain_tree *chains;
};

void render_json_diff(struct text *text, const struct diff_view *view);
void render_text_diff(struct text *text, const struct diff_view *view);
void render_pprof_diff(struct text *text, const struct diff_view *view);

#endif
