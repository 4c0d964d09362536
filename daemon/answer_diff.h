/*
 * Who answers with the change from one scan to another.
 */
#ifndef DAEMON_ANSWER_DIFF_H
#define DAEMON_ANSWER_DIFF_H

#include "proto/base/error.h"

struct exchange;

/* since= and over= of the parameters say which scans, of which one at least is wanted. */
struct error *answer_diff(struct exchange *exchange);

#endif
