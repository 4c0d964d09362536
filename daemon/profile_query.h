/*
 * What a request asks of reference chains, from its parameters.
 */
#ifndef DAEMON_PROFILE_QUERY_H
#define DAEMON_PROFILE_QUERY_H

#include "daemon/params.h"

/* ERROR_BAD_REQUEST names a parameter whose value this does not go with. */
must_check struct error *profile_query(const struct params *params, Goheapd__ProfileQuery *ret);

#endif
