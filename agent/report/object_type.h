/*
 * An object's type and its name, as all reports on objects have it. An array of unknown length, of
 * which a slice is a part, has the name of a slice: "[]main.Order".
 */
#ifndef AGENT_REPORT_OBJECT_TYPE_H
#define AGENT_REPORT_OBJECT_TYPE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/goruntime/go_type.h"
#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"

struct analysed;

enum object_state { OBJECT_LIVE, OBJECT_FINALIZABLE, OBJECT_GARBAGE, OBJECT_STATE_END };

/* Of an allocated object. */
enum object_state object_state(const struct analysed *analysed, uint32_t object);
const char *object_state_name(enum object_state state);

struct object_type {
	type_id type;  /* TYPE_UNKNOWN: nobody could tell */
	bool is_array; /* the object is an array of it, of unknown length */
};

/*
 * Of an allocated object: what the walk found, or if it is not live what the object says of
 * itself.
 */
must_check struct error *object_type(const struct analysed *analysed, uint32_t object,
				     struct object_type *ret);

must_check struct error *object_type_name(const struct go_types *types, struct object_type type,
					  ProtobufCBinaryData *ret);
bool object_type_has_name(const struct go_types *types, struct object_type type,
			  ProtobufCBinaryData name);

#endif
