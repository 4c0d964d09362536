/*
 * From a request to its answer: what is asked, by whom, about which process, whether that may be,
 * and then the route's handler.
 */
#ifndef DAEMON_SERVE_H
#define DAEMON_SERVE_H

struct exchange;

/* Fills the exchange's answer, always. */
void serve(struct exchange *exchange);

#endif
