/* Answers about objects. */
#ifndef DAEMON_ANSWER_OBJECTS_H
#define DAEMON_ANSWER_OBJECTS_H

#include "proto/base/error.h"

struct exchange;

must_check struct error *answer_histogram(struct exchange *exchange);
must_check struct error *answer_objects(struct exchange *exchange);
must_check struct error *answer_object(struct exchange *exchange);
must_check struct error *answer_dominators(struct exchange *exchange);

#endif
