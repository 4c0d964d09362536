/*
 * Which form an answer takes: ?format=, else the Accept header, else the first that the path
 * offers.
 */
#ifndef DAEMON_NEGOTIATE_H
#define DAEMON_NEGOTIATE_H

#include <stddef.h>

#include "proto/base/error.h"

enum format {
	FORMAT_NONE, /* ends a list */
	FORMAT_JSON,
	FORMAT_TEXT,
	FORMAT_PPROF,
	FORMAT_HTML,
	FORMAT_PROMETHEUS,
	FORMAT_OPENMETRICS,
	FORMAT_END
};

enum { FORMATS_MAX = 5 };

/* Chooses among offered, a list in order of preference. Either text may be NULL. */
must_check struct error *negotiate(const enum format *offered, const char *parameter,
				   const char *accept, enum format *ret);

/* As in ?format=, and as in Content-Type. */
const char *format_name(enum format format);
const char *format_content_type(enum format format);

#endif
