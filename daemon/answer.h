/*
 * The handlers of the routes. Each writes the body of a 200 answer into the exchange or returns
 * what went wrong.
 */
#ifndef DAEMON_ANSWER_H
#define DAEMON_ANSWER_H

#include "proto/base/error.h"

struct exchange;

must_check struct error *answer_healthz(struct exchange *exchange);
must_check struct error *answer_readyz(struct exchange *exchange);
must_check struct error *answer_pids(struct exchange *exchange);
must_check struct error *answer_overview(struct exchange *exchange);
must_check struct error *answer_memusage(struct exchange *exchange);
must_check struct error *answer_goroutines(struct exchange *exchange);
must_check struct error *answer_mappings(struct exchange *exchange);
must_check struct error *answer_scans(struct exchange *exchange);

#endif
