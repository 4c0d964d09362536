/*
 * A request target, taken apart: the path's segments, and the parameters from the query and from
 * the path itself. Everything is percent-decoded, segment by segment, so that a slash that was
 * encoded stays part of its segment.
 */
#ifndef DAEMON_URI_H
#define DAEMON_URI_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/base/error.h"

/* As many labels as there may be, and every other parameter. */
enum { URI_SEGMENTS_MAX = 16, URI_PARAMS_MAX = 96 };

/* A value may hold zero bytes, and has one more at its end. */
struct uri_param {
	char *name, *value;
	size_t value_size;
};

/* Strings belong to the uri. */
struct uri {
	char *segments[URI_SEGMENTS_MAX];
	size_t segment_count;
	struct uri_param params[URI_PARAMS_MAX];
	size_t param_count;
};

/*
 * Takes a target as it stands in the request line. A segment with a '=' after /pid/N or
 * /comm/NAME, or after the first segment elsewhere, is a parameter, since some scrapers cannot
 * send queries. ERROR_BAD_REQUEST says what is malformed; one parameter given twice is, but for
 * label. On failure *ret holds what was understood so far; give it back either way.
 */
must_check struct error *uri_parse(const char *target, struct uri *ret);
void uri_fini(struct uri *uri);

/*
 * A copy of a target, as it may stand in a log: what is behind "label=" is left out. The caller
 * frees *ret.
 */
must_check struct error *uri_without_labels(const char *target, char **ret);

/* The value of a parameter, or NULL. */
const char *uri_param(const struct uri *uri, const char *name);

#endif
