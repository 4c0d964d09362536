/*
 * One table of what can go wrong, in its three languages: the error codes of our own code, the
 * failure codes of the wire, and the code and status of the HTTP contract.
 */
#ifndef PROTO_WIRE_FAILURE_H
#define PROTO_WIRE_FAILURE_H

#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"

/* How an error travels. Several error codes may share one failure code. */
Goheapd__FailureCode failure_of_error(enum error_code code);

/* What a failure received from the other side is here; unknown numbers are ERROR_SYSTEM. */
enum error_code failure_to_error(Goheapd__FailureCode code);

/* The HTTP contract's code ("no_such_process") and status of a failure. Static. */
const char *failure_name(Goheapd__FailureCode code);
unsigned failure_http_status(Goheapd__FailureCode code);

/*
 * Fills *ret with a failure that borrows err's message: it is good for as long as err is.
 */
void failure_from_error(const struct error *err, Goheapd__Failure *ret);

/* A failure that came over the wire as an error of ours, its message shortened and NUL-free. */
must_check struct error *failure_make_error(const Goheapd__Failure *failure)
    __attribute__((returns_nonnull));

#endif
