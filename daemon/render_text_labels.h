/*
 * Tables of who holds how much.
 */
#ifndef DAEMON_RENDER_TEXT_LABELS_H
#define DAEMON_RENDER_TEXT_LABELS_H

#include "daemon/render_text_common.h"

/* WHO: the sets that hold the most, those without labels, globals and the runtime. */
void text_who(struct text *text, const Goheapd__LabelReport *report, struct size_unit unit);

/* What was selected and grouped by, each in a unit of its own. */
void text_label_answers(struct text *text, const struct scan_view *view);

/* How many goroutines have labels that could not be read. */
uint64_t text_labels_unread(const Goheapd__LabelStatus *status);

#endif
