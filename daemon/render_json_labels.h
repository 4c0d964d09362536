/*
 * Labels as JSON: the pairs of a goroutine or a set, and what the sets hold.
 */
#ifndef DAEMON_RENDER_JSON_LABELS_H
#define DAEMON_RENDER_JSON_LABELS_H

#include "daemon/json_fields.h"
#include "daemon/render.h"

/*
 * { "tenant": "acme" }. Keys that differ only in bytes which are no UTF-8 become one, the last;
 * JSON has no way to keep them apart.
 */
void render_json_pairs(struct json_fields *fields, const char *key,
		       Goheapd__LabelPair *const *pairs, size_t count);

/* Writes "labels", null where the agent said nothing of them, and what was selected and grouped. */
void render_json_labels(struct text *text, const struct scan_view *view);

#endif
