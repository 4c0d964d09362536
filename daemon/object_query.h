/*
 * Questions about objects (histogram, objects, object, dominators, what goroutines and globals
 * retain, what types label sets hold) as the agent's Analysis, made of a request's parameters.
 */
#ifndef DAEMON_OBJECT_QUERY_H
#define DAEMON_OBJECT_QUERY_H

#include <stdbool.h>

#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"

struct params;

/* The message together with the part that it points to; bytes are the parameters'. */
struct object_query {
	Goheapd__Analysis analysis;
	union {
		Goheapd__HistogramQuery histogram;
		Goheapd__ObjectsQuery objects;
		Goheapd__ObjectQuery object;
		Goheapd__DominatorsQuery dominators;
		Goheapd__ProfileQuery profile;
		struct {
			Goheapd__ProfileQuery profile;
			Goheapd__HistogramQuery histogram;
		} diff;
	};
};

/* ERROR_BAD_REQUEST names what does not go together. */
typedef struct error *object_query_maker(struct object_query *query, const struct params *params);

object_query_maker object_query_histogram, object_query_objects, object_query_object,
    object_query_dominators, object_query_goroutines, object_query_profile, object_query_diff,
    object_query_memusage, object_query_memusage_text;

/* Nothing is asked: such a query is left away. */
bool object_query_is_empty(const struct object_query *query);

#endif
