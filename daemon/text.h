/*
 * Text that grows: what an answer's body is written into. The first failure (memory, or the
 * limit) is kept and everything after it does nothing, so that a page is written line by line
 * without a check at each; text_finish tells.
 */
#ifndef DAEMON_TEXT_H
#define DAEMON_TEXT_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/bytes.h"
#include "proto/base/error.h"

struct text {
	struct bytes bytes;
	struct error *err;
};

void text_init(struct text *text);
void text_fini(struct text *text);

void text_append(struct text *text, const void *data, size_t size);
void text_string(struct text *text, const char *string);
void text_printf(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Keeps err, which it takes over, unless there is one already. NULL does nothing. */
void text_fail(struct text *text, struct error *err);

/*
 * Writes bytes from a target so that a terminal shows them and does nothing else: invalid UTF-8
 * as U+FFFD, control and direction-changing characters as \xNN or \uNNNN. More than max_columns
 * characters are cut and end in an ellipsis. Returns how many were written.
 */
size_t text_escaped(struct text *text, ProtobufCBinaryData bytes, size_t max_columns);

/* Spaces up to a column, counted from the start of the line in characters; at least min of them. */
void text_pad(struct text *text, size_t column, size_t min);

/* Ends the line, without the spaces that stand at its end. */
void text_end_line(struct text *text);

/* The failure that was kept, now the caller's, or NULL. */
must_check struct error *text_finish(struct text *text);

#endif
