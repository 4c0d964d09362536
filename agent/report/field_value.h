/* One field's value, by the kind of its type. */
#ifndef AGENT_REPORT_FIELD_VALUE_H
#define AGENT_REPORT_FIELD_VALUE_H

#include "agent/report/field_list.h"

/*
 * Sets the field's value from what lies at addr, for a type that is no struct, nor an array of
 * anything but bytes. Where it cannot be had, field->missing says why.
 */
must_check struct error *field_value_read(const struct field_list_input *input, type_id type,
					  taddr addr, Goheapd__ObjectField *field);

/* The same for an array of length bytes at addr. */
must_check struct error *field_value_bytes(const struct field_list_input *input, taddr addr,
					   uint64_t length, Goheapd__ObjectField *field);

/* Why there is no value. */
extern const char field_not_kept[], field_is_contents[], field_type_unknown[], field_is_outside[];

#endif
