/*
 * What a request asks of goroutine labels: which goroutines to select, by what to group them, and
 * whether in detail. The selectors are sorted and none is there twice, so that questions that mean
 * the same compare equal.
 */
#ifndef DAEMON_LABEL_QUERY_H
#define DAEMON_LABEL_QUERY_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"
#include "proto/wire/limits.h"

/* Bytes are borrowed, but for a copy by label_query_copy. */
struct label_query {
	Goheapd__LabelPair select[LIMIT_SELECT_LABELS]; /* all must match */
	size_t select_count;
	bool has_by;
	ProtobufCBinaryData by; /* a key, or "@created_by", "@entry", "@module" */
	bool detail;
};

/*
 * Adds "key=value" to the selectors; what stands behind the first '=' is the value.
 * ERROR_TOO_MANY_LABELS, ERROR_EMPTY_LABEL_KEY, ERROR_LABEL_TOO_LONG, or ERROR_BAD_REQUEST where
 * there is no '='.
 */
must_check struct error *label_query_select(struct label_query *query, ProtobufCBinaryData text);

/* Sets the key to group by. The same errors; ERROR_BAD_REQUEST for an @name that there is not. */
must_check struct error *label_query_group(struct label_query *query, ProtobufCBinaryData key);

bool label_query_is_empty(const struct label_query *query);
bool label_query_equal(const struct label_query *a, const struct label_query *b);

/* A copy with bytes of its own, to be given back with free, and how much memory it takes. */
must_check struct error *label_query_copy(const struct label_query *query, struct label_query **ret,
					  size_t *ret_size);

#endif
