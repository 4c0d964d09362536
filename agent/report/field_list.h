/*
 * The fields of an object, decoded by its type: nested structs and arrays flattened, so that each
 * row is a number, a pointer, a string and the like. Bytes (of strings, slices and arrays of bytes)
 * are contents, and told only if they are asked for.
 */
#ifndef AGENT_REPORT_FIELD_LIST_H
#define AGENT_REPORT_FIELD_LIST_H

#include "agent/report/object_type.h"
#include "agent/target/memory.h"

enum { FIELD_LIST_MAX = 4096, FIELD_TEXT_MAX_BYTES = 4096 };

struct field_list_input {
	const struct analysed *analysed;
	struct object_type type;
	taddr address;
	uint64_t size; /* bytes from there to the end of the object's slot */
	bool contents;
};

/*
 * Fills the message's fields and fields_cut. *ret_unread: bytes were not there to be read, so that
 * some fields have no value.
 */
must_check struct error *field_list_fill(const struct field_list_input *input,
					 Goheapd__Object *message, bool *ret_unread);

#endif
