/*
 * Labels as text: written out, and in tables of who holds how much.
 */
#ifndef DAEMON_RENDER_TEXT_LABELS_H
#define DAEMON_RENDER_TEXT_LABELS_H

#include "daemon/render_text_common.h"

/*
 * A key or value as it is, or in double quotes where it could be misread: empty, or with a space, a
 * control character, or one of ",=\{}. At most max_columns, cut with an ellipsis.
 */
void text_label_part(struct text *text, ProtobufCBinaryData part, size_t max_columns);

/* "tenant=acme,job=42", at most max_columns. */
void text_labels(struct text *text, Goheapd__LabelPair *const *pairs, size_t count,
		 size_t max_columns);

/* WHO: the sets that hold the most, those without labels, globals and the runtime. */
void text_who(struct text *text, const Goheapd__LabelReport *report, struct size_unit unit);

/* What was selected and grouped by, each in a unit of its own. */
void text_label_answers(struct text *text, const struct scan_view *view);

/* How many goroutines have labels that could not be read. */
uint64_t text_labels_unread(const Goheapd__LabelStatus *status);

#endif
