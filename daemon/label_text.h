/*
 * Labels written out for people. They may hold anything.
 */
#ifndef DAEMON_LABEL_TEXT_H
#define DAEMON_LABEL_TEXT_H

#include "daemon/text.h"
#include "proto/goheapd.pb-c.h"

/*
 * A key or value as it is, or in double quotes where it could be misread: empty, or with a space, a
 * control character, or one of ",=\{}. At most max_columns, cut with an ellipsis.
 */
void text_label_part(struct text *text, ProtobufCBinaryData part, size_t max_columns);

/* "tenant=acme,job=42", at most max_columns. */
void text_labels(struct text *text, Goheapd__LabelPair *const *pairs, size_t count,
		 size_t max_columns);

#endif
