/*
 * Who answers with reference chains, and under the names of Go's own profiles.
 */
#ifndef DAEMON_ANSWER_PROFILE_H
#define DAEMON_ANSWER_PROFILE_H

#include "proto/base/error.h"

struct exchange;

struct error *answer_profile(struct exchange *exchange);
struct error *answer_pprof_index(struct exchange *exchange);
struct error *answer_pprof_heap(struct exchange *exchange);
struct error *answer_pprof_goroutine(struct exchange *exchange);

#endif
