/*
 * Answers that take a scan: shared, kept or new, as the parameters say.
 */
#ifndef DAEMON_ANSWER_SCAN_H
#define DAEMON_ANSWER_SCAN_H

#include "daemon/exchange.h"

/* A scan that carries parts and what analysis asks (or NULL), a reference of the caller's. */
must_check struct error *answer_get_scan(struct exchange *exchange, unsigned parts,
					 const Goheapd__Analysis *analysis, struct scan **ret,
					 bool *ret_cached);

typedef void scan_renderer(struct text *text, const struct scan_view *view);

/* Such a scan, rendered in the form that was asked for. */
must_check struct error *answer_scan(struct exchange *exchange, unsigned parts,
				     const Goheapd__Analysis *analysis,
				     scan_renderer *const renderers[FORMAT_END]);

#endif
