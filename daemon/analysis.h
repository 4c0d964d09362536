/*
 * What a request asks of objects, compared and copied: a scan in flight or in store answers another
 * request if it was asked the same. The message itself is made by whoever knows the path.
 */
#ifndef DAEMON_ANALYSIS_H
#define DAEMON_ANALYSIS_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"

/* Either may be NULL: nothing is asked. Without memory to tell, they differ. */
bool analysis_equal(const Goheapd__Analysis *a, const Goheapd__Analysis *b);

/* Whether a scan that was asked had answers what is wanted now: part by part. */
bool analysis_answers(const Goheapd__Analysis *had, const Goheapd__Analysis *wanted);

/* A copy with bytes of its own, to be given back with analysis_free, and its size on the wire. */
must_check struct error *analysis_copy(const Goheapd__Analysis *analysis, Goheapd__Analysis **ret,
				       size_t *ret_size);
void analysis_free(Goheapd__Analysis *analysis); /* NULL is allowed */

#endif
