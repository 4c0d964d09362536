/*
 * Types that we make, since no descriptor has to exist for them. Structs come field by field.
 */
#ifndef AGENT_GORUNTIME_MADE_STRUCT_H
#define AGENT_GORUNTIME_MADE_STRUCT_H

#include <stdint.h>

#include "agent/goruntime/go_type.h"
#include "proto/base/error.h"

struct made_struct {
	struct go_types *types; /* the caller's to set, all else zero */
	uint32_t place;         /* of its details */
	struct go_field *fields;
	uint32_t count, capacity;
	uint64_t end; /* of the last field */
};

/* *ret is TYPE_UNKNOWN if there is no room for it. name stays where it is. */
must_check struct error *made_struct_begin(struct made_struct *made, const char *name,
					   uint32_t capacity, type_id *ret);

/* Fields come by offset; one that would overlap the last is left out. */
must_check struct error *made_struct_add(struct made_struct *made, const char *name,
					 uint64_t offset, type_id type);

/* Gives it its fields and at least that size. */
void made_struct_end(struct made_struct *made, type_id id, uint64_t size);

#endif
